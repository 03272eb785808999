"""Labelling: the page, and what its script asks. One answer is one request; the response brings what comes next.

These views are the hot path: plain Django, no template in a response to the script, and nothing in any of them about
other people's votes or about scores.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import access, gate, queue
from annotation.checks import Feedback
from annotation.errors import Conflict, Invalid, Missing, Refused
from annotation.guidelines import as_html
from annotation.models import AbstainReason, FlagReason, Kind, Membership, Pause, Question, TagUse

ANSWERS_BACK = 20  # how far Undo reaches
LONG_TEXT = 280  # characters; beyond, an item is set smaller
BARS = {"consent", "break", "paused"}  # while one of these holds, no item is shown, not even one that was answered
STOPPED = {
    "consent": "Before you start",
    "break": "Your break",
    "hour_limit": "Enough for this hour",
    "day_limit": "Enough for now",
    "paused": "You are paused on this question",
    "unassigned": "Others work on this question",
    "inactive": "This question is closed",
}


# ---------------------------------------------------------------- the page
@never_cache
@require_http_methods(["GET", "POST"])
def label(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """The task on screen and the one after it; a POST is an answer from a browser without script."""
    member = access.voter(request.user, project)
    asked = access.question(member, question)
    if request.method == "POST":
        return _answer_by_form(request, member, asked)
    return _page(request, member, asked)


def _page(
    request: HttpRequest,
    member: Membership,
    question: Question,
    *,
    error: Refused | None = None,
    said: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """`said` is what was answered when it could not be taken: it is shown again, to be corrected or copied."""
    guideline = question.guidelines.first()
    if guideline:
        queue.under_guideline(member, guideline)
    work = queue.next_work(member, question)
    answers = queue.last_answers(member, question, ANSWERS_BACK)
    asked = request.GET.get("answer", "")
    choices = list(question.choices.all())
    tags = list(question.tags.all())
    votes, today = queue.progress_of(member, question)
    share = queue.settled_share(question)
    stop = None if work else gate.stop_of(member, question)
    barred = bool(stop and stop.code in BARS)
    review = queue.own_vote(member, number_of(request.GET, "answer")) if asked and not barred else None
    care = gate.care_of(member)
    shown = review or (work[0] if work else None)
    context = {
        "member": member,
        "question": question,
        "choices": choices,
        "tags": tags,
        "guideline": guideline,
        "guideline_html": as_html(guideline.body) if guideline else "",
        "examples": _examples(guideline.examples if guideline else [], choices),
        "abstain_reasons": AbstainReason.choices,
        "flag_reasons": FlagReason.choices,
        "votes": votes,
        "today": today,
        "settled_percent": None if share is None else int(share * 100),
        "item": shown,
        "long": bool(shown and shown.text and len(shown.text) > LONG_TEXT),
        "review": review,
        "token": "" if review or not work else work[0].token,
        "said": said or {},
        "comment": (said or {}).get("comment") or (review.comment if review else ""),
        "pressed": said["value"] if said else review.choice if review else "",
        "pressed_tags": said["tags"] if said else review.tags if review else [],
        "error": error,
        "last": answers[0] if answers and not barred else None,
        "care": care,
        "stop": stop and stop_as_json(stop, member, question),
        "until": stop and stop.until,
        "data": {
            "person": member.user_id,
            "question": {
                "slug": question.slug,
                "kind": question.kind,
                "title": question.title,
                "version": guideline.version if guideline else 0,
            },
            "choices": [{"value": c.value, "label": c.label, "key": c.hotkey.lower(), "tags": c.tag_use} for c in choices],
            "tags": [{"value": t.value, "label": t.label, "key": t.hotkey.lower()} for t in tags],
            **hand(member, question, work, care, stop),
            "review": vote_as_json(member, review) if review else None,
            "answers": [{"vote": a.id, "label": a.label} for a in answers if a.kind == "vote" and a.changeable],
            "urls": {
                "vote": reverse("vote", args=[member.project.slug]),
                "abstain": reverse("abstain", args=[member.project.slug]),
                "flag": reverse("flag", args=[member.project.slug]),
                "next": reverse("next_work", args=[member.project.slug, question.slug]),
                "votes": reverse("own_vote", args=[member.project.slug, 0]),
                "greyscale": reverse("greyscale"),
                "home": reverse("home"),
            },
        },
    }
    return render(request, "annotation/label.html", context, status=status)


def _examples(examples: Sequence[Mapping[str, str]], choices: Sequence[Any]) -> list[dict[str, str]]:
    labels = {choice.value: choice.label for choice in choices}
    return [{**example, "choice": labels.get(example.get("choice", ""), example.get("choice", ""))} for example in examples]


def hand(
    member: Membership, question: Question | None, work: Sequence[queue.Work], care: gate.Care, stop: gate.Stop | None = None
) -> dict[str, Any]:
    """What the script gets with every answer: what is held now, the gauges, and why nothing is held, when something stands between."""
    return {
        "work": [as_json(member, one) for one in work],
        "care": care_as_json(care),
        **({"stop": stop_as_json(stop, member, question)} if stop and question else {}),
    }


def as_json(member: Membership, work: queue.Work) -> dict[str, Any]:
    """What the script may know of a task: the item and the hold, nothing else."""
    return {
        "token": str(work.token),
        "task": work.task_id,
        "expires": work.expires_at.isoformat(),
        "version": work.guideline_version,
        "practice": work.practice,
        **_item_as_json(member, work),
    }


def vote_as_json(member: Membership, vote: queue.OwnVote) -> dict[str, Any]:
    return {
        "vote": vote.vote_id,
        "task": vote.task_id,
        "choice": vote.choice,
        "tags": vote.tags,
        "comment": vote.comment,
        **_item_as_json(member, vote),
    }


def _item_as_json(member: Membership, shown: queue.Work | queue.OwnVote) -> dict[str, Any]:
    """A picture is judged without its prompt, so a picture's origin is never sent, whatever the question says."""
    picture = shown.kind == Kind.IMAGE
    return {
        "item": shown.item_id,
        "kind": shown.kind,
        "text": shown.text,
        "origin": None if picture else shown.origin_text,
        "picture": reverse("picture", args=[member.project.slug, shown.item_id]) if picture else None,
        "width": shown.width,
        "height": shown.height,
        "covered": shown.covered,
    }


