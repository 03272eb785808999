"""Figures of how a question goes on: votes left over time with the forecast of their end, and votes cast."""

from datetime import datetime

from curation.figures import Figure, Row, Spec
from curation.forecast import DAY, HOUR, MINUTE, QUARTER, Point, Standing

_AXIS: Spec = {"grid": False, "tickCount": 4, "labelOverlap": True}
SPANS = {MINUTE: "minute", QUARTER: "quarter of an hour", HOUR: "hour", DAY: "day"}
_COUNT: Spec = {"format": "~s", "tickCount": 4, "tickMinStep": 1}


def of_standing(found: Standing) -> list[Figure]:
    """Both, once there are tasks."""
    return [burn_down(found), pace(found)] if found.points else []


def burn_down(found: Standing) -> Figure:
    """Votes left, and from now on the forecast: a dashed line to its median, a band between the ends of its interval."""
    points, ahead, left = found.points, found.forecast, found.points[-1].left
    data: list[Row] = [{"from_utc": _iso(p.at), "votes_left": p.left, "votes_cast": p.votes} for p in points]
    begin, now = points[0].at, found.at
    line = [{"at": _iso(min(p.at + found.span, now)), "left": p.left} for p in points]
    end = now
    if ahead.at is not None:
        end = ahead.high or max(ahead.at, now + 2 * (ahead.at - now))
        data.append({"from_utc": _iso(ahead.at), "votes_left": 0, "forecast": "median"})
        data += [
            {"from_utc": _iso(at), "votes_left": 0, "forecast": name} for at, name in ((ahead.low, "2.5%"), (ahead.high, "97.5%")) if at
        ]
    x: Spec = {
        "field": "at", "type": "temporal", "title": "UTC",
        "scale": {"type": "utc", "domain": [_iso(begin), _iso(end)], "nice": False},
        "axis": _AXIS | {"format": "%H:%M" if end - begin < 12 * HOUR else "%-d %b %H:%M" if end - begin < 60 * HOUR else "%-d %b"},
    }  # fmt: skip
    y: Spec = {"field": "left", "type": "quantitative", "title": "Votes left", "axis": _COUNT, "scale": {"domainMin": 0}}
    layers: list[Spec] = []
    if ahead.at is not None and ahead.low is not None and end > now:
        layers += [
            {
                "data": {"values": _band(now, left, ahead.low, end)},
                "mark": {"type": "area", "color": "var(--d2)", "opacity": 0.25, "clip": True},
                "encoding": {"x": x, "y": y, "y2": {"field": "least"}},
            },
            {
                "data": {"values": [{"at": _iso(now), "left": left}, {"at": _iso(ahead.at), "left": 0}]},
                "mark": {"type": "line", "color": "var(--d2)", "strokeDash": [5, 3], "strokeWidth": 1.75},
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"values": [{"at": _iso(ahead.at), "left": 0}]},
                "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 60, "opacity": 1, "color": "var(--d2)"},
                "encoding": {"x": x, "y": y},
            },
        ]
    layers += [
        {
            "data": {"values": line},
            "mark": {"type": "line", "color": "var(--d1)", "strokeWidth": 1.75},
            "encoding": {"x": x, "y": y},
        },
        {
            "data": {"values": line[-1:]},
            "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1, "color": "var(--d1)"},
            "encoding": {"x": x, "y": y},
        },
    ]
    return Figure("burn-down", "Votes left", finding(found), {"layer": layers}, data)


def finding(found: Standing) -> str:
    """What the burn-down shows, in words."""
    said = f"{found.needed.open_votes:,} votes left."
    ahead = found.forecast
    if ahead.at is None:
        return f"{said} {ahead.reason}"
    until = _day(ahead.high) if ahead.high else "more than a year from now"
    return f"{said} Done about {_day(ahead.at)}; 95% interval {_day(ahead.low)} to {until}." if ahead.low else said


def pace(found: Standing) -> Figure:
    """Votes cast in each hour or day."""
    name = SPANS[found.span]
    data: list[Row] = [{"from_utc": _iso(p.at), "to_utc": _iso(p.at + found.span), "votes": p.votes} for p in found.points]
    # A second end is not read as a date: both are given in milliseconds.
    bars: list[Row] = [{"from": _ms(p.at), "to": _ms(p.at + found.span), "votes": p.votes} for p in found.points]
    x: Spec = {
        "field": "from", "type": "temporal", "title": "UTC",
        "scale": {"type": "utc", "nice": False},
        "axis": _AXIS | {"format": "%-d %b" if found.span == DAY else "%-d %b %H:%M" if found.span == HOUR else "%H:%M"},
    }  # fmt: skip
    spec: Spec = {
        "data": {"values": bars},
        "mark": {"type": "bar", "color": "var(--d1)"},
        "encoding": {
            "x": x,
            "x2": {"field": "to"},
            "y2": {"datum": 0},
            "y": {
                "field": "votes",
                "type": "quantitative",
                "title": f"Votes each {name}",
                "axis": _COUNT,
                "stack": None,
                "scale": {"zero": True, "padding": 0},
            },
        },
    }
    most = max(found.points, key=lambda p: p.votes)
    total = sum(p.votes for p in found.points)
    said = f"{total:,} votes cast; most, {most.votes:,}, in the {name} from {_day(most.at)}." if total else "No vote cast yet."
    return Figure("pace", f"Votes each {name}", said, spec, data)


def table(found: Standing) -> list[Point]:
    """The line as a table, newest first."""
    return found.points[::-1]


def _band(now: datetime, left: int, low: datetime, high: datetime) -> list[Row]:
    """The corners of the pale band: its upper edge falls to nothing at `high`, its lower one at `low`."""
    at_low = left * (1 - (low - now) / (high - now))
    return [
        {"at": _iso(now), "left": left, "least": left},
        {"at": _iso(low), "left": at_low, "least": 0},
        {"at": _iso(high), "left": 0, "least": 0},
    ]


def _iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _day(at: datetime) -> str:
    return f"{at:%-d %b %Y, %H:%M} UTC"
