"""What to rent for a service: every machine that keeps its promise, cheapest first, and why others do not."""

import html
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from inferlib import checks
from inferlib.catalog import chips as every_chip, load_chip, resolve
from inferlib.serving import constants
from inferlib.serving.decode import decode_step
from inferlib.serving.prompt import room
from inferlib.serving.request import Request, hopes, passes, served
from inferlib.system import Accelerator, Layout, System, Workload, count as whole
from inferlib.transformer import Transformer

COUNTS = (1, 2, 4, 8, 16, 32, 64, 72)
MOST = 8192  # users of one machine beyond which nobody looks
NO_PRICE, NOT_DESCRIBED, NO_ROOM = "no price", "not described", "does not fit"
TOO_SLOW, TOO_LATE = "too slow", "first token too late"
FAILURES = (NO_PRICE, NOT_DESCRIBED, NO_ROOM, TOO_SLOW, TOO_LATE)


def in_words(layout):
    """How a model lies on its chips, as people say it.

    Examples
    --------
    >>> in_words(Layout(tp=8)), in_words(Layout(tp=8, pp=2)), in_words(Layout(ep=64, dp=64))
    ('TP8', 'PP2 x TP8', 'attention DP64 with EP64')
    """
    parts = [f"{kind}{n}" for kind, n in (("PP", layout.pp), ("TP", layout.tp)) if n > 1]
    if layout.dp > 1 and layout.ep > 1:
        return f"attention {' x '.join([f'DP{layout.dp}', *parts])} with EP{layout.ep}"
    parts = [f"DP{layout.dp}", *parts] if layout.dp > 1 else parts
    return " x ".join(parts) or "one chip"


