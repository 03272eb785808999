"""Figures for pages and as downloads."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse
from django.utils.safestring import mark_safe

from annotation.errors import Missing
from curation.figures import TYPES, Figure, as_file, page_svg


def drawn(figures: Sequence[Figure]) -> dict[str, dict[str, Any]]:
    """What `_figure.html` takes, by the figure's name with underscores."""
    # page_svg quotes what comes from people; the rest is drawn by Vega from our own definitions.
    return {f.name.replace("-", "_"): {"figure": f, "svg": mark_safe(page_svg(f))} for f in figures}  # noqa: S308


def download(figures: Sequence[Figure], name: str, kind: str, stem: str) -> HttpResponse:
    """One of the figures as a file. Raises Missing for an unknown name or kind."""
    found = next((figure for figure in figures if figure.name == name), None)
    if found is None or kind not in TYPES:
        raise Missing("There is no such figure, or nothing to draw in it yet.")
    response = HttpResponse(as_file(found, kind), content_type=TYPES[kind])
    response["Content-Disposition"] = f'attachment; filename="{stem}-{name}.{kind}"'
    return response
