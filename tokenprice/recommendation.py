"""Recommend a machine for a service: all machines that meet the SLO, cheapest first, and why others do not."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from math import ceil, floor, inf, log10
from typing import Unpack

from inferlib import validation
from inferlib.equation import frozen
from inferlib.optional_imports import np
from inferlib.system import Accelerator, Layout, System, of_chip
from tokenprice import calibration, formatting, invariants, launch, parsing
from tokenprice.ask import ask_kernel_model
from tokenprice.catalog import chips as every_chip, load_chip, models, same_shapes, served as checkpoints
from tokenprice.change import fewer_bits
from tokenprice.deployment import layouts as layouts_of
from tokenprice.formatting import format_layout, format_number, format_time
from tokenprice.parsing import parse_bool, parse_int
from tokenprice.prefill import prefill_profile
from tokenprice.progress import progress
from tokenprice.question import CHOSEN_BY_DECIDE, SLO, Question, question_and_slo
from tokenprice.queueing import Fleet, fleet
from tokenprice.request import Request, request_for, with_cautions
from tokenprice.signatures import DecideOptions
from tokenprice.simulation import simulate_requests
from tokenprice.uncertainty import load_calibration

MAX_USERS = 8192  # largest number of users per machine in the search
CHIPS_WITHOUT_DOMAIN, MAX_CHIPS = 8, 72  # chips to try if the chip states no domain, and at most
NOT_DESCRIBED = "not described"
NO_ROOM = "does not fit"
TOO_SLOW = "too slow"
TOO_LATE = "first token too late"
TOO_DEAR = "too expensive"
FLEET = ("replicas", "prefill_replicas", "chips", "load", "headroom", "prefill_load", "wait", "usd_per_hour")
LIMITED = "With the engine's own max_num_seqs memory runs full, and prompts are read again."
DEARER = "dearer than the offers"
IN_STAGES = "{layout} on {chips} would {do}{cheaper}, but of pipeline stages only two were compared"
MUCH_LESS = 0.1  # about what intervals of pipeline stages are wider
FAILURES = (NOT_DESCRIBED, NO_ROOM, TOO_SLOW, TOO_LATE, TOO_DEAR, DEARER)
# Offers that are simulated if the SLO has percentiles; requests that choose their numbers, and others that judge them,
# with the seeds of both.
SIMULATED = 3
CHOOSING = 3000, 0
JUDGING = 10_000, 1
OFFERS_SHOWN = 5  # offers shown
# Load up to which 2,000 simulated requests show the mean wait: at 0.9 it was within a seventh of that of 100,000
# requests, at 0.95 within two fifths, at 0.99 down to a ninth (70B on two H100, 8B with long prompts, prefill alone).
SETTLED = 0.95
MAX_FLEET_FACTOR = 16  # largest multiple of the formula's number of machines that is tried


def offer_columns():
    """``offers.toml``, read."""
    return validation.read_package_toml(__file__, "offers.toml")


@frozen
class Offer(formatting.Screen):
    """One machine that meets the SLO, with the number of users at which it does; or a fleet, with a request rate.

    ``question``: the question with this machine and layout, prefill machine, the numbers of both, and ``max_num_seqs``
    if the engine's own limit is not best; ``ask`` gives the same answer.
    """

    question: Question
    request: Request
    seller: str = ""
    fleet: Fleet | None = None
    sure: Fleet | None = None  # meets the SLO at the slow end too: this fleet, or else the chip's cheapest
    simulations: tuple = ()  # at the estimate, and at both ends of its interval
    replicas: int = 0  # machines for a given number of users

    @property
    def system(self) -> System:
        """The machine that decodes."""
        return self.question.needs_machine()

    @property
    def simulated(self):
        """Whether the numbers that are compared with the SLO come from a simulation."""
        return bool(self.simulations or self.fleet and self.fleet.estimate.requests)

    @property
    def layout(self) -> Layout:
        """Its parallel layout."""
        return self.question.resolved_layout

    @property
    def hourly(self):
        """Dollars per hour of the machine, or of those for a given number of users."""
        return max(self.replicas, 1) * self.system.count * self.request.price_per_chip_hour

    @property
    def p99(self):
        """Simulated p99 by kind: at the estimate, and at both ends of its interval."""
        return {what: [one.percentile(what, 99) for one in self.simulations] for what in ("first", "token")}

    @property
    def concurrency(self):
        """Users per machine."""
        return self.request.concurrency

    @property
    def speed(self):
        """Output tokens per second of one user."""
        return 1 / self.request.tpot

    @property
    def dollars(self):
        """Dollars per request, at the chip's lowest price."""
        return self.request.dollars

    @property
    def unsure_reason(self):
        """Why a price of this offer is ranked by the slow end of its interval (untimed kernels); ``""`` if not."""
        name = self.system.chip.name
        if calibration.fallback_chip(name) != name:
            return "kernels are lent"
        shared = self.layout.dp > 1 and self.layout.ep > 1 and self.request.prefill_machine is None
        return "copies that share experts prefill" if shared else ""

    @property
    def ranked(self):
        """Dollars by which offers are sorted: per request, or per hour if a number of users is given."""
        if self.replicas:
            return self.hourly
        return self.dollars * (self.request.step_factor if self.unsure_reason else 1)

    @property
    def warnings(self):
        """Cautions: respects in which the offer is beyond the measurements."""
        return self.request.warnings

    @property
    def notes(self):
        """Notes below the table: cautions, and how an offer that is not sure is ranked."""
        by = "estimate, though" if self.replicas else "slow end:"
        slow = [f"Ranked by its {by} {self.unsure_reason}."] if self.unsure_reason else []
        if self.fleet and self.fleet.max_num_seqs:
            slow.append(LIMITED)
        return [*(f"Caution: {caution}." for caution in self.warnings), *slow]

    def numbered(self):
        """Return the offer of a fleet with its numbers of machines in the question."""
        many = self.fleet
        numbers = {"replicas": many.replicas, "prefill_replicas": many.prefill_replicas or None}
        return replace(self, question=self.question.replace(**numbers))

    def surely(self):
        """Describe what meets the SLO at the slow end of the interval too, on the same chip."""
        if self.sure is None:
            return f"At the slow end no number of {self.system.chip.name} is enough."
        if self.sure.machinery == self.fleet.machinery:
            return "This is enough at the slow end too."
        lines = dict(self.sure.rows())
        return f"Enough at the slow end too: {lines['Replicas']}, {lines['Rent']}."

    def cells(self):
        """The columns of the table of offers: name to text."""
        (low, high) = self.request.tpot_interval
        machine = f"{self.replicas} × ({self.system})" if self.replicas > 1 else f"{self.system}"
        one = {"rate": self.speed, "tpot": self.request.tpot, "tpot_low": low, "tpot_high": high} | self.row()
        if self.fleet:
            machine = self.fleet.machinery
            one = self.fleet.to_dict() | one
        found = {"machine": machine, "layout": one["layout"]}
        for name, (key, scale) in (offer_columns()["columns"] | offer_columns()["details"]).items():
            if (at := one.get(key)) is not None:
                ends = [one[f"{key}_{end}"] / at for end in ("low", "high") if f"{key}_low" in one]
                found[name] = formatting.format_interval(scale * at, ends or (1, 1))
        return found

    def screen(self):
        """Return its columns, one below another."""
        return "", list(self.cells().items()), self.notes

    def percentiles(self):
        """Simulated percentiles as columns of the table."""
        found = {}
        for end, one in zip(("", "_low", "_high"), self.simulations, strict=False):
            for what, name in zip(one.kinds, ("ttft", "tpot"), strict=False):
                uncertain = floor(log10(max(one.error(what), 1e-9)))  # the first digit that chance decides
                found[f"{name}_p99{end}"] = round(one.percentile(what, 99), -uncertain)
        if self.simulations:
            found |= {
                "kept": self.simulations[0].slo_attainment,
                "usd_per_million_kept": self.simulations[0].usd_per_million_within_slo,
            }
        return found

    def row(self):
        """Return the offer as a flat table row: seconds, tokens per second, dollars."""
        r = self.request
        prices = r.per_million
        many = self.fleet.to_dict() if self.fleet else {"usd_per_hour": self.hourly}
        many |= {"replicas": self.replicas} if self.replicas else {}
        many = {name: many[name] for name in FLEET if name in many}
        return {
            **_named(self.system, self.layout), "concurrency": self.concurrency,
            "speed": self.speed, "speed_low": 1 / r.tpot_interval[1], "speed_high": 1 / r.tpot_interval[0],
            "ttft": r.ttft, "ttft_low": r.ttft_interval[0], "ttft_high": r.ttft_interval[1],
            **many, **self.percentiles(), "usd_per_request": r.dollars,
            "usd_per_request_low": r.dollars * r.price_interval[0],
            "usd_per_request_high": r.dollars * r.price_interval[1],
            "usd_per_million_input": prices.get("input"), "usd_per_million_cached": prices.get("cached"),
            "usd_per_million_output": prices.get("output"), "seller": self.seller, "warnings": self.warnings,
        }  # fmt: skip


