"""The history of a task, for researchers: everything that people did to it, in order.

Read from what is kept of it: votes with their earlier versions (pghistory's events), voided votes, abstentions, rulings
blind and final, ground truths, flags, and the events of the task itself. Why somebody abstained is nobody's business but
theirs: the history says that they did.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pghistory.core
from django.db.models import Model

from annotation.models import (
    Abstention,
    Adjudication,
    Choice,
    Flag,
    GroundTruth,
    Guideline,
    KnownAnswer,
    Membership,
    Tag,
    Task,
    TaskState,
    VoidedVote,
    Vote,
)


@dataclass(frozen=True)
class Step:
    """One thing that happened. `who` is a pseudonym, "" where nobody in particular did it; `version` the guideline's, None without.

    `words` is what somebody typed (a comment, a note): it may quote the item, and stands behind a click like its content.
    `vote_id` is that of a vote that still counts, which can be voided.
    """

    at: datetime
    kind: str
    round: int
    what: str
    who: str = ""
    choice: str = ""
    tags: list[str] = field(default_factory=list)
    words: str = ""
    version: int | None = None
    vote_id: int | None = None


# What happens at the same moment is told in this order: a vote, then what it settled.
_ORDER = (
    "made", "known", "reopened", "retired", "vote", "changed", "voided", "abstained", "blind", "ruling", "superseded", "truth", "disputed",
    "flag", "handled",
)  # fmt: skip


def of_task(task: Task) -> list[Step]:
    """Everything that happened to the task, oldest first, all rounds."""
    teller = _Teller(task)
    steps = [step for part in teller.parts() for step in part]
    return sorted(steps, key=lambda step: (step.at, _ORDER.index(step.kind)))


def seen_by(task: Task) -> list[str]:
    """Who ruled on the task or saw its votes, and so is never asked to vote on it, by pseudonym."""
    people = Membership.objects.filter(adjudications__task=task).distinct().order_by("number")
    return [member.pseudonym for member in people]


class _Teller:
    """Tells the parts of one task's history, with the names that are needed for it read once."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.choices = dict(Choice.objects.filter(question=task.question_id).values_list("pk", "label"))
        self.tags = dict(Tag.objects.filter(question=task.question_id).values_list("value", "label"))
        self.versions = dict(Guideline.objects.filter(question=task.question_id).values_list("pk", "version"))

    def parts(self) -> Iterator[Iterable[Step]]:
        yield [Step(self.task.created_at, "made", 1, "Task made")]
        yield self.votes()
        yield self.voided()
        yield self.abstentions()
        yield self.rulings()
        yield self.truths()
        yield self.flags()
        yield self.events()
        yield self.known()

    def answer(self, row: Any) -> dict[str, Any]:
        """What a vote, an earlier version of one or a truth says: choice, tags, guideline version."""
        return {
            "choice": self.choices.get(row.choice_id, ""),
            "tags": [self.tags.get(tag, tag) for tag in row.tags],
            "version": self.versions.get(row.guideline_id),
        }

    def votes(self) -> Iterator[Step]:
        """Every version of every vote: the first when it was cast, the others when they took its place."""
        cast: list[tuple[Any, int, bool]] = [(vote, vote.pk, True) for vote in Vote.objects.filter(task=self.task).select_related("member")]
        cast += [(gone, gone.vote_number, False) for gone in VoidedVote.objects.filter(task=self.task).select_related("member")]
        before: dict[int, list[Any]] = {}
        for event in _events_of(Vote).filter(pgh_obj_id__in=[number for _, number, _ in cast], pgh_label="revised").order_by("pgh_id"):
            before.setdefault(event.pgh_obj_id, []).append(event)
        for vote, number, counts in cast:
            versions = [*before.get(number, []), vote]
            times = [vote.created_at, *(event.pgh_created_at for event in before.get(number, []))]
            for place, (at, version) in enumerate(zip(times, versions, strict=True)):
                yield Step(
                    at, "changed" if place else "vote", vote.round, "changed the vote" if place else "voted", vote.member.pseudonym,
                    words=version.comment, vote_id=number if counts and version is vote else None, **self.answer(version),
                )  # fmt: skip

    def voided(self) -> Iterator[Step]:
        for gone in VoidedVote.objects.filter(task=self.task).select_related("member", "voided_by"):
            what = f"struck out the vote of {gone.member.pseudonym}"
            yield Step(gone.voided_at, "voided", gone.round, what, gone.voided_by.pseudonym, words=gone.why, **self.answer(gone))

    def abstentions(self) -> Iterator[Step]:
        for given in Abstention.objects.filter(task=self.task).select_related("member"):
            yield Step(given.created_at, "abstained", given.round, "abstained", given.member.pseudonym)

    def rulings(self) -> Iterator[Step]:
        for ruling in Adjudication.objects.filter(task=self.task).select_related("member"):
            who, version = ruling.member.pseudonym, self.versions.get(ruling.guideline_id)
            if ruling.blind_at is not None:
                what = "ruled before seeing the votes" if ruling.blind else "ruled before the votes, as a researcher not blind"
                yield Step(
                    ruling.blind_at, "blind", ruling.round, what, who, self.choices.get(ruling.blind_choice_id or 0, ""),
                    [self.tags.get(tag, tag) for tag in ruling.blind_tags], version=version,
                )  # fmt: skip
            if ruling.ruled_at is not None:
                what = f"ruled, {ruling.get_reason_display().lower()}" + ("" if ruling.blind else ", not blind")
                yield Step(ruling.ruled_at, "ruling", ruling.round, what, who, words=ruling.note, **self.answer(ruling))

    def truths(self) -> Iterator[Step]:
        for truth in GroundTruth.objects.filter(task=self.task):
            unsettled = "; kind unsettled, no tag has a majority" if truth.tags_unsettled else ""
            what = f"Ground truth, {truth.get_source_display().lower()}{unsettled}"
            yield Step(truth.created_at, "truth", truth.round, what, **self.answer(truth))
            if truth.superseded_at is not None:
                yield Step(truth.superseded_at, "superseded", truth.round, "Ground truth superseded", choice=self.choices[truth.choice_id])

    def flags(self) -> Iterator[Step]:
        for flag in Flag.objects.filter(task=self.task).select_related("member", "handled_by"):
            round_then = self.round_at(flag.created_at)
            what = f"flagged it: {flag.get_reason_display().lower()}"
            yield Step(flag.created_at, "flag", round_then, what, flag.member.pseudonym, words=flag.note)
            if flag.handled_at is not None:
                who = flag.handled_by.pseudonym if flag.handled_by else ""
                yield Step(flag.handled_at, "handled", self.round_at(flag.handled_at), "handled the flag", who, words=flag.handled_note)

    def events(self) -> Iterator[Step]:
        """Retired and re-opened, by whom; and that votes differed, for the round that goes on."""
        number = 1
        for event in self.task_events():
            if event.round > number:
                who, what = self.person(event), f"opened round {event.round}"
                yield Step(event.pgh_created_at, "reopened", event.round, what if who else what.capitalize(), who)
            elif event.state == TaskState.RETIRED:
                who = self.person(event)
                yield Step(event.pgh_created_at, "retired", event.round, "retired the task" if who else "Task retired", who)
            number = event.round
        if self.task.state in (TaskState.DISPUTED, TaskState.ADJUDICATED) and self.task.settled_at is not None:
            yield Step(self.task.settled_at, "disputed", self.task.round, "Sent to an adjudicator")

    def known(self) -> Iterator[Step]:
        for known in KnownAnswer.objects.filter(task=self.task).select_related("author"):
            what = f"marked it as a known answer, for {'practice' if known.practice else 'checks'}"
            who = known.author.pseudonym if known.author else ""
            choice, tags = self.choices.get(known.choice_id, ""), [self.tags.get(tag, tag) for tag in known.tags]
            yield Step(known.created_at, "known", self.round_at(known.created_at), what, who, choice, tags, known.why)

    # ------------------------------------------------------------ what several parts ask
    def task_events(self) -> list[Any]:
        if not hasattr(self, "_events"):
            self._events = list(_events_of(Task).filter(pgh_obj_id=self.task.pk).select_related("pgh_context").order_by("pgh_id"))
        return self._events

    def round_at(self, at: datetime) -> int:
        """The round that went on at this time."""
        rounds: list[int] = [event.round for event in self.task_events() if event.pgh_created_at <= at]
        return rounds[-1] if rounds else 1

    def person(self, event: Any) -> str:
        """Who caused an event, by their pseudonym in the project; "" for a command."""
        user = event.pgh_context.metadata.get("user") if event.pgh_context else None
        found = Membership.objects.filter(project__questions=self.task.question_id, user=user).first() if isinstance(user, int) else None
        return found.pseudonym if found else ""


def _events_of(model: type[Model]) -> Any:
    """The kept events of a model's rows."""
    (table,) = pghistory.core.event_models(tracks_model=model)
    return table._default_manager
