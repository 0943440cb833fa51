"""The tables of a large TOML file, each read when somebody asks for it: a first answer needs a few of hundreds."""

import re
import tomllib
from collections.abc import Mapping

_KEY = r'(?:"[^"]*"|[\w-]+)'
_HEADER = re.compile(rf"^\[(?={_KEY}(?:\.{_KEY})*\](?: *#.*)?$)", re.MULTILINE)


class Tables(Mapping):
    """Tables by name, those of a file or those ``within`` one of its keys.

    Examples
    --------
    >>> found = Tables('[chip."H100 SXM"]\\nn = 1\\n[chip.H200]\\nn = 2\\n', "chip")
    >>> list(found), found["H200"]
    (['H100 SXM', 'H200'], {'n': 2})
    """

    def __init__(self, text, within=""):
        self._within, self._texts, self._read = within, {}, {}
        named = re.compile((within and rf"{within}\.") + rf"({_KEY})")
        self.above, *others = _HEADER.split(text)
        for other in others:
            if found := named.match(other):
                name = found[1].strip('"')
                self._texts[name] = f"{self._texts.get(name, '')}[{other}"
            else:
                self.above += f"[{other}"

    def __getitem__(self, name):
        if name not in self._read:
            found = tomllib.loads(self._texts[name])
            self._read[name] = (found[self._within] if self._within else found)[name]
        return self._read[name]

    def __contains__(self, name):
        return name in self._texts

    def __iter__(self):
        return iter(self._texts)

    def __len__(self):
        return len(self._texts)


def read(text, key):
    """A file of TOML whose tables within one key are read when they are asked for."""
    tables = Tables(text, key)
    return tomllib.loads(tables.above) | {key: tables}