@frozen
class Rejected:
    """A machine that meets the SLO for no number of users, and why.

    ``times``: the factor by which it misses, if that is a number.
    """

    chip: str
    count: int
    layout: str
    reason: str
    detail: str
    times: float | None = None


@frozen
class Decision(formatting.Screen):
    """Result of :func:`decide`.

    ``offers``: machines that meet the SLO, cheapest first, each with the most users at which it does; ``points``: all
    machines and users that were tried and fit; ``rejected``: machines without an offer, each with its reason;
    ``left_out``: chips that were not tried, with the reason.
    """

    question: Question
    slo: SLO
    offers: tuple
    points: tuple
    rejected: tuple
    left_out: Mapping
    sure: bool
    narrower: str = ""
    asked: Mapping = field(default_factory=dict)  # arguments besides question and SLO

    @property
    def best(self) -> Offer | None:
        """The cheapest offer."""
        return self.offers[0] if self.offers else None

    @property
    def runners_up(self) -> tuple:
        """The cheapest offer of every other chip, cheapest first."""
        first: dict[str, Offer] = {}
        for offer in self.offers:
            first.setdefault(offer.system.chip.name, offer)
        return tuple(first.values())[1:]

    @property
    def why_not(self) -> dict[str, int]:
        """Number of machines that fail, by reason."""
        counted = Counter(miss.reason for miss in self.rejected)
        return {reason: counted[reason] for reason in FAILURES if counted[reason]}

    @property
    def link(self) -> str:
        """Link to the calculator page with the same search, relative to the book's folder."""
        from tokenprice.permalink import page_link

        more = {"sure": True} if self.sure else {}
        cached = self.best.request.cached_tokens if self.best else 0.0
        return page_link(self.question, self.slo, cached, **self.asked, **more)

    def frontier(self):
        """Cost against the speed of one user, as a DataFrame of points that no other machine beats within the SLO.

        Fastest first, as :func:`inferlib.frontier.pareto` returns it; empty if no machine meets the SLO.
        """
        from inferlib.frontier import pareto
        from inferlib.optional_imports import pandas as pd

        table = pd.DataFrame([point for point in self.points if point["in_time"]])
        return pareto(table, speed="speed", cost="usd_per_request") if len(table) else table

    def to_dict(self) -> dict:
        """Return everything as plain numbers and texts in SI units, as ``--json`` prints it."""
        return {
            "question": self.question.words(), "slo": self.slo.words(), "sure": self.sure,
            "offers": [offer.row() for offer in self.offers], "why_not": self.why_not,
            "misses": [vars(miss) for miss in self.rejected], "left_out": dict(self.left_out),
            "commands": self.commands, "no_command": self.no_command,
        }  # fmt: skip

    def screen(self, most=OFFERS_SHOWN, why=False):
        """Return the offers as a table with footnotes, cheapest first (or the nearest misses), and why others fail.

        ``why``: also list the chips that were not tried.
        """
        title, rows, below = "", [], []
        if self.best is None:
            title = f"{self.question.model.name}: no machine would {goal(self.slo)}."
            rows = [("", of_chip(m.count, m.chip), m.layout, m.reason, m.detail) for m in self.nearest()]
        else:
            rows, footnotes = self._shown(self.offers[:most])
            below = [*footnotes, self._meaning(), *self._unshown(self.offers[most:])]
        if self.narrower:
            below.append(f"{self.narrower}.")
        if self.why_not:
            counted = ", ".join(f"{reason} {n}" for reason, n in self.why_not.items())
            below.append(f"Machines that fail: {counted}.")
        for reason in dict.fromkeys(self.left_out.values()) if why else ():
            names = ", ".join(name for name, because in self.left_out.items() if because == reason)
            below.append(f"Not tried, {reason}: {names}.")
        if self.left_out and not why:
            some = f"Chips not tried, for want of a price, a power or timed kernels: {len(self.left_out)}"
            below.append(f"{some}; --why, in Python .left_out, names them.")
        return title, rows, below

    def _shown(self, offers):
        """Return the table of offers, with its head, and its footnotes."""
        numbers = {}
        asked_slow = self.question.request_rate and not self.sure and not self.best.simulations
        rows = []
        for place, offer in enumerate(offers, 1):
            notes = [offer.surely()] if asked_slow and place <= OFFERS_SHOWN else []
            marks = (numbers.setdefault(note, len(numbers) + 1) for note in [*notes, *offer.notes])
            cells = {
                name: text for name, text in offer.cells().items() if name not in offer_columns()["details"]
            }
            rows.append({"": f"{place}", **cells, "notes": "".join(f"[{n}]" for n in marks)})
        columns = dict.fromkeys(name for row in rows for name, text in row.items() if text)
        table = [tuple(columns), *(tuple(row.get(name, "") for name in columns) for row in rows)]
        return table, [f"[{n}] {note}" for note, n in numbers.items()]

    def _meaning(self):
        """Say what the intervals hold, and of what requests the times are."""
        said = f"Intervals hold {100 * load_calibration()['confidence']:.0f} % of cases"
        if self.best.simulations:
            many = len(self.best.simulations[0].first)
            said += f"; p99, up to the first digit left to chance, and kept: of {many:,} simulated requests"
        elif self.question.request_rate:
            said += "; means of simulated requests, TPOT over all tokens"
            said += ": give tpot_p99 or ttft_p99 for 99 of 100 requests"
        return f"{said}."

    def _unshown(self, offers):
        """Count the offers that are not shown, and those of them that were not simulated."""
        if not offers:
            return []
        unsimulated = sum(not one.simulated for one in offers if one.fleet)
        by_formula = f", {unsimulated} of them by formula, not simulated" if unsimulated else ""
        more = "machines" if len(offers) > 1 else "machine would"
        return [f"{len(offers)} more {more} {goal(self.slo)}{by_formula}."]

    @property
    def commands(self) -> dict:
        """The command that starts the best machine, of each engine that has one."""
        return launch.commands(self.best.question) if self.best else {}

    @property
    def no_command(self) -> list:
        """Why other engines have no such command, one sentence per reason."""
        return launch.no_command(self.best.question) if self.best else []

    def nearest(self, most=3) -> tuple:
        """Return the rejected machines that miss the SLO by the least."""
        return tuple(sorted(self.rejected, key=lambda miss: miss.times or inf)[:most])


