"""Figures: one definition each, in Vega-Lite, drawn the same for the page and for every file.

A definition names colours by the look's tokens, `var(--d1)`. On a page they stay, so the stylesheet decides light and dark and no
style attribute is needed under the strict CSP; in a file they become the light theme's colours.
"""

import csv
import io
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

Spec = dict[str, Any]
Row = dict[str, Any]

WIDTH, HEIGHT = 352, 264
TYPES = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf", "csv": "text/csv; charset=utf-8"}

# static/assay.css, the light column.
_LIGHT = {
    "surface": "#ffffff", "line": "#e1e1db", "edge": "#83857d", "ink": "#1a1c1a", "ink-2": "#4b4e48", "ink-3": "#656861",
    "on-accent": "#ffffff", "d1": "#0b6470", "d2": "#a94d0c", "d3": "#6a4aa3", "warn": "#845000",
    "ramp-0": "#f1f4f4", "ramp-1": "#d3e6e8", "ramp-2": "#a3cdd2", "ramp-3": "#0f7380", "ramp-4": "#0a5660",
    "sans": "Liberation Sans, Arial, Helvetica, sans-serif",
}  # fmt: skip

_SOFT = {
    "labelColor": "var(--ink-3)",
    "titleColor": "var(--ink-2)",
    "titleFontWeight": "normal",
    "ticks": False,
    "labelPadding": 6,
    "labelFlush": False,
}
CONFIG: Spec = {
    "background": "var(--surface)",
    "font": "var(--sans)",
    "aria": False,
    "view": {"stroke": None},
    "padding": {"left": 4, "right": 10, "top": 4, "bottom": 4},
    "axis": _SOFT | {"gridColor": "var(--line)", "labelFontSize": 12, "titleFontSize": 12},
    # One axis line, below; the title of y stands above it, that of x at its right end.
    "axisQuantitative": {"format": "~g"},
    "axisX": {"domainColor": "var(--edge)", "grid": False, "titleAnchor": "end", "titlePadding": 6},
    "axisY": {
        "domain": False,
        "titleAnchor": "start",
        "titleAngle": 0,
        "titleAlign": "left",
        "titleBaseline": "bottom",
        "titleX": -30,
        "titleY": -10,
    },
    "legend": {"labelColor": "var(--ink-2)", "labelFontSize": 12, "offset": 6, "columnPadding": 16},
    "text": {"fontSize": 12, "color": "var(--ink-2)"},
}


@dataclass(frozen=True)
class Figure:
    """name: of its files; title: its heading; finding: what it shows, in words; spec: Vega-Lite, bare; data: the rows behind it."""

    name: str
    title: str
    finding: str
    spec: Spec
    data: list[Row]
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def vega_lite(self) -> Spec:
        """The whole definition, as the Vega editor reads it."""
        size: Spec = {"width": self.width, "height": self.height, "autosize": {"type": "fit", "contains": "padding"}, "config": CONFIG}
        return {"$schema": "https://vega.github.io/schema/vega-lite/v6.json"} | size | self.spec


def page_svg(figure: Figure) -> str:
    """The SVG for a page: one image with its finding as its name, colours by token, no style attribute."""
    named = f'<svg class="plot" role="img" aria-label={quoteattr(figure.finding)} '
    return _drawn(figure).replace("<svg ", named, 1)


def as_file(figure: Figure, kind: str) -> bytes:
    """The figure as "svg", "png" (two pixels a unit), "pdf", or its data as "csv"."""
    if kind == "csv":
        return _csv(figure.data).encode()
    import vl_convert  # noqa: PLC0415 - only where a figure is drawn

    # Quotes may not stand in an attribute, so the font names in _LIGHT have none.
    plain = re.sub(r"var\(--([a-z0-9-]+)\)", lambda token: _LIGHT[token[1]], _drawn(figure))
    if kind == "svg":
        return plain.replace("<svg ", f'<svg role="img" aria-label={quoteattr(figure.finding)} ', 1).encode()
    return bytes(vl_convert.svg_to_png(plain, scale=2) if kind == "png" else vl_convert.svg_to_pdf(plain))


def numbers(values: Iterable[float | None], digits: int = 4) -> list[float | None]:
    """Plain numbers for a definition; what is undefined is None, which is not drawn."""
    return [None if value is None or math.isnan(value) else round(float(value), digits) for value in values]


def _drawn(figure: Figure) -> str:
    import vl_convert  # noqa: PLC0415

    svg = vl_convert.vegalite_to_svg(figure.vega_lite, allowed_base_urls=[])
    # The figure is one image with one name; Vega's names and classes for its parts would only be in the way.
    return re.sub(r"<[a-z][^>]*>", lambda tag: re.sub(r' (?:role|class|aria-[a-z]+)="[^"]*"', "", tag[0]), svg)


def _csv(rows: list[Row]) -> str:
    """Cells that a spreadsheet would run as a formula are disarmed with a quote."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {key: f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+-@\t\r" and cell else cell for key, cell in row.items()}
        )
    return text.getvalue()
