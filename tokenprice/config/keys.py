"""Typed access to the keys of a configuration; keys that were never read are refused at the end."""

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
        value = self._take(key, REQUIRED)
        if not isinstance(value, Mapping):
            self.refuse(key, "an object of keys and values")
        return Keys(value, f"{self.where}: {key}")

    def _take(self, key, default):
        keys, name = self._at(key, absent=default is not REQUIRED)
        if keys is not self:
            return default if keys is None else keys._take(name, default)
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
        value = self._take(key, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, int) or not (not zero) <= value <= maximum:
            self.refuse(key, f"a whole number from {int(not zero)} to {maximum}")
        return value

    def flag(self, key, default=REQUIRED):
        """Return true or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            self.refuse(key, "true or false")
        return value

    def text(self, key, default=REQUIRED):
        """Return a string."""
        value = self._take(key, default)
        if not isinstance(value, str):
            self.refuse(key, "a string")
        return value

    def must_be(self, key, only, why):
        """Refuse any value but one."""
        value = self._take(key, only)
        if type(value) is not type(only) or value != only:
            self.refuse(key, f"{json.dumps(only)}: {why}")

    def listed(self, key, allowed, least=0, most=MAX_LAYERS):
        """Return a list (or the letters of a string) of allowed entries."""
        value = self._take(key, REQUIRED)
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
        value = self._take(key, REQUIRED)
        good = isinstance(value, list) and len(value) == count and all(isinstance(v, Mapping) for v in value)
        if not good:
            self.refuse(key, f"a list of {count} objects")
        return [Keys(v, f"{self.where}: {key}[{i}]") for i, v in enumerate(value)]

    def note(self, key, remark):
        """Add a note for a key that describes something not counted."""
        if self._take(key, None):
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
