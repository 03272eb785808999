"""Adjudication: what waits, the ruling made blind, then the votes and the ruling that stands."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from annotation import access, consistency, disputes, gate, queue
from annotation.errors import Conflict, Invalid, Missing, Refused
from annotation.guidelines import as_html
from annotation.models import AbstainReason, FlagReason, Membership, Question, Role, RulingReason, TagUse
from annotation.views.labelling import LONG_TEXT, check_texts, label_of, number_of, stop_as_json, tags_for, token_of


@require_GET
def listing(request: HttpRequest, project: str) -> HttpResponse:
    """The questions of a project with how many disputes wait and are ruled on."""
    member = access.adjudicator(request.user, project)
    rows = [(question, *disputes.dispute_counts(question)) for question in member.project.questions.order_by("pk")]
    first = next((question for question, waiting, _ in rows if waiting), None)
    researcher = member.role == Role.RESEARCHER
    layout = "shell.html" if researcher else "plain.html"
    return render(
        request,
        "annotation/disputes.html",
        {
            "member": member, "here": "disputes", "rows": rows, "first": first, "researcher": researcher, "layout": layout,
            "own": None if researcher else consistency.of_member(member),
            "repeats": any(question.repeat_share for question, _, _ in rows), "fewest": consistency.FEWEST,
            "adjudicators": consistency.of_project(member.project) if researcher else [],
        },
    )  # fmt: skip


@never_cache
@require_http_methods(["GET", "POST"])
def dispute(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """One dispute: rule blind, read the votes, confirm or change. POST do=blind, rule, back or flag.

    `looked`, a hold's token, says that its picture was uncovered when the blind ruling was sent; it stays so for that hold.
    """
    member = access.adjudicator(request.user, project)
    asked = access.question(member, question)
    if request.method == "GET":
        return _page(request, member, asked)
    wants_json = request.headers.get("Accept", "").startswith("application/json")
    try:
        done, leads_to = _do(request.POST, member, asked)
    except (Invalid, Conflict, Missing) as error:
        if wants_json:
            raise
        return _page(request, member, asked, error=error)
    if done:
        messages.success(request, done)
    return JsonResponse({"next": leads_to}) if wants_json else redirect(leads_to)


def _do(post: QueryDict, member: Membership, question: Question) -> tuple[str, str]:
    """What to say about it, and where it leads."""
    check_texts(value for _, values in post.lists() for value in values)
    token, action, choice = token_of(post), post.get("do", ""), post.get("choice", "")
    here = reverse("dispute", args=[member.project.slug, question.slug])
    tags = tags_for(question, choice, post.getlist("tag"))
    if action == "back":
        disputes.give_back(member, token)
        return "Given back. It waits for an adjudicator again.", reverse("disputes", args=[member.project.slug])
    if action == "flag":
        queue.flag(member, number_of(post, "task"), post.get("flag_reason", ""), post.get("flag_note", ""))
        return "Flagged.", here
    if action == "blind":
        stands = disputes.rule_blind(member, token, choice=choice, tags=tags).blind_choice
        return ("" if stands == choice else f"You had already ruled blind elsewhere: {label_of(question, stands or '')}."), here + (
            f"?looked={token}" if post.get("looked") else ""
        )
    disputes.rule(member, token, choice=choice, tags=tags, reason=post.get("reason", ""), note=post.get("note", ""))
    stood = disputes.stands(member, token)
    if stood != choice:  # the same hold, ruled on in another tab
        return f"You had already ruled on this one elsewhere: {label_of(question, stood or '')}.", here
    return "Ruled. Your ruling is recorded.", here


def _page(request: HttpRequest, member: Membership, question: Question, *, error: Refused | None = None) -> HttpResponse:
    """With an error, what was chosen and typed is shown again."""
    guideline = question.guidelines.first()
    if guideline:
        queue.under_guideline(member, guideline)
    held = disputes.next_dispute(member, question)
    stop = None if held else gate.stop_of(member, question, ruling=True)
    if held and held.covered and request.GET.get("looked") == str(held.token):
        held = replace(held, covered=False)
    waiting, ruled = disputes.dispute_counts(question)
    # What was chosen belongs to the dispute it was chosen for; a note is shown again either way, to be copied.
    post = request.POST
    same = bool(error and held and post.get("token") == str(held.token))
    chosen, tags = (post.get("choice", ""), post.getlist("tag")) if same else ("", [])
    if held and held.blind_choice and not chosen:
        chosen, tags = held.blind_choice, held.blind_tags
    choices = list(question.choices.all())
    labels = {choice.value: choice.label for choice in choices}
    context: dict[str, Any] = {
        "member": member,
        "question": question,
        "dispute": held,
        "letters": [disputes.letter(place) for place in range(held.vote_count)] if held else [],
        "open": bool(held and held.votes is not None),
        "long": bool(held and held.text and len(held.text) > LONG_TEXT),
        "choices": choices,
        "tags": list(question.tags.all()),
        "takes_tags": any(choice.tag_use != TagUse.NONE for choice in choices),
        "votes": _votes_with_labels(held, question),
        "abstained": _abstained(held),
        "stop": stop and stop_as_json(stop, member, question, address="dispute"),
        "until": stop and stop.until,
        "care": gate.care_of(member),
        "place": f"Disputes, {question.title}",
        "blind_label": labels.get(held.blind_choice or "", "") if held else "",
        "chosen": chosen,
        "chosen_label": labels.get(chosen, ""),
        "chosen_tags": tags,
        "reasons": RulingReason.choices,
        "flag_reasons": FlagReason.choices,
        "reason": post.get("reason", "") if same else "",
        "note": post.get("note", "") if same or not held else "",
        "lost_note": "" if same else post.get("note", ""),
        "guideline": guideline,
        "guideline_html": as_html(guideline.body) if guideline else "",
        "waiting": waiting,
        "ruled": ruled,
        "all": waiting + ruled,
        "researcher": member.role == Role.RESEARCHER,
        "error": error,
    }
    status = 200 if error is None else 422 if isinstance(error, Invalid) else error.status
    return render(request, "annotation/dispute.html", context, status=status)


def _votes_with_labels(held: disputes.Dispute | None, question: Question) -> list[dict[str, Any]]:
    labels = dict(question.tags.values_list("value", "label"))
    votes = (held.votes if held else None) or []
    return [
        {"letter": one.letter, "label": one.label, "comment": one.comment, "tags": [labels.get(tag, tag) for tag in one.tags]}
        for one in votes
    ]


def _abstained(held: disputes.Dispute | None) -> list[tuple[int, str]]:
    """How many abstained for which reason, most first; nothing before the votes are open."""
    labels = {reason.value: str(reason.label) for reason in AbstainReason}
    given = (held.abstentions if held else None) or {}
    return sorted(((count, labels[reason]) for reason, count in given.items()), reverse=True)
