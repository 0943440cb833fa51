"""The course: six sessions, each with its minutes, what to draw, what to ask, and what is wrong in most heads.

A session shows itself as a page for the desk, and has one deck, in order (:meth:`Session.deck`). ``course.toml`` holds
the plan. Minutes of slides come from the decks, those of a board from its strokes; numbers on
the board are computed here and stand in the plan as names in braces.
"""

from __future__ import annotations

import html
import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from urllib.parse import quote

import inferlib
from book import slides
from book.problems.page import Marked, identity
from book.quiz import quiz
from book.serving import tables
from inferlib import principles
from inferlib.papers import erdil2025, pope2022

MINUTES = 90


@cache
def sessions():
    """All sessions of the course, in order.

    Examples
    --------
    >>> {session.minutes for session in sessions()}
    {90}
    """
    plan = tomllib.loads((Path(__file__).parent / "course.toml").read_text(encoding="utf-8"))["session"]
    known = numbers()
    chapter = (Path(__file__).parent / "course.ipynb").read_text("utf-8")
    titles = re.findall(r"## \d\. ([^\n]+?)(?:\\n|\n)", chapter)
    return tuple(
        Session(_filled(s, known), f"{k}. {t}") for k, (s, t) in enumerate(zip(plan, titles, strict=True), 1)
    )


def session(number):
    """One session, from 1 on."""
    if number not in range(1, 1 + len(sessions())):
        raise LookupError(f"number is {number!r}, but must be one of 1 to {len(sessions())}")
    return sessions()[number - 1]


def _filled(value, known):
    """The plan with its numbers in place."""
    if isinstance(value, dict):
        return {key: _filled(inside, known) for key, inside in value.items()}
    if isinstance(value, list):
        return [_filled(inside, known) for inside in value]
    return value.format(**known) if isinstance(value, str) else value


@cache
def numbers():
    """The numbers on the boards: name to text."""
    llama, h100 = inferlib.load_model("Llama 3 70B"), inferlib.load_chip("H100 SXM")
    profile = principles.profile_of(llama)
    box, work = inferlib.System(h100, 8), inferlib.Workload(batch=32, context=4096)
    held = sum(llama.weight_bytes("bf16").values())
    cache_of_user = 4096 * llama.cache_bytes()
    room = box.count * h100.memory_capacity
    toy, chip = erdil2025.models["Llama 3 70B"], erdil2025.chips["H100"]
    hop = erdil2025.ToyAssumptions().t_hop
    reading = erdil2025.weight_time(toy, chip, 1)
    hops = toy.n_layers * toy.reductions * hop
    palm = pope2022.load_model("PaLM 540B", padded=True)
    asked = tables.asked()
    qwen = inferlib.load_model("Qwen3 32B")
    alone = principles.memory_time(h100, principles.weight_data(profile, 1), box.count)

    def ends(weights):
        """The context at which memory is full just as a step reaches the balance of the chip."""
        work, more = (principles.decode_work(profile, 1, context) for context in (0, 1))
        free = room - sum(llama.weight_bytes(weights).values())
        read = principles.weight_data(principles.profile_of(llama, weights), 1)
        per_byte = principles.ridge_point(h100) * (read + free) / free
        return work / (per_byte * llama.cache_bytes() - (more - work))

    return {
        "bandwidth": f"{h100.memory_bandwidth / 1e12:.2f}",
        "peak": f"{h100.flops / 1e12:.0f}",
        "ridge": f"{principles.ridge_point(h100):.0f}",
        "critical": f"{principles.critical_batch(h100, profile):.0f}",
        "bound": f"{1e3 * principles.decode_step(llama, box, work).total:.1f}",
        "weights": f"{held / 1e9:.1f}",
        "room": f"{room / 1e9:.0f}",
        "left": f"{(room - held) / 1e9:.1f}",
        "token_cache": f"{llama.cache_bytes() / 1024:.0f}",
        "token_bytes": f"{llama.cache_bytes():,.0f}",
        "more": f"{100 * held / 2 / (room - held):.0f}",
        "user_cache": f"{cache_of_user / 1e9:.3f}",
        "fits": f"{(room - held) // cache_of_user:.0f}",
        "fits_longer": f"{(room - held) // (8 * cache_of_user):.0f}",
        "ends": f"{round(ends('bf16'), -1):,.0f}",
        "ends_8_bits": f"{round(ends('fp8'), -1):,.0f}",
        "qwen_weights": f"{qwen.n_params / 1e9:.2f}",
        "qwen_cache": f"{qwen.cache_bytes() / 1024:.0f}",
        "qwen_fits": f"{principles.largest_batch(qwen, box, work):.0f}",
        "alone": f"{1e3 * alone:.2f}",
        "staged": f"{4e3 * alone:.2f}",
        "reading": f"{1e3 * reading:.0f}",
        "hops": f"{1e3 * hops:.2f}",
        "ratio": f"{reading / hops:.0f}",
        "size": f"{erdil2025.optimal_n_gpu(toy, chip, hop):.0f}",
        "fastest": f"{1e3 * erdil2025.minimum_latency(toy, chip, hop):.1f}",
        "width": f"{palm.d_model:,.0f}",
        "hidden": f"{palm.d_ff:,.0f}",
        "prompt": f"{1e3 * asked.prompt.total:.0f}",
        "answer": f"{1e3 * asked.output_seconds:.0f}",
        "between": f"{1e3 * asked.token:.0f}",
        "input": f"{asked.per_million['input']:.2f}",
        "output": f"{asked.per_million['output']:.2f}",
    }


