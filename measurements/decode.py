"""Measure decoding on one GPU: ``python measurements/decode.py ceilings|dense|sparse|breakdown --out DIR``.

Needs Python and PyTorch, nothing else: models are shapes of the catalogue with random weights. Rows are
appended one at a time; the same command again goes on where the last one stopped. See README.md.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

# Profiling graphs: the profiler must neither be torn down nor set up again between two of them.
os.environ.setdefault("TEARDOWN_CUPTI", "0")
os.environ.setdefault("DISABLE_CUPTI_LAZY_REINIT", "1")

from decoding import plan, record  # noqa: E402

LOST = 3  # exit code when only a new process can go on
STAGES = ("check", "ceilings", "dense", "sparse", "breakdown")
SECONDS = {"check": 120, "ceilings": 240, "dense": 540, "sparse": 360, "breakdown": 180}  # of `all`


def arguments(given=None):
    """The command line, read."""
    parser = argparse.ArgumentParser(description="Measure decoding on one GPU.")
    parser.add_argument("stage", choices=[*STAGES, "plan", "all"])
    parser.add_argument("--out", type=Path, help="folder of the results; the same again to go on")
    parser.add_argument("--budget", type=float, help="seconds after which no new point starts")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true", help="tiny models and a small grid, to try the script")
    parser.add_argument("--retry", action="store_true", help="measure again what failed")
    parser.add_argument(
        "--plain", action="store_true", help="PyTorch's operations in place of Triton kernels"
    )
    parser.add_argument("--fp8-rows", type=int, default=16, help="rows an fp8 product is padded to")
    parser.add_argument("--models", help="only these, separated by commas")
    parser.add_argument("--memory", type=float, help="plan: bytes of the device, such as 80e9")
    parsed = parser.parse_args(given)
    if parsed.stage == "plan" and not parsed.memory:
        parser.error("plan needs --memory, such as --memory 80e9")
    if parsed.stage != "plan" and not parsed.out:
        parser.error(f"{parsed.stage} needs --out, the folder of the results")
    if parsed.budget is not None and not parsed.budget > 0:
        parser.error(f"--budget is {parsed.budget}, but must be positive seconds")
    return parsed


def names(stage, models):
    """Models of a stage, or those of them that were asked for."""
    known = {"dense": plan.DENSE, "sparse": plan.SPARSE}.get(stage, (*plan.DENSE, *plan.SPARSE))
    asked = [name.strip() for name in models.split(",")] if models else known
    for name in asked:
        plan.load(name)
    return [name for name in known if name in asked]


def points(stage, available, models=None, tiny=False):
    """The grid of a stage, in the order of measuring."""
    shapes = [plan.load(name) for name in names(stage, models)]
    if not tiny:
        return plan.grid(shapes, plan.PRECISIONS[stage], available)
    small = [plan.tiny(shape) for shape in shapes]
    return plan.grid(small, plan.PRECISIONS[stage], available, batches=(1, 4, 16), contexts=(32, 1024))


def show_plan(memory, models):
    """What would be measured on a device with so much memory, as text."""
    for stage in ("dense", "sparse"):
        found = points(stage, memory, models)
        for name in names(stage, models):
            total = plan.load(name).layers
            for precision in plan.PRECISIONS[stage]:
                mine = [p for p in found if (p.model, p.precision, p.mode) == (name, precision, "graph")]
                print(f"\n{name}, {precision}: layers timed of {total}, by batch and context")
                print("batch " + "".join(f"{context:>8}" for context in plan.CONTEXTS))
                for batch in plan.BATCHES:
                    cells = []
                    for context in plan.CONTEXTS:
                        here = [p for p in mine if (p.batch, p.context) == (batch, context)]
                        cells.append("-" if here[0].refused else str(here[0].layers))
                    print(f"{batch:>5} " + "".join(f"{cell:>8}" for cell in cells))
        print(
            f"\n{stage}: {sum(not p.refused for p in found)} points, {sum(bool(p.refused) for p in found)} refused"
        )


def anonymous(given, out):
    """The command's words, the folder of results by its name alone."""
    return [word.replace(str(out), out.name) if out.name else word for word in given]


