"""Looking for items: by what they are, what people said of them, and what machines gave them. A page costs the same at a million items."""

import json
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.errors import Invalid
from annotation.models import GroundTruth, Item, Media, Project, Task
from curation.models import SampleItem
from scoring.models import Score

PAGE = 50
COUNTED_TO = 10_000
PATIENCE_S = 10


@dataclass(frozen=True)
class Filters:
    """What to look for; None stands for anything. `metadata_value` compares as text, and as JSON where it is some."""

    kind: str | None = None
    batch: uuid.UUID | None = None
    sample: int | None = None
    metadata_key: str | None = None
    metadata_value: str | None = None
    question: int | None = None
    state: str | None = None
    truth: int | None = None
    scorer: int | None = None
    score: str | None = None
    score_from: float | None = None
    score_to: float | None = None
    origin: int | None = None
    text: str | None = None


@dataclass
class Row:
    """An item with what stands beside it in the list."""

    item: Item
    tasks: list[Task] = field(default_factory=list)
    truths: list[GroundTruth] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)

    @property
    def picture(self) -> Media | None:
        """What can be shown of it, if it is an image."""
        shown = self.item.media is not None and self.item.media.sealed_at is None and not self.item.quarantined
        return self.item.media if shown else None

    @property
    def covered(self) -> bool:
        """Whether its picture starts covered: it is sensitive to a question, or says so itself."""
        said = self.item.metadata.get("sensitive") if isinstance(self.item.metadata, dict) else None
        return any(task.sensitive for task in self.tasks) or str(said).lower() in ("true", "yes", "1")


@dataclass(frozen=True)
class Page:
    """Some rows in the order of ids, and whether there are any before and after."""

    rows: list[Row]
    before: int | None
    after: int | None
    count: int | None  # None: more than COUNTED_TO

    @property
    def counted_to(self) -> int:
        return COUNTED_TO


def page(project: Project, filters: Filters, *, after: int | None = None, before: int | None = None, size: int = PAGE) -> Page:
    """The items after (or before) an id that fit. Raises Invalid when the search takes too long."""
    found = items(project, filters)
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{PATIENCE_S}s"])
            some = _slice(found, after, before, size)
            # A search through the texts stops at its first page: counting would read them all.
            counted = None if filters.text else found.order_by().values("pk")[: COUNTED_TO + 1].count()
            rows = _filled(some[:size] if before is None else some[-size:])
    except OperationalError as error:
        raise Invalid("This search takes too long. Narrow it: by kind, import or sample first.", code="too_slow") from error
    more = len(some) > size
    first, last = (rows[0].item.pk, rows[-1].item.pk) if rows else (None, None)
    return Page(
        rows,
        before=first if (more if before is not None else after is not None) else None,
        after=last if (before is not None or more) else None,
        count=counted if counted is not None and counted <= COUNTED_TO else None,
    )


def items(project: Project, filters: Filters) -> QuerySet[Item]:
    """The project's items that fit, in the order of ids."""
    found = Item.objects.filter(project=project).order_by("pk")
    plain: dict[str, Any] = {"kind": filters.kind, "batch": filters.batch, "origin": filters.origin}
    found = found.filter(**{name: value for name, value in plain.items() if value is not None})
    if filters.sample is not None:
        found = found.filter(Exists(SampleItem.objects.filter(sample=filters.sample, item=OuterRef("pk"))))
    if filters.metadata_key:
        found = found.filter(_has_metadata(filters.metadata_key, filters.metadata_value))
    if filters.question is not None or filters.state:
        tasks = Task.objects.filter(item=OuterRef("pk"), **_given(question=filters.question, state=filters.state))
        found = found.filter(Exists(tasks))
    if filters.truth is not None:
        found = found.filter(Exists(GroundTruth.objects.filter(item=OuterRef("pk"), choice=filters.truth, superseded_at=None)))
    if filters.scorer is not None:
        scores = Score.objects.filter(
            item=OuterRef("pk"),
            **_given(scorer=filters.scorer, name=filters.score, value__gte=filters.score_from, value__lte=filters.score_to),
        )
        found = found.filter(Exists(scores))
    if filters.text:
        found = found.filter(text__icontains=filters.text)
    return found


def _given(**wanted: Any) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if value not in (None, "")}


def _has_metadata(key: str, value: str | None) -> Q:
    if value in (None, ""):
        return Q(metadata__has_key=key)
    wanted = Q(metadata__contains={key: value})
    try:
        return wanted | Q(metadata__contains={key: json.loads(value, parse_constant=int)})  # int("NaN") is a ValueError: no JSON
    except (ValueError, RecursionError):
        return wanted


def _slice(found: QuerySet[Item], after: int | None, before: int | None, size: int) -> list[Item]:
    found = found.select_related("origin", "media").defer("content_hash", "origin__text", "origin__metadata", "origin__content_hash")
    if before is not None:
        return list(reversed(found.filter(pk__lt=before).order_by("-pk")[: size + 1]))
    return list(found.filter(pk__gt=after or 0)[: size + 1])


def row(item: Item) -> Row:
    """One item with what stands beside it."""
    return _filled([item])[0]


def _filled(some: list[Item]) -> list[Row]:
    ids = [item.pk for item in some]
    tasks, truths, scores = defaultdict(list), defaultdict(list), defaultdict(list)
    for task in Task.objects.filter(item__in=ids).select_related("question").order_by("question__title"):
        tasks[task.item_id].append(task)
    for truth in (
        GroundTruth.objects.filter(item__in=ids, superseded_at=None).select_related("question", "choice").order_by("question__title")
    ):
        truths[truth.item_id].append(truth)
    for score in Score.objects.filter(item__in=ids).select_related("scorer").order_by("scorer__name", "scorer__version", "name"):
        scores[score.item_id].append(score)
    return [Row(item, tasks[item.pk], truths[item.pk], scores[item.pk]) for item in some]
