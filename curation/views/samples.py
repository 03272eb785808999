"""Samples: draw one, see it; and tasks made from a sample, an import, or everything."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from annotation import access
from annotation.errors import Conflict, Invalid, Missing
from annotation.models import Kind, Membership, Question
from curation import choosing, sampling, tasking
from curation.models import Sample, TaskVerb
from workers.tasks import do_or_send


class DrawForm(forms.Form):
    name = forms.CharField(max_length=120)
    size = forms.IntegerField(min_value=1, max_value=10_000_000)
    seed = forms.IntegerField(required=False, min_value=-(2**63), max_value=2**63 - 1)
    kind = forms.ChoiceField(choices=Kind.choices, required=False)
    items = forms.CharField(max_length=200, required=False)
    metadata_key = forms.CharField(max_length=200, required=False)
    metadata_value = forms.CharField(max_length=1000, required=False)
    seeds = forms.BooleanField(required=False)
    strata = forms.CharField(max_length=200, required=False)
    allocation = forms.ChoiceField(choices=list(sampling.ALLOCATIONS.items()), required=False)

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("metadata_value") and not self.cleaned_data.get("metadata_key"):
            self.add_error("metadata_key", "Say which key has this value.")
        return self.cleaned_data


@require_GET
def listing(request: HttpRequest, project: str) -> HttpResponse:
    """Every sample, the newest first."""
    member = access.researcher(request.user, project)
    samples = Sample.objects.filter(project=member.project).select_related("created_by").order_by("-pk")[:500]
    return render(request, "curation/samples.html", {"member": member, "here": "samples", "samples": samples})


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest, project: str) -> HttpResponse:
    """Draw a sample."""
    member = access.researcher(request.user, project)
    if request.method == "GET":
        start = {
            "seed": member.project.seed,
            "items": request.GET.get("items", choosing.ALL),
            "kind": Kind.TEXT,
            "allocation": "proportional",
        }
        return _form(request, member, DrawForm(initial=start), 200)
    form = DrawForm(request.POST)
    if not form.is_valid():
        return _form(request, member, form, 422)
    given = form.cleaned_data
    try:
        sample = sampling.draw(
            member.project, given["name"], given["size"], seed=given["seed"], kind=given["kind"] or Kind.TEXT,
            items=given["items"] or choosing.ALL,
            metadata={given["metadata_key"]: given["metadata_value"]} if given["metadata_key"] else None, seeds=given["seeds"],
            strata=given["strata"].strip(), allocation=given["allocation"] or "proportional", by=member.user,
        )  # fmt: skip
    except (Invalid, Conflict) as error:
        for name, message in (error.fields or {"name": error.message}).items():
            form.add_error(name if name in form.fields else None, message)
        return _form(request, member, form, error.status if isinstance(error, Conflict) else 422)
    messages.success(request, f"Drawn: {sample.size:,} of {sample.population:,} items.")
    return redirect("sample", member.project.slug, sample.pk)


def _form(request: HttpRequest, member: Membership, form: DrawForm, status: int) -> HttpResponse:
    context = {"member": member, "here": "samples", "form": form, "groups": choosing.groups(member.project), "kinds": Kind.choices}
    return render(request, "curation/sample_new.html", context, status=status)


@require_GET
def sample(request: HttpRequest, project: str, sample: int) -> HttpResponse:
    """A sample: how it was drawn, its strata and probabilities."""
    member = access.researcher(request.user, project)
    found = Sample.objects.select_related("created_by").filter(project=member.project, pk=sample).first()
    if found is None:
        raise Missing("There is no such sample in this project.")
    context = {"member": member, "here": "samples", "sample": found, "strata": sampling.weights(found)}
    return render(request, "curation/sample.html", context)


def _question(member: Membership, slug: str) -> Question:
    found = Question.objects.filter(project=member.project, slug=slug).select_related("project").first()
    if found is None:
        raise Invalid("Choose a question.", fields={"question": "Choose a question of this project."})
    return found


@require_http_methods(["GET", "POST"])
def tasks(request: HttpRequest, project: str) -> HttpResponse:
    """Make tasks: of a question, for all items of its kind, an import or a sample."""
    member = access.researcher(request.user, project)
    given = request.POST if request.method == "POST" else request.GET
    questions = Question.objects.filter(project=member.project).order_by("title")
    named = next((one for one in questions if one.slug == given.get("question", "")), None)
    if named is not None and request.method == "GET":  # asked for by name: what is of another kind is not offered beside it
        questions = questions.filter(kind=named.kind)
    kinds = {one.kind for one in questions}
    kind = kinds.pop() if len(kinds) == 1 else ""
    error = None
    if request.method == "POST":
        try:
            question = _question(member, given.get("question", ""))
            batch = tasking.start(question, TaskVerb.MAKE, given.get("items") or choosing.ALL, seeds="seeds" in given, by=member.user)
            if (done := do_or_send(batch)) is None:
                return redirect("steering", member.project.slug, question.slug)
            messages.success(request, f"{tasking.in_words(done, f' of {question.title}')}.")
            return redirect("question", member.project.slug, question.slug)
        except (Invalid, Conflict) as refused:
            error = refused
    drawn = Sample.objects.filter(project=member.project, **({"query__kind": kind} if kind else {}))
    newest = drawn.order_by("-id").first()  # votes are dear: a sample rather than everything
    context = {
        "member": member, "here": "samples", "questions": questions, "question": given.get("question", ""),
        "items": given.get("items", f"sample:{newest.pk}" if newest else choosing.ALL),
        "seeds": "seeds" in given, "groups": choosing.groups(member.project, kind), "error": error, "wrong": error.fields if error else {},
    }  # fmt: skip
    return render(request, "curation/tasks_new.html", context, status=422 if error else 200)
