"""LIMINAL 2025: the 320 cells as an interactive figure, red where a changed assumption breaks them.

The results of each reading are computed here, once; the page looks them up.
"""

import hashlib
import html
import json

from book import stored
from book.papers.liminal2025 import ablation, cells


class CellGrid:
    """The grid of Tables 4 to 7 with a menu of readings; shows itself as HTML that needs no kernel."""

    title = "Which of the 320 cells survive?"

    def data(self):
        """Data of the page: the cells, the printed texts, and for each reading the texts that differ."""
        printed = cells.printed_cells()
        labels, found = list(printed), []
        for (about, change), reading in ablation.readings().items():
            ours = cells.computed_cells(reading)
            wrong = {i: ours[place] for i, place in enumerate(labels) if ours[place] != printed[place]}
            found.append([f"{about}: {change}" if about else "the paper's set", wrong])
        return {"cells": [[*place, printed[place]] for place in labels], "readings": found}

    def _repr_html_(self):
        data = self.data()
        text = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
        identity = "grid-" + hashlib.sha256(text.encode()).hexdigest()[:10]
        options = "".join(f"<option>{html.escape(label)}</option>" for label, _ in data["readings"])
        style, script = (stored.text(f"papers/liminal2025/grid.{kind}").strip() for kind in ("css", "js"))
        return (
            f'<style>{style}</style><div id="{identity}" class="cell-grid" role="group" '
            f'aria-label="{self.title}"><div class="title">{self.title}</div>'
            f'<label>Change one assumption: <select autocomplete="off">{options}</select></label>'
            '<p class="count" role="status" aria-live="polite"></p><div class="tables"></div>'
            f'<p class="cell" aria-live="polite"></p></div><script>{script}("{identity}",{text});</script>'
        )

    def __repr__(self):
        return f"CellGrid({len(cells.printed_cells())} cells, {len(ablation.readings())} readings)"