def care_as_json(care: gate.Care) -> dict[str, Any]:
    """Times as ISO 8601 or None."""
    return {
        "hour": care.hour,
        "hour_limit": care.hour_limit,
        "day": care.day,
        "day_limit": care.day_limit,
        "break_at": care.break_at and care.break_at.isoformat(),
        "break_until": care.break_until and care.break_until.isoformat(),
    }


def stop_as_json(stop: gate.Stop, member: Membership, question: Question, *, address: str = "label") -> dict[str, Any]:
    """Why it does not go on, when it does, and the one thing to do. `address` names the page to come back to."""
    stop = with_figures(stop, member, question)
    act = {"label": "Your work", "url": reverse("home")}
    if stop.code == "consent":
        here = reverse(address, args=[member.project.slug, question.slug])
        act = {"label": "Read and decide", "url": f"{reverse('consent', args=[member.project.slug])}?{urlencode({'next': here})}"}
    return {
        "code": stop.code,
        "bars": stop.code in BARS,
        "title": STOPPED[stop.code],
        "message": stop.message,
        "until": stop.until and stop.until.isoformat(),
        "act": act,
    }


def with_figures(stop: gate.Stop, member: Membership, question: Question) -> gate.Stop:
    """A pause with what led to it: how many answers to known tasks were right, of how many, and how many are asked for."""
    pause = Pause.objects.filter(member=member, question=question, lifted_at=None).first() if stop.code == "paused" else None
    if pause is None:
        return stop
    needed = f"{pause.floor * 100:.4g} % needed"
    return replace(stop, message=f"{stop.message} Yours were {pause.correct:,} of {pause.answers:,} right, {needed}.")


