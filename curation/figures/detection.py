"""Figures of a comparison: precision against recall, figures against the threshold, scores by label, the confusion matrix."""

from collections.abc import Sequence

import numpy as np

from curation.comparing import Result
from curation.figures import Figure, Row, Spec, numbers
from curation.stats.detection import Curve, Decisions, Sweep
from curation.stats.intervals import Estimate

BINS = 25
_COLOURS = ("var(--d1)", "var(--d2)", "var(--d3)")
_DASHES = ([1, 0], [5, 3], [1.5, 3])
_SHAPES = ("circle", "diamond", "triangle-up")
_D1 = _COLOURS[0]
_DOT: Spec = {"type": "point", "filled": True, "size": 70, "opacity": 1, "stroke": "var(--surface)", "strokeWidth": 1.5}
_UNIT: Spec = {"domain": [0, 1]}


def say(estimate: Estimate) -> str:
    """0.924 (0.88 to 0.96), or why not."""
    if estimate.value is None:
        return f"undefined: {estimate.reason}"
    return f"{estimate.value:.3f}" + ("" if estimate.low is None else f" ({estimate.low:.2f} to {estimate.high:.2f})")


def precision_recall(curve: Curve, at: Decisions) -> Figure:
    """The curve with its band, chance, and the chosen threshold with both its intervals."""
    line: list[Row] = [
        {"recall": r, "precision": p, "order": k}
        for k, (r, p) in enumerate(zip(numbers(curve.recall), numbers(curve.precision), strict=True))
    ]
    band: list[Row] = [
        {"recall": r, "low": low, "high": high}
        for r, low, high in zip(numbers(curve.band_recall), numbers(curve.band[:, 0]), numbers(curve.band[:, 1]), strict=True)
    ]
    area, chance = curve.average_precision, curve.positive_share
    x: Spec = {"field": "recall", "type": "quantitative", "title": "Recall", "scale": _UNIT, "axis": {"tickCount": 5}}
    y: Spec = {"field": "precision", "type": "quantitative", "title": "Precision", "scale": _UNIT, "axis": {"tickCount": 5}}
    layers: list[Spec] = [
        {
            "data": {"values": band},
            "mark": {"type": "area", "color": _D1, "opacity": 0.16},
            "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
        },
        {
            "data": {"values": [{"precision": round(chance, 4), "recall": 1, "text": f"chance {chance:.2f}"}]},
            "layer": [
                {"mark": {"type": "rule", "color": "var(--edge)", "strokeDash": [1.5, 3]}, "encoding": {"y": y}},
                {
                    "mark": {
                        "type": "text",
                        "align": "right",
                        "baseline": "top" if chance > 0.15 else "bottom",
                        "dy": 5 if chance > 0.15 else -5,
                        "color": "var(--ink-3)",
                    },
                    "encoding": {"x": x, "y": y, "text": {"field": "text"}},
                },
            ],
        },
        {
            "data": {"values": line},
            "mark": {"type": "line", "color": _D1, "strokeWidth": 2, "strokeJoin": "round"},
            "encoding": {"x": x, "y": y, "order": {"field": "order", "type": "quantitative"}},
        },
    ]
    precision, recall = at.precision, at.recall
    if precision.value is not None and recall.value is not None:
        point: Row = {
            "recall": recall.value,
            "precision": precision.value,
            "text": f"at {at.threshold:g}",
            "p0": precision.low,
            "p1": precision.high,
            "r0": recall.low,
            "r1": recall.high,
        }
        left = recall.value > 0.5
        whisker: Spec = {"type": "rule", "color": _D1, "strokeWidth": 1.5}
        marks: list[Spec] = []
        if precision.low is not None:
            marks.append({"mark": whisker, "encoding": {"x": x, "y": y | {"field": "p0"}, "y2": {"field": "p1"}}})
        if recall.low is not None:
            marks.append({"mark": whisker, "encoding": {"x": x | {"field": "r0"}, "x2": {"field": "r1"}, "y": y}})
        label: Spec = {
            "type": "text",
            "align": "right" if left else "left",
            "dx": -8 if left else 8,
            "dy": 14,
            "color": _D1,
            "fontWeight": 600,
        }
        marks += [
            {"mark": _DOT | {"fill": _D1}, "encoding": {"x": x, "y": y}},
            {"mark": label, "encoding": {"x": x, "y": y, "text": {"field": "text"}}},
        ]
        layers.append({"data": {"values": [point]}, "layer": marks})
    finding = (
        f"Precision against recall. Average precision {say(area)}, by chance {chance:.2f}. "
        f"At threshold {at.threshold:g}: precision {say(precision)}, recall {say(recall)}."
    )
    data = [{"series": "curve", "recall": r["recall"], "precision": r["precision"]} for r in line]
    data += [{"series": "interval", "recall": r["recall"], "precision_low": r["low"], "precision_high": r["high"]} for r in band]
    return Figure("precision-recall", "Precision against recall", finding, {"layer": layers}, data)


