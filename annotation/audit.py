"""The audit trail of a project: who changed which of its objects, when, by which address. Kept by triggers (django-pghistory).

Settings (people, questions, scorers, runs, imports, samples ...) are few and read together by time. Tasks, votes,
rulings and labels are many, and each is read by itself in the order in which it was written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pghistory.core
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import JSONField, Model, Q, QuerySet, TextField
from django.utils.dateparse import parse_datetime

from annotation.errors import Invalid
from annotation.models import Adjudication, GroundTruth, Project, Task, User, Vote

PAGE = 50
SETTINGS = "settings"
MANY: dict[str, type[Model]] = {"tasks": Task, "votes": Vote, "rulings": Adjudication, "labels": GroundTruth}
VERBS = {"insert": "made", "update": "changed", "revised": "revised", "delete": "removed"}
# Texts that people wrote may quote an item: the trail says that they changed, not into what.
UNSAID = {"comment", "note", "prompt", "token", "text"}
NAMES = ("title", "label", "name", "filename", "number", "version", "slug")


@dataclass(frozen=True)
class Change:
    """One field. `before` and `after` are None where they are not known or not shown."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Entry:
    """One event. `who` is a user name, or "" for a command or a worker; `path` the address of the request."""

    at: datetime
    who: str
    path: str
    verb: str
    what: str
    changes: list[Change]


@dataclass(frozen=True)
class Trail:
    """Entries, newest first; `older` is the mark of the next page, "" at the end."""

    entries: list[Entry]
    older: str


def trail(project: Project, kind: str = SETTINGS, before: str = "") -> Trail:
    """A page of the trail. `kind` is "settings" or a key of MANY, `before` a mark from the page before.

    Raises Invalid for neither.
    """
    if kind != SETTINGS and kind not in MANY:
        raise Invalid("There is no such part of the audit trail.", fields={"kind": f"One of: {', '.join([SETTINGS, *MANY])}."})
    mark = _read_mark(before)
    tables = [table for table in _tables() if (table.pgh_tracked_model in MANY.values()) == (kind != SETTINGS)]
    if kind in MANY:
        tables = [table for table in tables if table.pgh_tracked_model is MANY[kind]]
    found = [event for table in tables for event in _newest(table, project, mark, by_time=kind == SETTINGS)]
    if kind == SETTINGS:
        found.sort(key=_place, reverse=True)
    page = found[:PAGE]
    people = _people(page)
    older = _write_mark(page[-1]) if len(found) > PAGE else ""
    return Trail([_entry(event, people) for event in page], older)


# ---------------------------------------------------------------- which events
def _tables() -> list[Any]:
    """The event models of everything that is tracked."""
    return list(pghistory.core.event_models())


def _newest(table: Any, project: Project, mark: tuple[datetime, str, int] | None, *, by_time: bool) -> Sequence[Any]:
    """One event more than a page of this table, from the mark on."""
    events: QuerySet[Any] = _of_project(table, project)
    if mark is not None:
        at, label, number = mark
        events = events.filter(_older(table, at, label, number)) if by_time else events.filter(pgh_id__lt=number)
    order = ("-pgh_created_at", "-pgh_id") if by_time else ("-pgh_id",)
    related = ("pgh_context", "pgh_obj") if by_time else ("pgh_context",)
    return list(events.select_related(*related).order_by(*order)[: PAGE + 1])


def _of_project(table: Any, project: Project) -> QuerySet[Any]:
    """The events of this table that belong to the project; none for what belongs to no project."""
    events: QuerySet[Any] = table.objects.all()
    kept = {field.name for field in table._meta.fields}
    tracked = {field.name for field in table.pgh_tracked_model._meta.fields}
    if table.pgh_tracked_model is Project:
        return events.filter(pgh_obj_id=project.pk)
    for prefix, names in (("", kept), ("pgh_obj__", tracked)):  # the event's own copy also knows what is gone
        for path in ("project", "question__project"):
            if path.split("__")[0] in names:
                return events.filter(**{f"{prefix}{path}": project.pk})
    return events.none()