def layouts(model, chip, count):
    """The layouts that :func:`decide` tries for a model on so many chips.

    A tensor-parallel degree is a power of two that divides the chips and the heads of every layer.

    1. One instance on all chips, if their number is such a degree: ``TP8``.
    2. Stages, each on the largest degree within a domain, one after another: ``PP2 x TP8``.
    3. Of a mixture of experts: attention copied, each copy on any degree up to 8 within a domain, experts spread
       over all chips: ``attention DP8 with EP8``, ``attention DP4 x TP2 with EP8``, ...

    Copies of a dense model are machines of their own and cost the same a token; they are not tried.

    Parameters
    ----------
    model : Transformer
    chip : Accelerator
    count : int

    Returns
    -------
    list of Layout

    Examples
    --------
    >>> import inferlib
    >>> llama, h100 = inferlib.load_model("Llama 3 70B"), inferlib.load_chip("H100")
    >>> [in_words(layout) for layout in layouts(llama, h100, 16)]
    ['TP16', 'PP2 x TP8']
    """
    heads = [getattr(group.attention, "n_heads", 1) for group in model.layers]
    powers = [2**k for k in range(int(count).bit_length())]
    degrees = [n for n in powers if count % n == 0 and all(h % n == 0 for h in heads)]
    domain = min(count, chip.scale_up_size or count)
    inside = [n for n in degrees if n <= domain]
    found = [Layout(tp=count)] if count in degrees else []
    stages = count // inside[-1]
    if 1 < stages <= model.n_layers:
        found.append(Layout(tp=inside[-1], pp=stages))
    blocks = [
        group.feed_forward.n_experts for group in model.layers if hasattr(group.feed_forward, "n_experts")
    ]
    sends = chip.scale_up_bandwidth if count <= domain else chip.scale_out_bandwidth
    if blocks and 1 < count <= min(blocks) and sends is not None:
        found += [Layout(tp=n, ep=count, dp=count // n) for n in inside if n <= 8 and n < count]
    return found


@dataclass(frozen=True, eq=False)
class Offer:
    """One machine that keeps the promise, with as many users as it then takes."""

    system: System
    layout: Layout
    request: Request
    seller: str = ""
    highest: float | None = None

    @property
    def words(self):
        """The layout in words."""
        return in_words(self.layout)

    @property
    def users(self):
        """Users at a time."""
        return self.request.users

    @property
    def speed(self):
        """Tokens per second of one user."""
        return 1 / self.request.token

    @property
    def dollars(self):
        """Dollars for one request, at the lowest price of the chip."""
        return self.request.dollars

    @property
    def cautions(self):
        """In which respects nothing like it was measured."""
        return self.request.cautions

    def span(self):
        """Between what the speed and the first token lie in ``confidence`` of cases, in words."""
        row = self.row()
        slow, fast = row["speed_low"], row["speed_high"]
        early, late = 1e3 * row["first_token_low"], 1e3 * row["first_token_high"]
        return f"{slow:.3g} to {fast:.3g} tokens/s a user, first token {early:,.0f} to {late:,.0f} ms"

    def row(self):
        """The offer as a flat table row: seconds, tokens per second, dollars."""
        r, told = self.request, self.request.per_million
        return {
            "chip": self.system.chip.name, "count": self.system.count, "layout": self.words, "users": self.users,
            "speed": self.speed, "speed_low": self.speed / r.step_factor, "speed_high": self.speed * r.step_factor,
            "first_token": r.first_token, "first_token_low": r.first_token / r.first_factor,
            "first_token_high": r.first_token * r.first_factor,
            "usd_per_hour": r.rate * self.system.count, "usd_per_request": r.dollars,
            "usd_per_request_highest": r.dollars * (self.highest or r.rate) / r.rate if r.rate else r.dollars,
            "usd_per_million_input": told.get("input"), "usd_per_million_cached": told.get("cached"),
            "usd_per_million_output": told.get("output"), "seller": self.seller, "cautions": self.cautions,
        }  # fmt: skip

    def __str__(self):
        r, told = self.request, self.request.per_million
        prices = ", ".join(f"{name} ${dollars:.3g}" for name, dollars in told.items())
        spread = f" to {100 * r.dollars * self.highest / r.rate:.3g}" if self.highest else ""
        return (
            f"{self.system}, {self.words}, {self.users} users: {self.speed:.3g} tokens/s a user, "
            f"first token {1e3 * r.first_token:,.0f} ms, "
            f"{100 * r.dollars:.3g}{spread} cents a request (a million tokens: {prices})"
        )

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class Miss:
    """One machine that does not keep the promise even for the fewest users, and why.

    ``times`` is by what factor it falls short, where that is a number.
    """

    chip: str
    count: int
    layout: str
    reason: str
    detail: str
    times: float | None = None


@dataclass(frozen=True, eq=False)
class Decision:
    """What :func:`decide` found.

    ``offers`` are the machines that keep the promise, cheapest first, each with the most users for which it
    does; ``points`` are all machines and users that were tried and fit; ``misses`` are the machines without an
    offer, each with its reason; ``asked`` says what was asked.
    """

    model: str
    offers: tuple
    points: tuple
    misses: tuple
    asked: dict

    @property
    def best(self):
        """The cheapest offer, or None."""
        return self.offers[0] if self.offers else None

    @property
    def runners_up(self):
        """The cheapest offer of every other chip, cheapest first."""
        first = {}
        for offer in self.offers:
            first.setdefault(offer.system.chip.name, offer)
        return tuple(first.values())[1:]

    @property
    def why_not(self):
        """How many machines fail for which reason."""
        counted = Counter(miss.reason for miss in self.misses)
        return {reason: counted[reason] for reason in FAILURES if counted[reason]}

    def table(self):
        """The offers as a pandas DataFrame, cheapest first."""
        import pandas as pd

        return pd.DataFrame([offer.row() for offer in self.offers])

    def frontier(self):
        """Cost against the speed of one user: what no other machine beats whose first token comes in time.

        Returns
        -------
        pandas.DataFrame
            Fastest first, as :func:`inferlib.frontier.pareto` returns it; empty where nothing is in time.
        """
        import pandas as pd

        from inferlib.frontier import pareto

        table = pd.DataFrame([point for point in self.points if point["in_time"]])
        return pareto(table, speed="speed", cost="usd_per_request") if len(table) else table

    def to_dict(self):
        """Everything as plain numbers and texts, SI units: what ``--json`` prints."""
        table = self.frontier()
        return {
            "model": self.model, "asked": self.asked, "offers": [offer.row() for offer in self.offers],
            "runners_up": [offer.row() for offer in self.runners_up],
            "frontier": table.to_dict("records"), "why_not": self.why_not,
            "misses": [vars(miss) for miss in self.misses],
        }  # fmt: skip

    def text(self, most=5):
        """In words: so many offers and runners-up, and why others fail."""
        if self.best is None:
            lines = [f"Nothing keeps the promise for {self.model}."]
        else:
            lines = [f"Cheapest: {self.best}", f"  In 80 % of cases {self.best.span()}."]
            lines += [f"  Caution: {caution}." for caution in self.best.cautions]
            lines += [f"Of other chips: {offer}" for offer in self.runners_up[: most - 1]]
        if self.why_not:
            counted = ", ".join(f"{reason} {n}" for reason, n in self.why_not.items())
            lines.append(f"Machines that fail: {counted}.")
        if self.best is None:
            lines += [f"  {m.count} × {m.chip}, {m.layout}: {m.reason}, {m.detail}" for m in self.nearest()]
        return "\n".join(lines)

    def __str__(self):
        return self.text()

    __repr__ = __str__

    def nearest(self, most=3):
        """The misses that come nearest: those that fall short by the least."""
        return tuple(sorted(self.misses, key=lambda miss: miss.times or np.inf)[:most])

    def _repr_html_(self):
        first = f"<p>{html.escape(str(self)).replace(chr(10), '<br>')}</p>"
        return first + (self.table().drop(columns="cautions").to_html(index=False) if self.offers else "")


def decide(
    model, *, speed=None, first_token=None, prompt_tokens, output_tokens, cached_tokens=0, weights="bf16",
    cache="bf16", keep=None, chips=None, counts=COUNTS, layouts=None, prices=None, utilisation=1.0, engine=None,
    most=MOST, sure=False, progress=None,
):  # fmt: skip
    """The cheapest machine that serves a model as promised, the runners-up, and why others fail.

    A *machine* is a chip, a count of it and a layout. Its users come in whole numbers for each copy of the
    attention (``dp`` of the layout): at least one each, at most as many as have room beside the weights. More
    users make a request cheaper, its tokens slower and its first token later. So each machine is asked for the
    powers of two of users, and for the most users at which both promises hold: that is its offer. Offers are
    sorted by dollars for one request, then by chips.

    Parameters
    ----------
    model : Transformer
    speed : float, optional
        Tokens per second that each user gets, at least; prompts of others are counted in. Any when not given.
    first_token : float, optional
        Seconds to the first token, at most. Any when not given.
    prompt_tokens, output_tokens : float
        Lengths of question and answer.
    cached_tokens : float
        Tokens at the start of the prompt whose cache is kept from before.
    weights, cache : str
        Number formats.
    keep, engine : optional
        As in :func:`inferlib.estimate`.
    chips : list of str or Accelerator, optional
        Every chip of the catalogue whose operators somebody timed and that has a price, when not given.
    counts : list of int
        How many chips a machine may have.
    layouts : callable or list of Layout, optional
        Of model, chip and count: the layouts to try; :func:`inferlib.serving.decide.layouts` when not given. Of
        a list, those that fill the machine.
    prices : Mapping, optional
        Chip to dollars for one chip and hour, beside the catalogue's: a number, a pair (lowest, highest), or a
        Mapping of sellers to numbers. The lowest counts; what the highest makes of it is told beside.
    utilisation : float
        Part of the paid hours in which a machine is this busy.
    most : int
        Users of one machine beyond which nobody looks.
    sure : bool
        Whether the slow end of the interval must keep the promise too, not the estimate alone.
    progress : callable, optional
        Takes the list of machines and yields them, such as ``tqdm.tqdm``.

    Returns
    -------
    Decision
        ``best``, ``runners_up``, ``offers``, ``frontier()``, ``why_not``, ``table()``.

    Raises
    ------
    LookupError
        If a chip, a format or an engine is unknown.
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import inferlib
    >>> llama = inferlib.load_model("Llama 3.1 8B")
    >>> found = decide(llama, speed=50, first_token=0.5, prompt_tokens=1000, output_tokens=300, counts=(1, 2))
    >>> found.best.speed >= 50 and found.best.request.first_token <= 0.5
    True
    """
    checks.instance("model", model, Transformer)
    for name, value in (("speed", speed), ("first_token", first_token)):
        if value is not None:
            checks.number(name, value)
    for name, value in (("prompt_tokens", prompt_tokens), ("output_tokens", output_tokens)):
        checks.number(name, value)
    if checks.number("cached_tokens", cached_tokens, zero=True) >= prompt_tokens:
        raise ValueError(
            f"cached_tokens is {cached_tokens}, but must be below prompt_tokens, {prompt_tokens}"
        )
    checks.number("utilisation", utilisation, maximum=1)
    most, engine = whole("most", most), constants.engine(engine).name if engine is not None else None
    work = Workload(1, prompt_tokens + output_tokens / 2, weights, cache)
    asked = {
        "prompt_tokens": prompt_tokens, "output_tokens": output_tokens, "cached_tokens": cached_tokens,
        "engine": engine, "keep": keep, "utilisation": utilisation,
    }  # fmt: skip
    constants.stored_bytes(weights), constants.formats(model, weights, keep)
    search = _Search(model, work, speed, first_token, most, asked, sure)
    offered = _offered(chips, prices)
    machines = [
        (chip, System(chip, n), layout, sold)
        for chip, sold in offered
        for n in (whole("counts", n) for n in counts)
        for layout in _layouts(layouts, model, chip, n)
    ]
    for machine in machines if progress is None else progress(machines):
        search.ask(*machine)
    told = {"speed": speed, "first_token": first_token, "sure": sure, "weights": weights, "cache": cache}
    return search.found(told | asked)


def _layouts(given, model, chip, count):
    """The layouts of one machine: those that the caller names, or those of :func:`layouts`."""
    if given is None:
        return layouts(model, chip, count)
    if callable(given):
        return given(model, chip, count)
    return [checks.instance("layout", one, Layout) for one in given if one.tp * one.pp * one.dp == count]


def offered(prices=None):
    """The chips that :func:`decide` tries: those with operators of their own and a price, here or in the catalogue.

    Examples
    --------
    >>> "H100 SXM" in offered(), "B300" in offered(), "B300" in offered({"B300": 6})
    (True, False, True)
    """
    priced = {resolve("chip", name) for name in prices or {} if _known(name)}
    timed = [name for name in every_chip() if constants.lender(name) == name]
    return [name for name in timed if name in priced or load_chip(name).price is not None]


def _known(name):
    try:
        return bool(resolve("chip", name))
    except LookupError:
        return False


def _offered(chips, prices):
    """The chips to try, each at its lowest price, with (seller, highest price); chips without one stay None."""
    own = {}
    for name, price in checks.instance("prices", prices or {}, Mapping).items():
        among = [chip.name for chip in chips or () if isinstance(chip, Accelerator)]
        own[name if name in among else resolve("chip", name)] = _price(name, price)
    chips = offered(own) if chips is None else [chips] if isinstance(chips, (str, Accelerator)) else chips
    taken = [chip if isinstance(chip, Accelerator) else load_chip(chip) for chip in chips]
    found = []
    for chip in taken:
        seller = str(chip.sources.get("price", "")).partition(",")[0]
        lowest, seller, highest = own.get(chip.name, (chip.price, seller, None))
        found.append((chip.replace(price=lowest), (seller, highest)))
    return found


def _price(name, price):
    """Lowest price, whose it is, and the highest where there are several."""
    sellers = dict(price) if isinstance(price, Mapping) else None
    numbers = list(sellers.values()) if sellers else price if isinstance(price, (tuple, list)) else [price]
    if not numbers:
        raise ValueError(f"prices[{name!r}] is empty, but must hold dollars for one chip and hour")
    numbers = [checks.number(f"prices[{name!r}]", number) for number in numbers]
    lowest = min(numbers)
    seller = next((seller for seller, number in sellers.items() if number == lowest), "") if sellers else ""
    return lowest, str(seller), max(numbers) if len(numbers) > 1 else None


class _Search:
    """Offers, points and misses, machine by machine."""

    def __init__(self, model, work, speed, first_token, most, asked, sure):
        self.model, self.work, self.most, self.asked, self.sure = model, work, most, asked, sure
        self.speed, self.first_token = speed, first_token
        self.offers, self.points, self.misses = [], [], []

    def ask(self, chip, system, layout, sold):
        """Ask one machine: an offer or a miss, and the points of the frontier."""
        if chip.price is None:
            return self._miss(system, layout, NO_PRICE, "give one with prices=")
        step = decode_step(self.model, system, self.work.replace(batch=layout.dp, context=0), layout)
        if step.status == "n/a":
            return self._miss(system, layout, NOT_DESCRIBED, step.reason)
        length = self.asked["prompt_tokens"] + self.asked["output_tokens"]
        places = room(self.model, system, self.work.replace(context=length), layout, self.asked["keep"])
        rounds = int(min(places, self.most) // layout.dp)
        if rounds < 1:
            return self._miss(system, layout, NO_ROOM, f"room for {max(places, 0):.3g} users")
        read = passes(
            self.model, system, self.work, self.asked["prompt_tokens"], self.asked["cached_tokens"], layout,
            self.asked["keep"],
        )  # fmt: skip
        ladder = np.array([2**k for k in range(rounds.bit_length())])
        tried = self._served(system, layout, read, layout.dp * ladder)
        self._keep(tried, system, layout, layout.dp * ladder)
        slow, late = self._short(tried)
        kept = ladder[~(slow | late)]
        if not len(kept):
            who = "1 user" if layout.dp == 1 else f"{layout.dp} users"
            if slow[0]:
                told = f"{1 / tried.token[0]:.3g} tokens/s for {who}"
                return self._miss(system, layout, TOO_SLOW, told, float(self.speed * tried.token[0]))
            told = f"{tried.first_token[0]:.3g} s for {who}"
            return self._miss(system, layout, TOO_LATE, told, float(tried.first_token[0] / self.first_token))
        users = layout.dp * self._most(
            system, layout, read, int(kept[-1]), min(2 * int(kept[-1]), rounds + 1)
        )
        at = np.array([users])
        if users not in layout.dp * ladder:
            self._keep(self._served(system, layout, read, at), system, layout, at)
        request = self._served(system, layout, read, users)
        told = hopes(self.model, system, self.work.replace(batch=users), layout, users, users)
        self.offers.append(Offer(system, layout, replace(request, cautions=told), *sold))

    def _most(self, system, layout, read, low, high):
        """The most rounds from ``low``, which keeps the promise, to below ``high``, which is too many."""
        while high - low > 1:
            between = np.unique(np.linspace(low, high - 1, 32).astype(int))
            slow, late = self._short(self._served(system, layout, read, layout.dp * between))
            kept = between[~(slow | late)]
            low, high = int(kept[-1]), int(min([*between[between > kept[-1]], high]))
        return low

    def _served(self, system, layout, read, users):
        step = decode_step(
            self.model, system, self.work.replace(batch=users), layout, engine=self.asked["engine"],
            keep=self.asked["keep"],
        )  # fmt: skip
        return served(
            self.model, system, step, *read, self.asked["prompt_tokens"], self.asked["output_tokens"], users,
            cached_tokens=self.asked["cached_tokens"], layout=layout, engine=self.asked["engine"],
            utilisation=self.asked["utilisation"],
        )  # fmt: skip

    def _short(self, tried):
        """Where a token is too slow, and where the first comes too late."""
        token, first = tried.token, tried.first_token
        if self.sure:
            token, first = token * tried.step_factor, first * tried.first_factor
        return token * (self.speed or 0) > 1, first > (self.first_token or np.inf)

    def _keep(self, tried, system, layout, users):
        slow, late = self._short(tried)
        dollars, prices = tried.dollars, tried.per_million
        for k, n in enumerate(users):
            self.points.append({
                "chip": system.chip.name, "count": system.count, "layout": in_words(layout), "users": int(n),
                "speed": float(1 / tried.token[k]), "first_token": float(tried.first_token[k]),
                "usd_per_request": float(dollars[k]), "usd_per_million_output": float(prices["output"][k]),
                "in_time": not late[k], "kept": not (slow[k] or late[k]),
            })  # fmt: skip

    def _miss(self, system, layout, reason, detail, times=None):
        self.misses.append(Miss(system.chip.name, system.count, in_words(layout), reason, detail, times))

    def found(self, asked):
        """The decision: offers sorted by dollars a request, then by chips."""
        offers = sorted(self.offers, key=lambda offer: (offer.dollars, offer.system.count))
        return Decision(self.model.name, tuple(offers), tuple(self.points), tuple(self.misses), asked)
