"""Figures of a question's raters: how far each two agree, how each agrees with the settled label, how one of them answers."""

from collections.abc import Sequence

from curation.figures import WIDTH, Figure, Row, Spec
from curation.raters import Pair, Person, Standing, most_connected, numbers_of, pair_list
from curation.stats.intervals import Estimate

MOST_RATERS = 30  # that a figure shows; its data has all
_SMALL, _WRITTEN = 14, 8  # up to so many fit a cell of a page, and a number fits into their squares
_SQUARE, _MARGIN, _LEGEND = 20, 56, 64
_STEPS = ("under 0.2", "0.2 to 0.4", "0.4 to 0.6", "0.6 to 0.8", "0.8 or more")
_ROW = 26


def of_standing(standing: Standing, people: Sequence[Person], *, whole: bool = False) -> list[Figure]:
    """Both, once there is something to draw. `whole`: with the data of every rater and pair, also of those not drawn."""
    found = []
    if len(standing.pairs):
        found.append(matrix(standing, whole=whole))
    if any(person.figures.agreement.value is not None or person.checks.value is not None for person in people):
        found.append(dots(people))
    return found


def matrix(standing: Standing, *, whole: bool = False) -> Figure:
    """Cohen's kappa of each two of the raters who share most items, as a square of the ramp."""
    numbers = numbers_of(standing)
    shown = sorted(numbers[place] for place in most_connected(standing, MOST_RATERS))
    drawn = set(shown)
    pairs = pair_list(standing) if whole else pair_list(standing, within=drawn)
    data = [_pair_row(pair) for pair in pairs]
    cells: list[Row] = []
    for pair in pairs:
        if drawn >= {pair.first, pair.second}:
            cells += [_cell(pair, pair.first, pair.second), _cell(pair, pair.second, pair.first)]
    order = [str(number) for number in shown]
    axis: Spec = {"grid": False, "domain": False, "labelAngle": 0, "labelOverlap": False, "labelPadding": 4}
    turned = {"orient": "top", "labelAngle": -90 if len(shown) > _SMALL else 0}
    x: Spec = {"field": "column", "type": "nominal", "sort": order, "title": None, "axis": axis | turned}
    y: Spec = {"field": "row", "type": "nominal", "sort": order, "title": None, "axis": axis}
    scales: Spec = {"scale": {"domain": order, "padding": 0.08}}
    legend: Spec = {
        "orient": "bottom",
        "title": "Cohen's kappa",
        "symbolType": "square",
        "symbolStrokeWidth": 0,
        "columns": 3,
        "titleFontWeight": "normal",
    }
    legend |= {"titleColor": "var(--ink-2)", "titleFontSize": 12}
    fill: Spec = {"field": "step", "type": "nominal", "legend": legend}
    fill["scale"] = {"domain": list(_STEPS), "range": [f"var(--ramp-{k})" for k in range(5)]}
    ink: Spec = {"field": "ink", "type": "nominal", "legend": None}
    ink["scale"] = {"domain": [0, 1], "range": ["var(--ink)", "var(--on-accent)"]}
    layers: list[Spec] = [
        {
            "data": {"values": [cell for cell in cells if cell["step"]]},
            "mark": {"type": "rect", "cornerRadius": 2},
            "encoding": {"x": x | scales, "y": y | scales, "fill": fill},
        },
        {
            "data": {"values": [cell for cell in cells if not cell["step"]]},
            "mark": {"type": "text", "text": "–", "color": "var(--ink-3)"},
            "encoding": {"x": x | scales, "y": y | scales},
        },
    ]
    if len(shown) <= _WRITTEN:
        written = [cell for cell in cells if cell["step"]]
        mark: Spec = {"type": "text", "fontSize": 12}
        layers.append({"data": {"values": written}, "mark": mark, "encoding": {"x": x, "y": y, "text": {"field": "text"}, "color": ink}})
    side = WIDTH if len(shown) <= _SMALL else _MARGIN + _SQUARE * len(shown)
    height = _LEGEND + (min(WIDTH, _MARGIN + 36 * len(shown)) if len(shown) <= _SMALL else side)
    finding = _matrix_finding(standing, pairs, shown)
    spec: Spec = {"layer": layers, "resolve": {"scale": {"color": "independent"}}}
    return Figure("pairs", "How far each two agree", finding, spec, data, width=side, height=height)


def _matrix_finding(standing: Standing, pairs: Sequence[Pair], shown: Sequence[int]) -> str:
    defined = [pair for pair in pairs if pair.kappa.value is not None]
    some = f"{len(shown)} of {len(standing.raters):,} raters" if len(shown) < len(standing.raters) else f"{len(shown)} raters"
    if not defined:
        return f"How far each two agree. {some}; no two have a kappa."
    least = min(defined, key=lambda pair: pair.kappa.value or 0)
    most = max(defined, key=lambda pair: pair.kappa.value or 0)
    return (
        f"How far each two agree. {some}. Least: {least.first} and {least.second}, kappa {least.kappa.value:.2f};"
        f" most: {most.first} and {most.second}, kappa {most.kappa.value:.2f}."
    )


def _pair_row(pair: Pair) -> Row:
    return {
        "first": pair.first, "second": pair.second, "items": pair.observed.n, "observed": pair.observed.value,
        "observed_low": pair.observed.low, "observed_high": pair.observed.high, "kappa": pair.kappa.value, "kappa_low": pair.kappa.low,
        "kappa_high": pair.kappa.high, "undefined_because": pair.kappa.reason, "note": pair.kappa.note,
    }  # fmt: skip