def operations(options):
    """Triton kernels where there are any, else PyTorch's operations; and why."""
    from decoding.plain import Plain

    if options.plain:
        return Plain(options.fp8_rows), "PyTorch operations, as asked"
    if options.device == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        return Plain(options.fp8_rows), "PyTorch operations, since Triton has no CPU but its interpreter"
    try:
        from decoding.fused import Fused
    except ImportError as error:
        return Plain(options.fp8_rows), f"PyTorch operations, since Triton is missing: {error}"
    if options.device == "cpu":
        return Fused(options.fp8_rows), "Triton kernels, interpreted"
    import torch

    processors = torch.cuda.get_device_properties(0).multi_processor_count
    return Fused(options.fp8_rows, processors), "Triton kernels"


def run(options, given):
    """One stage; 0 if it came to its end."""
    import torch
    from decoding import check, device as devices, steps
    from decoding.ceilings import Ceilings

    torch.set_grad_enabled(False)
    device = devices.open_device(options.device)
    ops, why = operations(options)
    facts = record.machine(options.device, anonymous(given, options.out)) | {"operations": why}
    record.add_machine(options.out / "machine.json", facts)
    common = {"gpu": facts["gpu"], "run": facts["run"]}
    record.say(json.dumps(facts))
    budget = record.Budget(options.budget or 540)

    def table(name, columns, key):
        return record.Table(options.out / f"{name}.csv", columns, key, options.retry)

    if options.stage == "check":
        fused = type(ops) if ops.name == "fused" else None
        good = check.run(device, fused, table("check", record.CHECKS, ("run", "gpu")), common)
        record.say("the decode step agrees with the reference" if good else "the decode step is WRONG")
        return 0 if good else 1
    if options.stage == "ceilings":
        rows = table("ceilings", record.CEILINGS, record.CEILING_KEY)
        counts = Ceilings(device, ops, rows, budget, common, options.tiny).run()
    else:
        bench = steps.Bench(device, ops, options.tiny)
        available = device.available()
        if options.stage == "breakdown":
            shapes = [bench.shape(name) for name in names("breakdown", options.models)]
            rows = table("breakdown", record.BREAKDOWN, record.KEY)
            profiled = ((1, 32), (4, 32)) if options.tiny else plan.PROFILED
            found = steps.breakdown_points(shapes, available, profiled)
            counts = steps.breakdown(found, bench, rows, budget, common)
        else:
            rows = table("steps", record.STEPS, record.KEY)
            found = points(options.stage, available, options.models, options.tiny)
            counts = steps.run(options.stage, found, bench, rows, budget, common)
    record.say(f"{options.stage}: {counts}")
    return 0


def run_all(given):
    """Every stage in a process of its own, so that one that breaks costs the others nothing."""
    rest, worst = [word for word in given if word != "all"], 0
    for stage in STAGES:
        budget = [] if "--budget" in rest else ["--budget", str(SECONDS[stage])]
        start = time.monotonic()
        code, again = LOST, 3  # a point that breaks the device is marked as failed, and not tried again
        while code == LOST and again:
            code = subprocess.run([sys.executable, __file__, stage, *rest, *budget]).returncode
            again -= 1
        record.say(f"{stage}: ended with {code} after {time.monotonic() - start:.0f} s")
        if code and stage == "check":
            return code  # times of a wrong step mean nothing
        worst = max(worst, code)
    return worst


def main(given=None):
    """Run what the command line asks for."""
    given = sys.argv[1:] if given is None else list(given)
    options = arguments(given)
    if options.stage == "plan":
        return show_plan(options.memory, options.models)
    if options.stage == "all":
        return run_all(given)
    from decoding.device import DeviceLost

    try:
        return run(options, given)
    except DeviceLost as error:
        record.say(
            f"the device answers no more ({error}); the same command again goes on with the next point"
        )
        return LOST


if __name__ == "__main__":
    sys.exit(main())
