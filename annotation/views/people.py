"""Who is in a project and what they may do, the project itself, and the trail of what was changed."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods

from annotation import access, audit, known, people, rounds
from annotation.checks import ANSWERS_BEFORE_PAUSE
from annotation.errors import Invalid, Refused
from annotation.models import Membership


@never_cache
@sensitive_variables("added")
@require_http_methods(["GET", "POST"])
def listing(request: HttpRequest, project: str) -> HttpResponse:
    """Everyone in the project; POST adds someone. A new account's password is on the answer to that, and nowhere else."""
    member = access.researcher(request.user, project)
    if request.method == "GET":
        return _people(request, member)
    form = {name: request.POST.get(name, "").strip() for name in ("username", "role", "account")}
    try:
        added = people.add_member(member.project, form["username"], form["role"], new_account=form["account"] == "new")
    except Refused as error:
        return _people(request, member, status=422, form=form, errors=error.fields, problem=error.message)
    if added.password:
        return _people(request, member, added=added)
    role = added.member.get_role_display().lower()
    messages.success(request, f"{form['username']} is in, as {role}. Votes and exports say {added.member.pseudonym}.")
    return redirect("people", project)


def _people(request: HttpRequest, member: Membership, status: int = 200, **context: object) -> HttpResponse:
    raters, their_votes, nameless_votes = people.raters(member.project)
    shown = {
        "member": member, "here": "people", "members": people.members(member.project), "roles": people.PEOPLE,
        "raters": raters, "rater_votes": their_votes, "nameless_votes": nameless_votes,
        "paused": {pause.member_id for pause in known.paused(member.project)}, **context,
    }  # fmt: skip
    return render(request, "annotation/people.html", shown, status=status)


@require_http_methods(["GET", "POST"])
def person(request: HttpRequest, project: str, number: int) -> HttpResponse:
    """One person's part in the project. POST: `do` is role (with `role`), leave, return or forget."""
    member = access.researcher(request.user, project)
    problem = ""
    if request.method == "POST":
        try:
            done = _do(member, number, request.POST.get("do", ""), request.POST.get("role", ""))
        except (Invalid, Refused) as error:
            if error.status == 404:
                raise
            problem = error.message
        else:
            messages.success(request, done)
            mine = member.number == number
            return redirect("home") if mine else redirect("people", project)
    found = people.members(member.project).filter(number=number).first() or people.find(member.project, number)
    context = {
        "member": member, "here": "people", "person": found, "roles": people.PEOPLE, "problem": problem,
        "parts": people.parts(found), "pauses": known.pauses_of(found), "consent": people.last_consent(found),
        "forgettable": people.account_to_forget(found), "needed": ANSWERS_BEFORE_PAUSE,
    }  # fmt: skip
    return render(request, "annotation/people_person.html", context, status=422 if problem else 200)


def _do(member: Membership, number: int, do: str, role: str) -> str:
    if do == "role":
        changed = people.change_role(member.project, number, role)
        return f"{changed.name} is {changed.get_role_display()} now."
    if do == "leave":
        return f"{people.deactivate(member.project, number).pseudonym} is no longer in this project. Their votes stay, their name is gone."
    if do == "return":
        return f"{people.reactivate(member.project, number).name} is in again."
    if do == "forget":
        return f"The account of {people.forget_member(member.project, number).pseudonym} is forgotten. Their votes stay."
    raise Invalid("Say what to do: change the role, end their part, let them in again, or have the account forgotten.")


@require_http_methods(["GET", "POST"])
def void(request: HttpRequest, project: str, number: int) -> HttpResponse:
    """Strike out someone's votes, on one question or on all. The page says first what will happen; POST (question, why) does it."""
    member = access.researcher(request.user, project)
    found = people.find(member.project, number)
    given = request.POST if request.method == "POST" else request.GET
    slug, why = given.get("question", ""), given.get("why", "")
    asked = access.question(member, slug) if slug else None
    problem = ""
    if request.method == "POST":
        try:
            done = rounds.void_votes(found, asked, by=member, why=why)
        except Invalid as error:
            problem = error.message
        else:
            messages.success(request, f"{done.votes:,} voided, {done.reopened:,} open again, {done.kept_by_ruling:,} kept by a ruling.")
            return redirect("person", project, number)
    context = {
        "member": member, "here": "people", "person": found, "asked": asked, "would": people.would_void(found, asked), "why": why,
        "problem": problem,
    }  # fmt: skip
    return render(request, "annotation/people_void.html", context, status=422 if problem else 200)


@require_GET
def trail(request: HttpRequest, project: str) -> HttpResponse:
    """Who changed what in the project, newest first."""
    member = access.researcher(request.user, project)
    kind, number = request.GET.get("kind", audit.SETTINGS), request.GET.get("who", "")
    who = people.find(member.project, int(number)) if number.isascii() and number.isdecimal() and len(number) < 10 else None
    found = audit.trail(member.project, kind, request.GET.get("before", ""), who=who)
    context = {
        "member": member, "here": "people", "trail": found, "kind": kind, "kinds": audit.KINDS, "who": who,
        "members": people.members(member.project),
    }  # fmt: skip
    return render(request, "annotation/people_audit.html", context)


@require_http_methods(["GET", "POST"])
def new_project(request: HttpRequest) -> HttpResponse:
    """Begin a project, as its first researcher."""
    founder = access.maker(request.user)
    if request.method == "GET":
        return render(request, "annotation/people_project_new.html", {"form": {}})
    form = {name: request.POST.get(name, "").strip() for name in ("slug", "name")}
    try:
        project = people.add_project(form["slug"] or slugify(form["name"])[:60], form["name"], founder=founder)
    except Invalid as error:
        context = {"form": form, "errors": error.fields, "problem": error.message}
        return render(request, "annotation/people_project_new.html", context, status=422)
    return redirect("overview", project.slug)
