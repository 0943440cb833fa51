"""Scheduler settings: what an engine does in a step. Defaults of the engines, each with its public source.

vLLM: ``EngineArgs.get_batch_defaults`` (docs.vllm.ai, Engine Arguments): an API server has 8,192 tokens and 1,024
sequences on chips of 70 GiB or more, except the A100; 2,048 and 256 elsewhere. Running sequences go first.

SGLang: ``server_args`` (docs.sglang.ai, Server Arguments): ``chunked_prefill_size`` is 2,048 below 35 GB, 8,192 up to
160 GB, 16,384 above, divided by the copies of attention that share experts (``enable_dp_attention``); new prompts go
before running sequences.

TensorRT-LLM: ``max_num_tokens`` 8,192 and ``max_batch_size`` 2,048 (``BuildConfig``); its capacity policy is
``GUARANTEED_NO_EVICT`` (``SchedulerConfig``); attention DP's ``enable_balance`` is off, with ``timeout_iters`` 50 and
``batching_wait_iters`` 10 where it is on (LLM API reference, ``AttentionDpConfig``).
"""

from functools import cached_property

from inferlib import validation
from inferlib.equation import Record

GIB = 2**30
SMALL, LARGE = 35e9, 160e9  # bytes of memory; between them SGLang prefills 8,192 tokens a step
ORDERS = "decode first", "prefill first"
ROUTERS = "random", "round robin", "least loaded"
UNSHARED = 1e18  # budget of an engine that prefills first: tokens take none of it, so it limits no sequences
MAX_SEQUENCES = 8192  # largest number of sequences per copy that is tried


class Scheduler(Record):
    """How an engine fills a step, admits requests, and how requests are routed.

    ``max_num_batched_tokens``: tokens of a step, one for each decoding sequence and the rest for prefill, first come
    first served, long prompts in chunks. ``order``: whether decoding continues in steps with prefill. ``reserve``:
    whether memory is reserved for whole answers; otherwise the newest sequence is preempted and recomputed when memory
    is full. ``router``: how requests are dealt to machines and copies. ``dp_balance``: steps for which copies that
    share experts hold a prompt until each copy has one; ``batching_wait_iters``: steps for which every prompt is held.
    """

    max_num_batched_tokens: float | None = 8192  # None: prompts are not chunked (no engine serves so)
    max_num_seqs: int = 1024
    order: str = ORDERS[0]
    reserve: bool = False
    router: str = ROUTERS[0]
    dp_balance: float = 0
    batching_wait_iters: float = 0

    def __post_init__(self):
        validation.one_of("order", self.order, ORDERS)
        validation.one_of("router", self.router, ROUTERS)

    @classmethod
    def of(cls, engine=None, chip=None, copies=1):
        """Return the defaults of a class of engine, or of SGLang, on a chip; ``copies``: of attention in lockstep.

        Examples
        --------
        >>> from inferlib import load_chip
        >>> [Scheduler.of("serving", load_chip(name)).max_num_seqs for name in ("H100 SXM", "A100 80GB", "L40S")]
        [1024, 256, 256]
        """
        memory = (chip and chip.memory_capacity) or 80 * GIB
        if engine == "compiled":
            return cls(8192, 2048, reserve=True)
        if engine == "sglang":
            budget = 2048 if memory < SMALL else 8192 if memory < LARGE else 16384
            return cls(budget // copies, 2048, order=ORDERS[1])
        # a chip of 80 GB has 74.5 GiB
        server = memory >= 70 * GIB and not (chip and chip.name.startswith("A100"))
        return cls() if server else cls(2048, 256)

    @cached_property
    def rides(self) -> bool:
        """Whether sequences decode in a step with prefill."""
        return self.order == ORDERS[0]

    @cached_property
    def whole(self) -> bool:
        """Whether a prompt that fits into a step is never divided.

        TensorRT-LLM divides prompts only if asked (``enable_chunked_prefill``), and the balance of copies is its own.
        """
        return bool(self.reserve or self.dp_balance)

    @property
    def shared_budget(self) -> float | None:
        """Tokens of a step that prompts share with decoding sequences; unlimited if these pause meanwhile."""
        return self.max_num_batched_tokens if self.rides else UNSHARED

    def room(self, sequences):
        """Tokens of a step for prompts beside these decoding sequences; None without a budget."""
        budget = self.max_num_batched_tokens
        return budget and budget - (sequences if self.rides else 0)

    def summary(self, copies=1) -> str:
        """Format the engine's assumed settings in one line."""
        told = [
            f"{self.max_num_batched_tokens:,.0f} tokens a step",
            f"{self.max_num_seqs:,.0f} sequences",
            self.order,
        ]
        if self.reserve:
            told.append("memory kept for whole answers")
        if copies > 1:
            told += [
                f"copies balanced for {self.dp_balance:.0f} steps"
                if self.dp_balance
                else "copies not balanced"
            ]
        if self.batching_wait_iters:
            told.append(f"prompts held {self.batching_wait_iters:.0f} steps")
        return ", ".join([*told, f"{self.router} routing"])
