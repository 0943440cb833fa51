"""Typed access to the keys of a configuration, and the expressions of ``families.toml`` over them.

Keys that were never read are refused at the end.
"""

import json
from collections.abc import Mapping

from inferlib.validation import shown

MAX_LAYERS = 10**4
MAX_NUMBER = 10**9
REQUIRED = object()


class Keys:
    """The keys of one object of a configuration; ``"outer.inner"`` is a key of a nested object."""

    def __init__(self, data, where):
        self.data, self.where, self.asked, self.notes, self.inside = data, where, set(), {}, {}

    def given(self, key):
        """Whether a key is present and not null."""
        keys, name = self._at(key, absent=True)
        return keys is not None and keys.data.get(name) is not None

    def _at(self, key, absent=False):
        """Return the object that holds a key, and the key's name there."""
        outer, _, name = key.rpartition(".")
        if not outer:
            return self, name
        if outer not in self.inside:
            if absent and self.data.get(outer) is None:
                return None, name
            self.inside[outer] = self.object(outer)
        return self.inside[outer], name

    def object(self, key):
        """Return the keys of a nested object."""
        value = self.take(key, REQUIRED)
        if not isinstance(value, Mapping):
            self.refuse(key, "an object of keys and values")
        return Keys(value, f"{self.where}: {key}")

    def take(self, key, default):
        """Return a value as it stands, and count its key as read."""
        keys, name = self._at(key, absent=default is not REQUIRED)
        if keys is not self:
            return default if keys is None else keys.take(name, default)
        self.asked.add(key)
        value = self.data.get(key)
        if value is None:  # null means absent
            if default is REQUIRED:
                state = "null" if key in self.data else "missing"
                raise ValueError(f"{self.where}: {key} is {state}, but this model needs it")
            return default
        return value

    def refuse(self, key, must):
        """Raise ValueError for a key with an invalid value."""
        keys, name = self._at(key)
        raise ValueError(f"{keys.where}: {name} is {shown(keys.data.get(name))}, but must be {must}")

    def stated(self, key, what_absent_means):
        """Raise ValueError if a key is absent whose absence does not mean null."""
        if key not in self.data:
            raise ValueError(
                f"{self.where}: {key} is missing, but {what_absent_means}; null says there is none"
            )

    def whole(self, key, default=REQUIRED, zero=False, maximum=MAX_NUMBER):
        """Return a whole number of at least 1 (or 0)."""
        value = self.take(key, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, int) or not (not zero) <= value <= maximum:
            self.refuse(key, f"a whole number from {int(not zero)} to {maximum}")
        return value

    def flag(self, key, default=REQUIRED):
        """Return true or false."""
        value = self.take(key, default)
        if not isinstance(value, bool):
            self.refuse(key, "true or false")
        return value

    def text(self, key, default=REQUIRED):
        """Return a string."""
        value = self.take(key, default)
        if not isinstance(value, str):
            self.refuse(key, "a string")
        return value

    def must_be(self, key, only, why):
        """Refuse any value but one."""
        value = self.take(key, only)
        if type(value) is not type(only) or value != only:
            self.refuse(key, f"{json.dumps(only)}: {why}")

    def listed(self, key, allowed, least=0, most=MAX_LAYERS):
        """Return a list (or the letters of a string) of allowed entries."""
        value = self.take(key, REQUIRED)
        if isinstance(value, str):
            allowed = [a for a in allowed if isinstance(a, str) and len(a) == 1]
        good = isinstance(value, list | str) and least <= len(value) <= most
        kinds = {type(a) for a in allowed}
        if not good or any(type(v) not in kinds or v not in allowed for v in value):
            size = "" if least == 0 else f"{least} "
            self.refuse(key, f"a list of {size}entries among {shown(list(allowed))}")
        return list(value)

    def objects(self, key, count):
        """Return a list of objects, each as its own keys."""
        value = self.take(key, REQUIRED)
        good = isinstance(value, list) and len(value) == count and all(isinstance(v, Mapping) for v in value)
        if not good:
            self.refuse(key, f"a list of {count} objects")
        return [Keys(v, f"{self.where}: {key}[{i}]") for i, v in enumerate(value)]

    def note(self, key, remark):
        """Add a note for a key that describes something not counted."""
        if self.take(key, None):
            self.notes[key] = remark

    def finish(self, family, harmless):
        """Refuse keys that were not read and may affect the shape."""
        for name, keys in self.inside.items():
            # harmless keys are harmless in nested objects too, where transformers 5 repeats some
            keys.finish(family, {*harmless, *(key.removeprefix(f"{name}.") for key in harmless)})
        for key, value in self.data.items():
            off = value is None or value is False or value in (0, "", [], {})
            if key not in self.asked and key not in harmless and not off:
                name = key if isinstance(key, str) and len(key) < 80 and key.isprintable() else shown(key)
                raise ValueError(
                    f"{self.where}: {name} is {shown(value)}, but a {family!r} model has no such key"
                )

    # --- Expressions

    def value(self, text, zero=False, most=MAX_NUMBER):
        """Evaluate an expression to a whole number: a sum of products of keys and numbers; see ``families.toml``."""
        if isinstance(text, Mapping):
            chosen = text["yes"] if self._on(text) else text["no"]
            return None if chosen == "none" else self.value(chosen, zero)
        if isinstance(text, bool | int):
            return text
        total = 0
        for product in text.split(" + "):
            found = 1
            for factor in [self._factor(word, zero, most) for word in product.split(" * ")]:
                if factor is None:  # an optional key is missing, so the whole quantity does not exist
                    return None
                found *= factor
            total += found
        return total

    def switch(self, text):
        """Evaluate a flag with its default, such as ``"key=false"``."""
        key, _, default = text.partition("=")
        return self.flag(key, default == "true")

    def _on(self, table):
        """Choose between two expressions: by a flag, a text, or whether a key is given."""
        if "text" in table:
            key, _, default = table["text"].partition("=")
            return self.text(key, default) == table["is"]
        return self.switch(table["flag"]) if "flag" in table else self.given(table["given"])

    def _factor(self, word, zero, most):
        if word.isdigit():
            return int(word)
        if word.startswith("#"):  # length of a list
            found = self.take(word[1:], REQUIRED)
            return len(found) if isinstance(found, list | str) else self.refuse(word[1:], "a list")
        names, _, default = word.partition("=")
        if "/" in names:
            return self._quotient(*word.split("/"))
        key = self._same(names.removesuffix("?").split("|"))
        if default in ("true", "false"):
            return int(self.flag(key, default == "true"))
        if names.endswith("?"):  # null and 0 mean that there is none
            return self.whole(key, None, zero=True, maximum=most) or None
        if not default:
            return self.whole(key, zero=zero, maximum=most)
        if self.given(key):
            return self.whole(key, zero=zero or default == "0", maximum=most)
        self.whole(key, None)  # counts as read
        return self._factor(default, zero, most)

    def _quotient(self, above, below):
        n, d = self.whole(above), self.whole(below)
        if n % d:
            self.refuse(below, f"a divisor of {above}, {n}, where head_dim is not given")
        return n // d

    def _same(self, names):
        """Return the first name that is given; synonyms must have the same value."""
        given = [name for name in names if self.given(name)] or names[:1]
        for other in given[1:]:
            if self.whole(other, zero=True) != self.whole(given[0], zero=True):
                self.refuse(other, f"the same as {given[0]}")
        return given[0]

    # --- Checks of single keys

    def check(self, family):
        """Make every check that a family's table asks for."""
        for word, check in CHECKS.items():
            for key in family.get(word, ()):
                check(self, key, family[word][key] if isinstance(family[word], Mapping) else None)

    def each(self, key, _):
        """Replace a list that has the same number for every layer by that number."""
        said = self.data.get(key)
        if isinstance(said, list) and said and all(type(n) is int and n == said[0] for n in said):
            self.data = {**self.data, key: said[0]}

    def equal(self, key, text):
        """Refuse a number other than an expression's."""
        if self.whole(key, None, zero=True) not in (None, self.value(text)):
            self.refuse(key, text)

    def one_of_list(self, key, allowed):
        """Refuse a list with other entries."""
        if self.given(key):
            self.listed(key, allowed)

    def said_by(self, key, other):
        """Refuse a number that another key would have to explain."""
        if self.whole(key, None) not in (None, 1) and not self.given(other):
            self.refuse(key, f"1 where {other} does not say which layers it means")

    def alike(self, key, other):
        """Refuse a list of zeros and ones that differs from another."""
        if self.given(key) and self.listed(key, (0, 1)) != self.listed(other, (0, 1)):
            self.refuse(key, f"the same as {other}")


# words of a family's table: method that checks each key under it
CHECKS = {
    "each": Keys.each,
    "only": lambda c, key, said: c.must_be(key, *said),
    "stated": Keys.stated,
    "notes": Keys.note,
    "equal": Keys.equal,
    "lists": Keys.one_of_list,
    "said_by": Keys.said_by,
    "alike": Keys.alike,
    "numbers": lambda c, key, _: c.whole(key, None, zero=True),
}