def thresholds(sweep: Sweep, at: Decisions) -> Figure:
    """Precision, recall and F1 over all thresholds, each with its band, and the chosen one."""
    # As many points as there are pixels to show them.
    steps = np.linspace(sweep.thresholds[0], sweep.thresholds[-1], 121)
    some = np.unique(np.searchsorted(sweep.thresholds, steps))
    grid = numbers(sweep.thresholds[some], 5)
    series = [
        ("Precision", sweep.precision, sweep.precision_band, at.precision),
        ("Recall", sweep.recall, sweep.recall_band, at.recall),
        ("F1", sweep.f1, sweep.f1_band, at.f1),
    ]
    data: list[Row] = [
        {"series": name, "threshold": t, "value": v, "low": low, "high": high}
        for name, values, band, _ in series
        for t, v, low, high in zip(grid, numbers(values[some]), numbers(band[some, 0]), numbers(band[some, 1]), strict=True)
    ]
    x: Spec = {
        "field": "threshold",
        "type": "quantitative",
        "title": "Threshold",
        "axis": {"tickCount": 5},
        "scale": {"domain": [grid[0], grid[-1]], "nice": False, "zero": False},
    }
    y: Spec = {"field": "value", "type": "quantitative", "title": None, "scale": _UNIT, "axis": {"tickCount": 5}}
    told = _told_apart("series", [name for name, _, _, _ in series])
    layers: list[Spec] = [
        _rule("threshold", at.threshold, x),
        {
            "data": {"values": [row for row in data if row["value"] is not None]},
            "layer": [
                {
                    "mark": {"type": "area", "opacity": 0.14},
                    "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": told["color"]},
                },
                {
                    "mark": {"type": "line", "strokeWidth": 2},
                    "encoding": {"x": x, "y": y, "color": told["color"], "strokeDash": told["strokeDash"]},
                },
            ],
        },
    ]
    for (_, _, _, now), colour, shape in zip(series, _COLOURS, _SHAPES, strict=True):
        if now.value is not None:
            dot = {"values": [{"threshold": at.threshold, "value": now.value}]}
            layers.append({"data": dot, "mark": _DOT | {"fill": colour, "shape": shape}, "encoding": {"x": x, "y": y}})
    finding = f"Against the threshold. At {at.threshold:g}: precision {say(at.precision)}, recall {say(at.recall)}, F1 {say(at.f1)}."
    return Figure("thresholds", "Precision, recall and F1 by threshold", finding, {"layer": layers}, data)


def histogram(result: Result, positive: str) -> Figure:
    """How the scores of items that people call positive, and of the others, are spread: the share of each in equal bins."""
    both = np.concatenate([result.positives, result.negatives])
    low, high = min(0.0, float(both.min())), max(1.0, float(both.max()))
    edges = np.linspace(low, high, BINS + 1)
    parts = [
        (f"{name}, n = {scores.size:,}", scores) for name, scores in ((positive, result.positives), (f"not {positive}", result.negatives))
    ]
    x: Spec = {
        "field": "score",
        "type": "quantitative",
        "title": "Score",
        "scale": {"domain": [low, high], "nice": False},
        "axis": {"tickCount": 5},
    }
    y: Spec = {"field": "share", "type": "quantitative", "title": None, "stack": None, "axis": {"format": "%", "tickCount": 4}}
    told = _told_apart("label", [name for name, _ in parts])
    data: list[Row] = []
    steps: list[Row] = []
    for name, scores in parts:
        counts, _ = np.histogram(scores, edges)
        shares = counts / max(1, scores.size)
        data += [
            {"label": name, "from": round(float(a), 4), "to": round(float(b), 4), "items": int(n), "share": round(float(s), 4)}
            for a, b, n, s in zip(edges[:-1], edges[1:], counts, shares, strict=True)
        ]
        # A step needs its last edge once more.
        steps += [
            {"label": name, "score": round(float(e), 4), "share": round(float(s), 4)}
            for e, s in zip(edges, [*shares, shares[-1]], strict=True)
        ]
    layers: list[Spec] = [
        {
            "data": {"values": steps},
            "encoding": {"x": x, "y": y},
            "layer": [
                {"mark": {"type": "area", "interpolate": "step-after", "opacity": 0.16}, "encoding": {"color": told["color"]}},
                {
                    "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.75},
                    "encoding": {"color": told["color"], "strokeDash": told["strokeDash"]},
                },
            ],
        }
    ]
    at = result.decisions.threshold
    if low <= at <= high:
        layers.append(_rule("score", at, x))
    middles = [f"{name}, median {np.median(scores):.2f}" for name, scores in parts if scores.size]
    finding = f"Scores by what people say. {'; '.join(middles)}; threshold {at:g}."
    return Figure("scores", "Scores by what people say, share of each", finding, {"layer": layers}, data)


