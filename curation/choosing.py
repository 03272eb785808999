"""Which items something covers: all of a kind, an import, a sample, those that a question is asked of, or the prompts of any of these.

Scoring takes ids only; samples, imports and questions are known here.
"""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, QuerySet

from annotation.errors import Invalid
from annotation.models import Item, Kind, Project, Question, Task, TaskState, User
from curation.models import ImportBatch, ImportState, Sample, choice_in_words
from scoring import runs
from scoring.models import Score, Scorer, ScoringRun

ALL = "all"
MOST_LISTED = 200
in_words = choice_in_words
NO_SUCH = "Choose which items: all of them, an import, a sample, or those of a question."


@dataclass(frozen=True)
class Group:
    """Choices of one sort, as a form offers them: (what the service takes, words)."""

    name: str
    choices: list[tuple[str, str]]


@dataclass(frozen=True)
class Covered:
    """How many items a choice covers, and how many of them have the scorer's scores already."""

    items: int
    scored: int

    @property
    def left(self) -> int:
        return self.items - self.scored


def groups(project: Project, kind: str = "") -> list[Group]:
    """What can be chosen in this project, the newest first. What holds items of one kind says which, and how many.

    With a kind, only what may hold items of it.
    """
    samples = list(Sample.objects.filter(project=project).order_by("-id")[:MOST_LISTED])
    done = ImportBatch.objects.filter(project=project, state=ImportState.DONE, created__gt=0)
    imports = list(done.order_by("-created_at")[:MOST_LISTED])
    if kind:
        samples = [one for one in samples if one.query.get("kind", Kind.TEXT) == kind]
        imports = [one for one in imports if kind in (one.kind, Kind.TEXT)]
    asked = project.questions.filter(**({"kind": kind} if kind else {})).order_by("id")
    brought = _brought(imports)
    found = [
        Group("Samples", [(f"sample:{one.pk}", f"{one.name} ({counted(one.size, one.query.get('kind', Kind.TEXT))})") for one in samples]),
        Group("Items with tasks of a question", [(f"question:{q.slug}", q.title) for q in asked]),
        Group(
            "Imports",
            [(f"import:{one.pk}", f"{one.filename}, {one.created_at:%-d %b %Y} ({brought[one.pk]})") for one in imports],
        ),
    ]
    if kind != Kind.IMAGE:
        found.append(Group("Prompts of pictures", _prompts(project, found if not kind else groups(project)[1:])))
    return [Group("Everything", [(ALL, "All items that this scorer can score")]), *(group for group in found if group.choices)]


def counted(number: int, kind: str) -> str:
    """How many of what: 40 pictures."""
    noun = "picture" if kind == Kind.IMAGE else "text"
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _brought(imports: Iterable[ImportBatch]) -> dict[uuid.UUID, str]:
    """What each import brought: 40 pictures, 20 prompts. Only pictures bring items of another kind along."""
    texts = dict(
        Item.objects.filter(batch__in=[one.pk for one in imports if one.kind == Kind.IMAGE], kind=Kind.TEXT)
        .values_list("batch")
        .annotate(Count("pk"))
        .order_by()
    )
    return {
        one.pk: counted(one.created - texts.get(one.pk, 0), one.kind)
        + (f", {texts[one.pk]:,} prompt{'' if texts[one.pk] == 1 else 's'}" if one.pk in texts else "")
        for one in imports
    }


def _prompts(project: Project, found: list[Group]) -> list[tuple[str, str]]:
    """The same choices over pictures, for what the pictures were made from; none in a project without."""
    if not Item.objects.filter(project=project, kind=Kind.IMAGE, origin__isnull=False).exists():
        return []
    pictured = {f"sample:{pk}" for pk in Sample.objects.filter(project=project, query__kind=Kind.IMAGE).values_list("pk", flat=True)}
    pictured |= {f"import:{pk}" for pk in ImportBatch.objects.filter(project=project, kind=Kind.IMAGE).values_list("pk", flat=True)}
    pictured |= {f"question:{slug}" for slug in project.questions.filter(kind=Kind.IMAGE).values_list("slug", flat=True)}
    of_some = [(f"prompts:{value}", f"Of {words}") for group in found for value, words in group.choices if value in pictured]
    return [(f"prompts:{ALL}", "Of all pictures"), *of_some]


