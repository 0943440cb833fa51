"""Read the ``config.json`` of a published model: families by ``model_type``, nothing guessed.

``catalog/families.toml`` declares what the keys of a family mean, and which change no shape. Any other key
that is switched on is refused by name. Where a key may be absent, the value taken is the one that the
family's own code documents.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from inferlib import checks
from inferlib.config.families import declarations, declared, families, shape_of
from inferlib.config.formats import formats_of
from inferlib.config.keys import REQUIRED, Keys, shown
from inferlib.transformer import Transformer

MAX_BYTES = 4 * 10**6  # the longest published one lists 22,000 quantized tensors


def read_config(config, name="", sources=None, quantization=None):
    """The Transformer that a parsed ``config.json`` describes.

    Parameters
    ----------
    config : mapping
        As ``json.load`` returns it.
    name : str
        How errors, and the result, call the model.
    sources : dict, optional
        Where the configuration is stated.
    quantization : mapping, optional
        What an ``hf_quant_config.json`` beside it holds.

    Returns
    -------
    Transformer
        Its ``notes`` name what the configuration mentions and the count leaves out, its ``formats`` how the
        checkpoint stores each part.

    Raises
    ------
    LookupError
        If the ``model_type`` is not a family known here.
    ValueError
        If a key is missing, unknown, of the wrong type or out of range.

    Examples
    --------
    >>> shape = {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2, "vocab_size": 1000}
    >>> read_config(shape | {"model_type": "llama", "num_attention_heads": 4}).n_params
    259392
    >>> read_config(shape | {"model_type": "llama", "num_attention_heads": 4, "num_experts": 8})
    Traceback (most recent call last):
    ...
    ValueError: config.json: num_experts is 8, but a 'llama' model has no such key
    """
    where = f"config.json of {name}" if name else "config.json"
    if not isinstance(config, Mapping):
        raise ValueError(f"{where} is {shown(config)}, but must be an object of keys and values")
    config = Keys(config, where)
    shape, formats = _read(config, quantization)
    return Transformer(**shape, name=name, sources=sources or {}, notes=config.notes, formats=formats)


def _read(c, quantization=None, family=None, architectures=None):
    """Fields of a Transformer, and its formats; a wrapper is asked for the model inside."""
    family = c.text("model_type", *([family] if family else []))
    checks.one_of(f"model_type (in {c.where})", family, families())
    about = declared(family)
    stated = quantization or c._take("quantization_config", None)
    architectures = architectures or c._take("architectures", None)
    if about.get("flat") and about["inside"] not in c.data:
        family, about = about["holds"][0], declared(about["holds"][0])
    if "inside" not in about:
        shape = shape_of(c, family)
        c.finish(family, {*declarations()["harmless"], *about.get("harmless", ())})
        shape |= _head(c, architectures)
        return shape, formats_of(c, shape.pop("sequence"), shape, stated, family)
    for key, remark in about.get("notes", {}).items():
        c.note(key, remark)
    inside = c._take(about["inside"], REQUIRED)
    if not isinstance(inside, Mapping):
        c.refuse(about["inside"], "an object of keys and values")
    text = Keys(inside, f"{c.where}: {about['inside']}")
    kind = text.data.get("model_type", about["holds"][0])
    if kind not in about["holds"]:
        text.refuse("model_type", f"{' or '.join(about['holds'])}, the language model of a {family}")
    if "tie_word_embeddings" in c.data and "tie_word_embeddings" not in inside:
        text.data = {**inside, "tie_word_embeddings": c.data["tie_word_embeddings"]}
    shape, formats = _read(text, stated, kind, architectures)
    if c.flag("tie_word_embeddings", shape["tied"]) != shape["tied"]:
        c.refuse("tie_word_embeddings", "the same as in text_config")
    c.finish(family, {*declarations()["harmless"], *about.get("harmless", ())})
    c.notes |= text.notes
    return shape, formats


def _head(c, architectures):
    """Which head a model has, by the name of its class; none is stated: one over the vocabulary."""
    if architectures is None:
        return {}
    good = isinstance(architectures, list) and all(isinstance(name, str) for name in architectures)
    name = architectures[0] if good and len(architectures) == 1 else ""
    if name.endswith(("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")):
        return {}
    if name.endswith("ForSequenceClassification"):
        labels = c.data.get("id2label") or {}
        n = c.whole("num_labels", len(labels) if isinstance(labels, Mapping) and labels else 2)
        return {"outputs": n, "head_bias": False}
    if name.endswith("RewardModel"):
        c.notes["architectures"] = f"the head of a {name[:40]}, not counted"
        return {"outputs": 0, "head_bias": False}
    if name.endswith("Model"):
        return {"outputs": 0, "head_bias": False}
    where = c.where.split(": ")[0]
    raise ValueError(
        f"{where}: architectures is {shown(architectures)}, but must be one class for causal language models, "
        "conditional generation, sequence classification or rewards, or a model without a head"
    )


def read_file(path):
    """Parse a ``config.json``, or the one in a folder.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    dict

    Raises
    ------
    LookupError
        If there is no such file, or it cannot be read.
    ValueError
        If it is larger than a megabyte or not JSON; a key given twice and NaN are not JSON here.
    """
    path = Path(path)
    try:
        path = path / "config.json" if path.is_dir() else path
    except OSError:
        pass  # content_of says why
    return parse(content_of(path), str(path))


def content_of(path):
    """The bytes of a small file; LookupError where there is none to be read, ValueError where it is not small."""
    try:
        if not path.is_file():
            raise LookupError(f"no file {str(path)!r}")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise LookupError(f"cannot read {shown(str(path))}: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES} bytes, but must have at most that")
    return content


def parse(content, where="config.json"):
    """Parse the text of a ``config.json``; see :func:`read_file`.

    Examples
    --------
    >>> parse('{"hidden_size": NaN}')
    Traceback (most recent call last):
    ...
    ValueError: config.json is not JSON: NaN is no number of it
    """

    def refused(constant):
        if constant == "Infinity":  # limits of time steps in published files; no count can be infinite
            return float("inf")
        raise ValueError(f"{constant} is no number of it")

    def once(items):
        found = dict(items)
        if len(found) < len(items):
            (twice, _), *_ = Counter(key for key, _ in items).most_common(1)
            raise ValueError(f"{shown(twice)} is given twice")
        return found

    try:
        return json.loads(content, parse_constant=refused, object_pairs_hook=once)
    except RecursionError:
        raise ValueError(f"{where} is not a config.json: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{where} is not JSON: {error}") from None


def looks_like_path(model):
    """Whether ``model`` names a file or folder rather than a model of the catalogue."""
    if isinstance(model, os.PathLike):
        return True
    if not isinstance(model, str) or "\0" in model or len(model) > 4096:
        return False
    return model.endswith(".json") or os.path.exists(model)