@dataclass(frozen=True, eq=False)
class Session:
    """One session, which shows itself as a page for the desk.

    ``plan``: an entry of ``course.toml``.
    """

    plan: dict
    title: str

    def deck(self):
        """All slides of the session, in order; what has no slide of its own gets one with what the room must know."""
        return tuple(slide for minutes, part in self.parts for slide in self._slides(minutes, part))

    def _slides(self, minutes, part):
        if "slides" in part:
            return [_kept(slide, part.get("keep")) for _, slide in self.shown(part)]
        if "quiz" in part:
            asked, title = quiz(session=part["quiz"]), f"From session {part['quiz']}: question"
            shown = ([("html", Marked([q])._repr_html_())] for q in asked)
            return [
                slides.Slide(f"{title} {k}", minutes / len(asked), show, [q.plain])
                for k, (q, show) in enumerate(zip(asked, shown, strict=True), 1)
            ]
        strokes = [f"{k}. {words} ({at} min)" for k, (at, words) in enumerate(part.get("strokes", ()), 1)]
        notes = [part["what"], "\n".join(strokes), part.get("then", "")]
        box, state = part.get("explorer"), {}
        if not box:
            show = [("text", part["room"])]
        elif box["chapter"] == "calculator":
            show = [("page", f"../book/{link(box)}")]
        else:
            show, state = [("html", slides.explorer(box["chapter"], box["name"]))], box["state"]
        title = part.get("title") or part["what"].partition(": ")[2] or part["what"]
        title, ask = title[0].upper() + title[1:], part.get("ask", "")
        return [slides.Slide(title, minutes, show, notes, ask=ask, state=state)]

    @property
    def parts(self):
        """What happens, in order, as pairs of minutes and part."""
        return [(self._takes(part), part) for part in self.plan["part"]]

    def _takes(self, part):
        if "slides" in part:
            return sum(slide.minutes for _, slide in self.shown(part))
        if "strokes" in part:
            return sum(minutes for minutes, _ in part["strokes"])
        return part["minutes"]

    @property
    def boards(self):
        """The strokes of each board, with their minutes."""
        return [part["strokes"] for part in self.plan["part"] if "strokes" in part]

    @property
    def minutes(self):
        """How long all of it takes."""
        return sum(minutes for minutes, _ in self.parts)

    @staticmethod
    def shown(part):
        """The slides of a part, each with its number in the whole deck."""
        deck = slides.deck(part["deck"])
        titles = [slide.title for slide in deck]
        missing = [title for title in part["slides"] if title not in titles]
        if missing:
            raise LookupError(f"the deck of {part['deck']} has no slide called {missing[0]!r}")
        return [(1 + titles.index(title), deck[titles.index(title)]) for title in part["slides"]]

    def _repr_html_(self):
        rows, at = [], 0
        for minutes, part in self.parts:
            numbers = "".join(f'<td class="number">{number}</td>' for number in (at, minutes))
            rows.append(f"<tr>{numbers}<td>{_told(self, part)}</td></tr>")
            at += minutes
        head = "<tr><th>from</th><th>minutes</th><th>what</th></tr>"
        table = f'<table class="readable"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'
        lists = ""
        for key, name in (
            ("misconceptions", "Expect to hear, and how to answer"), ("homework", "Homework"),
            ("reading", "To read in the sources, for the next time"),
        ):  # fmt: skip
            lists += f"<p><b>{name}</b></p>{_listed('ul', map(_text, self.plan[key]))}"
        deck = f'<p><a href="../slides/session-{self.title[0]}.html">The deck of this session</a></p>'
        return f'<div class="session">{deck}{table}{lists}</div>'

    def __repr__(self):
        return "\n".join(f"{minutes:3} {part['what']}" for minutes, part in self.parts)


def _kept(slide, words):
    """A slide, or one with only those items of its list that begin with some words."""
    if not words:
        return slide
    lines = [line for _, content in slide.show for line in content.splitlines()]
    items = [line for line in lines if line.removeprefix("- ").startswith(tuple(words))]
    if len(items) != len(words):
        raise LookupError(f"{slide.title!r} has not all of {words}")
    return replace(slide, show=[("text", "\n".join(items))])


def _told(session, part):
    """One part of a session in HTML."""
    says = f"<b>{_text(part['what'])}</b>"
    if "slides" in part:
        links = (
            f'<a href="../slides/{part["deck"]}.html#{number}">{html.escape(slide.title)}</a>'
            for number, slide in session.shown(part)
        )
        says += f" ({', '.join(links)})"
    if "quiz" in part:
        asked = (q.text for q in quiz(session=part["quiz"]))
        says += _listed("ol", (f'<a href="quiz.html#{identity(q)}">{html.escape(q)}</a>' for q in asked))
    if "explorer" in part:
        says += f' (<a href="{link(part["explorer"])}">the explorer, set</a>)'
    if "ask" in part:
        says += f"<br>Ask before anything moves: {_text(part['ask'])}"
    if "then" in part:
        says += f"<br>Then: {_text(part['then'])}"
    if "strokes" in part:
        strokes = part["strokes"]
        says += _listed("ol", (f"{_text(stroke)} <i>({minutes} min)</i>" for minutes, stroke in strokes))
    return says


def _listed(kind, items):
    return f"<{kind}>{''.join(f'<li>{item}</li>' for item in items)}</{kind}>"


def _text(words):
    """A text of the plan, in which code and links are marked as in Markdown."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(words, quote=False))
    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', text)


def link(explorer):
    """The address of an explorer in a state: its chapter, its name, a value for each input."""
    state = "&amp;".join(f"{key}={quote(str(value), safe='')}" for key, value in explorer["state"].items())
    return f"{explorer['chapter']}.html#{explorer['name']}?{state}"
