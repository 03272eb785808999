"""How far people agree, question by question."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from annotation import access
from annotation.models import Question, TaskState
from curation import agreement, raters
from curation.figures import Figure
from curation.figures import agreement as figures
from curation.stats.dawid_skene import MOST_ITERATIONS, SMOOTHING, SURE, TOLERANCE
from curation.views.figures import download, drawn
from curation.views.raters import page_number
from curation.views.waiting import shows_when_ready

PAGE = 100


@require_GET
def first(request: HttpRequest, project: str) -> HttpResponse:
    """The first question's agreement; without a question, what to do."""
    member = access.researcher(request.user, project)
    question = member.project.questions.order_by("id").first()
    if question is None:
        return render(request, "curation/agreement.html", {"member": member, "here": "agreement"})
    return redirect("agreement_question", project, question.slug)


@require_GET
@shows_when_ready("agreement")
def of_question(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """Figures with intervals, how the votes split, other ways to settle them; by ?group= of raters and ?by= metadata."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    found = agreement.of_question(asked)
    standing = raters.of_question(asked)
    total = found.figures.votes
    by_choice = [(label, votes, 100 * votes / total if total else None) for label, votes in found.votes_by_choice]
    group, by = _key(request, "group"), _key(request, "by")
    groups, slices = _parts(asked, group, by)
    context = {
        "by_choice": by_choice, "member": member, "here": "agreement", "question": asked, "found": found, "rows": figures.named(found),
        "questions": member.project.questions.order_by("id"), "figures": drawn(_figures(found, groups, slices)),
        "states": [(TaskState(state).label, tasks) for state, tasks in found.states.items()],
        "attributes": agreement.attributes(asked), "keys": agreement.metadata_keys(asked), "group": group, "by": by,
        "groups": groups, "slices": slices,
        "query": "?" + urlencode({name: value for name, value in (("group", group), ("by", by)) if value}),
        "standing": standing, "methods": _methods(standing), "tolerance": f"{1 / TOLERANCE:,.0f}",
        "sure": SURE, "smoothing": f"{SMOOTHING:.9f}", "most": MOST_ITERATIONS,
    }  # fmt: skip
    return render(request, "curation/agreement.html", context)


def _parts(asked: Question, group: str, by: str) -> tuple[agreement.Parts | None, agreement.Parts | None]:
    return agreement.by_attribute(asked, group) if group else None, agreement.by_metadata(asked, by) if by else None


def _figures(found: agreement.QuestionAgreement, groups: agreement.Parts | None, slices: agreement.Parts | None) -> list[Figure]:
    made = figures.of_question(found)
    for name, parts in (("groups", groups), ("slices", slices)):
        made += figures.of_parts(parts, found, name) if parts else []
    return made


def _key(request: HttpRequest, name: str) -> str:
    return request.GET.get(name, "").replace("\0", "")[:200]  # which PostgreSQL takes in no text


def _methods(standing: raters.Standing) -> dict[str, Any] | None:
    """The table of labels by method: a row a choice, and one for what is not settled."""
    methods = standing.methods
    if methods is None:
        return None
    rows = [(label, [methods.labels[name][k] for name in raters.METHODS]) for k, label in enumerate(standing.choices)]
    differences = [
        {"found": found, "words": f"{raters.METHODS[found.between[0]]} and {raters.METHODS[found.between[1]]}"}
        for found in methods.differences
    ]
    return {
        "names": list(raters.METHODS.values()), "rows": rows, "unsettled": [methods.unsettled[name] for name in raters.METHODS],
        "tasks": methods.tasks, "differences": differences, "fit": methods.fit,
    }  # fmt: skip


@require_GET
@shows_when_ready("agreement")
def differences(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """The tasks that two ways of settling label differently, ?between= them; texts only with ?contents=1."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    standing = raters.of_question(asked)
    between = request.GET.get("between", "policy-dawid_skene")
    found = raters.difference(standing, between)
    page, contents = page_number(request.GET.get("page", "")), request.GET.get("contents") == "1"
    rows = raters.differing(standing, found, page=page, size=PAGE, contents=contents)

    def address(**changes: object) -> str:
        shown = {"between": between, "page": page, "contents": int(contents)} | changes
        return "?" + urlencode({name: value for name, value in shown.items() if value})

    context = {
        "member": member, "here": "agreement", "question": asked, "found": found, "rows": rows, "contents": contents,
        "names": raters.METHODS, "one": raters.METHODS[found.between[0]], "other": raters.METHODS[found.between[1]],
        "first": (page - 1) * PAGE + 1, "last": (page - 1) * PAGE + len(rows), "listed": found.task_ids.size,
        "toggle": address(contents=int(not contents)), "before": address(page=page - 1) if page > 1 else "",
        "after": address(page=page + 1) if page * PAGE < found.task_ids.size else "",
    }  # fmt: skip
    return render(request, "curation/agreement_differences.html", context)


@require_GET
def figure(request: HttpRequest, project: str, question: str, name: str, kind: str) -> HttpResponse:
    """A figure of the page as a file, with the ?group= and ?by= of the page."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    found = _figures(agreement.of_question(asked), *_parts(asked, _key(request, "group"), _key(request, "by")))
    return download(found, name, kind, f"{project}-{question}")
