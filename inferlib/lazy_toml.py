"""The tables of a large TOML file, each read when somebody asks for it: a first answer needs a few of hundreds."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache

_KEY = r'(?:"[^"]*"|[\w-]+)'
_HEADER = re.compile(rf"^\[(?={_KEY}(?:\.{_KEY})*\](?: *#.*)?$)", re.MULTILINE)


class Later(Mapping):
    """A mapping whose values are made of those of another one, each when it is asked for first."""

    def __init__(self, of, make):
        self._of, self._make, self._made = cache(of), make, {}

    def __getitem__(self, name):
        if name not in self._made:
            self._made[name] = self._make(self._of()[name])
        return self._made[name]

    def __contains__(self, name):
        return name in self._of()

    def __iter__(self):
        return iter(self._of())

    def __len__(self):
        return len(self._of())


class Tables(Later):
    """Tables by name, those of a file or those ``within`` one of its keys.

    Examples
    --------
    >>> found = Tables('[chip."H100 SXM"]\\nn = 1\\n[chip.H200]\\nn = 2\\n', "chip")
    >>> list(found), found["H200"]
    (['H100 SXM', 'H200'], {'n': 2})
    """

    def __init__(self, text, within="", where="a table"):
        texts = {}
        named = re.compile((within and rf"{within}\.") + rf"({_KEY})")
        self.above, *others = _HEADER.split(text)
        for other in others:
            if found := named.match(other):
                name = found[1].strip('"')
                texts[name] = f"{texts.get(name, '')}[{other}"
            else:
                self.above += f"[{other}"

        def parsed(text):
            try:
                found = tomllib.loads(text)
            except tomllib.TOMLDecodeError as error:
                raise ValueError(f"{where}: {text.splitlines()[0]} is not TOML: {error}") from None
            (table,) = (found[within] if within else found).values()
            return table

        super().__init__(lambda: texts, parsed)


def read(text, key):
    """A file of TOML whose tables within one key are read when they are asked for."""
    tables = Tables(text, key)
    return tomllib.loads(tables.above) | {key: tables}
