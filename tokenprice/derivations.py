"""Derivations of the kernel model: from the roofline, prefill interference, and the price of input and output."""

from inferlib.equation import in_notation, solved, symbolic
from inferlib.optional_imports import sympy as sp
from inferlib.principles import roofline
from inferlib.system import Accelerator
from tokenprice import kernels, prefill, queueing, request
from tokenprice.kernels import Kernel, Link

derivation, symbol, equals = in_notation("serving", "kernel_model")
CHIP, KERNEL, LINK = (symbolic(kind, "serving") for kind in (Accelerator, Kernel, Link))

DATA, WORK, COUNT, MESSAGE = symbol("data work count message")


@derivation(proves=kernels.step_time)
def from_the_roofline():
    """From the roofline to the kernel model in five steps."""
    layers, inner, left = symbol("n_layers inner step_time")
    bound = roofline.roofline_time(CHIP, WORK, DATA, 1)
    attained = sp.Max(kernels.read_time(KERNEL, CHIP, DATA), kernels.work_time(KERNEL, CHIP, WORK))
    kernel = kernels.kernel_time(KERNEL, CHIP, DATA, WORK, COUNT, inner)
    reduced = kernel + 2 * layers * kernels.reduce_time(LINK, MESSAGE)
    whole = reduced + symbol("engine_time")
    names = symbol("kernels attention experts reduces engine")
    return (
        "The roofline: bytes over bandwidth or arithmetic over peak, on one chip's part.",
        sp.Eq(left, bound),
        "Kernels reach a measured share of the bandwidth and of the peak.",
        sp.Eq(left, attained),
        "Every kernel has a fixed start time, and a time that grows with its inner dimension.",
        sp.Eq(left, kernel),
        "After attention and after the block comes an all-reduce, whose time grows with the message.",
        sp.Eq(left, reduced),
        "The engine adds software time that no kernel hides.",
        sp.Eq(left, whole),
        "The same sum by name, with attention and experts as kernels of their own:",
        sp.Eq(left, kernels.step_time(*names)),
    )


@derivation(proves=prefill.prefill_interference)
def prompts_of_others():
    """In a closed loop, the machine time of all users' requests adds up to the time that each user waits."""
    users, output, reading, step = symbol("users output_tokens prompt_time step")
    shared = users * request.machine_time(reading, output, step, users)
    waits = symbol("others")
    own = reading + output * (step + waits)
    return (
        "During one user's request the machine prefills one prompt of every user and decodes their answers together.",
        equals("seconds", sp.expand(shared)),
        "In the same time the user waits for the prefill of their own prompt and then for every token.",
        equals("seconds", own),
        "Both are the same time.",
        sp.Eq(waits, sp.factor(solved(own, sp.expand(shared), waits))),
    )


@derivation(proves=prefill.prompts_ahead)
def burst_and_steady_state():
    """How many prompts are ahead of a new one, in a closed loop whose users all begin at once."""
    i = sp.Symbol("i")
    users, group, burst, ahead, pack = symbol("users group burst prompts_ahead pack")
    first = sp.summation(i * pack, (i, 1, users / pack)) / (users / pack)
    whole = burst * first + (1 - burst) * group
    return (
        "In the burst packs of prompts are prefilled one after another: on average half of them are ahead.",
        sp.Eq(ahead, sp.factor(first)),
        "After the burst only the prompts of the same group are ahead.",
        sp.Eq(ahead, group),
        "The mean over all requests, of which the burst is a part:",
        sp.Eq(ahead, sp.collect(sp.expand(whole), burst)),
    )


@derivation()
def output_over_input():
    """Why a token of output costs more than one of input."""
    weights = sp.Symbol("W", positive=True)
    batch = symbol("batch")
    reading = kernels.read_time(KERNEL, CHIP, weights)
    per_output = reading / batch
    per_input = kernels.work_time(KERNEL, CHIP, 2 * weights)
    even = solved(per_output, per_input, batch)
    return (
        "A step reads W bytes of 8-bit weights for b tokens, one for each user.",
        sp.Eq(sp.Symbol(r"t_{\text{out}}"), per_output),
        "A prompt needs two FLOP per weight and token; thousands of tokens share one reading.",
        sp.Eq(sp.Symbol(r"t_{\text{in}}"), per_input),
        "So an output token costs more until this many users share a step.",
        sp.Eq(batch, even),
    )


@derivation()
def capacity_of_a_copy():
    """How many requests per second a copy serves that is never idle."""
    sequences, output, again, copies = symbol("sequences output_tokens again copies")
    prompts, slowest = symbol("prompts longest_pack")
    group = 1 + again
    begun = sequences / output * group
    served = queueing.capacity(sequences, output, *symbol("step prompt_time"), copies, again)
    return (
        "In a step as many prompts begin as answers end; where memory is full, some prompts are prefilled again.",
        sp.Eq(prompts, begun),
        "Copies in lockstep wait for the copy that prefills most prompts.",
        sp.Eq(slowest, queueing.longest_pack(prompts, copies, group, symbol("most"))),
        "So the rate of a copy is the answers that end in a step, divided by the time of the step and its prefills.",
        equals("capacity", served.subs(queueing.longest_pack(begun, copies, group), slowest)),
    )