# ---------------------------------------------------------------- without script
def _answer_by_form(request: HttpRequest, member: Membership, question: Question) -> HttpResponse:
    post = request.POST
    here = reverse("label", args=[member.project.slug, question.slug])
    try:
        done = _do_by_form(post, member, question)
    except (Invalid, Conflict, Missing) as error:
        said = {
            "value": post.get("choice", ""),
            "choice": label_of(question, post.get("choice", "")),
            "tags": post.getlist("tag"),
            "comment": post.get("comment", ""),
            "note": post.get("flag_note", ""),
        }
        return _page(request, member, question, error=error, said=said, status=422 if isinstance(error, Invalid) else error.status)
    words, feedback = done
    messages.success(request, words)
    if feedback:
        messages.info(request, in_words(question, feedback), extra_tags="practice")
    return redirect(here)


def _do_by_form(post: Any, member: Membership, question: Question) -> tuple[str, Feedback | None]:
    """What was done, in words; and what is said about a practice answer."""
    check_texts(value for _, values in post.lists() for value in values)
    action = post.get("do", "vote")
    if action == "abstain":
        queue.abstain(member, token_of(post), post.get("abstain_reason", ""))
        return "Abstained", None
    if action == "flag":
        queue.flag(member, number_of(post, "task"), post.get("flag_reason", ""), post.get("flag_note", ""))
        return "Flagged", None
    choice, tags, comment = post.get("choice", ""), tags_for(question, post.get("choice", ""), post.getlist("tag")), post.get("comment", "")
    if post.get("vote"):
        queue.revise_vote(member, number_of(post, "vote"), choice=choice, tags=tags, comment=comment)
        return f"Saved: {label_of(question, choice)}", None
    receipt = queue.cast_vote(member, token_of(post), choice=choice, tags=tags, comment=comment)
    return f"Saved: {label_of(question, choice)}", receipt.feedback


def in_words(question: Question, feedback: Feedback) -> str:
    labels = dict(question.tags.values_list("value", "label"))
    tags = f": {', '.join(labels.get(tag, tag) for tag in feedback.tags)}" if feedback.tags else ""
    return f"{'That was right.' if feedback.correct else 'Not quite.'} The answer is {feedback.label}{tags}. {feedback.why}".strip()


def label_of(question: Question, choice: str) -> str:
    return question.choices.filter(value=choice).values_list("label", flat=True).first() or choice


def tags_for(question: Question, choice: str, tags: list[str]) -> list[str]:
    """Without script every tag stands beside every choice; those that the choice does not take are dropped."""
    takes = question.choices.filter(value=choice).exclude(tag_use=TagUse.NONE).exists()
    return tags if takes else []


# ---------------------------------------------------------------- with script
@require_POST
def vote(request: HttpRequest, project: str) -> JsonResponse:
    """{person, question, token, choice, tags, comment, elapsed_ms} -> {vote, choice, work, care}, and stop or feedback.

    The same token again gives the same answer. `question` is where the page is: why nothing follows is told for it.
    """
    member = access.voter(request.user, project)
    body = body_of(request, member)
    elapsed = body.get("elapsed_ms")
    receipt = queue.cast_vote(
        member,
        token_of(body),
        choice=str(body.get("choice", "")),
        tags=words_of(body, "tags"),
        comment=str(body.get("comment", "")),
        elapsed_ms=elapsed if isinstance(elapsed, int) and elapsed >= 0 else None,
    )
    answer = {"vote": receipt.vote_id, "choice": receipt.choice, **_hand_named(member, body, receipt.work, receipt.care)}
    return private(answer | {"feedback": asdict(receipt.feedback)} if receipt.feedback else answer)


@require_POST
def abstain(request: HttpRequest, project: str) -> JsonResponse:
    """{person, question, token, reason} -> {work, care}, and stop."""
    member = access.voter(request.user, project)
    body = body_of(request, member)
    work = queue.abstain(member, token_of(body), str(body.get("reason", "")))
    return private(_hand_named(member, body, work, gate.care_of(member)))


