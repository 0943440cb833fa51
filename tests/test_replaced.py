"""An equation replaced for a block: everything below follows, and what cannot follow says so."""

import os
import shutil
import subprocess
import sys
from functools import wraps
from itertools import product
from pathlib import Path

import pytest
from facts import from_table

import inferlib
from book.audit import explain
from book.audit.number_format import format_value
from book.papers.erdil2025.frontiers import frontier
from inferlib import ops
from inferlib.papers import erdil2025, liminal2025, steinhardt2022 as st
from inferlib.papers.erdil2025 import derivations as erdil_derivations
from inferlib.papers.erdil2025.equations import model as erdil_model
from inferlib.papers.steinhardt2022 import derivations

BOX = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
WORK = inferlib.Workload(batch=32, context=4096)
ERDIL_LLAMA, ERDIL_H100 = erdil2025.load_model("Llama 3 70B"), erdil2025.load_chip("H100")


def test_a_frontier_follows_an_exchange_of_half_the_bytes():
    """Half the seconds for every byte between nodes is twice the bandwidth between nodes."""
    plain = frontier(ERDIL_LLAMA, ERDIL_H100)
    twice = frontier(ERDIL_LLAMA, ERDIL_H100.replace(scale_out_bandwidth=2 * ERDIL_H100.scale_out_bandwidth))
    whole = erdil_model.time_between.equation.function
    with erdil_model.time_between.replaced(lambda chip, n_ranks, n_nodes: whole(chip, n_ranks, n_nodes) / 2):
        found = frontier(ERDIL_LLAMA, ERDIL_H100)
    assert found.tokens_per_second.tolist() == pytest.approx(twice.tokens_per_second.tolist(), rel=1e-12)
    assert not found.equals(plain)
    assert frontier(ERDIL_LLAMA, ERDIL_H100).equals(plain)


def test_a_search_that_cuts_an_equation_into_pieces_refuses_to_follow_it():
    entries = erdil_model.layout_latency, erdil_model.collective_latency
    for entry, ask in product(entries, (erdil2025.token_latency, erdil2025.best_layout)):
        with (
            entry.replaced(entry.equation.function),
            pytest.raises(ValueError, match=f"cannot follow where {entry.__name__} is replaced"),
        ):
            ask(ERDIL_LLAMA, ERDIL_H100, 8, 1)


def test_liminal_reads_twice_the_cache_as_if_it_were_another_sequence():
    """Where reading binds, a token of one sequence with twice the cache takes as long as that of two."""
    model, own = inferlib.load_model("Llama 3.1 70B"), liminal2025.cache_size.equation.function

    def step(batch):
        return liminal2025.decode_step(model, BOX, inferlib.Workload(batch=batch, context=65536)).total

    with liminal2025.cache_size.replaced(
        lambda application, context, assumptions: 2 * own(application, context, assumptions)
    ):
        found = step(1)
    assert found == pytest.approx(step(2), rel=1e-12) and found > 1.05 * step(1)


def test_a_closed_form_refuses_and_its_derivation_says_why():
    """If vectors stay on the chip, memory reads weights only, and no block is too narrow for it."""
    a100 = st.load_chip("A100")
    with st.memory_traffic.replaced(lambda machine, m, b: machine.weight_word * m**2):
        assert st.memory_time(a100, 1000, 1) == pytest.approx(1e-6)
        for closed in (st.memory_block, st.memory_limited_time, st.best_batch, st.elapsed_time):
            with pytest.raises(ValueError, match="cannot follow where memory_traffic is replaced"):
                closed(a100)
        assert "memory_traffic replaced" in str(derivations.network_limited())
        assert st.network_block(a100) == pytest.approx(882.5, abs=0.1)
    assert "replaced" not in str(derivations.network_limited())
    assert st.memory_block(a100) == pytest.approx(468)


def test_what_an_equation_is_made_of_does_not_refuse_under_it():
    a100 = st.load_chip("A100")
    own = st.network_time.equation.function
    with st.network_time.replaced(lambda machine, m, b: own(machine, m, b) + 1e-6):
        assert st.effective_bandwidth(a100) == pytest.approx(2e12 / 8**0.5)
        assert st.block_time(a100, 100, 1) > 1e-6


def test_trees_latex_and_answers_follow():
    llama = inferlib.load_model("Llama 3 70B")
    before = st.decode_step(llama, BOX, WORK)
    with st.memory_time.replaced(
        lambda machine, m, b: 2 * st.memory_traffic(machine, m, b) / machine.memory_bandwidth
    ):
        step = st.decode_step(llama, BOX, WORK)
        assert step.total == pytest.approx(2 * before.total)
        assert format_value(2 * before.total, "s") in str(explain(step))
        assert r"8\, b\, m" in st.memory_time.equation.latex()


