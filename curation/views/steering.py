"""Progress of a question: what is left, when it will be done, who works on it, and what comes first."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from annotation import access, questions, steering
from annotation.errors import Conflict, Invalid, Refused
from annotation.models import Membership, Question
from curation import choosing, forecast, tasking
from curation.figures import progress as figures
from curation.forecast import Standing
from curation.models import TaskVerb
from curation.views.figures import download, drawn
from workers.tasks import do_or_send

# What keeps people from working, as a line of a list: (one of them, several of them).
REASONS = {
    "consent": ("has not agreed to the content warning", "have not agreed to the content warning"),
    "break": ("is on a break", "are on a break"),
    "hour_limit": ("has reached the limit of an hour", "have reached the limit of an hour"),
    "day_limit": ("has reached the limit of a day", "have reached the limit of a day"),
    "paused": ("is paused after check answers", "are paused after check answers"),
    "unassigned": ("is not assigned to this question", "are not assigned to this question"),
    "inactive": ("waits until the question is offered again", "wait until the question is offered again"),
}


@require_http_methods(["GET", "POST"])
def show(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """The page; for htmx the part that is drawn again every few seconds. POST does what `do` says."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    if request.method == "POST":
        try:
            messages.success(request, _do(request, member, asked))
        except (Invalid, Conflict) as refused:
            return _page(request, member, asked, refused)
        return redirect("steering", project, asked.slug)
    return _page(request, member, asked)


def _page(request: HttpRequest, member: Membership, asked: Question, refused: Refused | None = None) -> HttpResponse:
    found = forecast.standing(asked)
    context: dict[str, Any] = {
        "member": member, "here": "questions", "question": asked, "found": found, "left": _left(found),
        "held_up": [f"{count:,} {REASONS[code][count != 1]}" for code, count in found.held_up.items()],
        "figures": drawn(figures.of_standing(found)), "table": figures.table(found)[:500],
        "daily": found.span == forecast.DAY, "each": figures.SPANS[found.span],
        "batches": [
            (batch, tasking.in_words(batch), batch.state in tasking.LIVE, choosing.in_words(member.project, batch.items))
            for batch in tasking.latest(asked)
        ],
    }  # fmt: skip
    if request.headers.get("HX-Request") and refused is None:
        return render(request, "curation/_steering.html", context)
    context |= {
        "refused": refused, "wrong": refused.fields if refused else {}, "typed": request.POST,
        "groups": choosing.groups(member.project, asked.kind), "voters": steering.voters(asked), "assigned": steering.assigned(asked),
    }  # fmt: skip
    return render(
        request, "curation/steering.html", context, status=(422 if isinstance(refused, Invalid) else refused.status) if refused else 200
    )


@dataclass(frozen=True)
class Left:
    """A line of what is left: how many tasks of a state, and what they need."""

    name: str
    tasks: int
    needs: str


def _left(found: Standing) -> list[Left]:
    needed = found.needed
    begun = f"{needed.open_votes:,} votes" + (f", {needed.held:,} of them being cast now" if needed.held else "")
    rows = [
        Left("Open", needed.tasks.get("open", 0), begun),
        Left("Disputed", needed.rulings, f"{needed.rulings:,} ruling{'' if needed.rulings == 1 else 's'}"),
        Left("Agreed", needed.tasks.get("agreed", 0), "nothing"),
        Left("Adjudicated", needed.tasks.get("adjudicated", 0), "nothing"),
        Left("Retired", needed.tasks.get("retired", 0), "nothing"),
    ]
    return [row for row in rows if row.tasks]


# ---------------------------------------------------------------- what is done
def _do(request: HttpRequest, member: Membership, asked: Question) -> str:
    """Do it; returns what to say."""
    do = request.POST.get("do", "")
    if do in ("pause", "resume"):
        questions.set_active(asked, do == "resume")
        return "On offer to annotators again." if do == "resume" else "No longer offered. Votes and disputes stay as they are."
    if do == "assign":
        chosen = steering.assign(asked, {_number(given, "people") for given in request.POST.getlist("people")})
        return f"{len(chosen):,} of those who label work on it now." if chosen else "Everyone who labels works on it now."
    if do in (TaskVerb.PUT_FIRST, TaskVerb.PUT_BACK):
        return _move(request, member, asked, do)
    raise Invalid("Say what to do.", fields={"do": "pause, resume, assign, put_first or put_back."})


def _move(request: HttpRequest, member: Membership, asked: Question, verb: str) -> str:
    if listed := request.POST.get("tasks", "").replace(",", " ").split():
        batch = tasking.move_listed(asked, verb, [_number(given, "tasks") for given in listed], member.user)
        return f"{tasking.in_words(batch)}."
    key, value = request.POST.get("metadata_key", "").strip(), request.POST.get("metadata_value", "")
    if value and not key:
        raise Invalid("Say which key has this value.", fields={"metadata_key": "Say which key has this value."})
    batch = tasking.start(asked, verb, request.POST.get("items") or choosing.ALL, metadata={key: value} if key else None, by=member.user)
    done = do_or_send(batch)
    return "A worker is at it; this page says how far it is." if done is None else f"{tasking.in_words(done)}."


def _number(given: str, field: str) -> int:
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        message = f"“{given[:40]}” is not a number."
        raise Invalid(message, fields={field: message})
    return int(given)


@require_GET
def figure(request: HttpRequest, project: str, question: str, name: str, kind: str) -> HttpResponse:
    """A figure of the page as a file."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    return download(figures.of_standing(forecast.standing(asked)), name, kind, f"{project}-{question}")
