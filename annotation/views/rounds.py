"""What researchers do afterwards: a task's history, new rounds, voided votes, flags and quarantine, guideline gaps."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import access, flags, gaps, history, rounds
from annotation.errors import Invalid, Missing
from annotation.models import Item, Membership, Task
from annotation.views.labelling import check_texts

PAGE = 50
BIG = 2**63 - 1


# ---------------------------------------------------------------- one task
@require_GET
def task(request: HttpRequest, project: str, task: int) -> HttpResponse:
    """Everything that people did to one task, in order; its item on request."""
    member = access.researcher(request.user, project)
    return _task_page(request, member, find_task(member, task))


@require_POST
def retire(request: HttpRequest, project: str, task: int) -> HttpResponse:
    """Ask nobody any more about this task."""
    member = access.researcher(request.user, project)
    found = find_task(member, task)
    rounds.retire(found.question, [found.pk])
    messages.success(request, "Retired. Nobody is asked about it any more; its votes stay on record.")
    return redirect("task", project, task)


@require_POST
def reopen(request: HttpRequest, project: str, task: int) -> HttpResponse:
    """Ask anew about this task, in a new round."""
    member = access.researcher(request.user, project)
    found = find_task(member, task)
    rounds.reopen(found.question, [found.pk])
    messages.success(request, "Open again, in a new round. Earlier votes stay on record and count no more.")
    return redirect("task", project, task)


@require_POST
def void_vote(request: HttpRequest, project: str, task: int, vote: int) -> HttpResponse:
    """Strike out one vote of this task, with a reason."""
    member = access.researcher(request.user, project)
    found = find_task(member, task)
    try:
        done = rounds.void_vote(min(vote, BIG), by=member, why=_typed(request, "why"))
    except Invalid as error:
        return _task_page(request, member, found, voiding=vote, error=error)
    if done.reopened:
        said = "Struck out. What it settled is superseded, and its slot is open again."
    elif done.kept_by_ruling:
        said = "Struck out. The adjudicator’s ruling stays."
    else:
        said = "Struck out." if done.votes else "It was struck out before."
    messages.success(request, said)
    return redirect("task", project, task)


def find_task(member: Membership, number: int) -> Task:
    """The project's task with this number. Raises Missing."""
    if number > BIG:
        raise Missing("There is no such task in this project.")
    found = Task.objects.select_related("question__project", "item__media").filter(pk=number, question__project=member.project).first()
    if found is None:
        raise Missing("There is no such task in this project.")
    return found


def _typed(request: HttpRequest, name: str) -> str:
    """What was typed in a field. Raises Invalid for what cannot be stored."""
    text = request.POST.get(name, "")
    check_texts([text])
    return text


def _task_page(request: HttpRequest, member: Membership, found: Task, *, voiding: int = 0, error: Invalid | None = None) -> HttpResponse:
    known = getattr(found, "known_answer", None)
    context = {
        "member": member, "here": "questions", "task": found, "question": found.question, "item": found.item,
        "steps": history.of_task(found), "seen_by": history.seen_by(found),
        "truth": found.truths.filter(superseded_at=None).select_related("choice", "guideline").first(),
        "known": known if known and known.active else None,
        "flags": found.flags.filter(handled_at=None).select_related("member").order_by("pk"),
        "voiding": voiding, "error": error, "why": request.POST.get("why", ""),
    }  # fmt: skip
    return render(request, "annotation/task.html", context, status=422 if error else 200)


# ---------------------------------------------------------------- many tasks
@require_http_methods(["GET", "POST"])
def affected(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """What the latest guideline version may concern, with counts; POST re-opens one group."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    if request.method == "GET":
        context = {"member": member, "here": "questions", "question": asked, "affected": rounds.affected_by_guideline(asked)}
        return render(request, "annotation/affected.html", context)
    version = request.POST.get("version", "")
    number = int(version) if version.isdecimal() and len(version) < 9 else 0
    reopened = rounds.reopen_affected(asked, request.POST.get("group", ""), version=number)
    tasks = "1 task is" if reopened == 1 else f"{reopened:,} tasks are"
    messages.success(request, f"{tasks} open again, in a new round." if reopened else "Nothing of that group is left to re-open.")
    return redirect("affected", project, asked.slug)


# ---------------------------------------------------------------- flags
@require_GET
def listing(request: HttpRequest, project: str) -> HttpResponse:
    """Flags that wait, over all questions; ?handled=1 those that do not."""
    member = access.researcher(request.user, project)
    return _flags_page(request, member)


@require_POST
def handled(request: HttpRequest, project: str, flag: int) -> HttpResponse:
    """This flag was looked at, and what was done about it."""
    member = access.researcher(request.user, project)
    try:
        flags.handle(min(flag, BIG), by=member, note=_typed(request, "note"))
    except Invalid as error:
        return _flags_page(request, member, error=error, failed=flag)
    messages.success(request, "Handled.")
    return redirect("flags", project)


@require_http_methods(["GET", "POST"])
def lift(request: HttpRequest, project: str, item: int) -> HttpResponse:
    """Lift the quarantine of an item: what that does, then with a typed reason."""
    member = access.researcher(request.user, project)
    found = Item.objects.filter(project=member.project, pk=min(item, BIG)).first()
    if found is None:
        raise Missing("There is no such item in this project.")
    error = None
    if request.method == "POST":
        try:
            shown = rounds.lift_quarantine(found, by=member, why=_typed(request, "why"))
        except Invalid as refused:
            error = refused
        else:
            sealed = "" if shown else " Its picture stays sealed: another project has it in quarantine too."
            messages.success(request, f"The quarantine is lifted. Its tasks stay retired until you re-open them.{sealed}")
            return redirect("item", project, item)
    context: dict[str, Any] = {
        "member": member, "here": "flags", "item": found, "error": error, "why": request.POST.get("why", ""),
        "tasks": found.tasks.select_related("question").order_by("question__title"),
    }  # fmt: skip
    return render(request, "annotation/lift.html", context, status=422 if error else 200)


def _flags_page(request: HttpRequest, member: Membership, *, error: Invalid | None = None, failed: int = 0) -> HttpResponse:
    closed = request.GET.get("handled") == "1"
    page = Paginator(flags.of_project(member.project, handled=closed), PAGE).get_page(request.GET.get("page"))
    context = {
        "member": member, "here": "flags", "page": page, "handled": closed, "error": error, "failed": failed,
        "note": request.POST.get("note", ""),
    }  # fmt: skip
    return render(request, "annotation/flags.html", context, status=422 if error else 200)


# ---------------------------------------------------------------- guideline gaps
@require_GET
def guideline_gaps(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """Rulings that name a gap, under the guideline in force or an earlier version, by what was ruled."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    versions = list(asked.guidelines.all())
    chosen = next((one for one in versions if str(one.version) == request.GET.get("version")), versions[0])
    groups = gaps.under(chosen)
    context = {
        "member": member, "here": "questions", "question": asked, "guideline": chosen, "versions": versions, "groups": groups,
        "count": sum(group.count for group in groups),
    }  # fmt: skip
    return render(request, "annotation/gaps.html", context)
