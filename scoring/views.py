"""Scorers and runs, for researchers. Choosing the items of a new run is curation's page."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import slugify
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import access
from annotation.errors import Invalid, Missing
from annotation.models import Membership, User
from scoring import progress, runs
from scoring.models import Scorer, ScoringRun
from scoring.scorers import kinds
from scoring.scorers.base import Kind, Setting
from workers import health, tasks

LISTED = 100


@require_GET
def scorers(request: HttpRequest, project: str) -> HttpResponse:
    """Every scorer with its versions, what they score, how many items they scored, and what they cannot do."""
    member = access.researcher(request.user, project)
    named: dict[str, list[dict[str, Any]]] = {}
    for scorer in Scorer.objects.filter(project=member.project).select_related("created_by").order_by("name", "-version"):
        count, more = progress.scored_items(scorer)
        named.setdefault(scorer.name, []).append({"scorer": scorer, "kind": kinds().get(scorer.kind), "count": count, "more": more})
    return render(request, "scoring/scorers.html", {"member": member, "here": "scorers", "named": named, "kinds": kinds().values()})


@require_http_methods(["GET", "POST"])
def scorer_new(request: HttpRequest, project: str) -> HttpResponse:
    """A form made of the chosen kind's settings; POST checks the model's files and adds the scorer or its next version."""
    member = access.researcher(request.user, project)
    given = request.POST if request.method == "POST" else request.GET
    kind = kinds().get(given.get("kind", "")) or next(iter(kinds().values()))
    if request.method == "GET":
        return _form(request, member, kind, name=slugify(given.get("name", "")))
    config = {setting.name: request.POST.get(f"config-{setting.name}", "") for setting in kind.settings}
    name = request.POST.get("name", "").strip()
    try:
        scorer, new = runs.create_scorer(member.project, name, kind.name, config, member.user)
    except Invalid as error:
        return _form(request, member, kind, name=name, config=config, error=error)
    if new:
        messages.success(request, f"{scorer} is ready. Start a run with it.")
    else:
        messages.success(request, f"{scorer} already gives exactly these scores, so there is no new version.")
    return redirect("scorers", project)


def _form(
    request: HttpRequest,
    member: Membership,
    kind: Kind,
    *,
    name: str = "",
    config: dict[str, str] | None = None,
    error: Invalid | None = None,
) -> HttpResponse:
    wrong = error.fields if error else {}
    fields = [
        {"setting": setting, "value": (config or {}).get(setting.name, _shown(setting)), "error": wrong.get(setting.name)}
        for setting in kind.settings
    ]
    context = {
        "member": member, "here": "scorers", "kinds": kinds().values(), "kind": kind, "fields": fields, "name": name, "wrong": wrong,
        "problem": error.message if error else "", "roots": settings.MODEL_FOLDERS, "folders": runs.model_folders(),
    }  # fmt: skip
    return render(request, "scoring/scorer_new.html", context, status=422 if error else 200)


def _shown(setting: Setting) -> str:
    return str(setting.default or "")


@require_GET
def listing(request: HttpRequest, project: str) -> HttpResponse:
    """The latest runs; the part that moves is fetched again every two seconds while one is active."""
    member = access.researcher(request.user, project)
    context = {"member": member, "here": "runs"} | panels(member)
    return render(request, "scoring/_runs.html" if request.headers.get("HX-Request") else "scoring/runs.html", context)


def panels(member: Membership) -> dict[str, Any]:
    """What `scoring/_runs.html` and `scoring/_workers.html` show."""
    standings = [progress.standing(run) for run in progress.runs_of(member.project)[:LISTED]]
    return {"standings": standings, "any_active": any(found.active for found in standings)} | workers_panel(member)


def workers_panel(member: Membership) -> dict[str, Any]:
    """What `scoring/_workers.html` shows."""
    return {"workers": health.workers(), "unheard": health.queue_health(member.project), "waiting": health.chunks_waiting(member.project)}


@require_GET
def run(request: HttpRequest, project: str, run: int) -> HttpResponse:
    """One run, live; its `_run.html` alone for a refresh."""
    member = access.researcher(request.user, project)
    found = _found(member, run)
    failures = found.failures.order_by("pk")[: LISTED + 1]
    context = {
        "member": member, "here": "runs", "standing": progress.standing(found), "kind": kinds().get(found.scorer.kind),
        "failures": failures[:LISTED], "more": len(failures) > LISTED,
    } | workers_panel(member)  # fmt: skip
    return render(request, "scoring/_run.html" if request.headers.get("HX-Request") else "scoring/run.html", context)


def _found(member: Membership, pk: int) -> ScoringRun:
    found = progress.runs_of(member.project).filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no run {pk} in {member.project.name}.")
    return found


def _change(
    request: HttpRequest, project: str, pk: int, change: Callable[[ScoringRun, User | None], ScoringRun], *, wakes: bool = False
) -> HttpResponse:
    member = access.researcher(request.user, project)
    with transaction.atomic():
        changed = change(_found(member, pk), member.user)
        if wakes:
            transaction.on_commit(lambda: tasks.wake(changed))
    return redirect("run", project, pk)


@require_POST
def pause(request: HttpRequest, project: str, run: int) -> HttpResponse:
    return _change(request, project, run, runs.pause)


@require_POST
def resume(request: HttpRequest, project: str, run: int) -> HttpResponse:
    return _change(request, project, run, runs.resume, wakes=True)


@require_POST
def cancel(request: HttpRequest, project: str, run: int) -> HttpResponse:
    return _change(request, project, run, runs.cancel)
