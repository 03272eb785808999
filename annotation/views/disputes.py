"""Adjudication: what waits, the ruling made blind, then the votes and the ruling that stands."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from annotation import access, queue
from annotation.errors import Conflict, Invalid, Refused
from annotation.guidelines import as_html
from annotation.models import Membership, Question, Role, RulingReason
from annotation.views.labelling import LONG_TEXT, question_of, tags_for, token_of


@require_GET
def disputes(request: HttpRequest, project: str) -> HttpResponse:
    """The questions of a project with how many disputes wait and are ruled on."""
    member = access.adjudicator(request.user, project)
    rows = [(question, *queue.dispute_counts(question)) for question in member.project.questions.order_by("pk")]
    template = "annotation/disputes.html" if member.role == Role.RESEARCHER else "annotation/disputes_plain.html"
    return render(request, template, {"member": member, "here": "disputes", "rows": rows, "researcher": member.role == Role.RESEARCHER})


@never_cache
@require_http_methods(["GET", "POST"])
def dispute(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """One dispute: rule blind, read the votes, confirm or change. POST do=blind, rule or back."""
    member = access.adjudicator(request.user, project)
    asked = question_of(member, question)
    if request.method == "GET":
        return _page(request, member, asked)
    try:
        return _do(request, member, asked)
    except (Invalid, Conflict) as error:
        return _page(request, member, asked, error=error)


def _do(request: HttpRequest, member: Membership, question: Question) -> HttpResponse:
    post, token = request.POST, token_of(request.POST)
    action = post.get("do", "rule")
    if action == "back":
        queue.give_back(member, token)
        messages.success(request, "Given back. It waits for another adjudicator or for you, later.")
        return redirect("disputes", member.project.slug)
    choice = post.get("choice", "")
    tags = tags_for(question, choice, post.getlist("tag"))
    if action == "blind":
        queue.rule_blind(member, token, choice=choice, tags=tags)
    else:
        queue.rule(member, token, choice=choice, tags=tags, reason=post.get("reason", ""), note=post.get("note", ""))
        messages.success(request, "Ruled. It is ground truth now.")
    return redirect("dispute", member.project.slug, question.slug)


def _page(request: HttpRequest, member: Membership, question: Question, *, error: Refused | None = None) -> HttpResponse:
    """With an error, what was chosen and typed is shown again."""
    held = queue.next_dispute(member, question)
    waiting, ruled = queue.dispute_counts(question)
    said = request.POST if error else {}
    chosen, tags = (said.get("choice", ""), request.POST.getlist("tag")) if error else ("", [])
    if held and held.blind_choice and not chosen:
        chosen, tags = held.blind_choice, held.blind_tags
    choices = list(question.choices.all())
    guideline = question.guidelines.first()
    labels = {choice.value: choice.label for choice in choices}
    context: dict[str, Any] = {
        "member": member,
        "question": question,
        "dispute": held,
        "letters": [chr(ord("A") + n % 26) for n in range(held.vote_count)] if held else [],
        "open": bool(held and held.votes is not None),
        "long": bool(held and held.text and len(held.text) > LONG_TEXT),
        "choices": choices,
        "tags": list(question.tags.all()),
        "takes_tags": any(choice.tag_use != "none" for choice in choices),
        "tag_labels": {tag.value: tag.label for tag in question.tags.all()},
        "blind_label": labels.get(held.blind_choice or "", "") if held else "",
        "chosen": chosen,
        "chosen_label": labels.get(chosen, ""),
        "chosen_tags": tags,
        "reasons": RulingReason.choices,
        "reason": said.get("reason", ""),
        "note": said.get("note", ""),
        "guideline": guideline,
        "guideline_html": as_html(guideline.body) if guideline else "",
        "waiting": waiting,
        "ruled": ruled,
        "researcher": member.role == Role.RESEARCHER,
        "error": error,
    }
    status = 200 if error is None else 422 if isinstance(error, Invalid) else error.status
    return render(request, "annotation/dispute.html", context, status=status)
