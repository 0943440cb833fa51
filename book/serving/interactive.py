"""Interactive figures: price over speed, and all answers over all measurements."""

import re
from math import isnan
from urllib.parse import quote, urlencode

import numpy as np
import pandas as pd

from book.explorer.scatter import Menu, Scatter
from book.serving import fit
from book.synthesis import comparison
from tokenprice import SLO, Question, ask, decide, predictors
from tokenprice.deployment import layouts
from tokenprice.formatting import format_layout

COUNTS = (1, 2, 4, 8)


def _three(value):
    short = float(f"{value:.3g}")
    return short if short % 1 else int(short)


def _chips(n):
    return f"{n} chip{'s' if n > 1 else ''}"


def price_over_speed(models, chips, lengths, cached=(0,)):
    """Figure of dollars or tokens per chip over the speed of one user, by the kernel model and as measured.

    ``models``: label to the fields of a Question: model and formats. ``lengths``: tokens of a prompt and of an answer.
    ``cached``: shares of the prompt in the cache.
    """
    lines, dots, rows = [], [], public_rows()
    rows = rows[rows.n_gpus.isin(COUNTS)]
    for m, words in enumerate(models.values()):
        for c, chip in enumerate(chips):
            for n, (prompt, output) in enumerate(lengths):
                at = {"model": m, "chip": c, "lengths": n}
                for h, share in enumerate(cached):
                    q = Question(**words, prompt_tokens=prompt, output_tokens=output, cached=share * prompt)
                    there = at | {"cached": h}
                    found = decide(q, SLO(), chips=[chip], counts=COUNTS, layouts=_whole)
                    lines += [_line(offer, found.points, chip, output, there) for offer in found.offers]
                like = (q.model.name, chip.name, _kind(words["weights"]))
                dots += [_dot(row, at) for row in rows.itertuples() if _same(row, like, prompt, output)]
    told = [f"{prompt:,.0f} and {output:,.0f} tokens" for prompt, output in lengths]
    menus = [
        Menu("model", "Model", list(models)),
        Menu("chip", "Chip", [chip.name for chip in chips]),
        Menu("lengths", "Prompt and answer", told),
        Menu("cached", "Prompt in the cache", [f"{share:.0%}" for share in cached]),
        Menu("shown", "Shown", ["dollars", "tokens per second and chip"]),
    ]
    sliders = [
        {"key": "speed", "label": "Promised speed", "low": 5, "high": 300, "start": 30, "unit": "tokens/s"},
        {"key": "first", "label": "Promised first token", "low": 0.05, "high": 10, "start": 1, "unit": "s"},
    ]
    x = [{"label": "tokens per second of one user", "low": 4, "high": 500}]
    y = [
        {"label": "dollars per million answer tokens, with prompts", "low": 0.05, "high": 200},
        {"label": "answered tokens per second and chip", "low": 2, "high": 10000},
    ]
    key = {_chips(n): k for k, n in enumerate(COUNTS)}
    title, prices = "What does an SLO cost?", [chip.price for chip in chips]
    asks = {
        "model": [_state(words) for words in models.values()],
        "chip": [_state({"only": chip.name}) for chip in chips],
        "lengths": [_state({"prompt_tokens": prompt, "output_tokens": output}) for prompt, output in lengths],
        "cached": [_state({"cached": f"{share:.0%}"}) for share in cached],
    }
    return Scatter(title, menus, x, y, dots, {"x": "", "y": "shown"}, lines, prices, sliders, key, asks)


def _state(fields):
    """Return the fields of a question as in the calculator's link."""
    return urlencode(fields, quote_via=quote)


def _whole(model, chip, count):
    """Layouts of one instance on all chips, with experts split or spread; rows of every size were measured on these."""
    return [one for one in layouts(model, chip, count) if one.dp == 1]


def _line(offer, points, chip, output, at):
    """One machine over its users: speed of one, answered tokens per second and chip, first token, users."""
    n, layout = offer.system.count, format_layout(offer.layout)
    own = [p for p in points if (p["count"], p["layout"]) == (n, layout)]
    found = [
        [_three(p["speed"]), _three(output * chip.price / 3600 / p["usd_per_request"]), _three(p["ttft"]),
         p["concurrency"]] for p in sorted(own, key=lambda p: p["concurrency"])
    ]  # fmt: skip
    # users waiting for a place generate no tokens
    found = [p for k, p in enumerate(found) if not k or p[1] > found[k - 1][1]]
    w, g = _three(offer.request.step_factor), _three(offer.request.first_factor)
    name = _chips(n) if n == 1 else f"{_chips(n)}, {layout}"
    end = "" if offer.layout.ep > 1 else _chips(n)  # next to its own line with experts split
    return {"f": at, "name": name, "end": end, "c": COUNTS.index(n), "p": found, "w": w, "g": g}


def public_rows():
    """Clean rows of both files with lengths and a rate: of serving benchmarks, and of steps of a closed loop."""
    served, steps = fit.serving_rows(), comparison.rows()
    seconds = served.ttft + served.output_tokens * served.tpot
    served["rate"] = served.concurrency * served.output_tokens / seconds
    named = {"weight_format": "weights", "sequences": "concurrency", "tokens_per_second": "rate"}
    steps = steps.rename(columns=named)
    both = pd.concat([served, steps.assign(version="", ttft=float("nan"))])
    return both[(both.use == "clean") & both.rate.notna()]


def _kind(weights):
    """The format in which kernels multiply; block formats and scales have names of their own."""
    return weights.split()[0].removeprefix("mx").removeprefix("nv")