def _told_apart(field: str, names: list[str]) -> Spec:
    """Series differ by colour, dash and marker together, and one legend above names them."""
    legend: Spec = {"orient": "top", "title": None, "symbolType": "stroke", "symbolSize": 300, "symbolStrokeWidth": 2, "symbolOpacity": 1}

    def channel(values: Sequence[object], legend: Spec | None) -> Spec:
        return {"field": field, "type": "nominal", "scale": {"domain": names, "range": list(values[: len(names)])}, "legend": legend}

    return {"color": channel(_COLOURS, legend), "strokeDash": channel(_DASHES, legend)}


def _rule(field: str, value: float, x: Spec) -> Spec:
    """The chosen threshold, from top to bottom."""
    mark: Spec = {"type": "rule", "color": "var(--warn)", "strokeDash": [4, 3], "strokeWidth": 1.5}
    return {"data": {"values": [{field: value}]}, "mark": mark, "encoding": {"x": x}}


def matrix(at: Decisions, positive: str) -> Figure:
    """Counts of items, and their shares of a row: what people say."""
    no = f"not {positive}"
    cells = [
        (positive, positive, at.tp, at.tp + at.fn),
        (positive, no, at.fn, at.tp + at.fn),
        (no, positive, at.fp, at.fp + at.tn),
        (no, no, at.tn, at.fp + at.tn),
    ]
    data: list[Row] = [
        {"people": p, "machine": m, "items": n, "share_of_row": round(n / row, 4) if row else None} for p, m, n, row in cells
    ]
    rows = [
        row
        | {
            "count": f"{row['items']:,}",
            "share": "" if row["share_of_row"] is None else f"{row['share_of_row']:.0%}",
            "step": _step(row["share_of_row"]),
            "ink": int(_step(row["share_of_row"]) > 2),
        }
        for row in data
    ]
    order = [positive, no]
    x: Spec = {
        "field": "machine",
        "type": "nominal",
        "sort": order,
        "title": "machine",
        "axis": {"orient": "top", "domain": False, "labelAngle": 0, "titleAnchor": "middle", "labelPadding": 2},
    }
    y: Spec = {
        "field": "people",
        "type": "nominal",
        "sort": order,
        "title": "people",
        "axis": {"titleX": -8, "titleY": -8, "titleAlign": "right"},
    }
    ink: Spec = {
        "field": "ink",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": [0, 1], "range": ["var(--ink)", "var(--on-accent)"]},
    }
    fill: Spec = {
        "field": "step",
        "type": "ordinal",
        "legend": None,
        "scale": {"domain": [0, 1, 2, 3, 4], "range": [f"var(--ramp-{k})" for k in range(5)]},
    }
    spec: Spec = {
        "data": {"values": rows},
        "encoding": {"x": x | {"scale": {"padding": 0}}, "y": y | {"scale": {"padding": 0}}},
        "layer": [
            {"mark": {"type": "rect", "stroke": "var(--surface)", "strokeWidth": 2, "cornerRadius": 3}, "encoding": {"color": fill}},
            {"mark": {"type": "text", "fontSize": 17, "fontWeight": 600, "dy": -7}, "encoding": {"text": {"field": "count"}, "color": ink}},
            {"mark": {"type": "text", "dy": 11}, "encoding": {"text": {"field": "share"}, "color": ink}},
        ],
        "resolve": {"scale": {"color": "independent"}},
    }
    finding = f"Confusion matrix. {at.tp:,} true positives, {at.fn:,} false negatives, {at.fp:,} false positives, {at.tn:,} true negatives."
    return Figure("confusion", "Confusion matrix", finding, spec, data, height=200, width=300)


def _step(share: float | None) -> int:
    """Of the ramp's five."""
    return 0 if share is None else min(4, int(share * 5))


def of_result(result: Result, positive: str) -> list[Figure]:
    """Every figure that the result has data for."""
    found = [matrix(result.decisions, positive)] if result.items else []
    if result.curve and result.sweep:
        found += [precision_recall(result.curve, result.decisions), thresholds(result.sweep, result.decisions)]
    if result.items:
        found.append(histogram(result, positive))
    return found
