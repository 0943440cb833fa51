"""Ask a vendor's planner about the dense rows of serving.csv, for the kernel model's chapter.

Needs ``pip install aiconfigurator==0.12.0`` (NVIDIA, Apache-2.0) in an environment of its own; prints planner.csv,
without rows that do not fit by its estimate. For dense models each format has one name in the planner; for mixtures of
experts several of its tables could apply, with different answers.
"""

import csv
from contextlib import suppress
from pathlib import Path

from aiconfigurator.cli.api import cli_estimate

MODELS = {"Llama 3 8B": "meta-llama/Meta-Llama-3.1-8B", "Qwen3 32B": "Qwen/Qwen3-32B"}
SYSTEMS = {"H100 SXM": "h100_sxm", "H200": "h200_sxm", "B200": "b200_sxm", "B300": "b300_sxm"}
ENGINES = {"TensorRT-LLM": "trtllm", "vLLM": "vllm", "SGLang": "sglang"}
FORMATS = {"bf16": "bfloat16", "fp8": "fp8", "fp8 block": "fp8_block"}


def milliseconds(row):
    """Return the planner's TPOT in milliseconds, with its default tables."""
    return cli_estimate(
        MODELS[row["model"]],
        SYSTEMS[row["hardware"]],
        backend_name=ENGINES[row["engine"]],
        isl=round(float(row["prompt_tokens"])),
        osl=round(float(row["output_tokens"])),
        batch_size=int(row["concurrency"]),
        tp_size=int(row["tp"]),
        gemm_quant_mode=FORMATS[row["weights"]],
        kvcache_quant_mode=FORMATS[row["cache"]],
    ).tpot


def main():
    path = Path(__file__).parents[1] / "book" / "measured" / "serving.csv"
    print("id,tpot_ms")
    for row in csv.DictReader(path.read_text("utf-8").splitlines()):
        if row["model"] in MODELS:
            with suppress(RuntimeError):
                print(f"{row['id']},{milliseconds(row):.5g}")


if __name__ == "__main__":
    main()
