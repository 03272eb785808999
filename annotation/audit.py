"""The audit trail of a project: who changed which of its objects, when, by which address. Kept by triggers (django-pghistory).

Settings (people, questions, scorers, runs, imports, samples ...) are few and read together by time. Tasks, votes,
rulings, labels and answers to checks are many, and each is read by itself in the order in which it was written. What is a
record itself, with who and when, is read from its own rows (`_RECORDS`): no event is kept of it a second time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pghistory.core
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Count, JSONField, Min, Model, Q, QuerySet, TextField
from django.utils.dateparse import parse_datetime

from annotation.errors import Invalid
from annotation.models import (
    Adjudication,
    Assignment,
    Check,
    Choice,
    Consent,
    ContentWarning,
    Flag,
    GroundTruth,
    Guideline,
    Item,
    KnownAnswer,
    Membership,
    Pause,
    Project,
    Question,
    Tag,
    Task,
    TaskState,
    User,
    VoidedVote,
    Vote,
)

PAGE = 50
SETTINGS = "settings"
MANY: dict[str, type[Model]] = {"tasks": Task, "votes": Vote, "rulings": Adjudication, "labels": GroundTruth, "checks": Check}
# Parts of the settings that can be read by themselves.
SOME: dict[str, tuple[type[Model], ...]] = {
    "people": (Membership, Assignment, Pause),
    "questions": (Question, Choice, Tag, Guideline, KnownAnswer),
    "flags": (Item,),
    "care": (),
}
KINDS = (SETTINGS, *SOME, *MANY)
VERBS = {"insert": "made", "update": "changed", "revised": "revised", "delete": "removed"}
# Texts that people wrote may quote an item: the trail says that they changed, not into what.
UNSAID = {"comment", "note", "prompt", "token", "text", "why"}
NAMES = ("title", "label", "name", "filename", "number", "version", "slug")
ITSELF = "Assay itself"


@dataclass(frozen=True)
class Change:
    """One field. `before` and `after` are None where they are not known or not shown."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Entry:
    """One event. `who` is a name, or "" for a command or a worker; `path` the address of the request; `sentence` says the rest."""

    at: datetime
    who: str
    path: str
    verb: str
    what: str
    changes: list[Change]
    sentence: str


@dataclass(frozen=True)
class Trail:
    """Entries, newest first; `older` is the mark of the next page, "" at the end."""

    entries: list[Entry]
    older: str


def trail(project: Project, kind: str = SETTINGS, before: str = "", *, who: Membership | None = None) -> Trail:
    """A page of the trail. `kind` is one of KINDS, `before` a mark from the page before; of one member's doing when `who` is given.

    Raises Invalid for a kind or a mark that is none.
    """
    if kind not in KINDS:
        raise Invalid("There is no such part of the audit trail.", fields={"kind": f"One of: {', '.join(KINDS)}."})
    mark, by_time = _read_mark(before), kind not in MANY
    found = [event for table in _tables(kind) for event in _newest(table, project, mark, who, by_time=by_time)]
    if by_time:
        found += [record for source in _RECORDS if kind in (SETTINGS, source.part) for record in source.newest(project, mark, who)]
        found.sort(key=_place, reverse=True)
    page = found[:PAGE]
    words = _Words(project, [event for event in page if not isinstance(event, Record)])
    older = _write_mark(page[-1]) if len(found) > PAGE else ""
    return Trail([event.entry() if isinstance(event, Record) else _entry(event, words) for event in page], older)


# ---------------------------------------------------------------- which events
def _tables(kind: str) -> list[Any]:
    """The event models of what this part of the trail tells of."""
    tables: list[Any] = list(pghistory.core.event_models())
    if kind == SETTINGS:
        return [table for table in tables if table.pgh_tracked_model not in MANY.values()]
    wanted = SOME[kind] if kind in SOME else (MANY[kind],)
    return [table for table in tables if table.pgh_tracked_model in wanted]


