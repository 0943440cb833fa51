"""Tables of the models and chips in the catalogue."""

import re
from collections import Counter

from inferlib import validation
from tokenprice import catalog, sparse_attention
from tokenprice.calibration import checkpoint_formats
from tokenprice.decode import unsupported_reason
from tokenprice.formatting import Screen, format_dtype
from tokenprice.uncertainty import new_model


class Table(Screen, list):
    """Rows as dictionaries; prints as aligned text."""

    def __init__(self, rows, columns):
        super().__init__(rows)
        self.columns = columns

    def screen(self):
        """Return the table's cells; an asterisk marks rows beyond the measurements."""
        if not self:
            return "none", [], []
        below = ["* beyond the measurements"] if any(row.get("beyond") for row in self) else []
        cells = [[*self.columns, ""]]
        for row in self:
            marks = ["*" if row.get("beyond") else ""]
            cells.append([_cell(row[name], scale) for name, scale in self.columns.items()] + marks)
        return "", cells, below


def _cell(value, scale):
    """Return a cell in four digits, or whole from 10,000 on.

    Examples
    --------
    >>> _cell(9999.4, 1), _cell(10_000, None), _cell(4.8e12, 1e12), _cell(None, 1)
    ('9999', '10,000', '4.8', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    value = value / (scale or 1)
    return f"{value:,.0f}" if value >= 1e4 else f"{value:.4g}"


def _containing(word, names):
    """Return the names that contain a word, whatever the case, blanks and dashes of both."""
    validation.instance("word", word, str)

    def plain(text):
        return re.sub(r"[\s_-]+", "", text.lower())

    return [name for name in names if plain(word) in plain(name)]


def chips(word: str = "") -> Table:
    """List chips whose name contains a word: SI units, price, and the chip whose kernel timings each uses.

    Examples
    --------
    >>> chips("h200")
    chip      memory  bandwidth  16-bit peak  price  kernels timed on
    GH200     96      4          989.5        2.29   H200
    H200      141     4.8        989.5        4.59   itself
    H200 NVL  141     4.8        835.5        -      H200
    >>> chips("H 300")
    none
    """
    from tokenprice.calibration import fallback_chip

    rows = []
    for name in _containing(word, sorted(catalog.chips())):
        chip = catalog.load_chip(name)
        peak = chip.peaks.get("bf16") or chip.peaks.get("fp16")
        timed = "itself" if fallback_chip(name) == name else fallback_chip(name)
        rows.append(
            {"chip": name, "memory": chip.memory_capacity, "bandwidth": chip.memory_bandwidth, "16-bit peak": peak,
             "price": chip.price, "kernels timed on": timed, "price from": chip.sources.get("price")}
        )  # fmt: skip
    units = {"memory": 1e9, "bandwidth": 1e12, "16-bit peak": 1e12, "price": 1}
    return Table(rows, {"chip": None, **units, "kernels timed on": None})


def models(word: str = "") -> Table:
    """List models whose name contains a word (* beyond the measurements): kind, format, context, parameters.

    ``beyond``: why an answer is beyond the measurements; ``missing``: why the model has no answer.

    Examples
    --------
    >>> models("gpt_oss")
    model                parameters  active  format  context  kind
    GPT-OSS 120B         116.8       5.712   mxfp4   131,072  GQA; experts
    GPT-OSS 20B          20.91       4.187   mxfp4   131,072  GQA; experts  *
    openai/gpt-oss-120b  116.8       5.712   mxfp4   131,072  GQA; experts
    openai/gpt-oss-20b   20.91       4.187   mxfp4   131,072  GQA; experts  *
    * beyond the measurements
    """
    names = sorted(set(catalog.all_models()), key=str.lower)
    rows = [_model(name) for name in _containing(word, names)]
    shown = {"model": None, "parameters": 1e9, "active": 1e9, "format": None, "context": 1, "kind": None}
    return Table(rows, shown)


def _model(name):
    """One row of :func:`models`."""
    empty = dict.fromkeys(("kind", "format", "beyond", "missing"), "")
    try:
        model = catalog.load_model(name)
    except ValueError as error:
        unknown = dict.fromkeys(("parameters", "active", "context"))
        return empty | {"model": name, "missing": str(error)} | unknown
    unscored = sparse_attention.unscored_reason(model)
    beyond = "; ".join(
        [f"no serving run of {unscored}"] * bool(unscored) + list(sparse_attention.cautions(model))
    )
    if not beyond and new_model(model):
        beyond = "no measured step of this model"
    return {
        "model": name, "kind": kind(model), "format": format_dtype(checkpoint_formats(model)[0]),
        "context": model.max_context, "parameters": float(model.n_params), "active": float(model.n_active),
        "beyond": beyond, "missing": unsupported_reason(model),
    }  # fmt: skip


def kind(model):
    """Return the kinds of attention, most frequent first, and whether the model has experts.

    Examples
    --------
    >>> [kind(catalog.load_model(name)) for name in ("DeepSeek V3.2", "Qwen3-Next-80B-A3B-Instruct", "Llama 3 8B")]
    ['MLA, sparse; experts', 'delta rule and GQA; experts', 'GQA; dense']
    """
    found = Counter()
    for n, attention in model.attentions:
        name = attention.kind + (", sparse" if getattr(attention, "top", None) else "")
        found[name] += n
    names = [name for name, _ in found.most_common()]
    return " and ".join(names) + ("; experts" if model.sparse else "; dense")
