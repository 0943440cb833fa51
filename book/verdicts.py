"""What to buy: the kernel model's choice over load, format and cached share of prompts, as a map and in words."""

from itertools import product

import matplotlib.pyplot as plt
from matplotlib.patches import Patch, Rectangle

from book import style
from book.explorer.kernel_model_text import Text
from inferlib.system import System
from tokenprice import sweep
from tokenprice.formatting import format_dtype
from tokenprice.sweeps import NONE

USERS = tuple(2**k for k in range(9))
FORMATS, CACHED = ("bf16", "fp8"), ("0", "50%", "90%")
BETWEEN = 2  # loads asked from one row of the map to the next, between which ends are searched
CHOICE = "choice"
WORDS = {"seconds": "slower", "usd_per_request": "dearer"}
COLOURS = (style.PURPLE, style.YELLOW, style.VIOLET, style.BROWN)  # none of a bar's terms


def machine(chips, copies=1):
    """A choice: so many of the case's chips as one instance, or copies of it that share the users."""

    def changed(case):
        users = max(1, -(-case.concurrency // copies))
        return case.replace(machine=System(case.machine.chip, chips), layout=None, concurrency=users)

    return changed


def spread(chips):
    """A choice: so many of the case's chips, attention copied to each and experts spread, with its users on each."""

    def changed(case):
        own = System(case.machine.chip, chips)
        return case.replace(machine=own, layout=f"DP{chips} EP{chips}", concurrency=chips * case.concurrency)

    return changed


class Verdict(Text):
    """Which of some choices is best for a request, or which tie, and under what condition; shown in words.

    Parameters
    ----------
    case : Question
        A request of users.
    choices : Mapping
        Name to a function of a request, such as :func:`machine` returns, or to the fields that it changes.
    of : str
        ``"seconds"`` of a token, or ``"usd_per_request"``.
    tpot : float, optional
        Seconds that a token may take.
    load : str
        What the case's ``concurrency`` counts, where choices multiply it: "users on each GPU".
    """

    def __init__(self, case, choices, of="seconds", tpot=None, load="users"):
        self.case, self.choices, self.of, self.tpot, self.load = case, choices, of, tpot, load
        own = format_dtype(case.formats[0])
        self.formats = tuple(dict.fromkeys((*FORMATS, own)))
        between = {round(2 ** (k / BETWEEN)) for k in range(BETWEEN * (len(USERS) - 1) + 1)}
        self.found = self.asked(concurrency=sorted(between), weights=self.formats, cached=CACHED)
        super().__init__(self._in_words())

    def asked(self, **over):
        """The best choice at every point of a grid, with what it ties with."""
        found = sweep(self.case, over={CHOICE: self.choices} | over)
        return found.best(CHOICE, self.of, self.tpot).squeeze("by", drop=True)

    def state(self, users, weights, cached):
        """The verdict at one point, in words."""
        (one,) = self.asked(concurrency=[users], weights=[weights], cached=[cached]).rows()
        return self._said(one)

    def ranges(self, weights, cached):
        """Verdicts from one user on: each with the most users for which it holds, the last without."""
        line = self.found.sel(weights=weights, cached=cached)
        known = [(row["concurrency"], self._said(row)) for row in line.rows()]
        found, known = [], known[::-1]
        while len(known) > 1:
            (low, here), (high, there) = known[-1], known[-2]
            if here != there and high - low > 1:  # a third verdict may lie between
                middle = (low + high) // 2
                known.insert(-1, (middle, self.state(middle, weights, cached)))
            else:
                known.pop()
                found += [(here, low)] if here != there else []
        return [*found, (known[0][1], None)]

    def _in_words(self):
        q, users = self.case, self.case.concurrency or 1
        (own,) = self.asked(concurrency=[users], weights=[format_dtype(q.formats[0])]).rows()
        promise = f" at {1 / self.tpot:.0f} tokens/s for each" if self.tpot else ""
        lead = own["lead"] and f"the next is {100 * own['lead']:.0f} % {WORDS[self.of]}"
        found = f"**{self._said(own).rstrip(',')}**"
        lines = [
            f"**{_or(list(self.choices))}{promise}?** For the request of {users:g} {self.load} the kernel model's "
            f"verdict is {'; '.join(filter(None, (found, lead)))}. By load it is:\n"
        ]
        said = {one: {part: self._spoken(self.ranges(one, part)) for part in CACHED} for one in self.formats}
        for one, parts in said.items():
            if len({*parts.values()}) == 1:
                lines.append(f"- weights in {one}, whatever is cached: {parts[CACHED[0]]}")
            else:
                lines += [
                    f"- weights in {one}, {_share(part)} cached: {words}" for part, words in parts.items()
                ]
        return "\n".join(lines)

    @property
    def _cached(self):
        q = self.case
        return f"{100 * q.cached / q.prompt_tokens:.0f}%" if q.cached else CACHED[0]

    def _spoken(self, ranges):
        """Ranges in words: TP8 up to 19 users; a tie, TP8 ahead, up to 53; then 2 × TP4."""
        said = [f"{words} up to {upto}{' users' * (k == 0)}" for k, (words, upto) in enumerate(ranges[:-1])]
        last = ranges[-1][0].rstrip(",")
        return f"{'; '.join(said)}; then {last}" if said else f"{last} up to {USERS[-1]} users"

    def _said(self, row):
        """A verdict in words: one choice, who leads a tie, or what it takes to be sure of a promise."""
        best, *others = (row["tie"] or row[CHOICE]).split(" or ")
        if best == NONE or not others:
            return "none of them" if best == NONE else best
        if not self.tpot:
            return f"a tie, {best} ahead,"
        rest = [name for name in others if name != NONE]
        return f"{best}, {'or ' + _or(rest) + ' to be sure' if rest else 'but not for sure'},"

    def draw(self):
        """The map: a panel for each format of the weights, a column for each cached share, a row for each load."""
        names = [*self.choices]
        colours = dict(zip(names, COLOURS, strict=False))
        fig, axes = plt.subplots(
            1, len(self.formats), figsize=(3.55, 3.9), sharey=True, layout="constrained", squeeze=False
        )
        for ax, weights in zip(axes[0], self.formats, strict=True):
            for (x, cached), (y, users) in product(enumerate(CACHED), enumerate(USERS)):
                (one,) = self.found.sel(weights=[weights], cached=[cached], concurrency=[users]).rows()
                best, tie = one[CHOICE], one["tie"]
                alpha = 0.3 if tie else 0.75
                if best != NONE:
                    ax.add_patch(Rectangle((x, y), 1, 1, color=colours[best], alpha=alpha, linewidth=0))
                says = "–" if best == NONE else "" if one["lead"] is None else f"{one['lead']:.0%}"
                ax.text(x + 0.5, y + 0.5, says, ha="center", va="center", fontsize=8)
            ax.set(xlim=(0, len(CACHED)), ylim=(0, len(USERS)), title=f"weights in {weights}")
            ax.set_xticks([x + 0.5 for x in range(len(CACHED))], [*map(_share, CACHED)])
            ax.set_yticks([y + 0.5 for y in range(len(USERS))], USERS)
            ax.grid(visible=False)
            ax.tick_params(length=0)
            self._mark(ax, weights)
        axes[0][0].set_ylabel(self.load)
        fig.supxlabel("of each prompt cached", fontsize=9)
        shown = [Patch(color=colours[name], alpha=0.75, label=name) for name in names]
        shown.append(
            Patch(color=style.FAINT, alpha=0.25, label="pale: not sure" if self.tpot else "pale: a tie")
        )
        fig.legend(handles=shown, loc="outside upper center", ncols=2, fontsize=8)
        return axes[0]

    def _mark(self, ax, weights):
        """A frame round the request of the case, where it stands on the map."""
        q = self.case
        if weights == format_dtype(q.formats[0]) and self._cached in CACHED and q.concurrency in USERS:
            at = CACHED.index(self._cached) + 0.04, USERS.index(q.concurrency) + 0.04
            ax.add_patch(Rectangle(at, 0.92, 0.92, fill=False, edgecolor=style.INK, linewidth=1.8))


def _share(cached):
    return f"{cached.rstrip('%')} %"


def _or(names):
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
