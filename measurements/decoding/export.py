"""Write shapes.json from the catalogue: ``python measurements/decoding/export.py`` (needs inferlib).

The machine that measures has no inferlib. A test compares the file with the catalogue.
"""

import dataclasses
import json
from pathlib import Path

FILE = Path(__file__).with_name("shapes.json")
# what none of these models has, and the script does not read
BEYOND = (
    "value_dim",
    "gate",
    "top",
    "indexer",
    "same_value",
    "norm_all_heads",
    "d_latent",
    "router_vectors",
    "connections",
)
MODELS = ("Qwen3 4B", "Llama 3 8B", "Qwen3 32B", "Llama 3 70B", "Qwen3 30B-A3B", "GPT-OSS 20B")


def shapes():
    """Shape of every measured model as plain values, with the address that states it."""
    from inferlib import load_model

    found = {}
    for name in MODELS:
        model = load_model(name)
        found[name] = {
            "source": model.sources["shape"],
            "d_model": model.d_model,
            "vocab_size": model.vocab_size,
            "tied": model.tied,
            "groups": [_plain(dataclasses.asdict(group)) for group in model.layers],
        }
    return found


def _plain(group):
    """A group of layers without fields that only other kinds of models have."""
    for part in (group, group["attention"], group["feed_forward"]):
        for name in BEYOND:
            if part.pop(name, None):
                raise ValueError(f"the script does not read {name}")
    return group


if __name__ == "__main__":
    FILE.write_text(json.dumps(shapes(), indent=1) + "\n", encoding="utf-8")
