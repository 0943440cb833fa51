"""Export a session's homework to question banks of learning platforms: Moodle XML, and QTI via text2qti (Canvas).

A platform draws a variant for each student, marks at once, shows which usual mistake leads to an answer, and keeps the
marks. It cannot follow a chain, so the questions of a chain are asked one by one.
"""

import os
import secrets
import shutil
import subprocess

from book import stored
from book.teaching.problems.bank import LEVELS, made_up, problems
from book.teaching.problems.chains import SESSIONS
from book.teaching.problems.marking import told


def variants(session, salt, count):
    """Return the problems of a session by name, each in a number of variants, with all data for marking."""
    asked_in, found = SESSIONS[session], {}
    for at in range(count):
        for topic in asked_in["topics"]:
            for asked in problems(f"{at}/{salt}", topic, made_up):
                if asked.level in asked_in["levels"]:
                    found.setdefault(asked.name, []).append((asked, told(asked)))
    return found


def moodle(session, found):
    """Moodle XML: a category for each problem, from which a quiz draws a random question."""
    about = {"session": session, "found": found, "levels": LEVELS}
    return stored.filled("teaching/problems/moodle.jinja", **about)


def text2qti(session, found):
    """Return the input of the package text2qti: a group per problem, from which one variant is drawn."""
    lines = [f"Quiz title: Session {session}", ""]
    for name, several in found.items():
        lines += ["GROUP", "pick: 1", f"points per question: {LEVELS.index(several[0][0].level)}", ""]
        for asked, known in several:
            wanted = f"Answer with a plain number{known['unit'] and ' of ' + known['unit']}."
            right = (
                f"{known['value']:g}"
                if known["exact"]
                else f"{known['value']:.6g} +- {known['tolerance']:.0%}"
            )
            text, worked = (words.replace("$", r"\$").replace("*", r"\*") for words in
                            (" ".join([asked.text, *asked.facts, wanted]), asked.worked))  # fmt: skip
            lines += [f"Title: {name}", f"1. {text}", f"... {worked}", f"= {right}", ""]
        lines += ["END_GROUP", ""]
    return "\n".join(lines)


def put(path, text):
    """Write a file by renaming, so that it is never half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, "utf-8")
    os.replace(part, path)


def export(folder, session, count):
    """Write both beside the key, and QTI too where text2qti is installed."""
    found = variants(session, secrets.token_hex(16), count)
    put(folder / f"session-{session}-moodle.xml", moodle(session, found))
    source = folder / f"session-{session}-text2qti.txt"
    put(source, text2qti(session, found))
    print(f"Wrote Moodle XML and {source.name} to {folder}")
    if shutil.which("text2qti"):
        subprocess.run(["text2qti", str(source)], check=True)
    else:
        print("For QTI (Canvas): pip install text2qti, then text2qti", source)
