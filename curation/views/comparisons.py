"""Machine against human: a list, a form, the comparison itself, and the items behind each of its numbers."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods
from django_htmx.http import replace_url

from annotation import access
from annotation.errors import Invalid
from annotation.models import Choice, Project
from curation import comparing
from curation.figures import detection as figures
from curation.models import Comparison, Sample
from curation.stats.detection import Decisions
from curation.stats.intervals import CONFIDENCE, Estimate
from curation.views.figures import download, drawn
from scoring.models import Scorer

PAGE = 100
_NAMES = {
    "true_positive": "True positives",
    "false_negative": "False negatives",
    "false_positive": "False positives",
    "true_negative": "True negatives",
    "unsure_positive": "Unsure, called positive",
    "unsure_negative": "Unsure, not called",
    "unscored": "No score",
    "unlabelled": "No label",
}
_HEADS = ["Precision", "Recall", "F1", "Average precision"]


class ComparisonForm(forms.Form):
    """One field for the question and its positive answer, one for the scorer and its score: no field depends on another."""

    name = forms.CharField(max_length=120, required=False)
    positive = forms.ModelChoiceField(Choice.objects.none())
    score = forms.CharField()
    threshold = forms.FloatField(initial=0.5)
    sample = forms.ModelChoiceField(Sample.objects.none(), required=False)

    def __init__(self, project: Project, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.project = project
        answers = Choice.objects.filter(question__project=project).select_related("question").order_by("question_id", "position")
        self.fields["positive"].queryset = answers  # type: ignore[attr-defined]
        self.fields["sample"].queryset = Sample.objects.filter(project=project).order_by("-id")  # type: ignore[attr-defined]
        self.answers = [answer for answer in answers if not answer.is_unsure]
        scorers = Scorer.objects.filter(project=project).order_by("name", "-version")
        self.scores = [(f"{scorer.pk}:{name}", f"{scorer}: {name}") for scorer in scorers for name in scorer.score_names]

    def clean_score(self) -> tuple[Scorer, str]:
        pk, _, name = self.cleaned_data["score"].partition(":")
        scorer = Scorer.objects.filter(project=self.project, pk=int(pk)).first() if pk.isascii() and pk.isdigit() and len(pk) < 19 else None
        if scorer is None:
            raise forms.ValidationError("Choose one of the scores.")
        return scorer, name


@require_GET
def listing(request: HttpRequest, project: str) -> HttpResponse:
    """All comparisons of the project, newest first."""
    member = access.researcher(request.user, project)
    rows = Comparison.objects.filter(project=member.project).select_related("question", "positive", "scorer", "sample", "created_by")
    return render(request, "curation/comparisons.html", {"member": member, "here": "comparisons", "rows": rows.order_by("-id")})


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest, project: str) -> HttpResponse:
    """Choose what to hold against what."""
    member = access.researcher(request.user, project)
    form = ComparisonForm(member.project, request.POST or None)
    if form.is_valid():
        scorer, score_name = form.cleaned_data.pop("score")
        form.cleaned_data["name"] = (
            form.cleaned_data["name"] or f"{form.cleaned_data['positive'].question.title}: people and {scorer}"[:120]
        )
        try:
            made = comparing.create(member, scorer=scorer, score_name=score_name, **form.cleaned_data)
        except Invalid as error:
            for field, message in error.fields.items():
                form.add_error({"scorer": "score", "score_name": "score"}.get(field, field), message)
        else:
            return redirect("comparison", project, made.pk)
    context = {"member": member, "here": "comparisons", "form": form, "ready": form.answers and form.scores}
    return render(request, "curation/comparison_new.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
def comparison(request: HttpRequest, project: str, comparison: int) -> HttpResponse:
    """The comparison at its threshold or at ?threshold=, and by ?by=. htmx gets the results alone; POST keeps the threshold."""
    member = access.researcher(request.user, project)
    found = comparing.find(member.project, comparison)
    if request.method == "POST":
        comparing.set_threshold(found, comparing.read_threshold(request.POST.get("threshold", "")))
        messages.success(request, f"Kept: the threshold of this comparison is {found.threshold:g}.")
        return redirect("comparison", project, found.pk)
    problem, threshold = "", found.threshold
    try:
        threshold = comparing.read_threshold(request.GET.get("threshold") or str(found.threshold))
    except Invalid as error:
        problem = error.message
    by = request.GET.get("by", "").replace("\0", "")  # which PostgreSQL takes in no text
    context = {"member": member, "here": "comparisons", "comparison": found, "problem": problem, "typed": request.GET.get("threshold", "")}
    result = comparing.result(found, threshold, fresh=not request.htmx)  # type: ignore[attr-defined]
    context |= _result(found, result, by)
    if request.htmx:  # type: ignore[attr-defined]
        shown = {"threshold": f"{threshold:g}"} | ({"by": by} if by else {})
        answer = render(request, "curation/_comparison_result.html", context, status=422 if problem else 200)
        return replace_url(answer, f"{reverse('comparison', args=[project, found.pk])}?{urlencode(shown)}")
    sweep = result.sweep
    low, high = (sweep.thresholds[0], sweep.thresholds[-1]) if sweep else (0.0, 1.0)
    context |= {"keys": comparing.metadata_keys(found), "low": f"{low:g}", "high": f"{high:g}", "step": f"{(high - low) / 100:g}"}
    return render(request, "curation/comparison.html", context, status=422 if problem else 200)


def _result(found: Comparison, result: comparing.Result, by: str) -> dict[str, Any]:
    """What `_comparison_result.html` needs."""
    d, threshold = result.decisions, result.decisions.threshold
    slices, more = comparing.by_metadata(found, by, threshold) if by else ([], 0)
    estimates = [*_three(d), *([result.curve.average_precision] if result.curve else [])]
    # Row, cell and number of the matrix; what people are unsure of stands beside it.
    rows = [
        (found.positive.label, [("true_positive", d.tp), ("false_negative", d.fn)]),
        (f"not {found.positive.label}", [("false_positive", d.fp), ("true_negative", d.tn)]),
        ("unsure", [("unsure_positive", result.unsure[0]), ("unsure_negative", result.unsure[1])]),
    ]
    return {
        "slice_notes": _notes([e for part in slices for e in _three(part.decisions)]),
        "heads": _HEADS[:3], "heads_all": _HEADS, "query": f"?threshold={threshold:g}", "unsure": sum(result.unsure),
        "result": result, "threshold": f"{threshold:g}", "changed": threshold != found.threshold, "by": by, "slices": slices, "more": more,
        "matrix": rows, "figures": drawn(figures.of_result(result, found.positive.label)), "confidence": f"{CONFIDENCE:.0%}",
        "notes": _notes(estimates), "words": _in_words(found, result),
    }  # fmt: skip


def _three(found: Decisions) -> list[Estimate]:
    return [found.precision, found.recall, found.f1]


def _notes(estimates: Sequence[Estimate]) -> list[str]:
    return sorted({estimate.note for estimate in estimates if estimate.note})


def _in_words(found: Comparison, result: comparing.Result) -> str:
    """The matrix as a sentence."""
    d, label = result.decisions, found.positive.label
    if not result.items:
        return "No item has both a label and this score yet, so nothing can be compared."
    missed = (
        f"misses {d.fn:,} of the {d.tp + d.fn:,} that people call {label}"
        if d.tp + d.fn
        else f"has none to find: people call no item {label}"
    )
    alarms = f"is wrong in {d.fp:,} of the {d.tp + d.fp:,} it names" if d.tp + d.fp else "names none"
    return f"At {d.threshold:g}, {found.scorer} {missed}, and {alarms}."


@require_GET
def items(request: HttpRequest, project: str, comparison: int) -> HttpResponse:
    """The items behind ?cell=: ids, scores, labels; texts only with ?contents=1."""
    member = access.researcher(request.user, project)
    found = comparing.find(member.project, comparison)
    cell = request.GET.get("cell", "false_negative")
    threshold = comparing.read_threshold(request.GET.get("threshold") or str(found.threshold))
    page = _page_number(request.GET.get("page", ""))
    contents = request.GET.get("contents") == "1"
    rows, count = comparing.cell_items(found, cell, threshold, page=page, size=PAGE, contents=contents)

    def address(**changes: object) -> str:
        shown = {"cell": cell, "threshold": f"{threshold:g}", "page": page, "contents": int(contents)} | changes
        return "?" + urlencode({name: value for name, value in shown.items() if value or name == "threshold"})

    context = {
        "member": member, "here": "comparisons", "comparison": found, "cell": cell, "cells": comparing.CELLS, "rows": rows, "count": count,
        "first": (page - 1) * PAGE + 1, "last": (page - 1) * PAGE + len(rows), "threshold": f"{threshold:g}", "contents": contents,
        "heading": _heading(found, cell), "toggle": address(contents=int(not contents)), "back": address(cell="", page=0, contents=0),
        "before": address(page=page - 1) if page > 1 else "", "after": address(page=page + 1) if page * PAGE < count else "",
        "others": [(other, _NAMES[other], address(cell=other, page=0)) for other in comparing.CELLS],
    }  # fmt: skip
    return render(request, "curation/comparison_items.html", context)


def _page_number(given: str) -> int:
    return max(1, int(given)) if given.isascii() and given.isdigit() and len(given) < 7 else 1


def _heading(found: Comparison, cell: str) -> str:
    """People say Yes, the machine says no."""
    people, machine = comparing.CELLS[cell]
    label = found.positive.label
    said = {
        "positive": f"People: {label}",
        "negative": f"People: not {label}",
        "unsure": "People: unsure",
        "labelled": "Labelled by people",
        "no label": "No label yet",
    }
    named = {"positive": f"machine: {label}", "negative": f"machine: not {label}", "no score": "without this score", "any": ""}
    return ", ".join(part for part in (said[people], named[machine]) if part)


@require_GET
def figure(request: HttpRequest, project: str, comparison: int, name: str, kind: str) -> HttpResponse:
    """A figure of the page as a file, at ?threshold=."""
    member = access.researcher(request.user, project)
    found = comparing.find(member.project, comparison)
    threshold = comparing.read_threshold(request.GET.get("threshold") or str(found.threshold))
    result = comparing.result(found, threshold, fresh=False)
    return download(figures.of_result(result, found.positive.label), name, kind, f"{project}-comparison-{found.pk}")