def _newest(
    table: Any, project: Project, mark: tuple[datetime, str, int] | None, who: Membership | None, *, by_time: bool
) -> Sequence[Any]:
    """One event more than a page of this table, from the mark on."""
    events: QuerySet[Any] = _of_project(table, project)
    if table.pgh_tracked_model is Check:  # being handed out and being answered is no change
        events = events.filter(choice__isnull=False)
    if who is not None:
        events = events.filter(pgh_context__metadata__user=who.user_id)
        if table.pgh_tracked_model is Pause:  # it came of an answer of theirs, and is no doing of theirs
            events = events.exclude(pgh_label="insert")
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
    if isinstance(event, Record):
        return event.at, event.label, event.number
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


# ---------------------------------------------------------------- what is a record itself
@dataclass(frozen=True)
class Record:
    """Something done that its own row tells; `label` and `number` are its place among what was done at the same moment."""

    at: datetime
    label: str
    number: int
    who: str
    verb: str
    what: str
    sentence: str

    def entry(self) -> Entry:
        return Entry(self.at, self.who, "", self.verb, self.what, [], self.sentence)


@dataclass(frozen=True)
class Source:
    """Rows that tell of themselves: in which part, the field with the time, the field with the person, and how a row is told."""

    part: str
    label: str
    at: str
    by: str
    rows: Callable[[Project], QuerySet[Any]]
    told: Callable[[Any], str]
    verb: str = "made"

    def newest(self, project: Project, mark: tuple[datetime, str, int] | None, who: Membership | None) -> list[Record]:
        """One more than a page of them, from the mark on, newest first."""
        found = self.rows(project).filter(**{f"{self.at}__isnull": False})
        if who is not None:
            by_user = self.by == "author"
            found = found.filter(**{self.by: who.user_id if by_user else who.pk})
        if mark is not None:
            at, label, number = mark
            same = Q(**{self.at: at}) & (Q(pk__lt=number) if self.label == label else Q() if self.label < label else Q(pk=None))
            found = found.filter(Q(**{f"{self.at}__lt": at}) | same)
        return [self._record(project, row) for row in found.order_by(f"-{self.at}", "-pk")[: PAGE + 1]]

    def _record(self, project: Project, row: Any) -> Record:
        person = getattr(row, self.by)
        user = person.user if isinstance(person, Membership) else person
        name = project.name_of(user) if user is not None else str(person or "")
        return Record(getattr(row, self.at), self.label, row.pk, name, self.verb, str(row._meta.verbose_name), self.told(row))


def _flags(project: Project) -> QuerySet[Any]:
    found = Flag.objects.filter(task__question__project=project)
    return found.select_related("task__question", "member__user", "handled_by__user")


def _consents(project: Project) -> QuerySet[Any]:
    return Consent.objects.filter(member__project=project).select_related("member__user", "warning")


def _voids(project: Project) -> QuerySet[Any]:
    """One row for each time that votes were struck out: the first of them stands for all, with how many they are."""
    together = (
        VoidedVote.objects.filter(question__project=project)
        .values("voided_at", "voided_by", "member", "why")
        .annotate(first=Min("pk"))
        .values("first")
    )
    return VoidedVote.objects.filter(pk__in=together).select_related("member", "voided_by__user", "question")


def _of_void(first: VoidedVote) -> str:
    together = VoidedVote.objects.filter(
        voided_at=first.voided_at, voided_by_id=first.voided_by_id, member_id=first.member_id, why=first.why
    )
    counts = list(together.values_list("question__title").annotate(Count("pk")).order_by("question__title"))
    votes, questions = sum(count for _, count in counts), " and ".join(title for title, _ in counts)
    return f"struck out {votes:,} vote{'' if votes == 1 else 's'} of {first.member.pseudonym} on {questions}: {first.why}"


def _on_task(flag: Flag) -> str:
    return f"task {flag.task_id} of {flag.task.question}"