def _place(event: Any) -> tuple[datetime, str, int]:
    return event.pgh_created_at, event._meta.label, event.pgh_id


def _older(table: Any, at: datetime, label: str, number: int) -> Q:
    """What comes after the mark, newest first: of one moment, the tables by their names, and in a table by number."""
    same = Q(pgh_created_at=at)
    if table._meta.label == label:
        return Q(pgh_created_at__lt=at) | same & Q(pgh_id__lt=number)
    return Q(pgh_created_at__lte=at) if table._meta.label < label else Q(pgh_created_at__lt=at)


def _write_mark(event: Any) -> str:
    at, label, number = _place(event)
    return f"{at.isoformat()},{label},{number}"


def _read_mark(before: str) -> tuple[datetime, str, int] | None:
    if not before:
        return None
    parts = before.split(",")
    try:
        at = parse_datetime(parts[0])
        if len(parts) == 3 and at is not None and at.tzinfo is not None and len(parts[2]) < 10:
            return at, parts[1], int(parts[2])
    except ValueError:
        pass
    raise Invalid("This is no place in the audit trail. Begin again at its first page.")


# ---------------------------------------------------------------- what they say
def _people(events: Sequence[Any]) -> dict[int, str]:
    """User names by id, of everyone who caused these events."""
    return dict(User.objects.filter(pk__in=[user for event in events if (user := _user(event)) is not None]).values_list("pk", "username"))


def _user(event: Any) -> int | None:
    user = event.pgh_context.metadata.get("user") if event.pgh_context else None
    return user if isinstance(user, int) else None


def _entry(event: Any, people: dict[int, str]) -> Entry:
    context = event.pgh_context.metadata if event.pgh_context else {}
    user = _user(event)
    return Entry(
        at=event.pgh_created_at,
        who=people.get(user, "") if user is not None else "",
        path=str(context.get("path", "")),
        verb=VERBS.get(event.pgh_label, event.pgh_label),
        what=_name(event),
        changes=_changes(event) if event.pgh_label in ("update", "revised") else [],
    )


def _name(event: Any) -> str:
    """`Question Toxicity`, `Membership 3`, else the kind and the id."""
    kind = str(event.pgh_tracked_model._meta.verbose_name).capitalize()
    rows = [event] if event.pgh_tracked_model in MANY.values() else [event, event.pgh_obj]  # an event may keep less than its row
    for name in NAMES:
        if value := next((value for row in rows if (value := getattr(row, name, None))), None):
            return f"{kind} {value}"
    return f"{kind} {event.pgh_obj_id}"


def _changes(event: Any) -> list[Change]:
    """The fields that differ between the row before and the row after. A `revised` event keeps the row before."""
    table = type(event)
    same = table.objects.filter(pgh_obj_id=event.pgh_obj_id)
    if event.pgh_label == "revised":
        after = same.filter(pgh_id__gt=event.pgh_id).order_by("pgh_id").first() or event.pgh_obj
        return _differences(event, after)
    return _differences(same.filter(pgh_id__lt=event.pgh_id).order_by("-pgh_id").first(), event)


def _differences(before: Any, after: Any) -> list[Change]:
    event = before if before is not None else after
    found = []
    for field in type(event)._meta.fields:
        if field.name.startswith("pgh_") or field.name in ("id", "revised_at"):
            continue
        old, new = (getattr(row, field.attname, None) if row is not None else None for row in (before, after))
        if before is not None and old == new:
            continue
        unsaid = field.name in UNSAID or isinstance(field, TextField | JSONField)
        sides = (None, None) if unsaid else (_shown(before, field), _shown(after, field))
        found.append(Change(field.verbose_name, *sides))
    return found


def _shown(row: Any, field: Any) -> str | None:
    """A field's value in words; None where there is no row."""
    if row is None:
        return None
    try:
        value = getattr(row, field.name)
    except ObjectDoesNotExist:
        value = f"{field.verbose_name} {getattr(row, field.attname)}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None or value == "" else str(value)
