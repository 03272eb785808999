"""Figures of a question's agreement: the coefficients with their intervals, and how the votes split."""

from typing import NamedTuple

from curation.agreement import Parts, QuestionAgreement, Split
from curation.figures import Figure, Row, Spec
from curation.stats.intervals import Estimate

SHOWN = 7
_ROW = 28


class Named(NamedTuple):
    """A figure with the name that people know it by, and what it says in a few words."""

    name: str
    estimate: Estimate
    meaning: str


def named(found: QuestionAgreement) -> list[Named]:
    """The figures of a question, in the order of their table."""
    figures = found.figures
    rows = [
        Named("Share unanimous", figures.unanimous, "items on which every vote names the same choice"),
        Named("Share disputed", figures.disputed, "items whose votes did not settle them"),
        Named("Pairwise agreement", figures.pairwise, "pairs of votes on an item that name the same choice"),
        Named("Fleiss' kappa", figures.fleiss, "agreement beyond chance, items with equally many votes"),
        Named("Krippendorff's alpha", figures.alpha, "agreement beyond chance, any number of votes"),
    ]
    if figures.alpha_ordinal is not None:
        rows.append(Named("Alpha, ordinal", figures.alpha_ordinal, "the same, with near answers counted as nearer"))
    return [*rows, Named("Gwet's AC1", figures.ac1, "agreement beyond chance, steadier when one choice prevails")]


def coefficients(found: QuestionAgreement) -> Figure:
    """Each figure as a tick in its interval; an undefined one says so."""
    rows = named(found)
    data: list[Row] = [
        {"figure": name, "value": e.value, "low": e.low, "high": e.high, "items": e.n, "undefined_because": e.reason, "note": e.note}
        for name, e, _ in rows
    ]
    least = min([0.0, *(row[end] for row in data for end in ("value", "low") if row[end] is not None)])
    y: Spec = {
        "field": "figure",
        "type": "nominal",
        "sort": [name for name, _, _ in rows],
        "title": None,
        "axis": {"grid": False, "labelLimit": 160, "labelColor": "var(--ink-2)"},
    }
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [round(least - 0.04, 2) if least < 0 else 0, 1], "nice": False},
        "axis": {"grid": True, "tickCount": 5, "domain": False},
    }
    colour = {"color": "var(--d1)"}
    defined = [row for row in data if row["value"] is not None]
    layers: list[Spec] = [
        {"data": {"values": data}, "mark": {"type": "point", "opacity": 0, "color": "var(--surface)"}, "encoding": {"y": y}},
        {
            "data": {"values": [row for row in defined if row["low"] is not None]},
            "mark": {"type": "bar", "height": 10, "opacity": 0.3, "cornerRadius": 2} | colour,
            "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y},
        },
        {
            "data": {"values": defined},
            "mark": {"type": "tick", "thickness": 2.5, "size": 14, "opacity": 1} | colour,
            "encoding": {"x": x, "y": y},
        },
        {
            "data": {"values": [row | {"value": max(0.0, least)} for row in data if row["value"] is None]},
            "mark": {"type": "text", "align": "left", "text": "undefined", "color": "var(--ink-3)"},
            "encoding": {"x": x, "y": y},
        },
    ]
    finding = "Agreement. " + "; ".join(f"{name} {'undefined' if e.value is None else format(e.value, '.3f')}" for name, e, _ in rows) + "."
    return Figure("agreement", "Agreement with 95% intervals", finding, {"layer": layers}, data, height=_ROW * len(rows) + 40)


