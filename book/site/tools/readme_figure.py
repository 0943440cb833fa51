"""Copy the README's figure from its chapter, on a white background because a README has no theme."""

import json
from pathlib import Path

BOOK = Path(__file__).parents[2]
CHAPTER, FIGURE = BOOK / "erdil2025_toy.ipynb", "fig-e-size"
PICTURE = BOOK / "site" / "static" / "one-token.svg"


def drawn():
    """Return the figure as SVG text."""
    for cell in json.loads(CHAPTER.read_text("utf-8"))["cells"]:
        if cell["metadata"].get("mystnb", {}).get("figure", {}).get("name") == FIGURE:
            (drawing,) = (output["data"]["image/svg+xml"] for output in cell["outputs"])
            return "".join(drawing).replace("<svg ", '<svg style="background: white" ', 1)
    raise LookupError(f"{CHAPTER.name} has no figure {FIGURE}")


if __name__ == "__main__":
    PICTURE.write_text(drawn(), "utf-8")
