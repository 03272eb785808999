"""Labelling: the page, and what its script asks. One answer is one request; the response brings what comes next.

These views are the hot path: plain Django, no template in a response to the script, and nothing in any of them about
other people's votes or about scores.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import access, queue
from annotation.errors import Conflict, Invalid, Missing, Refused
from annotation.guidelines import as_html
from annotation.models import AbstainReason, FlagReason, Membership, Question, TagUse

ANSWERS_BACK = 20  # how far Undo reaches
LONG_TEXT = 280  # characters; beyond, an item is set smaller


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
    review = queue.own_vote(member, number_of(request.GET, "answer")) if asked else None
    choices = list(question.choices.all())
    tags = list(question.tags.all())
    votes, today = queue.progress_of(member, question)
    share = queue.settled_share(question)
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
        "last": answers[0] if answers else None,
        "data": {
            "person": member.user_id,
            "question": {"title": question.title, "version": guideline.version if guideline else 0},
            "choices": [{"value": c.value, "label": c.label, "key": c.hotkey.lower(), "tags": c.tag_use} for c in choices],
            "tags": [{"value": t.value, "label": t.label, "key": t.hotkey.lower()} for t in tags],
            "work": [as_json(one) for one in work],
            "review": vote_as_json(review) if review else None,
            "answers": [{"vote": a.id, "label": a.label} for a in answers if a.kind == "vote" and a.changeable],
            "urls": {
                "vote": reverse("vote", args=[member.project.slug]),
                "abstain": reverse("abstain", args=[member.project.slug]),
                "flag": reverse("flag", args=[member.project.slug]),
                "next": reverse("next_work", args=[member.project.slug, question.slug]),
                "votes": reverse("own_vote", args=[member.project.slug, 0]),
                "home": reverse("home"),
            },
        },
    }
    return render(request, "annotation/label.html", context, status=status)


def _examples(examples: Sequence[Mapping[str, str]], choices: Sequence[Any]) -> list[dict[str, str]]:
    labels = {choice.value: choice.label for choice in choices}
    return [{**example, "choice": labels.get(example.get("choice", ""), example.get("choice", ""))} for example in examples]


def as_json(work: queue.Work) -> dict[str, Any]:
    """What the script may know of a task: the item and the hold, nothing else."""
    return {
        "token": str(work.token),
        "task": work.task_id,
        "item": work.item_id,
        "kind": work.kind,
        "text": work.text,
        "origin": work.origin_text,
        "expires": work.expires_at.isoformat(),
        "version": work.guideline_version,
    }


def vote_as_json(vote: queue.OwnVote) -> dict[str, Any]:
    return {
        "vote": vote.vote_id,
        "task": vote.task_id,
        "item": vote.item_id,
        "kind": vote.kind,
        "text": vote.text,
        "origin": vote.origin_text,
        "choice": vote.choice,
        "tags": vote.tags,
        "comment": vote.comment,
    }


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
            "note": post.get("note", ""),
        }
        return _page(request, member, question, error=error, said=said, status=422 if isinstance(error, Invalid) else error.status)
    messages.success(request, done)
    return redirect(here)


def _do_by_form(post: Any, member: Membership, question: Question) -> str:
    check_texts(value for _, values in post.lists() for value in values)
    action = post.get("do", "vote")
    if action == "abstain":
        queue.abstain(member, token_of(post), post.get("abstain_reason", ""))
        return "Abstained"
    if action == "flag":
        queue.flag(member, number_of(post, "task"), post.get("flag_reason", ""), post.get("note", ""))
        return "Flagged"
    choice, tags, comment = post.get("choice", ""), tags_for(question, post.get("choice", ""), post.getlist("tag")), post.get("comment", "")
    if post.get("vote"):
        queue.revise_vote(member, number_of(post, "vote"), choice=choice, tags=tags, comment=comment)
    else:
        queue.cast_vote(member, token_of(post), choice=choice, tags=tags, comment=comment)
    return f"Saved: {label_of(question, choice)}"


def label_of(question: Question, choice: str) -> str:
    return question.choices.filter(value=choice).values_list("label", flat=True).first() or choice


def tags_for(question: Question, choice: str, tags: list[str]) -> list[str]:
    """Without script every tag stands beside every choice; those that the choice does not take are dropped."""
    takes = question.choices.filter(value=choice).exclude(tag_use=TagUse.NONE).exists()
    return tags if takes else []


# ---------------------------------------------------------------- with script
@require_POST
def vote(request: HttpRequest, project: str) -> JsonResponse:
    """{person, token, choice, tags, comment, elapsed_ms} -> {vote, choice, work}. The same token again gives the same answer."""
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
    return private({"vote": receipt.vote_id, "choice": receipt.choice, "work": [as_json(one) for one in receipt.work]})


@require_POST
def abstain(request: HttpRequest, project: str) -> JsonResponse:
    """{person, token, reason} -> {work}."""
    member = access.voter(request.user, project)
    body = body_of(request, member)
    return private({"work": [as_json(one) for one in queue.abstain(member, token_of(body), str(body.get("reason", "")))]})


@require_POST
def flag(request: HttpRequest, project: str) -> JsonResponse:
    """{person, task, reason, note} -> {}."""
    member = access.voter(request.user, project)
    body = body_of(request, member)
    queue.flag(member, number_of(body, "task"), str(body.get("reason", "")), str(body.get("note", "")))
    return private({})


@require_GET
def next_work(request: HttpRequest, project: str, question: str) -> JsonResponse:
    """{work}: what the member holds, topped up."""
    member = access.voter(request.user, project)
    return private({"work": [as_json(one) for one in queue.next_work(member, access.question(member, question))]})


@require_http_methods(["GET", "POST"])
def own_vote(request: HttpRequest, project: str, vote: int) -> JsonResponse:
    """GET: one's own vote with its item. POST {person, choice, tags, comment}: change it while it can be changed."""
    member = access.voter(request.user, project)
    if vote >= 2**63:
        raise Missing("You have no such vote.")
    if request.method == "GET":
        return private(vote_as_json(queue.own_vote(member, vote)))
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