def decide(
    question, slo=None, /, *, chips=None, counts=None, layouts=None, prices: Mapping | str | None = None,
    sure: bool = False, **options: Unpack[DecideOptions],
) -> Decision:  # fmt: skip
    """Find the cheapest machine that serves a model within an SLO, other machines that do, and why the rest fail.

    A *machine* is a chip, a count of it and a layout. Users are a multiple of the copies of the attention (``dp`` of
    the layout): at least one per copy, at most as many as fit in memory. More users make a request cheaper, its tokens
    slower and its first token later. So each machine is asked for powers of two of users, and for the most users that
    meet the SLO: that is its offer. Offers are sorted by dollars per request, then by chips and speed; those with
    another chip's kernels, or with copies that share experts and prefill, by their slow end. With ``concurrency`` they
    are sorted by dollars per hour, without the slow end.

    With ``request_rate``, the smallest number of each machine is found that meets the SLO on average, with prefill on
    all or on separate machines of the same chip; the cheapest fleet is its offer.

    With ``tpot_p99`` or ``ttft_p99``, only the three cheapest machines are offers: 3,000 simulated requests choose the
    number of machines or users, and 10,000 others must meet the SLO with it.

    Parameters
    ----------
    question : Question, or a model
        Requests without a machine: prompt and output. Options as for :func:`tokenprice.ask`, and those of the SLO.
    slo : SLO
    chips : str, list of str or Accelerator, or Mapping of name to Accelerator, optional
        Chips to try, such as ``"H100, H200"``; default: every chip of the catalogue that has timed operators and a
        price. A Mapping holds chips of your own, which are tried in addition.
    counts : list of int, or str, optional
        Chips of a machine, such as ``"2, 4"``; powers of two within the chip's scale-up domain when not given.
    layouts : callable or list of Layout, optional
        Function of model, chip and count that returns the layouts to try (default:
        :func:`tokenprice.deployment.layouts`); from a list, those that use all chips of the machine are tried.
    prices : Mapping, or str, optional
        Chip to dollars per chip-hour, in addition to the catalogue's: a number, a pair (lowest, highest), or a Mapping
        of sellers to numbers; or all as text, ``"H100=2-4; B200=5"``. Offers use the lowest; the result at the highest
        is given as well.
    sure : bool
        Whether the SLO must be met at the slow end of the interval too, not only at the estimate.

    Returns
    -------
    Decision

    Raises
    ------
    LookupError, ValueError, TypeError
        Naming the field, its value and what is allowed.

    Examples
    --------
    >>> found = decide("Llama 3.1 8B", prompt_tokens=1000, output_tokens=300, tpot="50 tokens/s", ttft=0.5,
    ...                counts=[1, 2])
    >>> found.best.speed >= 50 and found.best.request.ttft <= 0.5
    True
    """
    chips = re.split(r"\s*[,;]\s*", chips.strip(" ,;")) if isinstance(chips, str) else chips
    counts = counts.split(",") if isinstance(counts, str) else counts
    own = chips if isinstance(chips, Mapping) else None
    sure = parse_bool("sure", sure)
    free = {*CHOSEN_BY_DECIDE, "requests_per_user", "fixed_lengths", "max_num_batched_tokens"} - {
        "concurrency"
    }
    shown, slo = question_and_slo(question, None, slo, options, own, free)
    for name, value in (("chips", chips), ("counts", counts), ("layouts", layouts)):
        if isinstance(value, (list, tuple)) and not value:
            raise ValueError(f"{name} is {value!r}, but must hold at least one; leave it out to try all")
    q = _without_machine(shown)
    offered, left_out = _offered(chips, prices, q.electricity)
    several = [counts] if isinstance(counts, int) else counts or ()
    given = list(dict.fromkeys(parse_int("counts", n) for n in several))
    search = _Search(q, slo, sure, shown.concurrency, given, layouts).over(offered)
    if offered and not (search.offers or search.misses):
        said = validation.shown(layouts)
        raise ValueError(
            f"counts is {given or None} and layouts is {said}, but no layout uses all chips of a machine"
        )
    found = search.ranked()
    if q.request_rate and not sure and not slo.percentiles:
        found[:OFFERS_SHOWN] = search.with_sure(found[:OFFERS_SHOWN], offered)
    found = [one.numbered() if one.fleet else one for one in found]
    asked = {"chips": chips, "counts": counts, "layouts": layouts, "prices": prices or None}
    more = [] if slo.percentiles else [*search.in_fewer_bits(found, offered)]
    if layouts is None and not slo.percentiles:
        more += search.in_stages(found, offered)
    narrower = ". ".join(more)
    tried = tuple(search.points), tuple(search.misses)
    return Decision(shown, slo, tuple(found), *tried, left_out, sure, narrower, asked)


