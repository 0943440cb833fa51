"""Erdil 2025, sections 3 to 5: what the text prints, the equations as printed, and what the errata say."""

import math
import random

import pytest

import inferlib
from book.erdil2025 import economics, errata_model
from book.erdil2025.claims import (
    context as text_context,
    economics as text_economics,
    model as text_model,
    parallel as text_parallel,
    takeaways as text_takeaways,
)
from inferlib import ledger
from inferlib.papers import erdil2025 as e
from inferlib.papers.erdil2025.equations import printed
from inferlib.papers.erdil2025.records import computing_at
from inferlib.units import factor

H100 = e.chips["H100"]
EARLIER = ("Text 1", "Text 2.1", "Text 2.2.1", "Text 2.2.2", "Text 2.2.3", "Figure 1", "Figure 2", "Table 1")
NAMED = {  # what misses, and where the errata name it
    ("Table 3", "DeepSeek-V3", "batch"): None,  # rounded twice
    ("Text 3.1", "latent attention waits for arithmetic at long context", ""): "latent attention",
    ("Text 3.4", "bandwidth takes longer than latency only beyond the critical batch", ""): "equation 24",
    ("Text 3.4", "bytes reduced have the precision of the parameters (eq. 25)", ""): "equation 25",
    ("Text 3.4", "nodes in intra-node network reads", "exponent (eq. 27)"): "equation 27",
    ("Text 3.5", "there is no reason for pipeline parallelism beside data parallelism", ""): "pipeline",
    ("Text 3.5", "experts are spread whenever GPUs are fewer than experts", ""): "expert parallelism",
    ("Text 3.6", "the equations are the notebook's 2D case without pipeline and experts", ""): "29 to 44",
    ("Text 4", "drafts cut the latency of Llama 3 70B", "factor"): "speculative decoding of Llama",
    ("Text 4", "alpha makes the served speeds the preferred ones", ""): None,  # its data are not printed
    ("Text 4", "the tables assume 2 dollars for a GPU and hour", ""): "rent of an H100",
    ("Figure 5", "the curves assume 2 dollars for a GPU and hour", ""): "rent of an H100",
    ("Text 4", "a new generation of GPUs", "factor by which instances shrink"): "instance size",
    ("Table 2", "all batches are 1", ""): "batch of 1",
    ("Table 2", "drafts are used throughout", ""): "caption: speculative decoding",
    ("Table 3", "the points maximise equation 45 with alpha 4", ""): "Tables 3 and 6",
    ("Table 6", "the points maximise equation 45 with alpha 4", ""): "Tables 3 and 6",
    ("Text 4.1", "gain of drafts at one cost", "Llama 3 70B"): "gain of drafts",
    ("Text 4.1", "gain of drafts at one cost", "Llama 3.1 405B"): "gain of drafts",
    ("Text 4.3", "cost at full utilisation", ""): "utilisation",
    ("Text 4.3", "utilisation at Table 6's 16-bit point", ""): "utilisation",
    ("Text 4.3", "input tokens are cheaper", "factor"): "utilisation",
    ("Text 5.1", "latency saved by doubling the bandwidth", ""): "takeaway 3",
    ("Text 5.1", "drafts cut the latency at one cost", "factor"): None,  # 2.1 where "2" is printed
    ("Text 5.1", "latency saved by halving the precision", ""): None,  # 18 where "around 20" is printed
    ("Text 5.2", "group size that overcomes it", ""): "group sizes",
    (
        "Text 5.2",
        "latent attention waits for its arithmetic from ten thousand tokens",
        "",
    ): "latent attention",
    ("Text 5.2", "no factor is adjusted by hand", ""): None,  # a matter of words
}


def computed(artefact, name, column=""):
    """What is computed for one printed row, in its unit."""
    row = ledger.published("erdil2025")[artefact, name, column]
    return ledger.compute(row)[0] / factor(row.unit)


def test_what_misses_is_what_the_errata_name():
    card = inferlib.scorecard("erdil2025")
    missed = card[~card.grade.isin(["exact", "holds", "-"]) & ~card.artefact.isin(EARLIER)]
    assert set(zip(missed.artefact, missed.row, missed.column, strict=True)) == set(NAMED)
    places = inferlib.errata("erdil2025").place
    for name in filter(None, NAMED.values()):
        assert places.str.contains(name, regex=False).any(), name


def test_every_printed_section_has_rows():
    artefacts = set(inferlib.scorecard("erdil2025").artefact)
    assert artefacts >= {"Abstract", *(f"Text 3.{i}" for i in range(1, 7)), "Text 4", "Text 4.1", "Text 4.2"}
    assert artefacts >= {"Text 4.3", "Text 5.1", "Text 5.2", *(f"Table {i}" for i in range(1, 7))}
    assert artefacts >= {f"Footnote {i}" for i in (4, 5, 6, 7, 8, 11, 12)}


def test_all_equations_are_listed():
    assert set(inferlib.equations("erdil2025").number) >= {str(n) for n in range(1, 47)}


