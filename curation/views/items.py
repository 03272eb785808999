"""The item browser, and the page of one item. For researchers: it shows scores and votes side by side."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from annotation import access
from annotation.errors import Invalid, Missing
from annotation.models import Choice, Item, Kind, Project, TaskState
from curation import browsing
from curation.models import ImportBatch, ImportState, Sample
from scoring.models import Scorer

DERIVED_SHOWN = 50
BIG = 2**63 - 1


class FilterForm(forms.Form):
    """The filters as they come in an address."""

    kind = forms.ChoiceField(choices=[("", "Any kind"), *Kind.choices], required=False)
    batch = forms.UUIDField(required=False)
    sample = forms.IntegerField(required=False, min_value=1, max_value=BIG)
    metadata_key = forms.CharField(required=False, max_length=200)
    metadata_value = forms.CharField(required=False, max_length=1000)
    question = forms.IntegerField(required=False, min_value=1, max_value=BIG)
    state = forms.ChoiceField(choices=[("", "Any state"), *TaskState.choices], required=False)
    truth = forms.IntegerField(required=False, min_value=1, max_value=BIG)
    scorer = forms.IntegerField(required=False, min_value=1, max_value=BIG)
    score = forms.CharField(required=False, max_length=60)
    score_from = forms.FloatField(required=False)
    score_to = forms.FloatField(required=False)
    origin = forms.IntegerField(required=False, min_value=1, max_value=BIG)
    text = forms.CharField(required=False, max_length=200)
    after = forms.IntegerField(required=False, min_value=0, max_value=BIG)
    before = forms.IntegerField(required=False, min_value=0, max_value=BIG)
    contents = forms.BooleanField(required=False)

    def filters(self) -> browsing.Filters:
        given = {name: self.cleaned_data[name] for name in browsing.Filters.__dataclass_fields__}
        return browsing.Filters(**{name: None if value == "" else value for name, value in given.items()})


@require_GET
def listing(request: HttpRequest, project: str) -> HttpResponse:
    """Items that fit, by id; their texts only on request."""
    member = access.researcher(request.user, project)
    form = FilterForm(request.GET)
    page, error = None, ""
    if form.is_valid():
        try:
            page = browsing.page(member.project, form.filters(), after=form.cleaned_data["after"], before=form.cleaned_data["before"])
        except Invalid as refused:
            error = refused.message
    kept = request.GET.copy()
    for name in ("after", "before", "contents"):
        kept.pop(name, None)
    for name in [name for name in kept if not kept[name]]:
        kept.pop(name)
    context = {
        "member": member, "here": "items", "form": form, "page": page, "error": error, "asked": kept.urlencode(), "filtered": bool(kept),
        "contents": form.is_valid() and form.cleaned_data["contents"],
        "any": bool(kept) or Item.objects.filter(project=member.project).exists(),
        **_options(member.project),
    }  # fmt: skip
    return render(request, "curation/items.html", context, status=200 if page else 422)


def _options(project: Project) -> dict[str, Any]:
    return {
        "questions": project.questions.order_by("title"),
        "choices": Choice.objects.filter(question__project=project).select_related("question").order_by("question__title", "position"),
        "scorers": Scorer.objects.filter(project=project).order_by("name", "-version"),
        "batches": ImportBatch.objects.filter(project=project, state=ImportState.DONE, created__gt=0)
        .defer("problems")
        .order_by("-created_at")[:100],
        "samples": Sample.objects.filter(project=project).order_by("-pk")[:100],
    }


@require_GET
def item(request: HttpRequest, project: str, item: int) -> HttpResponse:
    """One item: its content on request, where it came from, what was derived from it, what people and machines said."""
    member = access.researcher(request.user, project)
    found = Item.objects.select_related("origin", "media").filter(project=member.project, pk=item).first()
    if found is None:
        raise Missing("There is no such item in this project.")
    derived = list(Item.objects.filter(origin=found).order_by("pk").defer("text")[: DERIVED_SHOWN + 1])
    context = {
        "member": member, "here": "items", "item": found, "shown": browsing.row(found), "tasks": _tasks(found),
        "derived": derived[:DERIVED_SHOWN], "more": len(derived) > DERIVED_SHOWN,
        "scores": found.scores.select_related("scorer").order_by("scorer__name", "-scorer__version", "name"),
        "batch": ImportBatch.objects.filter(pk=found.batch, project=member.project).first() if found.batch else None,
        "samples": Sample.objects.filter(members__item=found).order_by("-pk")[:20],
        "metadata": sorted(found.metadata.items()) if isinstance(found.metadata, dict) else [("", found.metadata)],
    }  # fmt: skip
    return render(request, "curation/item.html", context)


def _tasks(found: Item) -> list[dict[str, Any]]:
    """Of each task: its votes, abstentions, rulings and truths, all rounds."""
    rows = []
    for task in found.tasks.select_related("question").order_by("question__title"):
        rows.append({
            "task": task,
            "votes": task.votes.select_related("member", "choice", "guideline").order_by("round", "created_at"),
            "abstentions": task.abstentions.select_related("member").order_by("round", "created_at"),
            "rulings": task.adjudications.exclude(choice=None).select_related("member", "choice", "blind_choice").order_by("ruled_at"),
            "truths": task.truths.select_related("choice", "member", "guideline").order_by("-created_at"),
        })  # fmt: skip
    return rows
