"""One's own exposure as small drawings: bars by hour, a grid of days and hours. SVG with attributes, for our strict policy."""

import math
from collections.abc import Sequence
from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from annotation.gate import Care
from annotation.wellbeing import Day, HourCount

register = template.Library()
CELL = 14  # of the grid, in SVG units
ROOM_ABOVE, ROOM_LEFT = 20, 56  # for the hours and the dates


@register.simple_tag
def care_gauge(care: Care) -> SafeString:
    """In the bar over an item: how much of the hour's limit is used, or of the day's where the hour has none."""
    span, seen, limit = ("hour", care.hour, care.hour_limit) if care.hour_limit is not None else ("day", care.day, care.day_limit)
    if limit is None:
        return SafeString("")
    words = "this hour" if span == "hour" else "in 24 h"
    meter = limit_meter("g2", seen, limit, f'id="care-meter" data-span="{span}"')
    return format_html(
        '<div class="gauge" id="care"{}><span class="gauge__line"><span id="g2">Sensitive<span class="wide"> {}</span></span>'
        ' <span><b id="care-count">{}</b> of {}</span></span>{}</div>',
        "" if seen else SafeString(" hidden"), words, seen, f"{limit:,}", meter,
    )  # fmt: skip


@register.simple_tag
def limit_meter(label: str, seen: int, limit: int, more: str = "") -> SafeString:
    """A meter named by the element with the id `label`; it turns amber at 80 % and red at 95 % by itself."""
    return format_html(
        '<meter {} aria-labelledby="{}" min="0" max="{}" low="{}" high="{}" optimum="0" value="{}">{} of {}</meter>',
        SafeString(more), label, limit, round(limit * 0.8, 1), round(limit * 0.95, 1), seen, seen, limit,
    )  # fmt: skip


@register.simple_tag
def limit_gauge(words: str, seen: int, limit: int, *key: object) -> SafeString:
    """A limit with its words, its numbers and its meter. `key` makes its id one of its own on the page."""
    name = "-".join(["limit", *map(str, key)])
    return format_html(
        '<div class="gauge"><span class="gauge__line"><span id="{}">{}</span><span><b>{}</b> of {}</span></span>{}</div>',
        name, words, f"{seen:,}", f"{limit:,}", limit_meter(name, seen, limit),
    )  # fmt: skip


@register.simple_tag
def minutes_to(moment: datetime) -> int:
    """Whole minutes from now, at least 0, rounded up."""
    return max(0, math.ceil((moment - timezone.now()).total_seconds() / 60))


@register.simple_tag
def hour_bars(hours: Sequence[HourCount], limit: int | None) -> SafeString:
    """One bar for each of these consecutive clock hours, at most 8, with the limit as a dashed line."""
    top = max(limit or 0, *(hour.items for hour in hours), 2)
    unit = 84 / top  # the height of one item; the base line is at y = 106

    def at(items: float) -> str:
        return f"{106 - items * unit:.1f}"

    told = ", ".join(f"{hour.items} at {hour.hour.hour}" for hour in hours)
    limited = f" The limit is {limit} an hour." if limit else ""
    ticks = format_html_join(
        "", '<path class="grid" d="M24 {0}H272"/><text class="t-soft t-end" x="18" y="{1}">{2}</text>',
        ((at(tick), f"{106 - tick * unit + 4:.1f}", tick) for tick in sorted({0, round(top / 2), top})),
    )  # fmt: skip
    bars = format_html_join(
        "", '<text class="t-soft t-mid" x="{0}" y="124">{1}</text><rect class="fill" x="{2}" y="{3}" width="23" height="{4}" rx="1.5"/>',
        ((39.5 + 31 * place, hour.hour.hour, 28 + 31 * place, at(hour.items), f"{hour.items * unit:.1f}")
         for place, hour in enumerate(hours)),
    )  # fmt: skip
    line = (
        format_html(
            '<path class="limit" d="M24 {}H272"/><text class="t-soft t-end" x="272" y="14">limit {} an hour</text>', at(limit), limit
        )
        if limit
        else ""
    )
    return format_html(
        '<svg class="fig" viewBox="0 0 272 132" width="272" height="132" role="img"'
        ' aria-label="Sensitive items by hour of the day, UTC: {}.{}"><g class="d1">{}{}{}</g></svg>',
        told, limited, ticks, bars, line,
    )  # fmt: skip


@register.simple_tag
def day_grid(days: Sequence[Day]) -> SafeString:
    """Days down, hours across; the more was seen in an hour, the darker its cell. The numbers stand in the list beside it."""
    most = max((items for day in days for items in day.hours.values()), default=0)
    right, bottom = ROOM_LEFT + 24 * CELL, ROOM_ABOVE + len(days) * CELL
    hours = format_html_join(
        "", '<text class="t-soft t-mid" x="{}" y="12">{}</text>', ((ROOM_LEFT + hour * CELL + 6, hour) for hour in range(0, 24, 3))
    )
    rows = format_html_join(
        "", '<text class="t-soft t-end" x="{}" y="{}">{}</text><path class="grid" d="M{} {}H{}"/>',
        ((ROOM_LEFT - 8, ROOM_ABOVE + place * CELL + 10, f"{day.date:%-d %b}", ROOM_LEFT, ROOM_ABOVE + place * CELL + 6, right)
         for place, day in enumerate(days)),
    )  # fmt: skip
    cells = format_html_join(
        "", '<rect class="r{}" x="{}" y="{}" width="12" height="12" rx="2"/>',
        ((min(4, 5 * items // (most + 1)), ROOM_LEFT + hour * CELL, ROOM_ABOVE + place * CELL)
         for place, day in enumerate(days) for hour, items in day.hours.items()),
    )  # fmt: skip
    return format_html(
        '<svg class="fig" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img"'
        ' aria-label="Sensitive items by day and hour, UTC; at most {2} in one hour. The list has the numbers">{3}{4}{5}</svg>',
        right, bottom, most, hours, rows, cells,
    )  # fmt: skip
