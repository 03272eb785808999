"""A new scoring run: which scorer version, over which items."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from annotation import access
from annotation.errors import Conflict, Invalid
from annotation.models import Membership
from curation import choosing
from scoring.models import Scorer
from scoring.runs import QUEUES
from workers import tasks


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest, project: str) -> HttpResponse:
    """A form of scorer and items, and how many those are; POST starts the run. htmx fetches the count alone."""
    member = access.researcher(request.user, project)
    if request.method == "POST":
        return _start(request, member)
    template = "curation/_run_new_count.html" if request.headers.get("HX-Request") else "curation/run_new.html"
    return _form(request, member, template)


def _start(request: HttpRequest, member: Membership) -> HttpResponse:
    try:
        with transaction.atomic():
            scorer = choosing.scorer_of(member.project, request.POST.get("scorer", ""))
            run = choosing.start(scorer, request.POST.get("items", ""), member.user, queue=request.POST.get("queue", "cpu"))
            transaction.on_commit(lambda: tasks.wake(run))
    except (Invalid, Conflict) as error:
        return _form(request, member, "curation/run_new.html", error=error)
    messages.success(request, f"Started: {run.total:,} items to score.")
    return redirect("run", member.project.slug, run.pk)


def _form(request: HttpRequest, member: Membership, template: str, *, error: Invalid | Conflict | None = None) -> HttpResponse:
    given = request.POST if request.method == "POST" else request.GET
    scorers = list(Scorer.objects.filter(project=member.project).order_by("name", "-version"))
    chosen = given.get("scorer") or (str(scorers[0].pk) if scorers else "")
    items = given.get("items") or choosing.ALL
    wrong = dict(error.fields) if error else {}
    covered = None
    try:
        if scorers:
            covered = choosing.covered(choosing.scorer_of(member.project, chosen), items)
    except Invalid as unknown:
        wrong |= unknown.fields
    context = {
        "member": member, "here": "runs", "scorers": scorers, "scorer": chosen, "groups": choosing.groups(member.project), "items": items,
        "queues": QUEUES, "queue": given.get("queue") or "cpu", "covered": covered,
        "problem": error.message if error else "",
        "scorer_error": wrong.get("scorer", ""), "items_error": wrong.get("items", ""),
    }  # fmt: skip
    return render(request, template, context, status=error.status if isinstance(error, Conflict) else 422 if error else 200)