def _hand_named(member: Membership, body: Mapping[str, Any], work: Sequence[queue.Work], care: gate.Care) -> dict[str, Any]:
    """`hand` for the question that the body names; looked up only when nothing follows."""
    asked = None if work else Question.objects.filter(project_id=member.project_id, slug=str(body.get("question", ""))).first()
    return hand(member, asked, work, care, gate.stop_of(member, asked) if asked else None)


@require_POST
def flag(request: HttpRequest, project: str) -> JsonResponse:
    """{person, task, reason, note} -> {}. Whoever rules on a task may flag it too, a researcher among them."""
    member = access.member(request.user, project)
    body = body_of(request, member)
    queue.flag(member, number_of(body, "task"), str(body.get("reason", "")), str(body.get("note", "")))
    return private({})


@require_GET
def next_work(request: HttpRequest, project: str, question: str) -> JsonResponse:
    """{work, care}, and stop: what the member holds, topped up."""
    member = access.voter(request.user, project)
    asked = access.question(member, question)
    work = queue.next_work(member, asked)
    return private(hand(member, asked, work, gate.care_of(member), None if work else gate.stop_of(member, asked)))


@require_http_methods(["GET", "POST"])
def own_vote(request: HttpRequest, project: str, vote: int) -> JsonResponse:
    """GET: one's own vote with its item. POST {person, choice, tags, comment}: change it while it can be changed."""
    member = access.voter(request.user, project)
    if vote >= 2**63:
        raise Missing("You have no such vote.")
    if request.method == "GET":
        return private(vote_as_json(member, queue.own_vote(member, vote)))
    body = body_of(request, member)
    choice = str(body.get("choice", ""))
    queue.revise_vote(member, vote, choice=choice, tags=words_of(body, "tags"), comment=str(body.get("comment", "")))
    return private({"vote": vote, "choice": choice})


@require_POST
def release(request: HttpRequest, project: str) -> HttpResponse:
    """Give back everything the member holds in this project."""
    member = access.voter(request.user, project)
    count = queue.release(member)
    messages.success(request, f"Given back: {count} task{'' if count == 1 else 's'}.")
    return redirect("home")


# ---------------------------------------------------------------- reading what was sent
def private(data: dict[str, Any]) -> JsonResponse:
    """JSON that no cache keeps."""
    return JsonResponse(data, headers={"Cache-Control": "no-store"})


def body_of(request: HttpRequest, member: Membership) -> dict[str, Any]:
    """The JSON object of the request, from the person who is signed in now.

    A page outlives a session: when someone else has signed in since, what the page still has to send stays with it.
    """
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError):  # the latter for brackets in brackets in brackets
        raise Invalid("The request is not JSON.") from None
    if not isinstance(body, dict):
        raise Invalid("The request is not a JSON object.")
    if body.get("person", member.user_id) != member.user_id:
        raise Conflict("Someone else is signed in now. Sign in as yourself to send this.", code="other_person")
    check_texts(body.values())
    return body


def check_texts(values: Iterable[Any]) -> None:
    """PostgreSQL keeps no NUL and no half of a surrogate pair; say so instead of failing on it."""
    for value in values:
        if isinstance(value, list):
            check_texts(value)
        elif isinstance(value, str) and ("\x00" in value or (not value.isascii() and any("\ud800" <= one <= "\udfff" for one in value))):
            raise Invalid("The text holds a character that cannot be kept (NUL, or half of a pair). Take it out and send again.")


def token_of(body: Mapping[str, Any]) -> uuid.UUID:
    try:
        return uuid.UUID(str(body.get("token", "")))
    except ValueError:
        raise Invalid("This is not a task's token.", fields={"token": "Reload the page."}) from None


def number_of(body: Mapping[str, Any], name: str) -> int:
    value = str(body.get(name, ""))
    if not value.isdecimal() or len(value) > 18:
        raise Invalid(f"{name} must be a number.", fields={name: "A whole number."})
    return int(value)


def words_of(body: Mapping[str, Any], name: str) -> list[str]:
    value = body.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise Invalid(f"{name} must be a list of words.", fields={name: "A list."})
    return value
