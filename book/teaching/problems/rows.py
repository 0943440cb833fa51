"""Fill the bank from its tables: problems with drawn numbers, and warm-up questions in the head."""

from dataclasses import replace

from book import stored
from book.teaching.problems.bank import BANK, COURSE, Problem, enter

for row in stored.toml("teaching/problems/problems.toml")["problem"].values():
    lists = {
        name: COURSE["draws"][values] if isinstance(values, str) else values
        for name, values in row["choices"].items()
    }
    enter(Problem(**row | {"choices": lists}))

WARM_UP = stored.toml("teaching/problems/warm_up.toml")
for again in WARM_UP["again"]:
    same = {name: [value] for name, value in again["given"].items()}
    place = {"place": again["place"], "session": again["session"]}
    enter(replace(BANK[again["problem"]], level="in the head", choices=same, **place))
for row in WARM_UP["question"].values():
    enter(Problem(level="in the head", **row))
