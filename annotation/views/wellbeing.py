"""Care: what people agree to, what each has seen, and how a project looks after its people."""

from collections.abc import Mapping

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import access, wellbeing
from annotation.errors import Conflict, Invalid
from annotation.models import Consent, Membership, Role
from annotation.wellbeing import CareSettings

DAYS_OWN = 30  # how far one's own exposure page goes back
NUMBERS = ("hourly_limit", "daily_limit", "break_after_minutes", "break_minutes")


# ---------------------------------------------------------------- consent
@never_cache
@require_http_methods(["GET", "POST"])
def consent(request: HttpRequest, project: str) -> HttpResponse:
    """What one may see here, and what one agrees to. POST `do`: agree (with `read`, `free` and `version`) or withdraw."""
    member = access.voter(request.user, project)
    if request.method == "GET":
        return _consent_page(request, member)
    if request.POST.get("do") == "withdraw":
        back = wellbeing.withdraw_consent(member)
        held = f" {back} task{'' if back == 1 else 's'} went back to the queue." if back else ""
        messages.success(request, f"Your consent for {member.project.name} is withdrawn.{held} The answers you gave stay.")
        return redirect("home")
    if not (request.POST.get("read") and request.POST.get("free")):
        return _consent_page(request, member, problem="Both boxes are needed. If you cannot tick one, choose Not now.", status=422)
    try:
        wellbeing.give_consent(member, _number(request.POST.get("version", "")) or 0)
    except Conflict as error:
        return _consent_page(request, member, problem=error.message, status=error.status)
    messages.success(request, "Thank you. You can withdraw this at any time, under Your work.")
    return redirect(_next(request) or reverse("home"))


def _consent_page(request: HttpRequest, member: Membership, *, problem: str = "", status: int = 200) -> HttpResponse:
    questions = list(member.project.questions.filter(active=True))
    context = {
        "member": member,
        "project": member.project,
        "warning": wellbeing.warning_of(member.project),
        "consent": wellbeing.consent_of(member),
        "earlier": Consent.objects.filter(member=member).select_related("warning").order_by("-given_at").first(),
        "pictures": any(question.kind == "image" for question in questions),
        "benign_percent": round(member.project.benign_share * 100),
        "problem": problem,
        "ticked": request.POST,
        "next": _next(request),
    }
    return render(request, "annotation/consent.html", context, status=status)


def _next(request: HttpRequest) -> str:
    """Where the person was on their way to; only a page of this app."""
    wanted = request.POST.get("next") or request.GET.get("next", "")
    return wanted if wanted.startswith("/") and url_has_allowed_host_and_scheme(wanted, allowed_hosts=None) else ""


# ---------------------------------------------------------------- one's own exposure
@never_cache
@require_GET
def exposure(request: HttpRequest) -> HttpResponse:
    """One's own exposure by day and hour, and what one agreed to. Nobody else has this page."""
    person = access.person(request.user)
    days = wellbeing.last_days(person, DAYS_OWN)
    mine = Membership.objects.filter(user=person, active=True, role__in=[Role.ANNOTATOR, Role.ADJUDICATOR], project__archived_at=None)
    agreed = [(member, wellbeing.consent_of(member)) for member in mine.select_related("project").order_by("project__name")]
    context = {
        "days": list(reversed([day for day in days if day.items])),
        "grid": days[next((number for number, day in enumerate(days) if day.items), len(days)) :],
        "total": sum(day.items for day in days),
        "span": DAYS_OWN,
        "agreed": [(member, given) for member, given in agreed if given],
    }
    return render(request, "annotation/exposure.html", context)


@require_POST
def greyscale(request: HttpRequest) -> HttpResponse:
    """Pictures without colour, or with. Kept with the person, so that it holds on every machine."""
    user = access.person(request.user)
    user.greyscale = request.POST.get("greyscale") == "on"
    user.save(update_fields=["greyscale"])
    if request.headers.get("Accept", "").startswith("application/json"):
        return HttpResponse(status=204)
    messages.success(request, f"Pictures are shown {'in greyscale' if user.greyscale else 'in colour'}.")
    return redirect("account")


# ---------------------------------------------------------------- the researcher's page
@require_http_methods(["GET", "POST"])
def care(request: HttpRequest, project: str) -> HttpResponse:
    """A project's content warning, limits, breaks and support, with its totals. POST `do`: warning (with `body`) or settings."""
    member = access.researcher(request.user, project)
    if request.method == "GET":
        return _care_page(request, member)
    try:
        if request.POST.get("do") == "warning":
            made = wellbeing.new_warning(member.project, request.POST.get("body", ""), access.person(request.user))
            messages.success(request, f"Version {made.version} is in force. Nobody gets work before they have agreed to it.")
        else:
            wellbeing.change_care(member.project, _settings(request.POST))
            messages.success(request, "Saved. It holds from the next task on.")
    except Invalid as error:
        return _care_page(request, member, error=error, status=422)
    return redirect("care", project)


def _care_page(request: HttpRequest, member: Membership, *, error: Invalid | None = None, status: int = 200) -> HttpResponse:
    settings = wellbeing.care_settings(member.project)
    form = {name: "" if getattr(settings, name) is None else str(getattr(settings, name)) for name in NUMBERS}
    form |= {"benign_percent": f"{settings.benign_share * 100:g}", "support_note": settings.support_note}
    versions = list(member.project.warnings.select_related("author"))
    form["body"] = versions[0].body if versions else wellbeing.READY_WARNING
    if error:
        form |= {name: request.POST[name] for name in form if name in request.POST}
    totals = wellbeing.totals(member.project)
    first = next((number for number, day in enumerate(totals.days) if day.items), len(totals.days))
    context = {
        "member": member, "here": "care", "form": form, "error": error, "errors": error.fields if error else {},
        "versions": versions, "totals": totals, "days": totals.days[first:][::-1], "most": max(day.items for day in totals.days),
        "mixes": wellbeing.mixes(member.project), "fewest": wellbeing.FEWEST_TOLD, "span": wellbeing.DAYS_TOLD,
        "wrong_in": request.POST.get("do", ""),
    }  # fmt: skip
    return render(request, "annotation/care.html", context, status=status)


def _settings(post: Mapping[str, str]) -> CareSettings:
    """The form's numbers; an empty one is none. Raises Invalid where something is no number."""
    wrong, numbers = {}, {}
    for name in NUMBERS:
        text = post.get(name, "").strip()
        numbers[name] = _number(text) if text else None
        if text and numbers[name] is None:
            wrong[name] = "A whole number, or nothing for none."
    if not post.get("break_minutes", "").strip():
        wrong["break_minutes"] = "A whole number of minutes."
    try:
        share = float(post.get("benign_percent", "").strip().replace(",", ".")) / 100
    except ValueError:
        share, wrong["benign_share"] = 0.0, "A number from 0 to 100."
    if wrong:
        raise Invalid("One field needs another look." if len(wrong) == 1 else f"{len(wrong)} fields need another look.", fields=wrong)
    return CareSettings(
        numbers["hourly_limit"], numbers["daily_limit"], numbers["break_after_minutes"], numbers["break_minutes"] or 0, share,
        post.get("support_note", ""),
    )  # fmt: skip


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else None
