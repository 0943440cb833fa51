"""What a source does not describe, and what does not fit: it says so, with its reason, and guesses nothing."""

import pytest

from inferlib import System, load_chip
from tokenprice import ask

L70, V3, MIXTRAL = "Llama 3 70B", "DeepSeek V3", "Mixtral 8x7B"
ALONE = System(load_chip("TPU v4"), 8, domain=1)


@pytest.mark.parametrize(("source", "model", "machine", "more", "status", "reason"), [
    ("steinhardt2022", L70, "1x H100", {}, "infeasible", "141 GB"),
    ("steinhardt2022", L70, "8x H100", {"layout": "TP4 PP2"}, "n/a", "over all 8 chips"),
    ("steinhardt2022", L70, "8x H100", {"layout": "TP8"}, "ok", ""),
    ("steinhardt2022", L70, ALONE, {}, "n/a", ""),
    ("steinhardt2022", V3, "32x H200", {}, "n/a", "dense"),
    ("pope2022", V3, "32x H200", {}, "n/a", "dense"),
    ("pope2022", L70, "16x H100", {}, "n/a", "domains of 8"),
    ("pope2022", L70, "8x H100", {"layout": "TP4 DP2"}, "n/a", "all 8 chips"),
    ("pope2022", L70, "1x H100", {}, "infeasible", "141.1 GB of weights"),
    ("pope2022", L70, "8x H100", {"batch": 256, "context": 32768}, "infeasible", ""),
    ("erdil2025", L70, "64x TPU v4", {}, "n/a", "GPU"),
    ("erdil2025", "GPT-OSS 120B", "8x H100", {}, "n/a", "windows"),
    ("erdil2025", MIXTRAL, "8x H100", {"layout": "TP8"}, "n/a", ""),
    ("erdil2025", MIXTRAL, "8x H100", {"layout": "EP8"}, "ok", ""),
    # 137 GB, and 320 KiB for each of four million tokens
    ("liminal2025", L70, "8x H100", {"batch": 1000}, "infeasible", "1479 GB of weights and cache exceed the 640 GB"),
    # a batch of 300 fits once, but each of the two stages holds one
    ("liminal2025", L70, "8x H100", {"batch": 300, "layout": "TP4 PP2"}, "infeasible", "exceed"),
    ("liminal2025", L70, "8x H100", {"weights": "int4"}, "n/a", "no arithmetic peak in int4"),
    ("liminal2025", L70, "8x H100", {"layout": "TP4"}, "n/a", "tp * pp is 4"),
    ("liminal2025", L70, "8x H100", {"layout": "TP8 EP8"}, "n/a", "give tp and pp only"),
    ("liminal2025", L70, "256x H100", {}, "n/a", "stops at 128 chips"),
    ("mazurek2025", V3, "8x H100", {}, "infeasible", "weights"),
    ("mazurek2025", MIXTRAL, "8x H100", {}, "n/a", "latent attention only"),
    ("mazurek2025", V3, "8x H200", {"layout": "TP8"}, "n/a", "spreads experts over all 8"),
    ("mazurek2025", V3, "8x A100", {}, "n/a", "no fp8 peak"),
    ("mazurek2025", V3, "12x H200", {}, "n/a", "not a multiple of 8"),
])  # fmt: skip
def test_a_source_that_has_no_time_has_a_reason(source, model, machine, more, status, reason):
    found = ask(model, machine, by=source, **{"batch": 32, "context": 4096} | more)
    assert found.status == status and reason in found.reason