def test_a_page_and_a_replacement_of_another_shape_are_refused():
    from book.papers.steinhardt2022 import explorers

    with st.memory_time.replaced(lambda machine, m, b: 0 * m):
        with pytest.raises(ValueError, match="memory_time is replaced"):
            explorers.multiply(st.load_chip(), st.PRINTED)._repr_html_()
    with (
        pytest.raises(TypeError, match="takes m, b, but must take machine, m, b"),
        st.memory_time.replaced(lambda m, b: m),
    ):
        pass


def test_what_replaces_an_equation_is_called_with_its_defaults_by_place_or_by_name():
    slow = liminal2025.Assumptions(switch=1e-6)
    with liminal2025.collective_latency.replaced(lambda n, assumptions: n * assumptions.switch):
        printed = 8 * liminal2025.PRINTED.switch
        assert (
            liminal2025.collective_latency(8) == liminal2025.collective_latency(n=8) == pytest.approx(printed)
        )
        assert liminal2025.collective_latency(8, assumptions=slow) == pytest.approx(8e-6)
        with pytest.raises(TypeError, match="missing a required argument: 'n'"):
            liminal2025.collective_latency()


def test_blocks_nest_and_end_also_after_an_error():
    a100 = st.load_chip("A100")
    with pytest.raises(RuntimeError), st.arithmetic_time.replaced(lambda machine, m, b: 1.0):
        with st.network_time.replaced(lambda machine, m, b: 2.0):
            assert st.block_time(a100, 1, 1) == 2.0
        assert st.block_time(a100, 1, 1) == 1.0
        raise RuntimeError
    assert st.block_time(a100, 1, 1) < 1e-9


@pytest.mark.filterwarnings("ignore:.*closed form of")
def test_a_closed_form_under_a_variant_is_the_minimum_that_it_stood_for():
    """A variant with 1.5 times the hops' time equals hops that are 1.5 times as long."""
    forms = erdil2025.optimal_n_gpu, erdil2025.minimum_latency, erdil2025.cost_at_minimum_latency
    expected = [form(ERDIL_LLAMA, ERDIL_H100, 1.5e-6) for form in forms]
    with inferlib.variant(
        erdil2025.grid_all_reduce_time, lambda n_gpu, t_hop: 3 * t_hop * (ops.sqrt(n_gpu) - 1)
    ):
        assert [form(ERDIL_LLAMA, ERDIL_H100, 1e-6) for form in forms] == pytest.approx(expected, rel=1e-6)
        hops = inferlib.axis("hop", [1e-6, 2e-6])
        assert float(erdil2025.minimum_latency(ERDIL_LLAMA, ERDIL_H100, hops)[0]) == pytest.approx(
            expected[1], rel=1e-9
        )
        with pytest.raises(ValueError, match="minimum_latency cannot follow"):
            erdil2025.minimum_latency.equation.expression()
        with pytest.raises(ValueError, match="minimum_latency_large cannot follow"):
            erdil2025.minimum_latency_large(ERDIL_LLAMA, ERDIL_H100)
        assert "no longer ends in optimal_n_gpu" in str(erdil_derivations.optimal_instance())
    assert erdil2025.optimal_n_gpu(ERDIL_LLAMA, ERDIL_H100, 1.5e-6) == expected[0]


LLAMA = inferlib.load_model("Llama 3 70B")


@pytest.mark.filterwarnings("ignore:.*closed form of")
@from_table
def test_memory_that_reads_half_as_fast_doubles_the_critical_batch(room, reading, at):
    before, own = room.critical_batch(*at), reading.equation.function
    with inferlib.variant(reading, wraps(own)(lambda *given: 2 * own(*given))):
        assert room.critical_batch(*at) == pytest.approx(2 * before, rel=1e-6)


def test_an_edited_equation_is_noticed_where_a_closed_form_rests_on_it(tmp_path):
    shutil.copytree(Path(inferlib.__file__).parent, tmp_path / "inferlib")
    toy = tmp_path / "inferlib" / "papers" / "erdil2025" / "equations" / "toy.py"
    edited = toy.read_text("utf-8").replace("2 * t_hop * (n_ranks - 1)", "3 * t_hop * (n_ranks - 1)")
    toy.write_text(edited, "utf-8")
    script = """
import inferlib
from inferlib.papers import erdil2025
from inferlib.papers.erdil2025 import derivations
at = erdil2025.load_model("Llama 3 70B"), erdil2025.load_chip("H100")
curve = erdil2025.critical_latency(*at, inferlib.axis("GPUs", 1, 100))
print(float(curve.min()) / erdil2025.minimum_latency(*at))
erdil2025.minimum_latency_large(*at)
"""
    there = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=there, cwd=tmp_path
    )
    assert float(done.stdout) == pytest.approx(1, rel=1e-3), done.stderr
    assert "minimum_latency does not follow" in done.stderr and "critical_latency is searched" in done.stderr
    assert "ValueError: minimum_latency_large does not follow: it is the closed form" in done.stderr
