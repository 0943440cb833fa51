"""The device: time, graphs and kernels. All that is special about CUDA stands here.

On a CPU the same calls work with the wall clock and without graphs, for checks; those times mean nothing.
"""

import statistics
import time
from dataclasses import dataclass

import torch

from decoding import plan, record


@dataclass(frozen=True)
class Times:
    """Seconds of one repetition: median, quartiles, how many; seconds the host needs to queue one."""

    seconds: float
    lower: float
    upper: float
    repeats: int
    host_seconds: float
    state: dict

    @classmethod
    def of(cls, values, host, state):
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(middle, low, high, len(values), host, state)

    def columns(self, per=1):
        """As columns of a row; divided by ``per`` where one repetition holds many."""
        return {
            "seconds": self.seconds / per,
            "lower": self.lower / per,
            "upper": self.upper / per,
            "repeats": self.repeats,
            **self.state,
        }


class Cpu:
    """The wall clock."""

    name = "cpu"
    graphs = False

    def __init__(self):
        torch.set_num_threads(1)  # tiny shapes only

    def synchronize(self):
        pass

    def clean(self):
        pass

    def available(self):
        return 8e9

    def capture(self, step):
        step()
        return step

    def times(self, step, target=0.4, warm=2, most=200):
        """Median and quartiles of ``step``, repeated back to back."""
        for _ in range(warm):
            step()
        values = []
        for _ in range(min(5, most)):
            start = time.perf_counter()
            step()
            values.append(time.perf_counter() - start)
        return Times.of(values, statistics.mean(values), {})

    def kernels(self, step, repeats):
        raise NotImplementedError("a CPU has no kernels to list")


class Replay:
    """A captured graph. It holds on to ``step`` too, whose tensors the graph reads at fixed addresses."""

    def __init__(self, graph, step):
        self.graph, self.step = graph, step

    def __call__(self):
        self.graph.replay()


class Cuda(Cpu):
    """CUDA events, graphs and the profiler."""

    name = "cuda"
    graphs = True

    def __init__(self):
        self.stream = torch.cuda.Stream()

    def synchronize(self):
        torch.cuda.synchronize()

    def clean(self):
        """Give unused memory back, so that the next model finds it in one piece."""
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    def available(self):
        """Bytes that are free now."""
        self.clean()
        return torch.cuda.mem_get_info()[0]

    def capture(self, step):
        """A call that replays ``step`` as one CUDA graph. Its inputs and outputs stay where they are."""
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):  # compile and allocate before, as capture allows neither
            step()
            step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            step()
        torch.cuda.synchronize()
        return Replay(graph, step)

    def times(self, step, target=0.4, warm=3, most=200):
        """Median and quartiles of ``step`` by events between repetitions that are queued back to back.

        The device never waits for the host, unless launching takes longer than running, as in eager mode.
        Clocks and power are read while the queue is still running.
        """
        torch.cuda.synchronize()
        step()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(warm):
            step()
        torch.cuda.synchronize()
        repeats = plan.repeats((time.perf_counter() - start) / warm, target, most=most)
        events = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
        start = time.perf_counter()
        events[0].record()
        for event in events[1:]:
            step()
            event.record()
        host = time.perf_counter() - start
        state = record.sample()
        torch.cuda.synchronize()
        values = [a.elapsed_time(b) / 1e3 for a, b in zip(events, events[1:], strict=False)]
        return Times.of(values, host / repeats, state)

    def kernels(self, step, repeats):
        """Kernels of ``step`` as the profiler sees them: {name: (calls, seconds)} of one repetition."""
        from torch.profiler import ProfilerActivity, profile

        step()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            for _ in range(repeats):
                step()
            torch.cuda.synchronize()
        found = {}
        for event in seen.events():
            if event.device_type != torch.autograd.DeviceType.CUDA:
                continue
            calls, seconds = found.get(event.name, (0, 0.0))
            found[event.name] = (calls + 1, seconds + event.time_range.elapsed_us() / 1e6)
        if not found:
            raise RuntimeError("the profiler saw no kernel")
        return {name: (calls / repeats, seconds / repeats) for name, (calls, seconds) in found.items()}


def open_device(name):
    """The device that a command names."""
    if name == "cpu":
        return Cpu()
    if name != "cuda":
        raise ValueError(f"device is {name!r}, but must be cuda or cpu")
    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch sees no CUDA device; --device cpu --tiny tries the script without one")
    return Cuda()


def fastest(device, candidates, run, best=None):
    """The candidate that runs fastest, as a graph where there are graphs; those that fail are out.

    Parameters
    ----------
    candidates : list
        What ``run`` is called with.
    run : callable
        One repetition.

    Returns
    -------
    tuple
        The candidate, and a list of (candidate, seconds or the reason of failure).
    """
    if len(candidates) == 1:
        return candidates[0], []
    tried = []
    for candidate in candidates:
        try:
            step = device.capture(lambda candidate=candidate: run(candidate))
            seconds = quick(device, step)
            tried.append((candidate, seconds))
            if best is None or seconds < best[1]:
                best = (candidate, seconds)
        except Exception as error:  # Triton's errors have no common base with PyTorch's
            tried.append((candidate, reason(error)))
            lost(device)
    if best is None:
        raise RuntimeError("; ".join(f"{candidate}: {why}" for candidate, why in tried))
    return best[0], tried


def quick(device, step, repeats=5):
    """Seconds of one repetition, the best of a few: only to choose."""
    values = []
    for _ in range(repeats):
        device.synchronize()
        start = time.perf_counter()
        step()
        device.synchronize()
        values.append(time.perf_counter() - start)
    return min(values)


class DeviceLost(RuntimeError):
    """The device answers no more; only a new process can go on."""


def lost(device):
    """Raise :class:`DeviceLost` if an error has left the device unusable."""
    try:
        device.synchronize()
    except RuntimeError as error:
        raise DeviceLost(reason(error)) from error


def reason(error):
    """One line about an error."""
    text = str(error).strip() or type(error).__name__
    return f"{type(error).__name__}: {text.splitlines()[0][:200]}"
