"""How far people agree, question by question."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from annotation import access
from annotation.models import TaskState
from curation import agreement
from curation.figures import agreement as figures
from curation.views.figures import download, drawn


@require_GET
def first(request: HttpRequest, project: str) -> HttpResponse:
    """The first question's agreement; without a question, what to do."""
    member = access.researcher(request.user, project)
    question = member.project.questions.order_by("id").first()
    if question is None:
        return render(request, "curation/agreement.html", {"member": member, "here": "agreement"})
    return redirect("agreement_question", project, question.slug)


@require_GET
def of_question(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """Figures with intervals, how the votes split, tasks by state."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    found = agreement.of_question(asked)
    total = found.figures.votes
    by_choice = [(label, votes, 100 * votes / total if total else None) for label, votes in found.votes_by_choice]
    context = {
        "by_choice": by_choice,
        "member": member, "here": "agreement", "question": asked, "found": found, "rows": figures.named(found),
        "questions": member.project.questions.order_by("id"), "figures": drawn(figures.of_question(found)),
        "states": [(TaskState(state).label, tasks) for state, tasks in found.states.items()],
    }  # fmt: skip
    return render(request, "curation/agreement.html", context)


@require_GET
def figure(request: HttpRequest, project: str, question: str, name: str, kind: str) -> HttpResponse:
    """A figure of the page as a file."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    return download(figures.of_question(agreement.of_question(asked)), name, kind, f"{project}-{question}")
