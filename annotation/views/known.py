"""Known answers of a question: marked, drawn, changed, taken out; who answers how many of them right, and who is paused."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from annotation import access, known
from annotation.checks import ANSWERS_BEFORE_PAUSE
from annotation.errors import Invalid
from annotation.models import KnownAnswer, Membership, Question

FIELDS = ("lines", "count", "seed", "use")


@require_http_methods(["GET", "POST"])
def listing(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """The lists and their figures. POST: `do` is lines (a list of items) or draw (from settled tasks); `use` is practice or check."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    if request.method == "GET":
        form = {"lines": _prefilled(request.GET.get("item", "")), "seed": str(asked.project.seed), "use": "check"}
        return _page(request, member, asked, form)
    form = {name: request.POST.get(name, "").strip() for name in FIELDS}
    try:
        made = _mark(member, asked, request.POST.get("do", ""), form)
    except Invalid as error:
        return _page(request, member, asked, form, error)
    kind = "practice" if form["use"] == "practice" else "checks"
    messages.success(request, f"{len(made):,} known answer{'' if len(made) == 1 else 's'} in use as {kind}. Nobody votes on these tasks.")
    return redirect("known", project, asked.slug)


def _prefilled(external_id: str) -> str:
    return f"{external_id}, " if external_id and "\x00" not in external_id else ""


def _mark(member: Membership, asked: Question, do: str, form: dict[str, str]) -> list[KnownAnswer]:
    practice = form["use"] == "practice"
    if do == "lines":
        return known.mark_lines(asked, form["lines"], practice=practice, by=member)
    if do == "draw":
        return known.mark_settled(asked, _whole(form, "count"), seed=_whole(form, "seed"), practice=practice, by=member)
    raise Invalid("Say what to do: name items, or draw from settled tasks.")


def _whole(form: dict[str, str], name: str) -> int:
    typed = form[name].replace(",", "")
    if not typed.removeprefix("-").isdecimal() or not typed.isascii() or len(typed) > 19:
        raise Invalid("A number is missing.", fields={name: "A whole number."})
    return int(typed)


def _page(request: HttpRequest, member: Membership, asked: Question, form: dict[str, str], error: Invalid | None = None) -> HttpResponse:
    after = request.GET.get("after", "")
    start = int(after) if after.isascii() and after.isdecimal() and len(after) < 19 else 0
    checks = known.active(asked, practice=False, after=start, limit=known.PAGE + 1)
    more = checks[known.PAGE - 1].known if len(checks) > known.PAGE else None
    context = {
        "member": member, "here": "questions", "question": asked, "outlook": known.outlook(asked),
        "practice": known.active(asked, practice=True), "checks": checks[: known.PAGE], "more": more, "start": start,
        "tallies": known.tallies(asked), "paused": [pause for pause in known.paused(member.project) if pause.question_id == asked.pk],
        "available": known.settled_available(asked), "contents": request.GET.get("contents") == "1", "form": form,
        "needed": ANSWERS_BEFORE_PAUSE, "problem": error.message if error else "", "errors": error.fields if error else {},
        "faults": _faults(error) if error else [],
    }  # fmt: skip
    return render(request, "annotation/known.html", context, status=422 if error else 200)


def _faults(error: Invalid) -> list[tuple[str, str]]:
    """What is wrong line by line; messages of the form's own fields stand beside those."""
    return [(f"Line {name.removeprefix('line.')}", message) for name, message in error.fields.items() if name.startswith("line.")]


@require_http_methods(["GET", "POST"])
def one(request: HttpRequest, project: str, question: str, known_answer: int) -> HttpResponse:
    """One known answer. POST: `do` is change (choice, tag, why, use) or remove."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    line = known.find(asked, known_answer)
    problem = ""
    if request.method == "POST":
        try:
            messages.success(request, _change(asked, line, request))
            return redirect("known", project, asked.slug)
        except Invalid as error:
            problem = error.message
    given = request.POST if problem else None
    context = {
        "member": member, "here": "questions", "question": asked, "line": line, "problem": problem,
        "contents": request.GET.get("contents") == "1",
        "choice": given.get("choice", "") if given else line.known.choice.value,
        "tags": given.getlist("tag") if given else line.known.tags,
        "why": given.get("why", "") if given else line.known.why,
        "use": given.get("use", "") if given else "practice" if line.known.practice else "check",
    }  # fmt: skip
    return render(request, "annotation/known_one.html", context, status=422 if problem else 200)


def _change(asked: Question, line: known.Line, request: HttpRequest) -> str:
    given = request.POST
    if given.get("do") == "remove":
        known.unmark(asked, line.known.pk)
        return "Taken out. It is put to nobody any more; what was said to it stays on record."
    if given.get("do") == "change":
        known.change(
            asked, line.known.pk, choice=given.get("choice", ""), tags=given.getlist("tag"), why=given.get("why", ""),
            practice=given.get("use") == "practice",
        )  # fmt: skip
        return "Changed. What people said before is held against it too."
    raise Invalid("Say what to do: change it, or take it out.")


@require_POST
def lift_pause(request: HttpRequest, project: str, question: str, number: int) -> HttpResponse:
    """Let a paused member go on with the question."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    pause = known.lift_pause(asked, number, member)
    messages.success(
        request, f"{pause.member.pseudonym} can go on with {asked.title}. Their next {ANSWERS_BEFORE_PAUSE} known answers decide anew."
    )
    return redirect("known", project, asked.slug)