@pytest.mark.parametrize("name", ["GPT-3", "GPT-J 6B", "Falcon 180B"])
def test_printed_equations_are_the_2d_layout(name):
    """Equations 30 to 44 put together, and one layout of the general model read literally."""
    shape, draw = e.models[name].shape, random.Random(4)
    chip = computing_at(H100, shape)
    for _ in range(100):
        n_gpu, batch = 2 ** draw.uniform(1, 12), 2 ** draw.uniform(0, 12)
        context = draw.choice([0.0, 10 ** draw.uniform(2, 5)])
        general = e.layout_latency(
            shape, chip, e.Cut(kind="2D"), n_gpu, batch, context, 1, e.PRINTED_EQUATIONS
        )
        assert printed.printed_latency(shape, chip, n_gpu, batch, context) == pytest.approx(
            general, rel=1e-12
        )


def test_where_printed_equations_and_layouts_part():
    """A single GPU waits for equation 40's base though it has nobody to reduce with; SwiGLU has more to move."""
    shape = e.models["GPT-3"].shape
    chip = computing_at(H100, shape)
    at = (1.0, 1.0, 0.0)
    alone = e.layout_latency(shape, chip, e.Cut(kind="2D"), *at, 1, e.PRINTED_EQUATIONS)
    assert printed.printed_latency(shape, chip, *at) - alone == pytest.approx(96 * 4 * 6.8e-6)
    gated = e.models["Llama 3 70B"].shape
    general = e.layout_latency(
        gated, chip, e.Cut(kind="2D"), 64, 64, 0, 1, e.PRINTED_EQUATIONS
    )  # computes with 16 bits either way
    assert printed.printed_latency(gated, chip, 64, 64, 0) < general


def test_printed_equations_by_hand():
    """GPT-3: 96 layers of 12 d^2 weights; the example of equation 24; the nodes of equations 27 and 42."""
    gpt = e.models["GPT-3"].shape
    weights = 96 * 12 * 12288**2 + 50257 * 12288
    assert printed.active_parameters(gpt, 1) == printed.parameters_read(gpt, 1, 5) == pytest.approx(weights)
    mixtral = e.models["Mixtral 8x22B"].shape
    assert printed.parameters_read(mixtral, 4, 1) == pytest.approx(printed.active_parameters(mixtral, 4))
    assert printed.bytes_reduced(gpt, 3, 2) == (3 * 12288 + 2 * 12288 + 49152) * 3 * 96 * 2
    assert printed.inputs_and_outputs_read(gpt, 1) == 96 * (8 * 12288 + 2 * 49152)
    assert printed.cache_elements_read(gpt, 100, 2) == 2 * 12288 * 96 * 100 * 2
    assert printed.attention_flop(gpt, 100, 4) == 4 * 96 * 12288 * 100
    wide = gpt.replace(d_model=10_000)
    extra = printed.extra_all_reduce_time(wide, H100, text_model.LL, 8, 100)
    assert extra == pytest.approx(2 * 10_000 * 100 * 7 / (8 * 112.5e9))
    assert printed.inter_node_reads(9, 5.0) == 20 and printed.intra_node_reads(36, 9, 5.0) == 30
    assert printed.intra_node_reads_of_all_nodes(36, 9, 5.0) == 90
    assert printed.transfer_time(H100, 2, 100e9, 900e9) == pytest.approx(1 + 1)
    assert printed.network_and_kernel_time(gpt, 4, 4e-6, 1.0) == pytest.approx(1 + 96 * 16e-6)
    assert printed.network_communication_time(gpt, 4, 1e-6, 1.0) == pytest.approx(1 + 96 * 4e-6)
    assert printed.all_reduce_latency(text_model.LL, 64, 4) == pytest.approx((6.8 + 1.2 * 3 + 10) * 1e-6)
    assert printed.bytes_read(gpt.replace(weight_bytes=1.0), 3, 5) == 13
    assert printed.activations_read(2, 3) == 5 and printed.total_flop(2, 3, 4) == 14


def test_preferred_point_maximises_equation_45():
    curve = economics.curve("Llama 3 70B 8-bit")
    worth = printed.value(curve.tokens_per_second, curve.usd_per_million, 3)
    assert curve.iloc[worth.argmax()].equals(e.preferred(curve, 3))


def test_text_by_hand():
    """The sums of section 4.3 and the bound of 3.5, from the printed figures alone."""
    assert computed("Text 3.5", "speed beyond which memory capacity cannot matter") == pytest.approx(41.25)
    assert computed("Text 4.3", "Mistral Large 2", "cache of a token") == pytest.approx(
        2 * 8 * 128 * 88 * 2 / 1e3
    )
    assert computed("Text 4.3", "DeepSeek-V3", "cache of a token") == pytest.approx(58 * 512 * 2 / 1e3)
    price = computed("Text 4.3", "Mistral Large 2", "price of reading the cache")
    assert price == pytest.approx(36e15 / 3.3e12 / 3600 * 2)
    full = 2 * (e.models["Llama 3 70B"].n_params - 128256 * 8192) * 1e6 / 1e15 / 3600  # hours on one H100
    assert computed("Text 4.3", "cost at full utilisation") == pytest.approx(2 * full)


