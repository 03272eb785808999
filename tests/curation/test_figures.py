"""Figures: valid definitions, drawn under the strict CSP, and real files."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import altair
import numpy as np
import pytest
from django.utils import timezone

from curation.agreement import Part, Parts, QuestionAgreement, Split
from curation.comparing import Result
from curation.figures import Figure, as_file, detection, page_svg
from curation.figures import agreement as people
from curation.figures import raters as figures_of_raters
from curation.raters import Person, Rater, share
from curation.stats.agreement import agreement
from curation.stats.detection import Judged, curves, decisions


def some_figures() -> list[Figure]:
    rng = np.random.default_rng(1)
    truth = rng.random(80) < 0.3
    score = np.clip(rng.normal(0.35 + 0.3 * truth, 0.2), 0, 1)
    judged = Judged(truth, score, np.arange(80), np.ones(80))
    drawn = curves(judged, draws=50)
    assert drawn is not None
    result = Result(
        decisions=decisions(judged, 0.5, draws=50), sweep=drawn[0], curve=drawn[1], items=80, groups=80, weighted=False, unsure=(0, 0),
        left_out=[], sources={}, total=80, positives=score[truth], negatives=score[~truth], read_at=timezone.now(),
    )  # fmt: skip
    splits = (Split((3, 0), 9), Split((0, 3), 4), Split((2, 1), 3))
    found = QuestionAgreement(agreement([s.votes for s in splits], [s.tasks for s in splits], draws=50), ("=Yes", "No"), splits, {})
    parts = Parts("group", (Part("=a", 2, found.figures, ()), Part(None, 1, found.figures, ())), 0)
    return [
        *detection.of_result(result, "<Yes> & more"),
        *people.of_question(found),
        *people.of_parts(parts, found, "groups"),
        *_of_raters(),
    ]


def _of_raters() -> list[Figure]:
    """Two raters' dots and how the first of them answers. The matrix of pairs asks the database: see test_raters_pages."""
    some = [
        Person(
            number=number, pseudonym=f"Annotator {number}", is_person=True, active=True, abstentions=0, paused=False,
            checks=share(8, 10, ""),
            figures=Rater(number, 20, 20, 3.0, share(1, 20, ""), share(15, 20, ""), share(14, 20, ""), np.array([[0.9, 0.1], [0.3, 0.7]])),
        )
        for number in (1, 2)
    ]  # fmt: skip
    confusion = figures_of_raters.confusion(some[0], ["<Yes>", "No"])
    assert confusion is not None
    confusion = replace(confusion, name="one-rater")
    return [figures_of_raters.dots(some), confusion]


FIGURES = {figure.name: figure for figure in some_figures()}


@pytest.mark.parametrize("name", FIGURES)
def test_the_definition_is_vega_lite(name: str) -> None:
    altair.Chart.from_dict(FIGURES[name].vega_lite).to_dict()


@pytest.mark.parametrize("name", FIGURES)
def test_on_a_page_it_is_one_named_image_in_the_looks_tokens_without_style(name: str) -> None:
    svg = page_svg(FIGURES[name])
    root = ElementTree.fromstring(svg)  # noqa: S314 - ours
    assert root.get("role") == "img"
    assert root.get("aria-label") == FIGURES[name].finding
    assert "style" not in svg
    assert "<script" not in svg
    assert "var(--" in svg
    # No colour of its own: every one is a token of the look.
    assert not re.findall(r'(?:fill|stroke)="(?!var\(|none|transparent)[^"]*"', svg)
    assert float(root.get("width", 0)) <= 352


@pytest.mark.parametrize("name", FIGURES)
def test_files_are_real_files(name: str) -> None:
    figure = FIGURES[name]
    assert as_file(figure, "png").startswith(b"\x89PNG\r\n\x1a\n")
    assert as_file(figure, "pdf").startswith(b"%PDF-")
    svg = as_file(figure, "svg").decode()
    ElementTree.fromstring(svg)  # noqa: S314 - ours
    assert "var(--" not in svg
    assert "style=" not in svg
    assert len(as_file(figure, "csv").decode().splitlines()) == len(figure.data) + 1


def test_what_a_spreadsheet_would_run_is_disarmed() -> None:
    assert b"'=" not in as_file(FIGURES["votes"], "csv")  # the label starts with a number
    figure = Figure("x", "x", "x", {}, [{"name": "=1+1", "n": -3}])
    assert as_file(figure, "csv") == b"name,n\n'=1+1,-3\n"


def test_an_undefined_figure_is_drawn_as_such() -> None:
    found = QuestionAgreement(agreement([[3, 0]], [5]), ("Yes", "No"), (Split((3, 0), 5),), {})
    figure = people.coefficients(found)
    assert "Fleiss' kappa undefined" in figure.finding
    assert ">undefined<" in page_svg(figure)