def splits(found: QuestionAgreement) -> Figure:
    """How many tasks voted alike: the most frequent splits, and the others together."""
    data: list[Row] = [{"votes": _words(split, found.choices), "tasks": split.tasks} for split in found.splits]
    shown = data[:SHOWN]
    if rest := data[SHOWN:]:
        shown = [*shown, {"votes": f"{len(rest):,} other splits", "tasks": sum(row["tasks"] for row in rest)}]
    rows = [row | {"text": f"{row['tasks']:,}"} for row in shown]
    y: Spec = {
        "field": "votes",
        "type": "nominal",
        "sort": [row["votes"] for row in rows],
        "title": None,
        "axis": {"grid": False, "labelLimit": 170, "labelColor": "var(--ink-2)"},
    }
    most = max((row["tasks"] for row in rows), default=1)
    x: Spec = {"field": "tasks", "type": "quantitative", "title": None, "axis": None, "scale": {"domain": [0, most * 1.2], "nice": False}}
    spec: Spec = {
        "data": {"values": rows},
        "encoding": {"y": y, "x": x},
        "layer": [
            {"mark": {"type": "bar", "height": 12, "color": "var(--d1)", "cornerRadiusEnd": 2}},
            {"mark": {"type": "text", "align": "left", "dx": 6}, "encoding": {"text": {"field": "text"}}},
        ],
    }
    finding = "How votes split. " + "; ".join(f"{row['votes']}: {row['tasks']:,} tasks" for row in shown) + "."
    return Figure("votes", "How the votes split", finding, spec, data, height=_ROW * max(1, len(rows)) + 16)


def _words(split: Split, choices: tuple[str, ...]) -> str:
    """3 Yes; 2 Yes, 1 No."""
    given = sorted(((count, -k) for k, count in enumerate(split.votes) if count), reverse=True)
    return ", ".join(f"{count:,} {choices[-k]}" for count, k in given)


def of_question(found: QuestionAgreement) -> list[Figure]:
    """Both, once a task has its votes."""
    return [coefficients(found), splits(found)] if found.splits else []


def of_parts(found: Parts, whole: QuestionAgreement, name: str) -> list[Figure]:
    """Krippendorff's alpha among the votes of each part, and of all; nothing while no part has one."""
    rows: list[Row] = [
        {
            "part": "none" if part.value is None else part.value, "items": part.figures.alpha.n, "votes": part.figures.votes,
            "alpha": part.figures.alpha.value, "low": part.figures.alpha.low, "high": part.figures.alpha.high,
            "undefined_because": part.figures.alpha.reason,
        }
        for part in found.parts
    ]  # fmt: skip
    drawn = [row for row in rows if row["alpha"] is not None]
    if not drawn:
        return []
    least = min([0.0, *(row[end] for row in drawn for end in ("alpha", "low") if row[end] is not None)])
    y: Spec = {"field": "part", "type": "nominal", "sort": [row["part"] for row in drawn], "title": None}
    y["axis"] = {"grid": False, "labelLimit": 130, "labelColor": "var(--ink-2)"}
    x: Spec = {"field": "alpha", "type": "quantitative", "title": None, "axis": {"grid": True, "tickCount": 5, "domain": False}}
    x["scale"] = {"domain": [round(least - 0.04, 2) if least < 0 else 0, 1], "nice": False}
    layers: list[Spec] = [
        {
            "data": {"values": [row for row in drawn if row["low"] is not None]},
            "mark": {"type": "bar", "height": 10, "opacity": 0.3, "cornerRadius": 2, "color": "var(--d1)"},
            "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y},
        },
        {
            "data": {"values": drawn},
            "mark": {"type": "tick", "thickness": 2.5, "size": 14, "opacity": 1, "color": "var(--d1)"},
            "encoding": {"x": x, "y": y},
        },
    ]
    if whole.figures.alpha.value is not None:
        mark: Spec = {"type": "rule", "color": "var(--edge)", "strokeDash": [4, 3]}
        layers.append({"data": {"values": [{"alpha": whole.figures.alpha.value}]}, "mark": mark, "encoding": {"x": x}})
    told = "; ".join(f"{row['part']} {row['alpha']:.3f}" for row in drawn)
    finding = f"Krippendorff's alpha by {found.key}. {told}."
    return [Figure(name, f"Alpha by {found.key}, and of all", finding, {"layer": layers}, rows, height=_ROW * len(drawn) + 40)]
