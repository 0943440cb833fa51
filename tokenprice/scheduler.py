"""What an engine does in a step, in the engines' own words: its defaults, each with its public source.

vLLM: ``EngineArgs.get_batch_defaults`` (docs.vllm.ai, Engine Arguments): an API server has 8,192 tokens and 1,024
sequences on chips of 70 GiB and more, except the A100; 2,048 and 256 elsewhere. Running sequences go first.
SGLang: ``server_args`` (docs.sglang.ai, Server Arguments): ``chunked_prefill_size`` 2,048 below 35 GB, 8,192 up to
160 GB, 16,384 above; a new batch of prompts goes before the running one.
TensorRT-LLM: ``max_num_tokens`` 8,192 and ``max_batch_size`` 2,048 (``BuildConfig``); its capacity policy is
``GUARANTEED_NO_EVICT`` (``SchedulerConfig``); attention DP's ``enable_balance`` is off, with ``timeout_iters`` 50 and
``batching_wait_iters`` 10 where it is on (LLM API reference, ``AttentionDpConfig``).
"""

from inferlib import validation
from inferlib.equation import Record, frozen

GIB = 2**30
SMALL, LARGE = 35e9, 160e9  # bytes of memory; between them SGLang reads 8,192 prompt tokens a step
ORDERS = "decode first", "prefill first"
ROUTERS = "random", "round robin", "least loaded"
MOST = 8192  # the most sequences of a copy that are tried


@frozen
class Scheduler(Record):
    """How an engine fills a step, admits requests, and gets them.

    ``max_num_batched_tokens`` of a step: one for each sequence that decodes, the rest for prompts, first come first
    served, long ones in parts. ``order``: whether decoding goes on while prompts are read. ``reserve``: whether memory
    is kept for the whole answer; if not, the newest sequence is recomputed where memory runs out. ``router``: how
    requests are dealt to machines and copies. ``dp_balance``: steps for which copies that share experts hold a prompt
    until each copy has one; ``batching_wait_iters``: steps for which a prompt is held in any case.
    """

    max_num_batched_tokens: float | None = 8192  # None: a prompt is read whole, as nobody serves it
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
    def of(cls, engine=None, chip=None):
        """The defaults of a class of engine, or of SGLang, on a chip.

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
            return cls(budget, 2048, order=ORDERS[1])
        # a chip of 80 GB has 74.5 GiB
        server = memory >= 70 * GIB and not (chip and chip.name.startswith("A100"))
        return cls() if server else cls(2048, 256)

    @property
    def rides(self) -> bool:
        """Whether sequences get a token in a step that reads prompts."""
        return self.order == ORDERS[0]

    def summary(self, copies=1) -> str:
        """The assumed settings of the engine, in one line."""
        told = [
            f"{self.max_num_batched_tokens:,.0f} tokens a step",
            f"{self.max_num_seqs:,.0f} sequences",
            self.order,
        ]
        told += ["memory kept for whole answers"] if self.reserve else []
        if copies > 1:
            told += [
                f"copies balanced for {self.dp_balance:.0f} steps"
                if self.dp_balance
                else "copies not balanced"
            ]
        told += [f"prompts held {self.batching_wait_iters:.0f} steps"] if self.batching_wait_iters else []
        return ", ".join([*told, f"{self.router} routing"])