def _cell(pair: Pair, row: int, column: int) -> Row:
    value = pair.kappa.value
    step = None if value is None else max(0, min(4, int(value * 5 + 1e-9)))
    return {
        "row": str(row), "column": str(column), "step": None if step is None else _STEPS[step], "ink": int(step is not None and step > 2),
        "text": "" if value is None else f"{value:.2f}",
    }  # fmt: skip


def dots(people: Sequence[Person]) -> Figure:
    """Each rater's agreement with what the others settle, and their accuracy on known answers, with intervals."""
    voted = sorted(people, key=lambda person: (-person.figures.votes, person.number))
    data: list[Row] = [
        _dot(person, series, found)
        for person in voted
        for series, found in (("with the others", person.figures.agreement), ("on known answers", person.checks))
    ]
    shown = [
        person for person in voted if person.figures.agreement.value is not None or person.checks.value is not None
    ][:MOST_RATERS]  # fmt: skip
    names = [person.pseudonym for person in shown]
    rows = [row for row in data if row["rater"] in names and row["value"] is not None]
    series = [name for name in ("with the others", "on known answers") if any(row["series"] == name for row in rows)]
    y: Spec = {"field": "rater", "type": "nominal", "sort": names, "title": None}
    y["axis"] = {"grid": False, "labelLimit": 130, "labelColor": "var(--ink-2)"}
    x: Spec = {"field": "value", "type": "quantitative", "title": None, "scale": {"domain": [0, 1], "nice": False}}
    x["axis"] = {"grid": True, "tickCount": 5, "domain": False, "orient": "top"}
    offset: Spec = {"field": "series", "type": "nominal", "scale": {"domain": series}}
    legend: Spec = {"orient": "bottom", "title": None, "symbolType": "square", "symbolStrokeWidth": 0}
    colour: Spec = {"field": "series", "type": "nominal", "legend": legend if len(series) > 1 else None}
    colour["scale"] = {
        "domain": series,
        "range": [{"with the others": "var(--d1)", "on known answers": "var(--d2)"}[name] for name in series],
    }
    shape: Spec = {"field": "series", "type": "nominal", "legend": None}
    shape["scale"] = {"domain": series, "range": [{"with the others": "circle", "on known answers": "diamond"}[name] for name in series]}
    both: Spec = {"y": y, "yOffset": offset, "fill": colour}
    spec: Spec = {
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "bar", "height": 8, "opacity": 0.3, "cornerRadius": 2},
                "encoding": both | {"x": x | {"field": "low"}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 48, "opacity": 1, "stroke": "var(--surface)", "strokeWidth": 1},
                "encoding": both | {"x": x, "shape": shape},
            },
        ],
    }
    finding = "Share of answers that are right, by rater. " + "; ".join(
        f"{row['rater']} {row['series']} {row['value']:.2f}" for row in rows[: 2 * len(series) * 5]
    )
    height = _ROW * len(shown) + (64 if len(series) > 1 else 36)
    return Figure("raters", "Share of answers that are right", finding + ".", spec, data, height=height)


def _dot(person: Person, series: str, found: Estimate) -> Row:
    return {
        "rater": person.pseudonym, "series": series, "value": found.value, "low": found.low, "high": found.high, "n": found.n,
        "votes": person.figures.votes, "undefined_because": found.reason,
    }  # fmt: skip


def confusion(person: Person, choices: Sequence[str]) -> Figure | None:
    """How a rater answers, by the label that Dawid and Skene's model gives; None without votes on complete tasks."""
    table = person.figures.confusion
    if table is None:
        return None
    data: list[Row] = [
        {"label": label, "answer": answer, "share": round(float(table[j, k]), 4)}
        for j, label in enumerate(choices)
        for k, answer in enumerate(choices)
    ]
    rows = [row | {"text": f"{row['share']:.0%}", "step": min(4, int(row["share"] * 5)), "ink": int(row["share"] >= 0.6)} for row in data]
    axis: Spec = {"grid": False, "domain": False, "labelAngle": 0, "labelLimit": 110, "titleAnchor": "middle", "labelPadding": 2}
    x: Spec = {"field": "answer", "type": "nominal", "sort": list(choices), "title": "their answer", "scale": {"padding": 0}}
    y: Spec = {"field": "label", "type": "nominal", "sort": list(choices), "title": "label", "scale": {"padding": 0}}
    fill: Spec = {"field": "step", "type": "ordinal", "legend": None}
    fill["scale"] = {"domain": [0, 1, 2, 3, 4], "range": [f"var(--ramp-{k})" for k in range(5)]}
    ink: Spec = {"field": "ink", "type": "nominal", "legend": None}
    ink["scale"] = {"domain": [0, 1], "range": ["var(--ink)", "var(--on-accent)"]}
    spec: Spec = {
        "data": {"values": rows},
        "encoding": {
            "x": x | {"axis": axis | {"orient": "top"}},
            "y": y | {"axis": axis | {"titleX": -8, "titleY": -8, "titleAlign": "right"}},
        },
        "layer": [
            {"mark": {"type": "rect", "stroke": "var(--surface)", "strokeWidth": 2, "cornerRadius": 3}, "encoding": {"color": fill}},
            {"mark": {"type": "text", "fontSize": 12}, "encoding": {"text": {"field": "text"}, "color": ink}},
        ],
        "resolve": {"scale": {"color": "independent"}},
    }
    said = "; ".join(f"{label}: {row:.0%} answered so" for label, row in zip(choices, table.diagonal(), strict=True))
    return Figure(
        "confusion", "How they answer, by label", f"How {person.pseudonym} answers. {said}.", spec, data, height=52 + 44 * len(choices)
    )
