"""Verdicts on what to buy: the kernel model's best choice over load, format and cached share, as map and text."""

from itertools import product

import matplotlib.pyplot as plt
from matplotlib.patches import Patch

from book import style
from book.style import Text
from inferlib.system import System
from tokenprice import ask
from tokenprice.formatting import format_dtype
from tokenprice.sweeps import NONE, choose

USERS = tuple(2**k for k in range(9))
FORMATS, CACHED = ("bf16", "fp8"), ("0", "50%", "90%")
PER_DOUBLING = 8  # loads tried between one number of users and twice as many
WORDS = {"seconds": "slower", "usd_per_request": "dearer", "usd_per_million": "dearer"}


def machine(chips, copies=1):
    """A choice: a machine of ``chips`` chips as one instance, or ``copies`` of it that share the users.

    Examples
    --------
    >>> from tokenprice import Question
    >>> asked = Question("Llama 3 8B", "8x H100", concurrency=3, prompt_tokens=1000, output_tokens=100)
    >>> two = machine(4, copies=2)
    >>> two(asked).machine.count, two(asked).concurrency, two(asked).paid_hours_used  # three users in four places
    (4, 2, 0.75)
    >>> two(asked.replace(concurrency=4)).paid_hours_used is None
    True
    """

    def changed(case):
        users = max(1, -(-case.concurrency // copies))
        own = case.replace(machine=System(case.machine.chip, chips), layout=None, concurrency=users)
        idle = copies * users > case.concurrency  # the rent of a copy without users is paid as well
        return own.replace(paid_hours_used=case.concurrency / (copies * users)) if idle else own

    return changed


def spread(chips):
    """A choice: ``chips`` chips with data-parallel attention and expert parallelism, and the case's users on each."""

    def changed(case):
        own = System(case.machine.chip, chips)
        return case.replace(machine=own, layout=f"DP{chips} EP{chips}", concurrency=chips * case.concurrency)

    return changed


class Verdict(Text):
    """The best of some choices for a request, or a tie, with the load at which it changes; shown as text.

    Parameters
    ----------
    case : Question
        A request of users.
    choices : Mapping
        Name to a function of the case, as :func:`machine` returns, or to the fields that it changes.
    of : str
        ``"seconds"`` of a token, ``"usd_per_million"`` output tokens, or ``"usd_per_request"``.
    tpot : float, optional
        Upper limit of TPOT in seconds.
    load : str
        Meaning of the case's ``concurrency``, if choices multiply it: "users on each GPU".
    """

    def __init__(self, case, choices, of="seconds", tpot=None, load="users"):
        self.case, self.choices, self.of, self.tpot, self.load = case, choices, of, tpot, load
        self.formats = tuple(dict.fromkeys((*FORMATS, format_dtype(case.formats[0]))))
        self.found = {}
        super().__init__(self._in_words())

    def at(self, users, weights, cached):
        """Return the result of :func:`tokenprice.sweeps.choose` for a load, a format and a cached share."""
        if (point := (users, weights, cached)) not in self.found:
            case = self.case.replace(concurrency=users, weights=weights, cached=cached)
            asked = {
                name: change(case) if callable(change) else case.replace(**change)
                for name, change in self.choices.items()
            }
            answers = {name: ask(question) for name, question in asked.items()}
            self.found[point] = choose(answers, self.of, self.tpot)
        return self.found[point]

    def ranges(self, weights, cached, said):
        """Return the results of ``said`` over loads from one user on, each with its largest load (last: None)."""

        def state(users):
            return said(self.at(users, weights, cached))

        # even numbers, so that two copies share the users equally
        steps = range(PER_DOUBLING * (len(USERS) - 1) + 1)
        loads, found = sorted({2 * round(2 ** (k / PER_DOUBLING) / 2) or 1 for k in steps}), []
        for low, end in zip(loads, loads[1:], strict=False):
            while (here := state(low)) != state(
                end
            ):  # the result may change more than once between two loads
                high = end
                while high - low > 2:
                    middle = 2 * ((low + high) // 4)
                    low, high = (middle, high) if state(middle) == here else (low, middle)
                found.append((here, low))
                low = high
        return [*found, (state(loads[-1]), None)]

    def _in_words(self):
        q, users = self.case, self.case.concurrency or 1
        own = self.at(users, format_dtype(q.formats[0]), q.cached or 0)
        promise = f" at {1 / self.tpot:.0f} tokens/s for each" if self.tpot else ""
        asked, found = _or(list(self.choices)), [f"**{self._said(own)}**"]
        if own["lead"] == own["lead"]:
            found.append(f"the next is {100 * own['lead']:.0f} % {WORDS[self.of]}")
        if self.tpot and own["sure"] != own["best"]:
            found.append(f"to be sure, {_named(own['sure'])}")
        lines = [
            f"**{asked[0].upper()}{asked[1:]}{promise}?** For the request of {users:g} {self.load} the kernel model's "
            f"verdict is {'; '.join(found)}. By load it is:\n"
        ]
        for weights in self.formats:
            said = {part: self._spoken(weights, part) for part in CACHED}
            alike = len({*said.values()}) == 1
            for part in CACHED[:1] if alike else CACHED:
                share = "whatever is cached" if alike else f"{_share(part)} cached"
                lines.append(f"- weights in {weights}, {share}: {said[part]}")
        return "\n".join(lines)

    def _repr_markdown_(self):
        """The verdict on the request, and that on other loads, which the map shows too, folded below it."""
        verdict, others = self.markdown.split(" By load it is:\n\n")
        summary = "<summary>by load, format and cached share</summary>"
        return f"{verdict}\n\n<details>{summary}\n\n{others}\n\n</details>"

    @property
    def _cached(self):
        q = self.case
        return f"{100 * q.cached / q.prompt_tokens:.0f}%" if q.cached else CACHED[0]

    def _spoken(self, weights, cached):
        """Return the ranges as text: TP8 up to 19 users; a tie, TP8 ahead, up to 53; then 2 × TP4."""

        def listed(said):
            *first, (last, _) = self.ranges(weights, cached, said)
            words = [
                f"{state} up to {upto}{(' user' + 's' * (upto > 1)) * (k == 0)}"
                for k, (state, upto) in enumerate(first)
            ]
            return f"{'; '.join(words)}; then {last}" if words else f"{last} up to {USERS[-1]} users"

        return listed(self._said) + (f". To be sure: {listed(_sure)}" if self.tpot else "")

    def _said(self, row):
        """Return the best choice as text, marked if it is a tie."""
        best = _named(row["best"])
        if not row["tie"]:
            return best
        return f"{best} (in a tie)" if self.tpot else f"a tie ({best} ahead)"

    def draw(self):
        """Draw the map: a panel per weight format, a column per cached share, a row per load."""
        names = [*self.choices]
        colours = dict(zip(names, style.LINES, strict=False))
        size = 0.55 + 1.5 * len(self.formats), 3.9
        fig, axes = plt.subplots(
            1, len(self.formats), figsize=size, sharey=True, layout="constrained", squeeze=False
        )
        for ax, weights in zip(axes[0], self.formats, strict=True):
            for (x, cached), (y, users) in product(enumerate(CACHED), enumerate(USERS)):
                one = self.at(users, weights, cached)
                best, faded = one["best"], one["tie"] or one["sure"] != one["best"]
                alpha = 0.3 if faded else 0.75
                if best != NONE:
                    style.box(ax, x, y, 1, 1, color=colours[best], alpha=alpha, linewidth=0)
                says = "–" if best == NONE else "" if one["lead"] != one["lead"] else f"{one['lead']:.0%}"
                style.words(ax, x + 0.5, y + 0.5, says, ha="center", fontsize=8)
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
            Patch(color=style.FAINT, alpha=0.25, label="faded: not sure" if self.tpot else "faded: a tie")
        )
        fig.legend(handles=shown, loc="outside upper center", ncols=2, fontsize=8)
        return axes[0]

    def _mark(self, ax, weights):
        """Draw a frame around the case, if it is on the map."""
        q = self.case
        if weights == format_dtype(q.formats[0]) and self._cached in CACHED and q.concurrency in USERS:
            at = CACHED.index(self._cached) + 0.04, USERS.index(q.concurrency) + 0.04
            style.box(ax, *at, 0.92, 0.92, fill=False, edgecolor=style.INK, linewidth=1.8)


def _named(choice):
    return "none of them" if choice == NONE else choice


def _sure(row):
    return _named(row["sure"])


def _share(cached):
    return f"{cached.rstrip('%')} %"


def _or(names):
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
