"""Mazurek & Schreiber 2025, sections 3.1.2 and 3.4: which experts a batch wakes, and how many sit on a GPU."""

from functools import partial

from inferlib.equation import equation
from inferlib.ops import ceil, log, maximum, minimum, sqrt
from inferlib.papers.mazurek2025.records import DEFAULT, Assumptions, Deployment, Model

equation = partial(equation, "mazurek2025")


@equation(unit="1")
def selection_probability(model: Model):
    """Probability that one token goes to a given routed expert, if all are equally likely: k / M.

    The minimum only keeps a model with more choices than experts in range. Section 3.1.2.
    """
    return minimum(model.n_active / model.n_routed, 1)


@equation(unit="1", batch="1")
def never_selected(model: Model, batch):
    """Probability that no token of a batch goes to a given routed expert (section 3.1.2)."""
    return (1 - selection_probability(model)) ** batch


@equation(unit="1", batch="1")
def active_experts(model: Model, batch):
    """Expected number of distinct routed experts that a batch reaches in one layer.

    Experts: E[U] of section 3.1.2, Figure 10.

    Examples
    --------
    >>> from inferlib.papers.mazurek2025 import model_of
    >>> active_experts(model_of("DeepSeek V3"), 2)
    15.75
    """
    return model.n_routed * (1 - never_selected(model, batch))


@equation(unit="1", active="1")
def fullest_gpu_experts(deployment: Deployment, active):
    """Active routed experts on the GPU that has most of them, if they fell there like balls into bins.

    Experts, as section 3.1.2 prints it: an asymptotic form, and one without a limit, although experts are
    placed evenly. With all of them active it exceeds what a GPU holds.

    Examples
    --------
    >>> fullest_gpu_experts(Deployment(32), 256) > 256 / 32
    True
    """
    mean = active / deployment.n_gpus
    return mean + sqrt(2 * mean * log(deployment.n_gpus))


@equation(unit="1", active="1")
def fullest_gpu_experts_placed(model: Model, deployment: Deployment, active):
    """The same for experts that are placed evenly: drawn without replacement, so that none is hit twice.

    Experts. Not in the source: its spread, times the share of experts that stay idle, which is how the
    variance of a draw without replacement differs from that of balls into bins.
    """
    mean = active / deployment.n_gpus
    idle = maximum(1 - active / model.n_routed, 0)
    return mean + sqrt(2 * mean * idle * log(deployment.n_gpus))


@equation(unit="1")
def held_experts(model: Model, deployment: Deployment):
    """Experts of one layer that a GPU holds: shared, routed and extra ones, dealt out evenly (section 3.1.2).

    Examples
    --------
    >>> from inferlib.papers.mazurek2025 import model_of, setup
    >>> held_experts(model_of("DeepSeek V3"), setup("9x8 H100").deployment)
    5
    """
    experts = model.n_shared + model.n_routed + deployment.extra_experts
    return ceil(experts / deployment.n_gpus)


@equation(unit="1", batch="1")
def loaded_experts(model: Model, deployment: Deployment, batch, assumptions: Assumptions = DEFAULT):
    """Experts of one layer that the fullest GPU reads.

    Experts, the shared one included. The source prints both parts and not how they join; that the smaller
    counts, and that the shared expert comes on top of the routed ones, is our reading. Without the cap
    (``Assumptions.uncapped()``) the model fits SGLang's H100s at their true length.
    """
    active = active_experts(model, batch)
    if assumptions.without_replacement:
        routed = fullest_gpu_experts_placed(model, deployment, active)
    else:
        routed = fullest_gpu_experts(deployment, active)
    fullest = routed + model.n_shared
    return minimum(held_experts(model, deployment), fullest) if assumptions.capped else fullest


@equation(unit="1", average="1", largest="1 > 0")
def expert_balancedness(average, largest):
    """Balancedness of one layer: requests to the average GPU over those to the fullest (section 3.4).

    The source takes the mean over all layers. 1 is balanced; all requests on one of n GPUs give 1/n.
    """
    return average / largest


@equation(unit="1", load="1")
def imbalanced_load(deployment: Deployment, load):
    """Load of the fullest GPU where the average GPU has ``load`` (section 3.4)."""
    return load / deployment.balancedness


@equation(unit="1", n_hosts="1 > 0")
def shared_expert_load(model: Model, n_hosts):
    """Activations of the GPU with the shared expert over the mean, routed experts dealt out evenly.

    The fraction printed in section 3.4, whose numerator gives that GPU a share of all nine activations on top
    of the shared expert's own: 2.78 for 16 GPUs, not the 2.7 beside it.
    """
    share = model.used / n_hosts
    return (1 + share) / share


@equation(unit="1", n_hosts="1 > 0")
def shared_expert_load_corrected(model: Model, n_hosts):
    """The same with the routed activations only on top of the shared expert's: 2.67 for 16 GPUs."""
    return (1 + model.n_active / n_hosts) / (model.used / n_hosts)