_RECORDS = (
    Source(
        "questions", "record.guideline", "created_at", "author",
        lambda project: Guideline.objects.filter(question__project=project).select_related("question", "author"),
        lambda row: f"wrote version {row.version} of the guideline of {row.question}",
    ),
    Source(
        "care", "record.warning", "created_at", "author",
        lambda project: ContentWarning.objects.filter(project=project).select_related("author"),
        lambda row: f"wrote version {row.version} of the content warning",
    ),
    Source(
        "care", "record.consent", "given_at", "member", _consents,
        lambda row: f"agreed to version {row.warning.version} of the content warning",
    ),
    Source(
        "care", "record.consent_end", "ended_at", "member", _consents,
        lambda row: f"no longer agrees to version {row.warning.version} of the content warning, or agreed to a newer one", "changed",
    ),
    Source(
        "flags", "record.flag", "created_at", "member", _flags,
        lambda row: f"flagged {_on_task(row)}: {row.get_reason_display().lower()}",
    ),
    Source(
        "flags", "record.flag_handled", "handled_at", "handled_by", _flags,
        lambda row: f"handled the flag on {_on_task(row)}: {row.get_reason_display().lower()}", "changed",
    ),
    Source("people", "record.void", "voided_at", "voided_by", _voids, _of_void, "removed"),
)  # fmt: skip


# ---------------------------------------------------------------- what they say
def _user(event: Any) -> int | None:
    user = event.pgh_context.metadata.get("user") if event.pgh_context else None
    return user if isinstance(user, int) else None


def _entry(event: Any, words: "_Words") -> Entry:
    changes = _changes(event) if event.pgh_label in ("update", "revised") else []
    return Entry(
        at=event.pgh_created_at,
        who=words.who(event),
        path=str(event.pgh_context.metadata.get("path", "")) if event.pgh_context else "",
        verb=VERBS.get(event.pgh_label, event.pgh_label),
        what=words.what(event),
        changes=changes,
        sentence=words.sentence(event, changes),
    )


class _Words:
    """Names of everyone and everything that these events speak of, read at once."""

    def __init__(self, project: Project, events: Sequence[Any]) -> None:
        self.project = project
        self.users = User.objects.in_bulk([user for event in events if (user := _user(event)) is not None])
        self.members = Membership.objects.in_bulk([event.member_id for event in events if hasattr(event, "member_id")])
        self.questions = dict(project.questions.values_list("pk", "title"))
        tasks = [event.pgh_obj_id if event.pgh_tracked_model is Task else getattr(event, "task_id", None) for event in events]
        self.tasks = dict(Task.objects.filter(pk__in=[task for task in tasks if task]).values_list("pk", "question_id"))

    def who(self, event: Any) -> str:
        if event.pgh_tracked_model is Pause and event.pgh_label == "insert":
            return ITSELF
        user = self.users.get(_user(event) or 0)
        return self.project.name_of(user) if user is not None else ""

    def what(self, event: Any) -> str:
        """`question Toxicity`, `choice Yes of Toxicity`, else the kind and the id."""
        kind = str(event.pgh_tracked_model._meta.verbose_name)
        if event.pgh_tracked_model is Membership:
            return f"Annotator {event.number}"
        rows = [event] if event.pgh_tracked_model in MANY.values() else [event, event.pgh_obj]  # an event may keep less than its row
        named = next((value for name in NAMES for row in rows if (value := getattr(row, name, None))), event.pgh_obj_id)
        of = self.questions.get(getattr(event, "question_id", None) or 0)
        return f"{kind} {named}{f' of {of}' if of else ''}"

    def sentence(self, event: Any, changes: Sequence[Change]) -> str:
        """What was done to what, without its subject: "changed question Toxicity: votes required from 3 to 5"."""
        said = self._in_own_words(event, changes)
        if said:
            return said
        told = "; ".join(_in_words(change) for change in changes)
        return f"{VERBS.get(event.pgh_label, event.pgh_label)} {self.what(event)}{f': {told}' if told else ''}"

    def _in_own_words(self, event: Any, changes: Sequence[Change]) -> str:
        """Of people and of what they are checked by: what reads better in words of its own; "" for all else."""
        made = event.pgh_label == "insert"
        question = self.questions.get(getattr(event, "question_id", None) or 0, "")
        member = self.members.get(getattr(event, "member_id", None) or 0)
        own: dict[type[Model], Callable[[], str]] = {
            Membership: lambda: _of_membership(event, changes, made=made),
            Assignment: lambda: f"gave {question} to {member}" if made else f"took {question} from {member}",
            Pause: lambda: f"paused {member} on {question}: {_right(event)}" if made else f"let {member} go on with {question}",
            KnownAnswer: lambda: _of_known(event, changes, question, made=made),
            Item: lambda: f"{'quarantined' if event.quarantined else 'lifted the quarantine of'} item {event.pgh_obj_id}",
            Task: lambda: _of_task(event, self.task(event.pgh_obj_id)),
            GroundTruth: lambda: self._of_truth(event),
            Adjudication: lambda: self._of_ruling(event),
            Vote: lambda: _of_vote(event, changes, self.task(event.task_id), str(member)),
        }
        if event.pgh_tracked_model in own:
            return own[event.pgh_tracked_model]()
        told = getattr(event.pgh_obj, "told", None) if event.pgh_tracked_model not in MANY.values() else None
        return f"{told(event)}" if told else ""

    def task(self, task: int) -> str:
        """`task 12 of Toxicity`."""
        of = self.questions.get(self.tasks.get(task, 0))
        return f"task {task}{f' of {of}' if of else ''}"

    def _of_truth(self, event: Any) -> str:
        if event.pgh_label == "update" and event.superseded_at is not None:
            return f"ended the ground truth of {self.task(event.task_id)}, {event.choice}"
        return ""

    def _of_ruling(self, event: Any) -> str:
        if event.pgh_label != "update":
            return ""
        if event.choice_id is None:
            return f"changed the blind ruling on {self.task(event.task_id)}"
        return f"ruled on {self.task(event.task_id)}: {event.choice}"


