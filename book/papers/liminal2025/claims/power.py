"""LIMINAL 2025: its text about power and large batches (section 4.6, Figure 3, Appendix A)."""

import math
from functools import partial

from book.audit.explanations import inputs
from book.audit.grading import WithNote, reproduces
from book.papers.liminal2025 import efficiency, speeds
from book.papers.liminal2025.cells import AS_PRINTED, MANY
from book.papers.liminal2025.efficiency import PICOJOULE
from book.papers.liminal2025.speeds import DRAM, LARGE, LONG, K, active_weights, counted, speed
from inferlib.papers import liminal2025 as model
from inferlib.papers.liminal2025 import load_chip, load_model


@reproduces("Text 4.6")
def _text_4_6():
    oss = load_model("GPT-OSS-120B")
    step = load_model("Llama3-70B"), load_chip("HBM3")
    exposed = [_exposed(*step, batch) for batch in (1, 32)]
    return {
        ("collective", "TP128"): model.collective_latency(MANY),
        "exposed time does not depend on the batch": math.isclose(*exposed),
        ("GPT-OSS-120B", "active parameters"): active_weights("GPT-OSS-120B"),
        ("GPT-OSS-120B", "collectives"): WithNote(
            model.collectives(oss, MANY),
            f"at TP128, which the section is about and Tables 5 and 7 need; {model.collectives(oss, 8):.0f} at TP8",
        ),
        ("GPT-OSS-120B", "layers"): inputs(oss).layers,
        ("experts of a token", "Kimi-K2"): speeds.active_experts("Kimi-K2"),
        ("experts of a token", "DeepSeekV3"): speeds.active_experts("DeepSeekV3"),
    } | {("gain in STPS/W on 3D-DRAM", name): _quoted_gain(name) for name in efficiency.quoted()}


def _exposed(app, chip, batch):
    at = app, chip, batch, LONG, MANY
    longer = max(model.compute_time(*at), model.memory_time(*at))
    return model.batch_time(*at, 1, model.collective_latency(MANY)) - longer


def _quoted_gain(name):
    batch, _ = efficiency.marker(name, "3D-DRAM", LONG)
    system = partial(AS_PRINTED.speed, name, "3D-DRAM", context=LONG, n=MANY, kind=model.system_speed)
    _, shorter = efficiency.marker(name, "3D-DRAM", 32 * K)
    _, beyond = efficiency.marker(name, "3D-DRAM", LONG, beyond=True)
    return WithNote(
        system(batch=batch) / system(batch=1),
        f"batch {batch} at the stated 128K; the first power of two past the loss gives {beyond:.1f}; at 32K the rule "
        f"within the loss gives {shorter:.2f}",
    )


@reproduces("Text 4.6")
def _speeds(holds):
    beyond = speeds.arithmetic_binds()
    extra = max(map(speeds.arithmetic_extra, LARGE))
    holds(
        "at the highest speed arithmetic hides behind memory",
        not {m for bound in beyond.values() for m in bound} & set(DRAM) and extra < 0.1,
        f"on SRAM at 128K {', '.join(beyond)} compute for longer than they read, which is {extra:.0%} of a token's "
        "time at most (asked: a tenth)",
        fair="on the chips of DRAM, and nearly on SRAM",
    )
    oss, rest = "GPT-OSS-120B", [name for name in LARGE if name != "GPT-OSS-120B"]
    active = {name: active_weights(name) / 1e9 for name in LARGE}
    fewer = [name for name in rest if active[name] < active[oss]]
    holds(
        "the fastest model has the fewest active parameters",
        len(fewer) == 1,
        f"{active[oss]:.1f} billion; {fewer[0]} has {active[fewer[0]]:.1f}",
        fair="few: all models but one have more",
    )
    gains = {name: efficiency.marker(name, "3D-DRAM", LONG)[1] for name in LARGE}
    latent = [gains.pop(name) for name in ("DeepSeekV3", "Kimi-K2")]
    small = {name: gains[name] for name in ("Llama3-70B", "Qwen3-30B", oss)}
    holds(
        "DeepSeekV3 and Kimi-K2 gain less than smaller models",
        max(latent) < min(small.values()),
        f"{max(latent):.1f} at 3D-DRAM's marker against {min(small.values()):.1f} and more",
        fair="for large models, as the sentence before says: eight experts, the cause given, do not explain it, since "
        f"Qwen3-30B has eight too and gains {small['Qwen3-30B']:.1f}",
    )
    sram = {name: speeds.sram_wins(name) for name in LARGE}
    hopless = [speeds.without_hops(name) > speed(name, "3D-DRAM", 1, LONG) for name in LARGE]
    holds(
        "SRAM has the highest tokens per second for one user",
        speeds.most(sram.values()),
        f"at 128K and 1 us {counted(sram.values())} ({', '.join(n for n, wins in sram.items() if wins)}), as Table 7 "
        f"prints; without the hops of its pipeline {counted(hopless)}",
    )
    others = [name for name in LARGE if not load_model(name).latent_layers]
    stacked, wide = (
        [efficiency.break_even_power(name, *pair) for name in others]
        for pair in (("3D-DRAM", "HBM4"), ("HBM4", "HBM3"))
    )
    needed = {
        k: efficiency.break_even_energy("Kimi-K2", "HBM4", "HBM3", k * K) / PICOJOULE for k in (4, 32, 128)
    }
    holds(
        "3D-DRAM is the most efficient DRAM, then HBM4; for Kimi-K2 HBM3",
        min(stacked) > 1 and min(wide) > 1,
        f"HBM4 below {min(wide):.1f} times HBM3's watts; for Kimi-K2 HBM3 is ahead of HBM4, if both take the same "
        f"energy for a bit, {', '.join(f'from {pj:.2g} pJ at {k}K' for k, pj in needed.items())}",
        fair=f"without latent attention, and if a 3D chip draws no more than {min(stacked):.2f} to {max(stacked):.2f} "
        "times HBM4's watts, which are not in the text",
    )


@reproduces("Key finding 8")
def _key_finding_8(holds):
    gains = [efficiency.marker(name, "3D-DRAM", LONG)[1] for name in LARGE]
    holds(
        "efficiency grows a lot for a tenth of the speed",
        min(gains) > 2,
        f"3D-DRAM, 128K: {min(gains):.1f} to {max(gains):.1f} times (asked: twice)",
    )


@reproduces("Text 5")
def _text_5(read):
    return {
        "more than 90 % of the variance is explained": lambda read: WithNote(
            read("R2") > 0.9, f"R2 of {read('R2'):.3f}, with one latency fitted for each model"
        ),
    }
