"""Aliases of options: names in vLLM, SGLang, TensorRT-LLM and GuideLLM, and names of earlier versions.

Verbs and the terminal accept them. A name that means something else in those programs raises an error that says what to
use instead.
"""

from inferlib.validation import short

# Names in the first versions of this package.
FORMER = {
    "prompt": "prompt_tokens", "output": "output_tokens", "users": "concurrency", "arrivals": "request_rate",
    "machines": "replicas", "rounds": "requests_per_user", "equal": "fixed_lengths", "hold": "batching_wait_iters",
    "memory": "memory_utilization", "cache": "kv_cache_dtype", "keep": "layer_formats", "drafted": "draft_tokens",
    "length": "acceptance_length", "reader": "prefill_machine", "chunk": "max_num_batched_tokens",
    "prefill_chunk": "max_num_batched_tokens", "highest": "price_max", "utilisation": "paid_hours_used",
    "token": "tpot", "first_token": "ttft", "token_p99": "tpot_p99", "first_token_p99": "ttft_p99",
    "dollars": "usd_per_million",
}  # fmt: skip
# Names in other programs.
OTHERS = {
    "isl": "prompt_tokens", "input_len": "prompt_tokens", "input_tokens": "prompt_tokens",
    "random_input_len": "prompt_tokens", "osl": "output_tokens", "output_len": "output_tokens",
    "random_output_len": "output_tokens", "max_concurrency": "concurrency", "qps": "request_rate",
    "rps": "request_rate", "rate": "request_rate", "batch_size": "batch", "max_batch_size": "batch",
    "gpu_memory_utilization": "memory_utilization", "kv_cache_free_gpu_memory_fraction": "memory_utilization",
    "num_speculative_tokens": "draft_tokens", "speculative_num_draft_tokens": "draft_tokens",
    "prefill": "prefill_machine", "max_num_tokens": "max_num_batched_tokens", "quantization": "weights",
    "dtype": "weights", "backend": "engine", "gpu": "machine",
}  # fmt: skip
ALIASES = FORMER | OTHERS
# Names that look like an option but are another quantity.
REFUSED = {
    "mem_fraction_static": "is the share of weights and KV cache alone: give memory_utilization, which counts the "
    "engine's own buffers too",
    "chunked_prefill_size": "counts the prompt tokens of a step, in which nothing decodes: give "
    "max_num_batched_tokens and order='prefill first'",
}


def resolve(options):
    """Replace aliases by the options' own names; ValueError if an option is given twice, or is another quantity.

    As in the engines, ``quantization`` takes precedence over ``dtype``.

    Examples
    --------
    >>> resolve({"isl": 1024, "max_concurrency": 8, "batch": 1})
    {'prompt_tokens': 1024, 'concurrency': 8, 'batch': 1}
    """
    if options.get("quantization") is not None:
        options = {name: value for name, value in options.items() if name != "dtype"}
    found, given = {}, {}
    for name, value in options.items():
        if name in REFUSED:
            raise ValueError(f"{name} is {short(repr, value)}, which {REFUSED[name]}")
        own = ALIASES.get(name, name)
        if own in found:
            raise ValueError(f"{own} is given twice: as {given[own]} and as {name}")
        found[own], given[own] = value, name
    return found
