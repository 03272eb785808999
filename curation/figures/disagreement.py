"""What people disagree on, drawn: the share of disputed tasks of each group, with its interval."""

from curation.disagreement import Disagreement, Group
from curation.figures import Figure, Row, Spec

SHOWN = 12
_ROW = 26


def of_question(found: Disagreement) -> list[Figure]:
    """By the field, by tag where there are tags, and by pair of choices; none without tasks."""
    figures = []
    if found.by and found.groups:
        names = [group.value if group.value is not None else f"no {found.by}" for group in found.groups]
        figures.append(_disputed("by-field", f"Disputed, by {found.by}", found.groups, names))
    if found.tags:
        names = [found.tag_labels.get(group.value or "", group.value or "") for group in found.tags]
        figures.append(_disputed("by-tag", "Disputed, by kind of harm that someone named", found.tags, names))
    if found.confused:
        rows: list[Row] = [
            {"group": " and ".join(pair.labels), "tasks": pair.share.n, "both": pair.tasks, "share": pair.share.value}
            | {"low": pair.share.low, "high": pair.share.high}
            for pair in found.confused
        ]
        figures.append(_shares("pairs", "Tasks with votes for both of two choices", rows, "share of all tasks"))
    return figures


def _disputed(name: str, title: str, groups: tuple[Group, ...], names: list[str]) -> Figure:
    data: list[Row] = [
        {
            "group": label, "tasks": group.tasks, "share": group.disputed.value, "low": group.disputed.low, "high": group.disputed.high,
            "pairwise": group.pairwise.value, "pairwise_low": group.pairwise.low, "pairwise_high": group.pairwise.high,
        }
        for label, group in zip(names, groups, strict=True)
    ]  # fmt: skip
    return _shares(name, title, data, "share disputed")


def _shares(name: str, title: str, data: list[Row], axis: str) -> Figure:
    """Each share as a tick in its interval, the first so many rows."""
    shown = [row for row in data if row["share"] is not None][:SHOWN]
    y: Spec = {
        "field": "group",
        "type": "nominal",
        "sort": [row["group"] for row in shown],
        "title": None,
        "axis": {"grid": False, "labelLimit": 150, "labelColor": "var(--ink-2)"},
    }
    top = min(1.0, 1.1 * max((row["high"] for row in shown), default=1.0))
    x: Spec = {
        "field": "share",
        "type": "quantitative",
        "title": axis,
        "scale": {"domain": [0, max(0.05, top)], "nice": True},
        "axis": {"grid": True, "tickCount": 4, "domain": False, "format": ".0%"},
    }
    colour = {"color": "var(--d1)"}
    spec: Spec = {
        "data": {"values": shown},
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "bar", "height": 10, "opacity": 0.3, "cornerRadius": 2} | colour,
                "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}},
            },
            {"mark": {"type": "tick", "thickness": 2.5, "size": 14, "opacity": 1} | colour, "encoding": {"x": x}},
        ],
    }
    said = "; ".join(f"{row['group']} {row['share']:.1%} of {row['tasks']:,}" for row in shown)
    return Figure(name, title, f"{title}. {said}.", spec, data, height=_ROW * len(shown) + 48)
