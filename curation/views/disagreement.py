"""What annotators disagree on, in bulk; and the tasks behind each number."""

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_GET

from annotation import access
from annotation.errors import Invalid
from curation import disagreement
from curation.figures import disagreement as figures
from curation.views.figures import download, drawn
from curation.views.waiting import shows_when_ready


class TasksForm(forms.Form):
    """Which tasks, as they come in an address."""

    by = forms.CharField(required=False, max_length=disagreement.LONGEST_FIELD, strip=False)
    value = forms.CharField(required=False, max_length=1000, strip=False)
    tag = forms.CharField(required=False, max_length=40)
    after = forms.IntegerField(required=False, min_value=0, max_value=2**63 - 1)
    contents = forms.BooleanField(required=False)


@require_GET
@shows_when_ready("questions")
def of_question(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """Shares disputed and how far votes differ, ?by= a field of metadata; by tag, and by pair of choices."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    found, error = None, None
    try:
        found = disagreement.of_question(asked, request.GET.get("by", ""))
    except Invalid as refused:
        error = refused
        found = disagreement.of_question(asked)
    context = {
        "member": member, "here": "questions", "question": asked, "found": found, "error": error,
        "figures": drawn(figures.of_question(found)) if found.all.tasks else {},
        "tags": [(found.tag_labels.get(group.value or "", group.value), group) for group in found.tags],
    }  # fmt: skip
    return render(request, "curation/disagreements.html", context, status=422 if error else 200)


@require_GET
def figure(request: HttpRequest, project: str, question: str, name: str, kind: str) -> HttpResponse:
    """A figure of the page as a file."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    found = disagreement.of_question(asked, request.GET.get("by", ""))
    return download(figures.of_question(found), name, kind, f"{project}-{question}")


@require_GET
def tasks(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """The tasks behind a number, on which votes differ; their texts only on request."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    given = request.GET
    form = TasksForm(given)
    rows, error, after, contents = [], None, 0, False
    pair = [choice for choice in given.getlist("choice") if choice][:2]
    if form.is_valid():
        asked_for = form.cleaned_data
        after, contents = asked_for["after"] or 0, asked_for["contents"]
        try:
            rows = disagreement.tasks(
                asked, by=asked_for["by"], value=None if "none" in given else asked_for["value"], tag=asked_for["tag"], pair=pair,
                after=after, contents=contents,
            )  # fmt: skip
        except Invalid as refused:
            error = refused
    else:
        error = Invalid("This is no address of such a list.")
    kept = given.copy()
    for name in ("after", "contents"):
        kept.pop(name, None)
    context = {
        "member": member, "here": "questions", "question": asked, "rows": rows[: disagreement.PAGE], "error": error,
        "next": rows[disagreement.PAGE - 1].task_id if len(rows) > disagreement.PAGE else None, "first": after == 0,
        "asked": kept.urlencode(), "given": [(name, value) for name, values in kept.lists() for value in values], "contents": contents,
        "of": _in_words(given, pair),
    }  # fmt: skip
    return render(request, "curation/disagreement_tasks.html", context, status=422 if error else 200)


def _in_words(given: QueryDict, pair: list[str]) -> str:
    """Which tasks these are."""
    if given.get("by"):
        return f"without {given['by']}" if "none" in given else f"{given['by']}: {given.get('value', '')}"
    if given.get("tag"):
        return f"someone named {given['tag']}"
    return f"votes for both {' and '.join(pair)}" if pair else "all"
