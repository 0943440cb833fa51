"""Read the ``config.json`` of a published model: families by ``model_type``, without guessing.

``families.toml`` declares what the keys of a family mean, and which do not affect the shape. Any other key
that is set raises an error with its name. The default of an optional key is the one that the family's own code
documents.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping

from inferlib import validation
from inferlib.transformer import Transformer
from tokenprice import files
from tokenprice.config.families import declarations, declared, families, shape_of
from tokenprice.config.formats import formats_of
from tokenprice.config.keys import Keys


def read_config(config, name="", sources=None, quantization=None):
    """Build the Transformer that a parsed ``config.json`` describes.

    ``name``, ``sources``: of the result. ``quantization``: content of an ``hf_quant_config.json`` beside it. Raises
    LookupError for an unknown ``model_type``, ValueError for a key that is missing, unknown, of the wrong type or out
    of range. The result's ``notes`` name what the configuration has but the count leaves out, its ``formats`` how the
    checkpoint stores each part.

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
        raise ValueError(f"{where} is {validation.shown(config)}, but must be an object of keys and values")
    config = Keys(config, where)
    shape, formats = _read(config, [] if quantization is None else [quantization])
    return Transformer(**shape, name=name, sources=sources or {}, notes=config.notes, formats=formats)


def stored_as(model, section):
    """Return a model as stored by a quantization section; by an empty one, in 16 bits if any format is known."""
    notes = {key: said for key, said in model.notes.items() if key != "quantization_config"}
    sequence = [(group.attention, group.feed_forward) for group in model.layers for _ in range(group.count)]
    beside = {"dtype": "bfloat16"} if model.formats else {}
    formats = formats_of(beside, sequence, model.d_model, [section] if section else [], notes)
    return model.replace(formats=formats, notes=notes)


def _read(c, stated=(), family=None, architectures=None):
    """Return the fields of a Transformer and its formats; of a wrapper, those of the language model inside."""
    family = c.text("model_type", *([family] if family else []))
    validation.one_of(f"model_type (in {c.where})", family, families())
    about = declared(family)
    # a serving engine prefers the section in the file itself to the file beside it
    own = c.take("quantization_config", None) or c.take("compression_config", None)
    sections = [section for section in (own, *stated) if section is not None]
    architectures = architectures or c.take("architectures", None)
    if about.get("flat") and about["inside"] not in c.data:
        family = about["holds"][0]
        about = declared(about["holds"][0])
    wrapper = "inside" in about
    shape, formats = _inside(c, family, sections, architectures) if wrapper else (shape_of(c, family), None)
    c.finish(family, {*declarations()["harmless"], *about.get("harmless", ())})
    if wrapper:
        return shape, formats
    shape |= _head(c, architectures) | {"max_context": _max_context(c)}
    homes = about.get("homes")
    return shape, formats_of(c.data, shape.pop("sequence"), shape["d_model"], sections, c.notes, homes)


def _inside(c, family, sections, architectures):
    """Read the language model in a wrapper; some of its keys are outside."""
    about = declared(family)
    for key, remark in about.get("notes", {}).items():
        c.note(key, remark)
    text = c.object(about["inside"])
    kind = text.data.get("model_type", about["holds"][0])
    if kind not in about["holds"]:
        text.refuse("model_type", f"{' or '.join(about['holds'])}, the language model of a {family}")
    outside = ("tie_word_embeddings", "torch_dtype", "dtype")
    text.data = {key: c.data[key] for key in outside if key in c.data} | text.data
    shape, formats = _read(text, sections, kind, architectures)
    tied = c.flag("tie_word_embeddings", shape["tied"])
    # if they differ, transformers 4 used the inner key, and transformers 5, which writes both, the outer
    if tied != shape["tied"] and str(c.data.get("transformers_version") or "") < "5":
        c.refuse("tie_word_embeddings", "the same as in text_config")
    shape["tied"] = tied
    c.notes |= text.notes
    return shape, formats


def _max_context(c):
    """Return the number of positions that the configuration states, or None."""
    keys = ("max_position_embeddings", "n_positions", "max_seq_len", "model_max_length")
    return next((c.whole(key) for key in keys if c.given(key)), None)


def _head(c, architectures):
    """Return the fields of the head, by the name of the model's class; the default is a head over the vocabulary."""
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
        f"{where}: architectures is {validation.shown(architectures)}, but must be one class for causal language "
        "models, conditional generation, sequence classification or rewards, or a model without a head"
    )


def read_file(path):
    """Parse a ``config.json``, or the one in a folder; LookupError if it cannot be read."""
    from pathlib import Path  # imports half of urllib

    path = Path(path)
    try:
        path = path / "config.json" if path.is_dir() else path
    except OSError:
        pass  # files.read_file raises the reason
    return parse(files.read_file(path), str(path))


def read_beside(path):
    """Parse the ``hf_quant_config.json`` in the folder of a ``config.json``; None if there is none."""
    from pathlib import Path

    path = Path(path)
    beside = (path if path.is_dir() else path.parent) / "hf_quant_config.json"
    good = (
        path.is_dir() or path.name == "config.json"
    )  # a file of another name may belong to another checkpoint
    return parse(files.read_file(beside), str(beside)) if good and beside.is_file() else None


def parse(content, where="config.json"):
    """Parse the text of a ``config.json``; see :func:`read_file`.

    Examples
    --------
    >>> parse('{"hidden_size": NaN}')
    Traceback (most recent call last):
    ...
    ValueError: config.json is not JSON: NaN is not a JSON number
    """

    def refused(constant):
        if (
            constant == "Infinity"
        ):  # published files have it as a limit of time steps; no count can be infinite
            return float("inf")
        raise ValueError(f"{constant} is not a JSON number")

    def once(items):
        found = dict(items)
        if len(found) < len(items):
            (twice, _), *_ = Counter(key for key, _ in items).most_common(1)
            raise ValueError(f"{validation.shown(twice)} is given twice")
        return found

    try:
        return json.loads(content, parse_constant=refused, object_pairs_hook=once)
    except RecursionError:
        raise ValueError(f"{where} is not a config.json: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{where} is not JSON: {error}") from None


def looks_like_path(model):
    """Whether ``model`` is the path of a file or folder rather than a model's name."""
    if isinstance(model, os.PathLike):
        return True
    if not isinstance(model, str) or "\0" in model or len(model) > 4096:
        return False
    return model.endswith(".json") or os.path.exists(model)