def _without_machine(question):
    """Return the requests for which machines are sought, users left out; ValueError if a machine or more is chosen."""
    q = question.replace(concurrency=None) if question.is_request else question
    chosen = q.machine is not None or q.layout is not None
    if not q.is_request or chosen or question.concurrency and q.request_rate:
        raise ValueError(
            "decide chooses machine and layout itself: give model, prompt_tokens, output_tokens, and concurrency or "
            "request_rate"
        )
    if any(
        one is not None
        for one in (
            q.draft_tokens,
            q.replicas,
            q.prefill_machine,
            q.max_num_batched_tokens,
            q.price,
            q.price_max,
        )
    ):
        raise ValueError(
            "decide takes no drafts, replicas, prefill_machine, max_num_batched_tokens or price; give prices with "
            "prices="
        )
    return q


def goal(slo):
    """Say in words what machines are tried for: an SLO, or without one to serve the model at all."""
    return "meet the SLO" if slo.words() else "serve it"


def _in_fewer_bits(model, weights, offer, done):
    """Describe the machine that meets the SLO with narrower weights, and a checkpoint of the model in that format."""
    stem = f"/{model.name.rpartition('/')[2].replace(' ', '-')}-".lower()
    known = (*models(), *same_shapes(), *checkpoints())
    found = [name for name in known if stem in name.lower() and name.lower().endswith(weights)]
    checkpoint = f" ({found[0]})" if found else ""
    return f"With weights in {weights}{checkpoint}, {_rented(offer)} would {done}"