def items(project: Project, kind: str, choice: str) -> QuerySet[Item]:
    """The project's items of this kind that the choice covers: `all`, `import:<id>`, `sample:<id>`, `question:<slug>`.

    `prompts:` before any of these: what the pictures it covers were made from.
    Raises Invalid (items) for a choice that the project does not have.
    """
    of_kind = Item.objects.filter(project=project, kind=kind)
    sort, _, name = choice.partition(":")
    if choice == ALL:
        return of_kind
    if sort not in _SORTS or not name:
        raise Invalid(NO_SUCH, fields={"items": NO_SUCH})
    return _SORTS[sort](project, of_kind, name)


def _of_sample(project: Project, found: QuerySet[Item], name: str) -> QuerySet[Item]:
    if not (name.isascii() and name.isdecimal() and len(name) < 19 and Sample.objects.filter(project=project, pk=int(name)).exists()):
        raise _missing("sample", name)
    return found.filter(sampleitem__sample_id=int(name))


def _of_import(project: Project, found: QuerySet[Item], name: str) -> QuerySet[Item]:
    try:
        batch = uuid.UUID(name)
    except ValueError:
        raise _missing("import", name) from None
    if not ImportBatch.objects.filter(project=project, pk=batch).exists():
        raise _missing("import", name)
    return found.filter(batch=batch)


def _of_question(project: Project, found: QuerySet[Item], name: str) -> QuerySet[Item]:
    question = Question.objects.filter(project=project, slug=name).first()
    if question is None:
        raise _missing("question", name)
    asked = Task.objects.filter(question=question).exclude(state=TaskState.RETIRED)
    return found.filter(pk__in=asked.values("item"))


def _of_prompts(project: Project, found: QuerySet[Item], pictures: str) -> QuerySet[Item]:
    if pictures.startswith("prompts:"):
        raise Invalid(NO_SUCH, fields={"items": NO_SUCH})
    return found.filter(pk__in=items(project, Kind.IMAGE, pictures).filter(origin__isnull=False).values("origin"))


_SORTS: dict[str, Callable[[Project, QuerySet[Item], str], QuerySet[Item]]] = {
    "sample": _of_sample,
    "import": _of_import,
    "question": _of_question,
    "prompts": _of_prompts,
}


def _missing(sort: str, name: str) -> Invalid:
    message = f"This project has no {sort} “{name[:80]}”."
    return Invalid(message, fields={"items": message})


def covered(scorer: Scorer, choice: str) -> Covered:
    """How much a run would cover. Quarantined items and pictures without a file are left out here as there."""
    fit = items(scorer.project, scorer.item_kind, choice).filter(quarantined=False)
    if scorer.item_kind == "image":
        fit = fit.exclude(media=None)
    scored = fit.filter(Exists(Score.objects.filter(scorer=scorer, item=OuterRef("pk"))))
    return Covered(fit.count(), scored.count())


def start(scorer: Scorer, choice: str, by: User | None, *, queue: str = "cpu") -> ScoringRun:
    """A run of the scorer over the chosen items. The caller wakes the workers after the commit.

    Raises Invalid (items, queue) and Conflict (nothing_to_score).
    """
    if choice == ALL:
        return runs.start_run(scorer, None, by, queue=queue)
    # A list: the run copies them in over the connection that a lazy query would read from.
    return runs.start_run(scorer, list(items(scorer.project, scorer.item_kind, choice).values_list("pk", flat=True)), by, queue=queue)


def scorer_of(project: Project, given: str) -> Scorer:
    """The scorer version with this id. Raises Invalid (scorer)."""
    found = None
    if given.isascii() and given.isdecimal() and len(given) < 19:
        found = Scorer.objects.select_related("project").filter(project=project, pk=int(given)).first()
    if found is None:
        message = "Choose a scorer version of this project."
        raise Invalid(message, fields={"scorer": message})
    return found