def _of_task(event: Any, task: str) -> str:
    """What happened, by the event before it: a first one comes after round 1, open."""
    before = type(event).objects.filter(pgh_obj_id=event.pgh_obj_id, pgh_id__lt=event.pgh_id).order_by("-pgh_id").first()
    if event.round > (before.round if before else 1):
        return f"re-opened {task} in round {event.round}"
    if event.state == TaskState.RETIRED:
        return f"retired {task}"
    if event.state == TaskState.OPEN:
        return f"opened {task} again in the same round"
    if event.state == TaskState.ADJUDICATED:
        return f"settled {task} by a ruling"
    return f"left {task} {event.state}, with {event.vote_count} of {event.votes_required} votes"


def _of_vote(event: Any, changes: Sequence[Change], task: str, member: str) -> str:
    if event.pgh_label == "delete":
        return f"struck out the vote of {member} on {task}"
    told = "; ".join(_in_words(change) for change in changes)
    return f"changed the vote on {task}{f': {told}' if told else ''}"


def _right(pause: Any) -> str:
    return f"{pause.correct} of {pause.answers} known answers right, below {pause.floor:.0%}"


def _of_known(event: Any, changes: Sequence[Change], question: str, *, made: bool) -> str:
    if made:
        return f"marked a known answer of {question}, {'for practice' if event.practice else 'as a check'}"
    return f"took a known answer of {question} out" if [change.field for change in changes] == ["active"] and not event.active else ""


def _of_membership(event: Any, changes: Sequence[Change], *, made: bool) -> str:
    if made:
        return f"added Annotator {event.number}, as {event.role}"
    told = {change.field: change for change in changes}
    if set(told) == {"active"}:
        return f"let Annotator {event.number} in again" if event.active else f"ended the part of Annotator {event.number}"
    if set(told) == {"role"}:
        return f"changed the role of Annotator {event.number} from {told['role'].before} to {told['role'].after}"
    return ""


def _in_words(change: Change) -> str:
    if change.after is None:
        return change.field
    return (
        f"{change.field} from {_short(change.before)} to {_short(change.after)}"
        if change.before is not None
        else f"{change.field} {change.after}"
    )


def _short(value: str) -> str:
    return value if len(value) <= 60 else f"{value[:59]}…"


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
