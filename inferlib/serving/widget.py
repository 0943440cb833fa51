"""The same questions in a notebook: menus of models and chips, an answer that follows every change."""

import html

from inferlib import catalog
from inferlib.serving import constants
from inferlib.serving.answer import answer, choose
from inferlib.serving.decide import in_words, layouts
from inferlib.serving.typed import system_of

AS_STATED = "as the checkpoint states"
ANY_ENGINE = "not known"
STEP, REQUEST, DECIDE = "A step", "A request", "Decide"
_FIELDS = {
    STEP: {"batch": "1", "context": "4096"},
    REQUEST: {"prompt": "2000", "cached": "0", "output": "500", "users": "16"},
    DECIDE: {"speed": "50", "first token, s": "1", "prompt": "2000", "cached": "0", "output": "500"},
}


def widget(model="Llama 3.3 70B", chip="H100 SXM", count=4):
    """Menus of models and chips with the answer beneath, for a live notebook.

    A model may also be the path of a ``config.json``. What does not fit, or what nobody describes, says so.

    Parameters
    ----------
    model, chip, count : optional
        Where the menus stand at first.

    Returns
    -------
    ipywidgets.VBox
        ``controls`` are its menus by name, ``said`` shows the answer, ``found`` is the last one, and
        ``ask(tab, **values)`` sets several controls at once.

    Raises
    ------
    ImportError
        If ipywidgets is not installed.
    """
    try:
        import ipywidgets
    except ImportError:
        raise ImportError("inferlib.widget() needs ipywidgets: pip install ipywidgets") from None
    make = _Maker(ipywidgets)
    names = [*catalog.models(), *catalog.same_shapes(), *catalog.served()]
    controls = {
        "model": make("Combobox", "Model", value=model, options=names, ensure_option=False),
        "chip": make("Dropdown", "Chip", value=chip, options=catalog.chips()),
        "count": make("BoundedIntText", "Chips", value=count, min=1, max=100_000),
        "layout": make("Dropdown", "Layout", value="", options=[("one instance", "")]),
        "weights": make("Dropdown", "Weights", value=AS_STATED, options=[AS_STATED, *constants.STORED]),
        "cache": make("Dropdown", "Cache", value=AS_STATED, options=[AS_STATED, "bf16", "fp8"]),
        "engine": make(
            "Dropdown", "Engine", value=ANY_ENGINE, options=[ANY_ENGINE, *constants.engines()["class"]]
        ),
        "price": make("Text", "$ a chip and hour", value="", placeholder="the catalogue's"),
    }
    fields = {
        tab: {name: make("Text", name, value=value) for name, value in kept.items()}
        for tab, kept in _FIELDS.items()
    }
    tabs = ipywidgets.Tab(
        [ipywidgets.VBox(list(kept.values())) for kept in fields.values()], titles=list(fields)
    )
    said, drawn = ipywidgets.HTML(), ipywidgets.Image(format="png")
    box = ipywidgets.VBox([ipywidgets.HBox([ipywidgets.VBox(list(controls.values())), tabs]), said, drawn])
    box.controls, box.fields, box.tabs, box.said, box.found, box.quiet = (
        controls,
        fields,
        tabs,
        said,
        None,
        False,
    )

    def offer(_=None):
        controls["layout"].options = _layouts(controls)

    def show(_=None):
        if box.quiet:
            return
        tab = list(fields)[tabs.selected_index or 0]
        drawn.value, drawn.layout.display = b"", "none"
        try:
            box.found = _answered(tab, controls, {name: field.value for name, field in fields[tab].items()})
            said.value = box.found._repr_html_()
            if tab == DECIDE and box.found.points:
                drawn.value, drawn.layout.display = _drawn(box.found), ""
        except (ValueError, LookupError, TypeError, OSError) as refused:
            box.found, said.value = None, f"<p>{html.escape(str(refused))}</p>"

    def ask(tab, **values):
        """Set several controls of a tab and answer once."""
        box.quiet = True
        try:
            for name, value in values.items():
                (fields[tab].get(name) or controls[name]).value = value
            tabs.selected_index = list(fields).index(tab)
        finally:
            box.quiet = False
        show()
        return box.found

    box.ask = ask
    for name in ("model", "chip", "count"):
        controls[name].observe(offer, "value")
    offer()
    for control in (*controls.values(), *(field for kept in fields.values() for field in kept.values())):
        control.observe(show, "value")
    tabs.observe(show, "selected_index")
    show()
    return box


class _Maker:
    """Controls of one width, whose values change when they are left, not with every key."""

    def __init__(self, ipywidgets):
        self.ipywidgets = ipywidgets

    def __call__(self, kind, label, **more):
        if kind != "Dropdown":
            more["continuous_update"] = False
        style = {"style": {"description_width": "9em"}, "layout": {"width": "24em"}}
        return getattr(self.ipywidgets, kind)(description=label, **style, **more)


def _layouts(controls):
    """The layouts that fit the machine, in words; none where the model is not there."""
    plain = [("one instance", "")]
    try:
        system = system_of(controls["chip"].value)
        found = layouts(catalog.load_model(controls["model"].value), system.chip, controls["count"].value)
    except (ValueError, LookupError):
        return plain
    words = [in_words(layout) for layout in found if layout.tp != controls["count"].value]
    return plain + [(word, word) for word in words]


def _answered(tab, controls, fields):
    """What a tab asks, in the words of the terminal."""
    at = {name: control.value for name, control in controls.items()}
    asked = {
        "weights": None if at["weights"] == AS_STATED else at["weights"],
        "cache": None if at["cache"] == AS_STATED else at["cache"],
        "engine": None if at["engine"] == ANY_ENGINE else at["engine"],
    }
    price = _number("price", at["price"])
    if tab == DECIDE:
        limits = {"speed": _number("speed", fields.pop("speed"))}
        limits["first_token"] = _number("first token", fields.pop("first token, s"))
        prices = None if price is None else {at["chip"]: price}
        return choose(at["model"], **fields, **limits, prices=prices, **asked)
    chip = f"{at['count']}x {at['chip']}"
    return answer(at["model"], chip, **fields, layout=at["layout"] or None, price=price, **asked)


def _number(name, text):
    """A number that may be left out."""
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}, but must be a number") from None


def _drawn(decision):
    """Cost against speed as a PNG: the frontier, and the offers."""
    from io import BytesIO

    from matplotlib.figure import Figure

    table, figure = decision.frontier(), Figure(figsize=(6, 3.6), layout="constrained")
    ax = figure.subplots()
    if len(table):
        ax.plot(table.speed, 100 * table.usd_per_request, "o-", markersize=3, label="frontier")
    speeds, cents = ([getattr(o, name) for o in decision.offers] for name in ("speed", "dollars"))
    ax.plot(speeds, [100 * dollars for dollars in cents], "x", color="0.5", label="offers")
    ax.set(xlabel="tokens per second of one user", ylabel="cents a request", yscale="log")
    ax.legend()
    held = BytesIO()
    figure.savefig(held, format="png")
    return held.getvalue()
