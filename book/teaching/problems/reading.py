"""Read students' answers: from code without running it, and as numbers with a unit.

A graded sheet has this file in its last cell, so it needs Python only; `mark.js` reads numbers in the same way.
"""

import ast
import hashlib
import re

# Groups of three digits are thousands; any other comma is a decimal point.
COMMA = re.compile(r"[+-]?(?:0*,\d+|\d+,\d{1,2}(?!\d)|\d+,\d{4,})")
THOUSANDS = re.compile(r"\d{1,3}(?:([, _'])\d{3})(?:\1\d{3})*(?!\d)")
NUMBER = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?: *[*×x·] *10 *(?:\^|\*\*) *([+-]?\d+))? *([^\d\s,.].*)?",
    re.I,
)
PREFIXES = {"": "", "nano": "n", "micro": "u", "milli": "m", "kilo": "k", "mega": "M", "giga": "G", "tera": "T",
            "peta": "P", "kibi": "Ki", "mebi": "Mi", "gibi": "Gi", "tebi": "Ti"}  # fmt: skip
LETTERS = {"second": "s", "sec": "s", "byte": "B", "flop": "FLOP"}
SPELLED = re.compile(f"({'|'.join(PREFIXES)})({'|'.join(LETTERS)})s?", re.I)
# Denominators that the question states already: KiB/token, ms per step, dollars per million tokens.
PER = {
    "dollars": r"(1 ?)?(million|M|1M|10\^6|1e6)( ?(\w+ )?tok(en)?s?)?( of \w+)?",
    "cent": r"request",
    "": r"(chip|GPU|layer|instance|machine|box)",
}
OTHER = r"(token|step|layer|user|sequence|request|prompt|answer|chip|GPU|exchange|hop|batch)( of \w+)?"


def resolved(unit, known):
    """Return a problem's name for a unit, or None. ``known``: the problem's data."""
    units = known["units"]
    per = PER.get(known["unit"], OTHER)
    for written in (unit, re.sub(rf" *(/|\bper\b|\ban?\b) *{per}$", "", unit, flags=re.I)):
        spelled = SPELLED.fullmatch(written)
        short = PREFIXES[spelled[1].lower()] + LETTERS[spelled[2].lower()] if spelled else written
        single = [written[:-1] if len(written) > 3 else "", written + "s"] if len(written) > 2 else []
        for name in (written, short, *single):
            if name in units:
                return name
    return None


def quantity(answer, known):
    """Return the number of an answer, in the problem's unit; ValueError with the reason if it is none."""
    wanted = known["unit"] or "plain numbers"
    text = re.sub("[µμ]", "u", str(answer).strip())
    text = re.sub(r"^(?:[~≈=]|about\b|approx\.|ca\.)\s*", "", text).removesuffix(".")
    text = re.sub(r"^\$ *(\S+)", r"\1 $", text)
    if COMMA.match(text):
        raise ValueError("write a decimal point where you have a comma, as in 12.3")
    text = THOUSANDS.sub(lambda m: re.sub("[, _']", "", m[0]), text, count=1)
    found = NUMBER.fullmatch(text)
    if not found or len(text) > 100:
        raise ValueError("that is no number, or no number and its unit")
    value, unit = (
        float(found[1] + (f"e{found[2]}" if found[2] and "e" not in found[1] else "")),
        (found[3] or "").strip(),
    )
    many = re.fullmatch(r"(k|thousand|million)\b *(tok.*)?", unit)
    if many and known["unit"] in ("", "tokens/s"):
        value, unit = value * (1e6 if many[1] == "million" else 1e3), many[2] or ""
    if value and not 1e-99 < abs(value) < 1e99:
        raise ValueError("that number is too large or too small")
    if unit:
        name = resolved(unit, known)
        if name is None:
            raise ValueError(f"{unit} is no unit of this answer, which is asked for in {wanted}")
        return value * known["units"][name]
    if isinstance(answer, str) and known["unit"]:
        raise ValueError(f"a number without its unit, and this answer is asked for in {wanted}")
    return value


def literal(node):
    """Return the value of an expression that is a plain text or number, else raise ValueError."""
    if isinstance(node, ast.JoinedStr):
        raise ValueError(
            "an f-string is computed when it runs, and nothing is run here: write the number itself"
        )
    try:
        value = ast.literal_eval(node)
    except ValueError:
        raise ValueError(
            "this is computed when it runs, and nothing is run here: write the number itself"
        ) from None
    if value is not None and not isinstance(value, (str, int, float)) or isinstance(value, bool):
        raise ValueError(f"a {type(value).__name__} is no text with a number and its unit")
    return value


def assigned(tree):
    """Yield names and expressions that code assigns to ``answers``."""
    for node in ast.walk(tree):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        for target in targets if isinstance(node, (ast.Assign, ast.AnnAssign)) else ():
            if isinstance(target, ast.Subscript) and ast.unparse(target.value) == "answers":
                yield getattr(target.slice, "value", None), node.value
        update = isinstance(node, ast.Call) and ast.unparse(node.func) == "answers.update"
        if update or any(getattr(target, "id", "") == "answers" for target in targets):
            for one in ast.walk(node):
                if isinstance(one, ast.keyword):
                    yield one.arg, one.value
                elif isinstance(one, ast.Dict):
                    yield from (
                        (getattr(key, "value", None), one.values[at]) for at, key in enumerate(one.keys)
                    )


def written(cells):
    """Return what code cells assign to ``answers``, by name: plain text or number, or a ValueError with the reason."""
    found = {}
    for cell in cells:
        try:
            if len(cell) > 20000:
                raise ValueError("more than 20,000 characters")
            pairs = list(assigned(ast.parse(re.sub(r"(?m)^(\s*)[%!].*", r"\1pass", cell))))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            names = re.findall(r"""answers\[["']([\w.-]+)["']\]""", cell[:20000])
            reason = ValueError(f"this cell is no Python: {type(error).__name__}, {error}")
            found |= dict.fromkeys(names, reason)
            continue
        for name, node in pairs:
            try:
                value = literal(node)
            except ValueError as error:
                value = error
            found[name] = found.get(name, "") if value in ("", None) else value
    return found


def checked(cells, asked):
    """Describe how each answer of a sheet is read. ``asked``: name to the form of its answer."""
    given, lines = written(cells), []
    for name, known in asked.items():
        answer = given.get(name, "")
        try:
            if isinstance(answer, ValueError):
                raise answer
            said = (
                f"read as {quantity(str(answer), known):.6g} {known['unit']}" if answer else "no answer yet"
            )
        except ValueError as error:
            said = f"NOT READ: {error}"
        lines.append(f"{name}: {said}")
    return "\n".join([*lines, f"seal of these answers: {seal(given, asked)}"])


def seal(given, asked):
    """Return a short hash of the answers to some questions, which shows later whether one was changed."""
    text = "\n".join(f"{name}={given.get(name, '')}" for name in asked)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
