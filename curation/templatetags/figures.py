"""Figures with their downloads; and estimates in tables: the number, its interval, a small drawing, or why there is none."""

from typing import Any

from django import template
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from curation import keeping
from curation.stats.intervals import Estimate

register = template.Library()


@register.inclusion_tag("curation/_figure.html")
def figure(drawn: dict[str, Any], address: str, query: str = "") -> dict[str, Any]:
    """{% figure figures.scores pattern %}: `address` is that of its files, with NAME and KIND in it."""
    kinds = [("svg", "SVG"), ("png", "PNG"), ("pdf", "PDF"), ("csv", "Data")]
    named = address.replace("NAME", drawn["figure"].name)
    return {"drawn": drawn, "files": [(named.replace("KIND", kind) + query, label) for kind, label in kinds]}


@register.inclusion_tag("curation/_behind.html", takes_context=True)
def behind(context: Context) -> dict[str, Any]:
    """{% behind %}: says so when the page shows older figures while newer ones are being worked out."""
    return {"behind": keeping.behind(), "address": context["request"].get_full_path()}


@register.simple_tag
def estimate(given: Estimate) -> SafeString:
    """{% estimate result.decisions.precision %}: for figures between 0 and 1."""
    if given.value is None:
        return format_html('<span class="undefined">Undefined: {}</span>', given.reason)
    interval = "no interval" if given.low is None else f"{given.low:.2f}–{given.high:.2f}"
    return format_html(
        '<span class="cell"><b>{}</b> <span class="ci">{}</span>{}</span><span class="sub">n = {}</span>',
        f"{given.value:.3f}", interval, _spark(given), f"{given.n:,}",
    )  # fmt: skip


@register.simple_tag
def compact(given: Estimate, too_few: str = "") -> SafeString:
    """{% compact person.checks %}: an estimate where many stand in a column. `too_few`: short words instead of the reason."""
    if given.value is None:
        why = f"{too_few}, n = {given.n:,}" if too_few else given.reason
        return format_html('<span class="undefined">{}</span>', why)
    ends = [_two(end) for end in (given.low, given.high) if end is not None]
    interval = " to ".join(ends) if ends else given.note.rstrip(".").lower()
    return format_html('<b>{}</b><span class="sub">{}, n = {}</span>', _two(given.value), interval, f"{given.n:,}")


def _two(value: float) -> str:
    """Two digits; what rounds to nothing has no sign."""
    return f"{round(value, 2) + 0.0:.2f}"


def _spark(given: Estimate) -> SafeString:
    """Drawn beside the numbers, so hidden from screen readers. 0 is at 4 units, 1 at 116."""

    def at(value: float) -> str:
        return f"{4 + 112 * value:.1f}"

    band = ""
    if given.low is not None and given.high is not None:
        width = f"{max(1.0, 112 * (given.high - given.low)):.1f}"
        band = format_html('<rect class="band" x="{}" y="3" width="{}" height="8" rx="2"/>', at(given.low), width)
    return format_html(
        '<svg class="fig spark" viewBox="0 0 120 14" aria-hidden="true"><path class="rail" d="M4 7H116"/>'
        '<path class="axis" d="M4 4v6M60 5v4M116 4v6"/><g class="d1">{}<path class="tick" d="M{} 1V13"/></g></svg>',
        band, at(given.value or 0.0),
    )  # fmt: skip


@register.simple_tag
def spark_axis() -> SafeString:
    """What stands over the drawings, in the head of a table."""
    return mark_safe(
        '<svg class="fig spark" viewBox="0 0 120 14" aria-hidden="true"><text class="t-soft t-mid" x="4" y="11">0</text>'
        '<text class="t-soft t-mid" x="60" y="11">0.5</text><text class="t-soft t-mid" x="116" y="11">1</text></svg>'
    )