def test_the_question_of_the_introduction():
    """At N = 8 the better of two answers costs a little speed or a little utilisation."""
    (share, batch), (speed, smaller) = text_takeaways.dgx_question()
    assert 0.18 < share < 0.2 and 74 < speed < 75 and smaller < batch
    seconds = e.token_latency(e.models["Llama 3 70B"], H100, 8, batch)
    assert 1 / seconds == pytest.approx(70, rel=2e-3)
    assert text_context.utilisation("Llama 3 70B", H100, 8, smaller) == pytest.approx(0.15, rel=2e-3)


def test_latent_attention_by_hand():
    needs, has = text_model.bytes_and_flop_of_latents()
    assert needs == 4 * 128 * 512 / (512 * 2) and has == pytest.approx(1.4e15 / (0.75 * 3.3e12))
    assert needs < text_model.bytes_and_flop_of_latents("bf16")[1]
    assert text_takeaways.arithmetic_bound_from(1) is None
    # Two tokens a pass are not enough at 8 bits, three are.
    assert text_takeaways.arithmetic_bound_from(2) is None and text_takeaways.arithmetic_bound_from(3) > 1e4
    assert text_takeaways.arithmetic_bound_from(4, "bf16") < text_takeaways.arithmetic_bound_from(4)
    # 35.5 billion active parameters, 4 x 128 x 512 FLOP a layer and token of context.
    assert text_takeaways.more_than_weights() == pytest.approx(2 * 35.5e9 / (4 * 128 * 512 * 58), rel=2e-3)


def test_long_context_needs_no_model():
    """The best utilisation at long context is 2 g / precision over the chip's FLOP for a byte."""
    for name, group in (("Llama 3 70B", 8), ("Mistral Large 2", 12)):
        capped = group * 0.75 * 3.3e12 / 1e15
        share = text_context.utilisation(name, text_model.UNLIMITED, 8, 1, context=1e8)
        assert share == pytest.approx(capped, rel=0.01)
    assert text_context.best_utilisation(H100) == pytest.approx(3.3e12 / 1e15)


def test_gain_at_one_cost_reads_frontiers_as_a_customer_would():
    import pandas as pd

    slow = pd.DataFrame({"tokens_per_second": [100.0, 50.0, 10.0], "usd_per_million": [9.0, 3.0, 1.0]})
    assert text_parallel.at_cost(slow, [10, 9, 8.9, 3, 1]).tolist() == [100, 100, 50, 50, 10]
    fast = slow.assign(tokens_per_second=2 * slow.tokens_per_second)
    assert text_parallel.gains(slow, fast) == (1, 1, 1)


def test_errata_numbers_follow_from_print():
    """Where the errata compare cells, the counts are those of the tables."""
    assert errata_model.cells_as_printed("Table 6", 3) == (12, 12)
    assert errata_model.cells_as_printed("Table 3", 3) == (19, 20)  # one cell is rounded twice
    assert errata_model.cells_as_printed("Table 6", 4)[0] < 3
    assert errata_model.cells_as_printed("Table 6", 3, dollars=2.0)[0] == 9  # no cost is left
    numbers = errata_model.numbers()
    assert numbers["kv_heads"] == "16" and numbers["kv_heads_meta"] == "8" and numbers["cache_times"] == "2"
    assert float(numbers["mistral_sound"]) > 1.3 * float(numbers["mistral_printed"])
    assert float(numbers["deepseek_sound"]) > 1.3 * float(numbers["deepseek_printed"])


def test_long_context_ends_do_not_fit():
    """The cheap ends of Figures 9 and 10 hold far more cache than their memory takes."""
    curve = economics.curve("Mistral Large 2", context=text_context.LONG)
    at = curve.iloc[-1]
    assert e.models["Mistral Large 2"].cache_bytes * 1e5 * at.batch > 10 * at.n_gpu * 80e9
    assert at.usd_per_million < 0.75 * text_context.cheap_ends("Mistral Large 2", text_context.LONG)


def test_pipelines_pay_for_drafts_only():
    gains = text_parallel.pipeline_gains()
    assert gains["Llama 3 70B 8-bit"][1] < 0.01 < gains["GPT-4"][0]


def test_size_and_bandwidth_in_the_complete_model():
    assert 0.5 < text_takeaways.size_exponent() < 0.6
    saved = text_takeaways.doubled_bandwidth()
    assert max(saved.values()) < 0.2 and not math.isclose(saved["Llama 3 70B"], saved["GPT-3"])


def test_generations_and_drafts():
    found = text_economics.generation_gains()
    for mean, low, high, _ in found.values():
        assert 1.1 < low <= mean <= high < 1.4
    assert text_economics.drafting_gains()[1] < 0.5
