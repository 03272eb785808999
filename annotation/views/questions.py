"""Questions: what is asked, for researchers to make, change and read."""

from django.contrib import messages
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import access, flags, gaps, known, presets, question_forms, questions, rounds
from annotation.errors import Conflict, Invalid
from annotation.guidelines import as_html
from annotation.models import Guideline, Kind, Membership, Policy, Question, TagUse, TaskState
from annotation.questions import Settings

_OPTIONS = {"kinds": Kind.choices, "policies": Policy.choices, "tag_uses": TagUse.choices, "reserved": " ".join("ZAFCGPSUB")}


@require_GET
def listing(request: HttpRequest, project: str) -> HttpResponse:
    """Every question with its policy, guideline version and tasks by state."""
    member = access.researcher(request.user, project)
    rows = [(standing, questions.policy_in_words(standing.question)) for standing in questions.standings(member.project)]
    return _page(request, "questions", member, rows=rows)


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest, project: str) -> HttpResponse:
    """A form for a new question, empty or filled from a ready-made one; POST makes it."""
    member = access.researcher(request.user, project)
    if request.method == "GET":
        given = presets.PRESETS.get(request.GET.get("preset", ""))
        blank = {"kind": Kind.TEXT} | question_forms.of_settings(Settings(title="", prompt=""))
        form = question_forms.of_spec(given) if given else blank
        return _new_page(request, member, question_forms.shown(form))
    form = question_forms.posted(request.POST)
    if "add" in request.POST:
        return _new_page(request, member, question_forms.shown(form, more=request.POST["add"]))
    try:
        question = questions.create_question(member.project, question_forms.spec(form), member.user)
    except Invalid as error:
        return _new_page(request, member, question_forms.shown(form, error.fields), error.message)
    messages.success(request, "Question made. Give it tasks, and it is on offer to annotators.")
    return redirect("question", project, question.slug)


def _new_page(request: HttpRequest, member: Membership, form: question_forms.Form, problem: str = "") -> HttpResponse:
    return _page(
        request,
        "question_new",
        member,
        status=422 if problem else 200,
        form=form,
        problem=problem,
        presets=presets.PRESETS.values(),
        **_OPTIONS,
    )


@require_GET
def question(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """One question: settings, how annotators see it, tasks by state, and its guideline's versions with what changed."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    versions = list(asked.guidelines.select_related("author"))
    chosen = next((g for g in versions if str(g.version) == request.GET.get("version")), versions[0])
    before = next((g for g in versions if g.version == chosen.version - 1), None)
    standing = next(s for s in questions.standings(member.project) if s.question == asked)
    return _page(
        request, "question", member,
        question=asked, policy=questions.policy_in_words(asked), standing=standing, states=_states(standing),
        has_unsure=asked.choices.filter(is_unsure=True).exists(), versions=versions,
        guideline=chosen, body=as_html(chosen.body), examples=_examples(asked, chosen), before=before,
        changes=questions.difference(before, chosen) if before else [],
        gaps=sum(group.count for group in gaps.under(versions[0])), flags=flags.waiting(asked),
        affected=cache.get_or_set(f"affected:{asked.pk}:{versions[0].version}", lambda: rounds.affected_by_guideline(asked), 30),
        checks=known.outlook(asked),
        paused=[pause for pause in known.paused(member.project) if pause.question_id == asked.pk],
    )  # fmt: skip


@require_http_methods(["GET", "POST"])
def change(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """The question's settings, choices and tags."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    if request.method == "GET":
        return _change_page(request, member, asked, question_forms.shown(question_forms.of_settings(questions.settings_of(asked))))
    form = question_forms.posted(request.POST)
    if "add" in request.POST:
        return _change_page(request, member, asked, question_forms.shown(form, more=request.POST["add"]))
    try:
        questions.change_question(asked, question_forms.settings(form))
    except Invalid as error:
        return _change_page(request, member, asked, question_forms.shown(form, error.fields), error.message)
    messages.success(request, "Changed.")
    return redirect("question", project, asked.slug)


def _change_page(request: HttpRequest, member: Membership, asked: Question, form: question_forms.Form, problem: str = "") -> HttpResponse:
    return _page(request, "question_change", member, status=422 if problem else 200, question=asked, form=form, problem=problem, **_OPTIONS)


@require_http_methods(["GET", "POST"])
def guideline(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """The next version of the guideline, written from the current one."""
    member = access.researcher(request.user, project)
    asked = access.question(member, question)
    latest = questions.current_guideline(asked)
    if request.method == "GET":
        return _guideline_page(request, member, asked, question_forms.shown(question_forms.of_guideline(latest)), latest.version)
    form = question_forms.posted(request.POST)
    written_from = question_forms.whole(request.POST.get("after", ""))
    if "add" in request.POST:
        return _guideline_page(request, member, asked, question_forms.shown(form, more=request.POST["add"]), written_from)
    text = question_forms.guideline(form, dict(asked.choices.values_list("value", "label")))
    try:
        made = questions.new_guideline_version(asked, text, after=written_from, author=member.user)
    except (Invalid, Conflict) as error:
        # After a conflict the next attempt is written from the version that came between: the page shows it beside.
        return _guideline_page(request, member, asked, question_forms.shown(form, error.fields), latest.version, problem=error.message)
    messages.success(request, f"Version {made.version} holds for votes from now on.")
    return redirect("question", project, asked.slug)


def _guideline_page(
    request: HttpRequest, member: Membership, asked: Question, form: question_forms.Form, after: int, *, problem: str = ""
) -> HttpResponse:
    status = 422 if problem else 200
    latest = questions.current_guideline(asked)
    return _page(
        request, "question_guideline", member,
        status=status, question=asked, form=form, after=after, problem=problem, latest=latest, choices=asked.choices.all(),
        groups=gaps.under(latest),
    )  # fmt: skip


@require_POST
def active(request: HttpRequest, project: str, question: str) -> HttpResponse:
    """Switch the question on (active=1) or off (active=0)."""
    member = access.researcher(request.user, project)
    asked = questions.set_active(access.question(member, question), request.POST.get("active") == "1")
    said = "On offer to annotators again." if asked.active else "No longer offered. Votes and disputes stay as they are."
    messages.success(request, said)
    return redirect("question", project, asked.slug)


def _states(standing: questions.Standing) -> list[tuple[str, int]]:
    """Every state with its count, the ones without any left out."""
    return [(state.label.lower(), standing.states[state]) for state in TaskState if state in standing.states]


def _examples(asked: Question, chosen: Guideline) -> list[dict[str, str]]:
    labels = dict(asked.choices.values_list("value", "label"))
    return [example | {"label": labels.get(example["choice"], example["choice"])} for example in chosen.examples]


def _page(request: HttpRequest, name: str, member: Membership, *, status: int = 200, **context: object) -> HttpResponse:
    return render(request, f"annotation/{name}.html", {"member": member, "here": "questions", **context}, status=status)