def _same(row, like, prompt, output):
    """Whether a row is of this model, chip and format at these lengths, or at a tenth less if they are drawn.

    Examples
    --------
    >>> lengths = {"prompt_tokens": 1, "output_tokens": 1000}
    >>> row = pd.Series({"model": "m", "hardware": "c", "weights": "nvfp4 w4a16"} | lengths)
    >>> [_same(row, ("m", "c", "fp4"), 1, output) for output in (1200, 1111, 1000, 960, 940)]
    [False, True, True, True, False]
    """
    pairs = ((row.prompt_tokens, prompt), (row.output_tokens, output))
    near = all(0.85 <= of / to <= 1.05 for of, to in pairs)
    return near and (row.model, row.hardware, _kind(row.weights)) == like


def _dot(row, at):
    speed, each = 1 / row.tpot, row.rate / row.n_gpus
    who = " ".join(filter(None, (row.engine, row.version)))
    first = "" if isnan(row.ttft) else f", first token {1e3 * row.ttft:.0f} ms"
    told = f"{who}: {_chips(row.n_gpus)}, {row.concurrency:.0f} users, {row.weights}{first}"
    place = COUNTS.index(row.n_gpus)
    return {"f": at, "x": [_three(speed)], "y": [0, _three(each)], "t": told, "u": row.url, "c": place}


def answers_over_measurements(answers, rows, mine):
    """Return all answers over all clean rows: model, publisher, chip and batch.

    ``answers``: from :func:`book.synthesis.comparison.all_answers`. ``rows``: from
    :func:`book.synthesis.comparison.rows`. ``mine``: rows of your own, each a Question and the measured seconds; they
    are drawn large, pass every menu, and are not counted among the rows.
    """
    who = [key for key in predictors.keys() if key in set(answers.who)]
    times = answers[answers.status == "ok"].pivot(index="id", columns="who", values="predicted")
    own = rows[(rows.use == "clean") & rows.index.isin(times.index)]
    made = times.loc[own.index].to_dict("records")
    points = own.assign(measured=own.tpot, batch=own.sequences, made=made)
    names = {"publisher": "Measured by", "hardware": "Chip", "batches": "Sequences"}
    dots, chosen, colours = _over(points, who, names)
    for question, measured in mine:
        found = {key: one.seconds for key, one in ask(question, by="all").items() if one.feasible}
        said = [f"{predictors.label(key)} {100 * s / measured - 100:+.0f} %" for key, s in found.items()]
        told = f"mine, {1e3 * measured:.3g} ms: {', '.join(said)}"
        dots.append(_error(measured, found, who, told, "", 3) | {"f": {}, "mine": 1})
    menus = [
        Menu("who", "Whose answer", [predictors.label(key) for key in who]),
        Menu("over", "Over", ["measured", "bound"]),
    ]
    x = [{"label": f"{what}, ms", "low": 0.5, "high": 500} for what in ("measured", "the bound")]
    y = [{"label": "predicted over measured", "low": 0.1, "high": 5, "right": 1}] * len(who)
    return Scatter(
        "Predicted over measured time", menus + chosen, x, y, dots, {"x": "over", "y": "who"}, key=colours
    )


def every_row(most=60):
    """All rows of the fit, each predicted without its own publisher; at most ``most`` per publisher and model."""
    table = fit.data()
    points = table.assign(predicted=np.exp(fit.left_out("publisher")) * table.measured)
    points = points.sort_values(["publisher", "model", "hardware", "measured"])
    groups = points.groupby(["publisher", "model"])
    points = pd.concat([own.iloc[:: -(-len(own) // most)] for _, own in groups])
    both = zip(points.predicted, points.measured, strict=True)
    made = [{"kernels": predicted, "principles": measured} for predicted, measured in both]
    names = {"publisher": "Measured by", "model": "Model", "hardware": "Chip"}
    dots, menus, colours = _over(points.assign(made=made), ["kernels"], names)
    x = [{"label": "measured, ms", "low": 1, "high": 500}]
    y = [{"label": "predicted over measured", "low": 0.3, "high": 3, "right": 1}]
    return Scatter("Rows that the fit has not seen", menus, x, y, dots, {"x": "", "y": ""}, key=colours)


def _over(points, who, names):
    """A dot per measured row, the menus that filter them, and a colour per publisher."""
    lists = {name: ["all", *sorted(set(points[name]), key=_by_number)] for name in names}
    colours, dots = {name: k % 9 for k, name in enumerate(lists["publisher"][1:])}, []
    for row in points.itertuples():
        told = f"{row.publisher}: {row.model}, {row.n_gpus} × {row.hardware}, batch {row.batch:.0f}"
        f = {name: values.index(getattr(row, name)) for name, values in lists.items()}
        dots.append(_error(row.measured, row.made, who, told, row.url, colours[row.publisher]) | {"f": f})
    menus = [Menu(name, label, [str(one) for one in lists[name]], any=True) for name, label in names.items()]
    return dots, menus, colours


def _by_number(label):
    """Sort labels by the numbers in them: 9 to 32 before 33 to 128."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(label))]


def _error(measured, made, who, told, url, colour):
    """A dot: all models' predicted over measured time, over its measured time and its bound."""
    ratios = [_three(made[key] / measured) if made.get(key, 0) > 0 else 0 for key in who]
    x = [_three(1e3 * measured), _three(1e3 * made["principles"])]
    return {"x": x, "y": ratios, "t": f"{told}: {1e3 * measured:.3g} ms", "u": url, "c": colour}