def _rented(offer):
    """Name all chips of an offer."""
    count = offer.fleet.chips if offer.fleet else offer.system.count * max(offer.replicas, 1)
    return of_chip(count, offer.system.chip.name)


def _stages(model, chip, count):
    """Return layouts with pipeline stages within one machine."""
    return [Layout(tp=count // pp, pp=pp) for pp in (2, 4, 8) if count % pp == 0]


def machine_sizes(chip):
    """Return the numbers of chips per machine to try: powers of two up to the domain, and the domain itself."""
    domain = int(calibration.chips_per_node(chip) or CHIPS_WITHOUT_DOMAIN)
    powers = [2**k for k in range(min(domain, MAX_CHIPS).bit_length())]
    return powers + ([domain] if domain not in powers and domain <= MAX_CHIPS else [])


def _layouts(given, model, chip, count):
    """Return the layouts of one machine: those of the caller, or those worth trying."""
    if given is None:
        return layouts_of(model, chip, count)
    if callable(given):
        return given(model, chip, count)
    given = given if isinstance(given, (list, tuple)) else [given]
    read = [parsing.parse_layout("layouts", one) for one in given]
    return [one for one in read if one.tp * one.pp * one.dp == count]


def _offered(chips, prices, electricity=None):
    """Return chips to try, each at its lowest price (with seller and highest price), and the others with the reason."""
    given = chips.values() if isinstance(chips, Mapping) else chips
    given = [given] if isinstance(given, Accelerator) else given
    validation.instance("chips", given, (Iterable, type(None)))
    own = {chip.name: chip for chip in given or () if isinstance(chip, Accelerator)}
    stated = parsing.parse_prices(prices or {}, own)
    asked = given is not None and not isinstance(chips, Mapping)
    named = given if asked else [*every_chip(), *own.values()]
    tried = dict.fromkeys(chip if isinstance(chip, Accelerator) else load_chip(chip) for chip in named)
    found = []
    left_out = {name: f"because {error}" for name, error in getattr(chips, "wrong", {}).items()}
    for chip in tried:
        seller = str(chip.sources.get("price", "")).partition(",")[0]
        lowest, seller, highest = stated.get(chip.name, (chip.price, seller, None))
        if lowest is None:
            left_out[chip.name] = "because no price is known (give prices=)"
        elif (
            not (asked or chip.name in {*own, *stated}) and calibration.fallback_chip(chip.name) != chip.name
        ):
            left_out[chip.name] = (
                "because its kernels were not timed (name it in chips= or prices= to try it)"
            )
        elif electricity and chip.power is None:
            left_out[chip.name] = "because its power is not known, and electricity has a price"
        else:
            found.append((chip.replace(price=lowest), (seller, highest)))
    return found, left_out


@dataclass
class _Search:
    """The search for offers, points and misses, machine by machine; the SLO is compared with the numbers shown."""

    q: Question
    slo: SLO
    sure: bool
    concurrency: float | None  # users of all machines
    counts: list
    layouts: object
    offers: list = field(default_factory=list, init=False)
    points: list = field(default_factory=list, init=False)
    misses: list = field(default_factory=list, init=False)

    def over(self, offered):
        """Ask about all machines with the offered chips; return the search."""
        for chip, (seller, highest) in progress(offered, "chips"):
            for n in self.counts or machine_sizes(chip):
                for layout in _layouts(self.layouts, self.q.model, chip, n):
                    asked = self.q.replace(machine=System(chip, n), layout=layout, price_max=highest)
                    self.ask(asked, seller)
        return self

    @property
    def cheapest(self):
        """The cheapest offer, or None."""
        return min(self.offers, key=self.place, default=None)

    def ranked(self):
        """Return the offers, cheapest first; those simulated that are shown, if requests arrive or have percentiles."""
        found = sorted(self.offers, key=self.place)
        if self.slo.percentiles:
            found = self.simulated(found, SIMULATED, self.percentiles)
            rest = {f"{one.system} {one.layout}": one.question for one in found[SIMULATED:]}
            for asked in rest.values():
                self._miss(asked, DEARER, "by formula, or as far as simulated")
            return found[:SIMULATED]
        return self.simulated(found, OFFERS_SHOWN, self.means) if self.q.request_rate else found

    def with_sure(self, found, offered):
        """Return offers with the fleet that meets the SLO at the slow end too: their own, or the chip's cheapest."""
        cheapest = {}
        for chip in dict.fromkeys(offer.system.chip.name for offer in found):
            slow = replace(self, sure=True).over([one for one in offered if one[0].name == chip])
            cheapest[chip] = next((one.fleet for one in slow.simulated(slow.offers, 1, slow.means)), None)
        return [
            replace(
                one, sure=one.fleet if self._kept(one.fleet.slow_end) else cheapest.get(one.system.chip.name)
            )
            for one in found
        ]

    def in_fewer_bits(self, found, offered):
        """Describe narrower weights that meet the SLO for less on the best offer's chip, or at all if no offer does."""
        (best,) = found[:1] or [None]
        own = [one for one in offered if best is None or one[0].name == best.system.chip.name]
        do = goal(self.slo)
        narrow = self.q.formats[0]
        for weights in ("fp8", "fp4"):
            able = [one for one in own if weights in {*fewer_bits(one[0], narrow)} & {*one[0].peaks}]
            other = replace(self, q=self.q.replace(weights=weights)).over(able).cheapest
            paid = [one.hourly if self.concurrency else one.dollars for one in (other, best) if one]
            less = 1 - paid[0] / paid[1] if other and best else 1
            if other and less >= 0.01:
                yield _in_fewer_bits(
                    self.q.model, weights, other, do + (f" for {less:.0%} less" if best else "")
                )

    def in_stages(self, found, offered):
        """Name pipeline stages within a machine that meet the SLO for much less on the chips of the offers shown."""
        if found and found[0].system.count == 1:
            return  # a chip alone sends nothing
        shown = {one.system.chip.name for one in found[:OFFERS_SHOWN]}
        own = [one for one in offered if not shown or one[0].name in shown]
        other = replace(self, layouts=_stages).over(own).cheapest
        less = 1 - other.ranked / found[0].ranked if other and found else 1
        if other and less >= MUCH_LESS:
            cheaper = f" for {less:.0%} less" if found else ""
            yield IN_STAGES.format(
                layout=format_layout(other.layout),
                chips=_rented(other),
                do=goal(self.slo),
                cheaper=cheaper,
            )

    def ask(self, q, seller):
        """Ask a question with one machine and layout: an offer or a miss, and points of the frontier."""
        served = q.deployment
        dp = q.layout.dp
        if served.layout_error:
            return self._miss(q, NOT_DESCRIBED, served.layout_error)
        places = q.max_sequences()
        most = served.scheduler.max_num_seqs * q.layout.lanes
        rounds = int(min(places, most, MAX_USERS) // dp)
        full = served.step(dp, q.longest)
        if full.status == "n/a":
            return self._miss(q, NOT_DESCRIBED, full.reason)
        if rounds < 1:
            return self._miss(q, NO_ROOM, full.reason or f"room for {max(places, 0):.3g} users")
        if q.request_rate:
            return self._fleet(q, seller)
        read = prefill_profile(q)
        ladder = np.array([2**k for k in range(rounds.bit_length())])
        tried = request_for(q, read, dp * ladder)
        self._keep(tried, q, dp * ladder)
        kept = ladder[~self._too_slow(tried, q)]
        if not len(kept):
            return self._miss(q, *self._why(tried, q))
        high = min(2 * int(kept[-1]), rounds + 1)
        users = dp * self._most(q, read, int(kept[-1]), high)
        replicas = 0
        if self.concurrency:  # the fewest machines for all users, each with its share
            replicas = ceil(self.concurrency / users)
            users = dp * ceil(self.concurrency / (replicas * dp))
            alone = request_for(q, read, np.array([users]))
            if self._too_slow(alone, q)[0]:
                return self._miss(q, *self._why(alone, q))
        if users not in dp * ladder:
            one = np.array([users])
            self._keep(request_for(q, read, one), q, one)
        request = with_cautions(request_for(q, read, users), q, users)
        self._offer(q, request, seller, replicas=replicas)

    def place(self, offer):
        """Sort key of offers: price, whether they miss the SLO at the slow end, TPOT, ep; to nine digits.

        With percentiles, one kind of machine comes before two of one price.
        """
        price, tpot = (float(f"{value:.9g}") for value in (offer.ranked, offer.request.tpot))
        if offer.fleet:
            kinds = bool(self.slo.percentiles and offer.fleet.prefill_machine)
            return price, kinds, not self._kept(offer.fleet.slow_end), tpot, offer.layout.ep
        return price, 0 if offer.replicas else offer.system.count, tpot, offer.layout.ep

    def _fleet(self, q, seller):
        """Find the cheapest fleet of one machine, with prefill on all or on separate machines of its chip."""
        how = {"kept": self._kept, "sure": self.sure, "simulated": False}
        found = [(one, fleet(one, **how)) for one in (q, *self._apart(q))]
        both = found[0][1]
        if limit := both and not q.max_num_seqs and both.server.better_limit:
            limited = q.replace(max_num_seqs=limit[0])
            many = fleet(limited, **how)
            found.append((limited, many and replace(many, max_num_seqs=limit[0])))
        found = [one for one in found if one[1]]
        if not found:
            alone = request_for(q, prefill_profile(q), np.array([q.layout.dp]))
            return self._miss(q, *self._why(alone, q))
        # All have one price per chip; with equally many chips, a fleet that meets the SLO at the slow end too comes
        # first.
        found.sort(key=lambda one: (one[1].chips, not self._kept(one[1].slow_end)))
        # Which machines for prefill meet a percentile for less, only a simulation tells.
        simulated = bool(self.slo.percentiles)
        cheapest = {many.prefill_machine if simulated else None: (one, many) for one, many in reversed(found)}
        for one, many in cheapest.values():
            self._offer(one, many.request, seller, many)

    @staticmethod
    def _apart(q):
        """Yield the question with separate prefill machines: equal ones, and smaller ones that have room."""
        if q.machine.chip.scale_out_bandwidth is None:  # how fast a cache moves is not known
            return
        yield q.replace(prefill_machine=q.machine)
        reading = q.replace(output_tokens=1, trace=None)
        for n in machine_sizes(q.machine.chip):
            if n < q.machine.count:
                one = q.replace(prefill_machine=System(q.machine.chip, n))
                if (
                    not one.prefill_deployment.layout_error
                    and reading.max_sequences(one.prefill_deployment) >= 1
                ):
                    yield one

    def _offer(self, q, request, seller, fleet=None, replicas=0):
        output = request.per_million["output"]
        over = output / (self.slo.usd_per_million or inf)
        if over > 1:
            return self._miss(q, TOO_DEAR, f"${format_number(output)} per million at best", over)
        asked = q if fleet else q.replace(concurrency=int(request.concurrency))
        if broken := invariants.of_request(asked, request, fleet):
            return self._miss(q, NOT_DESCRIBED, broken)
        self.offers.append(Offer(asked, request, seller, fleet, replicas=replicas))

    def simulated(self, offers, most, search):
        """Return the offers sorted, with the ``most`` cheapest simulated.

        ``search`` yields an offer at ever higher prices below which it misses the SLO, then simulated, and then, if it
        is one of the cheapest, with what else is shown.
        """
        found = [(one, search(one)) for one in offers]
        while True:
            found.sort(key=lambda pair: self.place(pair[0]))
            k = next((k for k, (one, _) in enumerate(found[:most]) if not one.simulated), None)
            if k is None:
                last = [next(further, one) for one, further in found[:most]]
                return sorted(last, key=self.place) + [one for one, _ in found[most:]]
            _, further = found.pop(k)
            found += [(one, further) for one in islice(further, 1)]

    def means(self, offer):
        """Yield the offer of a fleet with the machines whose simulated means meet the SLO."""
        q, old = offer.question, offer.fleet
        near = old.replicas, old.prefill_replicas
        if many := fleet(q, kept=self._kept, sure=self.sure, near=near):
            many = replace(many, max_num_seqs=old.max_num_seqs)
            yield replace(offer, request=many.request, fleet=many)
        else:
            token, *first = self._times_over(old.estimate.tpot, old.estimate.ttft)
            reason = TOO_SLOW if token > max(first) else TOO_LATE
            detail = f"with {old.replicas} machines and more, simulated"
            self._miss(q, reason, detail, max(token, *first, 1.0))

    def percentiles(self, offer):
        """Yield the offer with more machines, or fewer users, until simulated requests meet its percentiles.

        The number that some requests choose is judged by others, because of many numbers and machines the cheapest is
        also the luckiest.
        """
        old = offer.fleet
        kept = yield from (self._grown if old and old.prefill_machine else self._bisected)(offer)
        if kept is None:
            return
        yield kept
        found = ask_kernel_model(kept.question)
        many = old and replace(found.fleet, max_num_seqs=old.max_num_seqs)
        # the estimate was judged with these very requests, unless the slow end was
        judged = [] if self.sure else [replace(kept.simulations[0], answer=found)]
        for end in (0, -1, 1)[len(judged) :]:
            judged.append(simulate_requests(found, self.slo, *JUDGING, end=end))
        yield replace(kept, request=found.request, fleet=many, simulations=tuple(judged))

    def _bisected(self, offer):
        """Yield the offer with ever more machines, or fewer users; return the first that meets the SLO."""
        dp, old = offer.layout.dp, offer.fleet
        machines = old.replicas if old else offer.replicas
        rounds = int(offer.concurrency // dp)
        most = (MAX_FLEET_FACTOR - 1) * machines or rounds - 1
        low = 0
        for requests in (CHOOSING, JUDGING):
            start, high = low, None
            while low != high:
                k = min(max(2 * low - start - 1, start), most) if high is None else (low + high) // 2
                users = ceil(self.concurrency / (machines + k) / dp) if self.concurrency else rounds - k
                load = {"replicas": machines + k} if old else {"concurrency": users * dp}
                now = self._tried(offer, load, requests)
                now = now and replace(now, replicas=offer.replicas and machines + k)
                if now is None:
                    return None
                *_, times = self._worst(now)
                if times <= 1:
                    high, kept = k, now
                elif k == most:
                    return self._miss(now.question, *self._worst(now))
                else:
                    low = k + 1
                    yield replace(now, simulations=())
        return kept

    def _grown(self, offer):
        """Yield the offer of separate prefill machines, each time with more of those whose time is missed."""
        load = {"replicas": offer.fleet.replicas, "prefill_replicas": offer.fleet.prefill_replicas}
        most = MAX_FLEET_FACTOR * sum(load.values())
        for requests in (CHOOSING, JUDGING):
            while now := self._tried(offer, load, requests):
                reason, *_, times = self._worst(now)
                if times <= 1:
                    break
                if sum(load.values()) >= most:
                    return self._miss(now.question, *self._worst(now))
                short = "replicas" if reason == TOO_SLOW else "prefill_replicas"
                load |= {short: load[short] + ceil(load[short] / 10)}
                yield replace(now, simulations=())
            else:
                return None
        return now

    def _tried(self, offer, load, requests):
        """Return an offer with another number of machines or users, simulated; None if it is infeasible."""
        found = ask_kernel_model(offer.question.replace(**load), simulated=False)
        if not found.feasible:
            return self._miss(offer.question, NOT_DESCRIBED, found.reason)
        made = simulate_requests(found, self.slo, *requests, end=int(self.sure))
        return replace(offer, question=found.question, request=found.request, simulations=(made,))

    def _worst(self, offer):
        """Return the limit that the simulated requests of an offer exceed most, or come nearest to."""
        (made,) = offer.simulations
        means = made.mean("token"), made.mean("first")
        whole = means[1] + (float(self.q.output_tokens) - 1) * means[0]
        over = zip((TOO_SLOW, TOO_LATE, TOO_LATE), (*means, whole), self._times_over(*means), strict=True)
        rows = [(reason, f"{format_time(each)} in the mean", times) for reason, each, times in over]
        for what, reason in (("token", TOO_SLOW), ("first", TOO_LATE)):
            if limit := self.slo.percentiles.get(what):
                each = made.percentile(what, 99)
                rows.append((reason, f"99 of 100 within {format_time(each)}", each / limit))
        reason, detail, times = max(rows, key=lambda row: row[2])
        many = made.answer.fleet
        load = many.machinery if many else f"{made.answer.question.concurrency} users"
        return reason, f"{detail} at {load}, simulated", times

    def _kept(self, state):
        return state.load <= SETTLED and all(t <= 1 for t in self._times_over(state.tpot, state.ttft))

    def _times_over(self, token, first):
        """Return TPOT, TTFT and request latency as multiples of their limits."""
        whole = first + (float(self.q.output_tokens) - 1) * token
        limits = self.slo.limit("tpot"), self.slo.limit("ttft"), self.slo.request_latency or inf
        return tuple(seconds / most for seconds, most in zip((token, first, whole), limits, strict=True))

    def _most(self, q, read, low, high):
        """Find the largest number of rounds between ``low``, which meets the times of the SLO, and ``high``."""
        while high - low > 1:
            between = np.unique(np.linspace(low, high - 1, 32).astype(int))
            kept = between[~self._too_slow(request_for(q, read, q.layout.dp * between), q)]
            low = int(kept[-1])
            high = int(min([*between[between > kept[-1]], high]))
        return low

    def _times(self, tried, q):
        """Return TPOT and TTFT, at the slow end if they must be met there."""
        if not self.sure:
            return tried.tpot, tried.ttft
        users = np.broadcast(tried.concurrency, tried.decode_batch, tried.pack, tried.prefill_share)
        each = [
            with_cautions(replace(tried, concurrency=n, decode_batch=m, pack=k, prefill_share=share), q, n)
            for n, m, k, share in users
        ]
        slow, late = np.array([(one.step_factor, one.first_factor) for one in each]).T
        return tried.tpot * slow, tried.ttft * late

    def _too_slow(self, tried, q):
        """Return where a time of the SLO is missed: with more users times are longer, and prices lower."""
        return np.max(self._times_over(*self._times(tried, q)), axis=0) > 1

    def _why(self, tried, q):
        """Explain a miss by the users with whom it is least: reason, detail, factor of the limit missed most."""
        token, first = self._times(tried, q)
        price = tried.per_million["output"]
        over = (*self._times_over(token, first), price / (self.slo.usd_per_million or inf))
        k = np.argmin(np.max(over, axis=0))
        users = int(tried.concurrency[k])
        who = f"{' at the slow end' * self.sure} for {users} user{'s' * (users > 1)}"
        whole = over[2][k] * (self.slo.request_latency or 0)
        reasons = TOO_SLOW, TOO_LATE, TOO_LATE, TOO_DEAR
        details = (
            f"{1 / token[k]:.3g} tokens/s",
            f"{first[k]:.3g} s",
            f"{whole:.3g} s for a whole answer",
            f"${format_number(price[k])} per million",
        )
        rows = zip(reasons, details, over, strict=True)
        reason, detail, times = max(rows, key=lambda row: row[2][k])
        return reason, detail + who, float(times[k])

    def _keep(self, tried, q, users):
        """Keep points of the frontier."""
        prices = tried.per_million
        dear = prices["output"] > (self.slo.usd_per_million or inf)
        short = dear | self._too_slow(tried, q)
        (_, first) = self._times(tried, q)
        dollars = tried.dollars
        for k, n in enumerate(users):
            self.points.append({
                **_named(q.machine, q.layout), "concurrency": int(n),
                "speed": float(1 / tried.tpot[k]), "ttft": float(tried.ttft[k]),
                "usd_per_request": float(dollars[k]), "usd_per_million_output": float(prices["output"][k]),
                "in_time": bool(first[k] <= self.slo.limit("ttft")), "kept": bool(not short[k]),
            })  # fmt: skip

    def _miss(self, q, reason, detail, times=None):
        self.misses.append(Rejected(**_named(q.machine, q.layout), reason=reason, detail=detail, times=times))


def _named(machine, layout):
    """Format a machine for a row."""
    return {"chip": machine.chip.name, "count": machine.count, "layout": format_layout(layout)}
