"""The export page and the files it gives."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from annotation import access
from annotation.models import Project, Question, TaskState
from curation import exporting
from curation.models import Sample

CONTENT_TYPES = {"jsonl": "application/x-ndjson; charset=utf-8", "csv": "text/csv; charset=utf-8"}


class ExportForm(forms.Form):
    question = forms.SlugField(required=False, max_length=60)
    sample = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    settled = forms.BooleanField(required=False)
    comments = forms.BooleanField(required=False)


@require_safe
def export(request: HttpRequest, project: str) -> HttpResponse:
    """What an export would hold, and its two forms."""
    member = access.researcher(request.user, project)
    form = ExportForm(request.GET)
    found: dict[str, Any] = {}
    if form.is_valid():
        what = exporting.wanted(member.project, **_chosen(form))
        found = {"what": what, "items": exporting.count(what), "labels": _labels(member.project, what.question)}
    context = {
        "member": member, "here": "export", "form": form, **found,
        "questions": Question.objects.filter(project=member.project).order_by("title"),
        "samples": Sample.objects.filter(project=member.project).order_by("-pk"),
        "quarantined": member.project.items.filter(quarantined=True).count(),
    }  # fmt: skip
    return render(request, "curation/export.html", context, status=200 if found else 422)


@require_safe
def export_file(request: HttpRequest, project: str, form: str) -> StreamingHttpResponse | HttpResponse:
    """The export itself, sent while it is read."""
    member = access.researcher(request.user, project)
    asked = ExportForm(request.GET)
    if not asked.is_valid():
        return export(request, project)
    return stream(exporting.wanted(member.project, **_chosen(asked)), exporting.as_format(form))


def stream(what: exporting.Wanted, form: exporting.Format) -> StreamingHttpResponse:
    """An export as a download, in constant memory."""
    name = f"{what.project.slug}-{timezone.now():%Y-%m-%d}.{form}"
    return StreamingHttpResponse(
        (text for _, text in exporting.export(what, form)),
        content_type=CONTENT_TYPES[form],
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )


def _chosen(form: ExportForm) -> dict[str, Any]:
    given = form.cleaned_data
    return {"question": given["question"] or None, "sample": given["sample"], "settled": given["settled"], "comments": given["comments"]}


def _labels(project: Project, question: Question | None) -> list[dict[str, Any]]:
    """Of each question: how many tasks are settled, and how many are in each other state."""
    rows = []
    for asked in Question.objects.filter(project=project).order_by("title"):
        if question is None or question.pk == asked.pk:
            states = exporting.tasks_by_state(asked)
            settled = states.get(TaskState.AGREED, 0) + states.get(TaskState.ADJUDICATED, 0)
            rows.append({"question": asked, "settled": settled, "tasks": sum(states.values()), "states": states})
    return rows
