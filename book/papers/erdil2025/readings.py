"""Erdil 2025: the assumptions behind single tables, figures and equations, where they are not the default."""

from inferlib.papers.erdil2025.records import PROTOCOLS, Assumptions, ToyAssumptions

# Table 5 was made by the model of the notebook of 22 May, with the sampler of 27 May.
TABLE_5 = Assumptions(
    traffic="over-read",
    scale_downs=0,
    pipelines_to_batch=False,
    dispatch_to_active=True,
    cache_of_micro_batch=False,
    cache_read_per_stage=True,
)
# Equations 29 to 44 as the paper prints them.
PRINTED_EQUATIONS = Assumptions(
    kinds=("2D",),
    # Equation 40 has the latencies of LL; equations 39 to 42 divide by the whole bandwidth, which LL halves.
    protocols=tuple(p.replace(share=1.0) for p in PROTOCOLS if p.name == "LL"),
    networks_overlap=False,
    scale_downs=0,
    pipelines=0,
    expert_threshold=0,
    traffic="once",
    whole_sparsity=False,
    embedding_multiplied=False,
    cache_of_micro_batch=False,
)
# A base latency that is in none of the paper's equations.
FIGURE_1 = ToyAssumptions(t_base=6e-6)
FIGURE_1_CAPPED = FIGURE_1.replace(capped=True)
