"""An index of questions: the takeaways of all chapters, found by their first words, and the links between both."""

import re
import tomllib
from functools import cache
from pathlib import Path

from book import slides

PAGE = "questions"


@cache
def asked():
    """Question to chapters, and to the first words of the takeaways that answer it."""
    return tomllib.loads((Path(__file__).with_suffix(".toml")).read_text("utf-8"))


def anchor(question):
    """What the address of a question ends with."""
    return "q-" + re.sub(r"\W+", "-", question.lower()).strip("-")


def takeaway(chapter, words):
    """The takeaway of a chapter that begins with some words, as its Markdown."""
    for cell in slides.chapter(chapter):
        box = re.search(r"(?s)```\{admonition\} Takeaways\n(.*?)```", slides.source(cell))
        if box:
            return slides.passage(box[1], words, f"questions, {chapter}")
    raise LookupError(f"questions: {chapter} has no takeaways")


class Index:
    """All questions with their answers, as a list that links to the chapters."""

    def __repr__(self):
        return f"{len(asked())} questions"

    def _repr_markdown_(self):
        parts = []
        for question, chapters in asked().items():
            parts.append(f'**<span id="{anchor(question)}"></span>{question}**\n')
            for chapter, several in chapters.items():
                link = f'<a href="{chapter}.html#takeaways">{slides.heading(chapter)}</a>'
                parts += [f"- {plain(takeaway(chapter, words))} ({link})" for words in several]
            parts.append("")
        return "\n".join(parts)


def plain(text):
    """Markdown without the links that lead from its own chapter only."""
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
