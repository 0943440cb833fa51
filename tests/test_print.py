"""What the sources print and what does not come out: one table of rows, for all of them."""

import pytest

from book import audit
from book.audit import grading, published_rows
from book.import_tracking import ROOT

MONTE_CARLO = {
    "4K": [
        "Llama4-Scout",
        "Llama4-Maverick",
        "DeepSeekV3",
        "Qwen3-30B",
        "Qwen3-235B",
        "Kimi-K2",
        "GPT-OSS-20B",
        "GPT-OSS-120B",
    ],
    "128K": ["Llama4-Maverick", "DeepSeekV3", "Qwen3-235B", "Kimi-K2", "GPT-OSS-20B", "GPT-OSS-120B"],
}  # cells of Table 4 that depend on the draws of the authors
# Places of rows that are neither exact nor consistent, and statements that do not simply hold, by grade.
MISSES = {
    "steinhardt2022": {
        "20%": {
            ("Batching", "memory", "time"),
        },
        "loosely worded": {
            "either branch can apply to current machines, the first to TPU pods",
            "the formula is the larger of its two terms",
            "N chips: memory reads of C^2 N / B^2 and operations of C^3 N / (B^2 M) per machine",
            "the serial time barely increased",
            "doing without the batch of 3C / M is effectively the same",
            "without a cache, C tokens of context cost C times as much",
            "the time falls cubically with the network and memory bandwidth",
        },
    },
    "pope2022": {
        "1%": {
            ("Table 1", "Multihead", "batch 128"),
            ("Table 1", "Multihead", "batch 512"),
            ("Table 1", "Baseline multiquery", "batch 128"),
            ("Table 1", "Baseline multiquery", "batch 512"),
        },
        "5%": {
            ("Table D.4", "batch 64", "MT-NLG total, MFU"),
            ("Table D.4", "batch 1024", "MT-NLG total, MFU"),
        },
        "20%": {
            ("Text 4.4", "latency grows with this power of model size", ""),
            ("Text 5", "PaLM over Megatron within one latency, in MFU: up to", ""),
            ("Table D.4", "batch 8", "MT-NLG total, MFU"),
            ("Table D.4", "batch 16", "MT-NLG total, MFU"),
            ("Table D.4", "batch 128", "MT-NLG total, MFU"),
            ("Table D.4", "batch 256", "MT-NLG total, MFU"),
        },
        "loosely worded": {
            "a new Pareto frontier that outperforms FasterTransformer",
            "loading the cache takes longest at 2048 tokens and a batch of 512",
            "2D beats 1D when the root of the chips exceeds F/E",
            "beyond 512 tokens neither multihead nor the baseline fits",
            "a batch of 64 hardly costs latency in generation",
            "prefill uses the layout over heads",
            "the cache is orders of magnitude larger than Q, K and V",
        },
    },
    "erdil2025": {
        "1%": {
            ("Table 3", "DeepSeek-V3", "batch"),
        },
        "off": {
            ("Text 4", "drafts cut the latency of Llama 3 70B", "factor"),
            ("Text 5.1", "prefill utilisation over that of decoding", "factor"),
        },
        "loosely worded": {
            "both models are served within a factor of 2 of the most tokens per second",
            "both models are sold at less than twice their cost",
            "equation 18 is a good approximation for large models",
            "the frontier is wider than a factor of 3 because of network bandwidth",
            "the PaLM latencies follow the square root almost exactly",
            "bandwidth takes longer than latency only beyond the critical batch",
            "bytes reduced have the precision of the parameters (eq. 25)",
            "frontiers beyond that speed do not depend on memory capacity",
            "alpha makes the served speeds the preferred ones",
            "Figure 5 and the tables assume 2 dollars for a GPU and hour",
            "8-bit weights multiply faster, which helps A100 and H100 at large batches",
            "the arithmetic of a much smaller draft is negligible",
            "providers without drafts cannot compete",
            "drafts are used throughout",
            "instances shrink to half with each new generation of GPUs",
            "utilisation without grouped-query attention is below 1 %",
            "latent attention raises arithmetic by many times, its latent being much wider than a head",
            "latent attention waits for its arithmetic from ten thousand tokens",
            "no factor is adjusted by hand",
        },
        "does not hold": {
            "b* gives both the smallest cost and the smallest latency of an instance",
            "there is no reason for pipeline parallelism beside data parallelism",
            "experts are spread whenever GPUs are fewer than experts",
            "the equations are the notebook's 2D case without pipeline and experts",
            "all batches are 1",
            "the points of Tables 3 and 6 maximise equation 45 with alpha 4",
        },
    },
    "liminal2025": {
        "1%": {
            *(
                ("Table 4", model, f"AMI T={context} B=32")
                for context, models in MONTE_CARLO.items()
                for model in models
            ),
        },
        "5%": {
            ("Introduction", "challenge 1", "memory for a model over 100B"),
            ("Key finding 1", "memory for a model over 100B", ""),
        },
        "20%": {
            ("Text 4.1", "memory for one user of a model over 100B", "4K"),
            ("Text 4.4", "gain", ""),
        },
        "off": {
            ("Introduction", "challenge 1", "memory for 32 users of such a model"),
            ("Text 3", "HBM3", "tensor engine"),
            ("Key finding 1", "memory for 32 users", ""),
            ("Text 4.6", "GPT-OSS-120B", "collectives"),
            ("Text 4.6", "gain in STPS/W on 3D-DRAM", "Qwen3-30B"),
            ("Text 4.6", "gain in STPS/W on 3D-DRAM", "DeepSeekV3"),
            ("Text 4.6", "gain in STPS/W on 3D-DRAM", "Kimi-K2"),
            ("Text 4.7", "use of the tensor engine at low batch", ""),
        },
        "loosely worded": {
            "beyond 10,000 tokens per second hardware alone is not enough",
            "challenge 2: HBM3 plateaus there",
            "Qwen 3: the primary architecture is GQA+MoE*",
            "batches stay between 1 and 128",
            "every intensity is low: serving is bound by memory",
            "even at large batch most LLMs reach 10,000 tokens per second",
            "at the highest speed arithmetic hides behind memory",
            "the fastest model has the fewest active parameters",
            "DeepSeekV3 and Kimi-K2 gain less than smaller models",
            "3D-DRAM is the most efficient DRAM, then HBM4; for Kimi-K2 HBM3",
            "3D-DRAM doubles or triples tokens per second",
        },
        "does not hold": {
            "TP128 needs more collectives in all LLMs",
            "nearly all models gain less than 2x",
            "SRAM has the highest tokens per second for one user",
        },
    },
    "mazurek2025": {
        "1%": {
            ("Text 2.1", "parameters of expert layers", ""),
            ("Text 2.1", "share of expert layers", ""),
            ("Text 3", "share of expert weights", ""),
            ("Text 3.1.1", "attention weights of one layer", ""),
        },
        "5%": {
            ("Text 3.1.2", "one expert", ""),
        },
        "20%": {
            ("Text 3.1.2", "activations of one sequence", ""),
        },
        "off": {
            ("Text 1", "cache of one token", "Qwen3 32B"),
            ("Text 1", "cache of other models over DeepSeek's", ""),
            ("Figure 5", "shared experts", ""),
        },
        "loosely worded": {
            "active parameters grow nearly linearly with the batch",
            "more nodes make each node faster",
            "a token's traffic in a layer is d times all experts",
            "extra experts must be a multiple of the GPUs",
            "beyond that batch the model is loaded in full",
            "the head is always memory-bound",
            "the vocabulary is much larger than 100,000",
            "agreement with measurements is reasonable",
            "the context matters little for decode",
            "Kimi K2 is DeepSeek V3 with more experts",
            "Kimi K2 is slower",
        },
        "does not hold": {
            "balls into bins works fairly well where many experts are active",
        },
    },
}
# What the note of a row says: the number behind it.
NOTES = {
    "steinhardt2022": {
        "568 of 4096": "either branch can apply to current machines, the first to TPU pods",
        "38%": "either branch can apply to current machines, the first to TPU pods",
        "-0.087 us at 1.5 M": "the formula is the larger of its two terms",
        "1.83 times": "the formula is the larger of its two terms",
        "256 times the work": "the serial time barely increased",
        "2.5 times faster": "doing without the batch of 3C / M is effectively the same",
        "weights are read once": "without a cache, C tokens of context cost C times as much",
    },
    "liminal2025": {
        "28K (GPT-OSS-120B) on 128 chips": "50,000 tokens per second are out of reach of hardware",
        "46K on eight": "50,000 tokens per second are out of reach of hardware",
    },
    "mazurek2025": {
        "163.84 KB would be 40 layers": "cache of one token",
        "671 - 10, all but attention, is 661": "parameters of expert layers",
        "661 / 671 is 98.5%": "share of expert layers",
        "add up to 187.2": "attention weights of one layer",
        "is 1.35": "activations of one sequence",
        "rounds to is 45": "one expert",
        "gives 2.78": "2x8 H100, shared expert on one GPU",
        "5400 tokens, literal up to 4350": "there 4x8 H100 is faster per GPU than 9x8 H100",
        "literally 9.7%": "agreement with measurements is reasonable",
    },
}
# Numerals of a source, in its order, all of which stand in published.csv.
NUMERALS = {
    "steinhardt2022": (
        "10 1000 1 5 40 2 100-200 54 8 3 312 7e-07 1.2e-06 30-50 1.5 4-5 160 0.7 250 1024 8192-16384 64-256 "
        "512-2048 4096 1-2 2048 6-12 16 29 0.5 8192 400 0.02 330 1.6 200 256 12 0.56 0.06 128 350 25 4 6 100 "
        "33"
    ),
    "mazurek2025": (
        "671000000000.0 37000000000.0 8 61 3 58 256 257 1 70 163 516 2-7 7168 2048 3.5 28672 8192 18432 512 "
        "163840 128 1536 64 129280 661000000000.0 98.5 72 9 32 10 2 11.0 25.2 12.6 3.7 8.4 0.5 117.4 187.2 "
        "11.4 0.9 1.4 14.7 45 132 396 1.2 31 1.9 0.0118 450 50 400 25 900 2.7 16 40 1.25 66 1.5 1550 1980 1.3 "
        "2.0 48 4 12 1024 20 32768 279 4989 56.3"
    ),
    # https://arxiv.org/abs/2507.14397: the error of the abstract and of section 5, and the microseconds of a layer
    "liminal2025": "7.6 95-138 114",
}
# Numbers that errata and notes fill in.
TOLD = {
    "steinhardt2022": (
        "1248 1024 2496 2048 1.83 373 403 441 1.7 0.07 0.60 137 27.5 7.0 6.9 6.7 14% 3.94 2.5 25% 1.4 3.0 1.20 16,384 "
        "5.7% 1.31 1.55"
    ),
    # by the author's own program: DeepSeek-V3's cheapest token $0.0305 with pipelines, $0.0714 without; 1 August 2024
    "erdil2025": "57% 0.8% 80.02 133.32 +66.6% 2.00 +38.7% 14",
    "liminal2025": "46K 28K 35.6B 30.3B 559 930 871 26.3 14.4 17.5% 8.0%",
    "mazurek2025": (
        "7% 15.4 656.6B 97.8 187.1 1.31 44.0 98.0% 262 327.68 2.67 -23.5% 18% 24.7% 9.7% 11.41 826 28.9% 1.94"
    ),
}


