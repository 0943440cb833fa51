"""Computed numbers on the boards of the course."""

from functools import cache

import inferlib
from book.serving import tables
from inferlib import principles
from inferlib.papers import erdil2025, pope2022
from tokenprice import prefill


@cache
def numbers():
    """The numbers on the boards: name to text."""
    llama, h100 = inferlib.load_model("Llama 3 70B"), inferlib.load_chip("H100 SXM")
    profile = principles.profile_of(llama)
    box, work = inferlib.System(h100, 8), inferlib.Workload(batch=32, context=4096)
    held = sum(llama.weight_bytes("bf16").values())
    cache_of_user = 4096 * llama.cache_bytes()
    room = box.count * h100.memory_capacity
    toy, chip = erdil2025.load_model("Llama 3 70B"), erdil2025.load_chip("H100")
    hop = erdil2025.ToyAssumptions().t_hop
    reading = erdil2025.weight_time(toy, chip, 1)
    hops = toy.n_layers * toy.reductions * hop
    palm = pope2022.load_model("PaLM 540B")
    asked = tables.asked()
    qwen = inferlib.load_model("Qwen3 32B")
    alone = principles.memory_time(h100, principles.weight_data(profile, 1), box.count)

    def ends(weights):
        """Context at which memory is full just as a step reaches the chip's ridge point."""
        work, more = (principles.decode_work(profile, 1, context) for context in (0, 1))
        free = room - sum(llama.weight_bytes(weights).values())
        read = principles.weight_data(principles.profile_of(llama, weights), 1)
        per_byte = principles.ridge_point(h100) * (read + free) / free
        return work / (per_byte * llama.cache_bytes() - (more - work))

    return {
        "bandwidth": f"{h100.memory_bandwidth / 1e12:.2f}",
        "peak": f"{h100.flops / 1e12:.0f}",
        "ridge": f"{principles.ridge_point(h100):.0f}",
        "critical": f"{principles.critical_batch(h100, profile):.0f}",
        "bound": f"{1e3 * principles.decode_step(llama, box, work).total:.1f}",
        "weights": f"{held / 1e9:.1f}",
        "room": f"{room / 1e9:.0f}",
        "left": f"{(room - held) / 1e9:.1f}",
        "token_cache": f"{llama.cache_bytes() / 1024:.0f}",
        "token_bytes": f"{llama.cache_bytes():,.0f}",
        "more": f"{100 * held / 2 / (room - held):.0f}",
        "user_cache": f"{cache_of_user / 1e9:.3f}",
        "fits": f"{(room - held) // cache_of_user:.0f}",
        "fits_longer": f"{(room - held) // (8 * cache_of_user):.0f}",
        "ends": f"{round(ends('bf16'), -1):,.0f}",
        "ends_8_bits": f"{round(ends('fp8'), -1):,.0f}",
        "qwen_weights": f"{qwen.n_params / 1e9:.2f}",
        "qwen_cache": f"{qwen.cache_bytes() / 1024:.0f}",
        "qwen_fits": f"{principles.largest_batch(qwen, box, work):.0f}",
        "alone": f"{1e3 * alone:.2f}",
        "staged": f"{4e3 * alone:.2f}",
        "reading": f"{1e3 * reading:.0f}",
        "hops": f"{1e3 * hops:.2f}",
        "ratio": f"{reading / hops:.0f}",
        "size": f"{erdil2025.optimal_n_gpu(toy, chip, hop):.0f}",
        "fastest": f"{1e3 * erdil2025.minimum_latency(toy, chip, hop):.1f}",
        "width": f"{palm.d_model:,.0f}",
        "hidden": f"{palm.d_ff:,.0f}",
        "prompt": f"{1e3 * asked.prompt.total:.0f}",
        "answer": f"{1e3 * asked.output_seconds:.0f}",
        "between": f"{1e3 * asked.tpot:.0f}",
        "step": f"{1e3 * asked.step.total:.2f}",
        "others": f"{1e3 * prefill.prefill_interference(33, 1000, 0.1):.1f}",
        "input": f"{asked.per_million['input']:.2f}",
        "output": f"{asked.per_million['output']:.2f}",
    }
