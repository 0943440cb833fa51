"""Erdil 2025, section 4.1 (speculative decoding): everything its text prints, recomputed."""

from functools import partial

from book.audit.explanations import named
from book.audit.grading import WithNote, format_items, reproduces
from book.papers.erdil2025 import economics, program
from book.papers.erdil2025.claims.economics import SEVENTY, drafting_gains
from book.papers.erdil2025.claims.model import H100, PRINTED, token_latency
from book.papers.erdil2025.claims.parallel import at_cost
from book.papers.erdil2025.readings import TABLE_5
from inferlib.equation import untraced
from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.records import load_model


@untraced
def _negligible(read):
    small = sum(m.flop_per_token(load_model(economics.DRAFT).shape, 0, PRINTED))
    share = {n: small / sum(m.flop_per_token(load_model(n).shape, 0, PRINTED)) for n in economics.SPECULATED}
    setting, point = economics.settings()["Table 3", SEVENTY]
    at = point(economics.curve(**setting))
    drafting = at.gamma * token_latency(load_model(economics.DRAFT), H100, at.n_gpu, at.batch)
    a = economics.ACCEPTANCE
    total = economics.seconds_at(setting, at) * (1 - a**at.gamma) / (1 - a)
    return (
        max(share.values()) < 0.2,
        f"FLOP of a draft over one of the model: {format_items(share, '.0%')} (threshold, ours: a fifth); "
        f"in time drafting "
        f"takes {drafting / total:.0%} of a round at Table 3's point for Llama 3 70B",
    )


def gain_at_table_5(name):
    """Gain of drafts at the cost of Table 5's point without them, and between its two points."""
    plain, drafted = (economics.curve(name, draft=d, assumptions=TABLE_5) for d in (None, economics.DRAFT))
    at = economics.preferred(plain)
    cost = f"at {at.usd_per_million:.3g} dollars a million, the cost of Table 5's point"
    found = named(f"speed with drafts {cost}", float(at_cost(drafted, [at.usd_per_million])[0]), "tok/s")
    same = found / named(f"speed without {cost}", float(at.tokens_per_second), "tok/s") - 1
    return same, float(economics.preferred(drafted).tokens_per_second / at.tokens_per_second - 1)


def gain_of_program(commit, name, at="alpha 3"):
    """Speeds without and with drafts at the points that a state of the author's public program prefers."""
    return [float(program.point(commit, name, draft, at).tokens_per_second) for draft in (False, True)]


def _drafted(read, name):
    first = partial(gain_of_program, program.FIRST, name)
    (plain, drafted), (slow, quick) = first(), first("alpha 4")
    same, points = gain_at_table_5(name)
    _, most, least = drafting_gains(name, TABLE_5)
    return WithNote(
        round(drafted) / round(plain) - 1,
        f"by the author's first public program (1 August 2024): {drafted:.0f} over {plain:.0f} tokens/s, as a table "
        f"prints them, at alpha 3 ({drafted / plain - 1:+.1%} before rounding; {quick / slow - 1:+.0%} at the 4 that "
        f"stood in it). By the program of Table 5: {same:+.0%} at the cost of its point without drafts, "
        f"{points:+.0%} between its two points, {least:+.1%} to {most:+.0%} over all costs",
    )


@reproduces("Text 4.1")
def _text_4_1(read):
    def times(read, name):
        found = _drafted(read, name)
        return WithNote(1 + found.value, found.note)

    return {
        ("gain of drafts at one cost", "Llama 3 70B"): partial(_drafted, name="Llama 3 70B"),
        ("factor of drafts at one cost", "Llama 3.1 405B"): partial(times, name="Llama 3.1 405B"),
    }


@reproduces("Text 4.1")
def _speculation(read, holds):
    holds(
        "the arithmetic of a much smaller draft is negligible",
        *_negligible(read),
        fair="for a draft fifty times smaller",
    )
    gains = {name: drafting_gains(name, TABLE_5) for name in economics.SPECULATED}
    holds(
        "providers without drafts cannot compete",
        all(least > -0.01 and most > 0.2 for _, most, least in gains.values()),
        "at one cost: "
        + ", ".join(f"{n} {least:+.1%} to {most:+.0%}" for n, (_, most, least) in gains.items()),
        fair="everywhere but at the cheap end, where drafts gain nothing",
    )