@pytest.mark.parametrize("source", MISSES)
def test_exactly_these_rows_do_not_come_out(source):
    card = audit.scorecard(source)
    graded = card[card.kind.isin(["model", "derived", "identity", "claim"])]
    fine = ["exact", "consistent", "holds", "-"]
    missed = graded[~graded.grade.isin(fine)].itertuples()
    found = {r.row if r.kind == "claim" else (r.artefact, r.row, r.column): r.grade for r in missed}
    assert found == {place: grade for grade, places in MISSES[source].items() for place in places}


@pytest.mark.parametrize("source", NOTES)
def test_a_note_has_the_number_behind_a_row(source):
    card = audit.scorecard(source)
    for words, row in NOTES[source].items():
        assert card[card.row == row].note.str.contains(words, regex=False).any(), words


@pytest.mark.parametrize("source", NUMERALS)
def test_every_number_of_the_text_has_a_row(source):
    printed = {str(value).replace(",", "") for value in audit.scorecard(source).printed}
    assert set(NUMERALS[source].split()) <= printed


@pytest.mark.parametrize("source", TOLD)
def test_numbers_of_errata_and_notes(source):
    tables = audit.errata(source), audit.notes(source)
    text = " ".join(str(cell) for table in tables for cell in table.to_numpy().ravel())
    assert [number for number in TOLD[source].split() if number not in text] == []


@pytest.mark.parametrize("source", MISSES)
def test_a_result_that_is_far_off_is_objected_to(source):
    card = audit.scorecard(source)
    assert set(card[(card.grade == "off") & (card.right != "no")].kind) <= {"identity", "measured"}


# Printed in words or as a fraction, where published.csv holds a decimal or a count of tokens.
IN_WORDS = {
    "0.06": "a range of one digit, .06", "0.667": "2/3", "0.333": "1/3", "0.25": "1/4", "0": "a single chip",
    "4,096": "4K", "131,072": "128K",
}  # fmt: skip


@pytest.mark.parametrize("source", grading.sources())
def test_every_printed_number_stands_in_the_text_of_its_source(source):
    """``numerals.txt`` has the distinct numbers of the text; 1,515 of 1,527 values stand there as they are."""
    numerals = set(map(float, (ROOT / f"book/papers/{source}/numerals.txt").read_text().split()))
    rows = [row for row in grading.published(source).values() if row.text not in ("true", "false", "-")]
    missing = {row.place: row.text for row in rows if not published_rows.stands_in(row.text, numerals)}
    assert set(missing.values()) <= set(IN_WORDS), missing
    assert len(missing) <= 7
