"""Known answers: items of a question whose right answer is known, shown for practice with feedback or mixed in unseen as checks.

A known answer collects no votes: while it is active its task is never open. Marking takes an open or disputed task out of the
queue; a settled one stays settled. What annotators said to checks is read here for researchers; checks.py hands them out.
"""

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils import timezone

from annotation import rounds, sql
from annotation.checks import ANSWERS_BEFORE_PAUSE
from annotation.errors import Conflict, Invalid, Missing
from annotation.models import Choice, Item, Kind, KnownAnswer, Membership, Pause, Project, Question, TagUse, Task, TaskState
from annotation.tasks import create_tasks

MOST_AT_ONCE = 1000
PAGE = 200
LONGEST_WHY = 2000
# From so many answers on, a check that more than half of them missed is worth a second look.
SUSPICIOUS_FROM = 3


@dataclass(frozen=True)
class Answer:
    """An item with its right answer. `why` is said after a practice answer."""

    item_id: int
    choice: str
    tags: Sequence[str] = ()
    why: str = ""


# ---------------------------------------------------------------- marking
def mark(
    question: Question, item_id: int, *, choice: str, tags: Sequence[str] = (), why: str = "", practice: bool = False, by: Membership | None
) -> KnownAnswer:
    """Make this the known answer of the item's task, for practice or as a check. The same once more changes nothing.

    Raises Invalid for an item that the question is not asked of or that cannot be shown, for a choice or tags that it does not
    offer, and for an item with another known answer.
    """
    return mark_many(question, [Answer(item_id, choice, tags, why)], practice=practice, by=by)[0]


@transaction.atomic
def mark_many(question: Question, answers: Sequence[Answer], *, practice: bool = False, by: Membership | None) -> list[KnownAnswer]:
    """Mark all of them, or none. Raises Invalid; `fields` says by "answers.<n>", from 0, what is wrong with each."""
    if not 1 <= len(answers) <= MOST_AT_ONCE:
        raise Invalid(f"From 1 to {MOST_AT_ONCE:,} items at once.", fields={"answers": f"{len(answers):,} items."})
    offered = _Offered(question)
    wrong: dict[str, str] = {}
    for n, answer in enumerate(answers):
        if problem := offered.problem(answer.choice, answer.tags, answer.why):
            wrong[f"answers.{n}"] = problem
    _check_items(question, answers, wrong)
    _stop(wrong)
    create_tasks(question, [answer.item_id for answer in answers])
    tasks = _lock_tasks(question, [answer.item_id for answer in answers])
    for n, answer in enumerate(answers):
        if answer.item_id not in tasks:  # quarantined since it was looked at
            wrong[f"answers.{n}"] = "This item is quarantined: it is shown to nobody."
    _stop(wrong)
    _take_out(question, list(tasks.values()))  # first: the task of an active known answer is never open
    known = {found.task_id: found for found in KnownAnswer.objects.filter(task__in=tasks.values())}
    for n, answer in enumerate(answers):
        task_id, given = tasks[answer.item_id], offered.fields_of(answer.choice, answer.tags, answer.why) | {"practice": practice}
        found = known.get(task_id)
        if found is None:
            known[task_id] = KnownAnswer(task_id=task_id, question=question, author=by, **given)
        elif not found.active:
            _set(found, active=True, author=by, **given)
        elif any(getattr(found, name) != value for name, value in given.items()):
            wrong[f"answers.{n}"] = "This item has another known answer. Change that one, or take it out first."
    _stop(wrong)
    KnownAnswer.objects.bulk_create(found for found in known.values() if found.pk is None)
    return [known[tasks[answer.item_id]] for answer in answers]


@transaction.atomic
def mark_settled(
    question: Question,
    count: int,
    *,
    seed: int | None = None,
    practice: bool = False,
    by: Membership | None,
    item_ids: Collection[int] | None = None,
) -> list[KnownAnswer]:
    """Draw `count` settled tasks, as many of each answer as of any other, and make their ground truth their known answer.

    Drawn from the tasks that two or more people answered alike or that an adjudicator ruled on, of `item_ids` when given; never
    from unsure answers, unsettled tags, or what was a known answer before. Ordered by SHA-256 over "<seed>:<external id>", as
    samples are, so the same seed draws the same tasks anywhere. Raises Invalid (count, seed).
    """
    seed = question.project.seed if seed is None else seed
    if not -(2**63) <= seed < 2**63:
        raise Invalid("The seed is too large.", fields={"seed": "A whole number of at most 18 digits."})
    available = settled_available(question, item_ids)
    total = sum(available.values())
    if not 1 <= count <= min(total, MOST_AT_ONCE):
        most = "There is none yet." if not total else f"From 1 to {min(total, MOST_AT_ONCE):,}."
        raise Invalid(f"{total:,} settled tasks can become known answers; {count:,} were asked for.", fields={"count": most})
    wanted = balanced({choice.pk: number for choice, number in available.items()}, count)
    drawn = sql.rows(
        _DRAWN, question=question.pk, items=None if item_ids is None else list(item_ids), seed=str(seed),
        choices=list(wanted), counts=list(wanted.values()),
    )  # fmt: skip
    return mark_many(question, [Answer(row["item_id"], row["choice"], row["tags"]) for row in drawn], practice=practice, by=by)


def settled_available(question: Question, item_ids: Collection[int] | None = None) -> dict[Choice, int]:
    """How many settled tasks of each answer could become known answers; every choice that is not unsure, in its order."""
    counts = sql.rows(_SETTLED_COUNTS, question=question.pk, items=None if item_ids is None else list(item_ids))
    by_choice = {row["choice_id"]: row["count"] for row in counts}
    return {choice: by_choice.get(choice.pk, 0) for choice in question.choices.filter(is_unsure=False)}


def balanced(available: Mapping[int, int], count: int) -> dict[int, int]:
    """How many of each, as equal as what there is allows. Sums to `count`, which is at most what there is.

    >>> balanced({1: 50, 2: 4, 3: 50}, 20)
    {1: 8, 2: 4, 3: 8}
    >>> balanced({1: 2, 2: 2}, 3)
    {1: 2, 2: 1}
    """
    wanted = dict.fromkeys(available, 0)
    for place in range(count):
        open_to = [choice for choice, number in available.items() if wanted[choice] < number]
        if not open_to:
            raise ValueError(f"Only {place} there are, and {count} are asked for.")
        wanted[min(open_to, key=lambda choice: wanted[choice])] += 1
    return wanted


@transaction.atomic
def change(
    question: Question, known_id: int, *, choice: str | None = None, tags: Sequence[str] | None = None, why: str | None = None,
    practice: bool | None = None,
) -> KnownAnswer:  # fmt: skip
    """Change what is given of an active known answer. A changed answer is held against what people said before, too.

    Raises Missing and Invalid (choice, tags, why).
    """
    known = _lock(question, known_id)
    offered = _Offered(question)
    new_choice = known.choice.value if choice is None else choice
    new_tags, new_why = known.tags if tags is None else tags, known.why if why is None else why
    if problem := offered.problem(new_choice, new_tags, new_why):
        raise Invalid(problem, fields={"answer": problem})
    given = offered.fields_of(new_choice, new_tags, new_why)
    _set(known, **given, practice=known.practice if practice is None else practice)
    sql.rows("SELECT id FROM annotation_check WHERE known_id = %(known)s ORDER BY id FOR UPDATE", known=known.pk)
    sql.rows(_JUDGE_ANEW, known=known.pk)
    return known


@transaction.atomic
def unmark(question: Question, known_id: int) -> KnownAnswer:
    """Take a known answer out: it is put to nobody any more. What was said to it stays on record; its task stays as it is."""
    known = _lock(question, known_id)
    _set(known, active=False)
    return known


def _lock(question: Question, known_id: int) -> KnownAnswer:
    known = (
        KnownAnswer.objects.select_for_update(no_key=True, of=("self",))
        .select_related("choice")
        .filter(pk=known_id, question=question, active=True)
        .first()
    )
    if known is None:
        raise Missing("There is no such known answer, or it was taken out.")
    return known


def _set(known: KnownAnswer, **values: Any) -> None:
    """Write what differs, so that the audit trail shows real changes."""
    changed = [name for name, value in values.items() if getattr(known, name) != value]
    for name in changed:
        setattr(known, name, values[name])
    if changed:
        known.save(update_fields=changed)


def _lock_tasks(question: Question, item_ids: Sequence[int]) -> dict[int, int]:
    """item id -> task id, the tasks locked; items that are quarantined by then left out."""
    locked = sql.rows(
        "SELECT id FROM annotation_task WHERE question_id = %(question)s AND item_id = ANY(%(items)s) ORDER BY id FOR UPDATE",
        question=question.pk, items=list(item_ids),
    )  # fmt: skip
    found = sql.rows(
        """
        SELECT task.id, task.item_id FROM annotation_task AS task JOIN annotation_item AS item ON item.id = task.item_id
        WHERE task.id = ANY(%(tasks)s) AND NOT item.quarantined
        """,
        tasks=[row["id"] for row in locked],
    )
    return {row["item_id"]: row["id"] for row in found}


def _take_out(question: Question, task_ids: Sequence[int]) -> None:
    """Retire those of these locked tasks that wait for votes or a ruling; who holds one is told when they answer."""
    waiting = Task.objects.filter(pk__in=task_ids, state__in=[TaskState.OPEN, TaskState.DISPUTED])
    rounds.retire(question, waiting.values_list("pk", flat=True))


# ---------------------------------------------------------------- what may not be
class _Offered:
    """The answers that a question offers, read once."""

    def __init__(self, question: Question) -> None:
        self.choices = {choice.value: choice for choice in question.choices.all()}
        self.tags = list(question.tags.values_list("value", flat=True))

    def problem(self, choice: str, tags: Sequence[str], why: str) -> str:
        """What is wrong with this answer, "" when nothing is."""
        found = self.choices.get(choice)
        if found is None:
            return f"“{choice[:40]}” is not an answer of this question. One of: {', '.join(self.choices)}."
        unknown = sorted(set(tags) - set(self.tags))
        if tags and found.tag_use == TagUse.NONE:
            return f"“{found.label}” takes no tags."
        if unknown:
            return f"Unknown tags: {', '.join(unknown)[:80]}. Known are: {', '.join(self.tags)}."
        if not tags and found.tag_use == TagUse.REQUIRED:
            return f"“{found.label}” needs at least one tag: {', '.join(self.tags)}."
        if len(why) > LONGEST_WHY:
            return f"What is said after a practice answer has at most {LONGEST_WHY:,} characters; this has {len(why):,}."
        return "A NUL character cannot be kept. Take it out." if "\x00" in why else ""

    def fields_of(self, choice: str, tags: Sequence[str], why: str) -> dict[str, Any]:
        return {"choice": self.choices[choice], "tags": sorted(set(tags)), "why": why.strip()}


def _check_items(question: Question, answers: Sequence[Answer], wrong: dict[str, str]) -> None:
    """One message for each item that cannot be asked about."""
    items = Item.objects.filter(project=question.project_id).in_bulk([answer.item_id for answer in answers])
    seen: set[int] = set()
    for n, answer in enumerate(answers):
        item, problem = items.get(answer.item_id), ""
        if item is None:
            problem = "There is no such item in this project."
        elif item.kind != question.kind:
            problem = f"This item is {_a(item.kind)}; the question is asked of {question.kind}s."
        elif item.quarantined:
            problem = "This item is quarantined: it is shown to nobody."
        elif item.kind == Kind.IMAGE and item.media_id is None:
            problem = "The picture of this item is missing, so it cannot be shown."
        elif item.pk in seen:
            problem = "This item is named twice."
        seen.add(answer.item_id)
        if problem:
            wrong.setdefault(f"answers.{n}", problem)


def _a(kind: str) -> str:
    return "an image" if kind == Kind.IMAGE else "a text"


def _stop(wrong: Mapping[str, str]) -> None:
    if wrong:
        told = next(iter(wrong.values()))
        raise Invalid(told if len(wrong) == 1 else f"{len(wrong)} items cannot be marked; none was. {told}", fields=wrong)


# ---------------------------------------------------------------- as typed, or from a file
@dataclass(frozen=True)
class Typed:
    """One line of a list: an item by the id it has in its file, the value or label of its answer, tags, why."""

    line: int
    external_id: str
    choice: str
    tags: Sequence[str]
    why: str


def read_lines(text: str) -> list[Typed]:
    """Lines of "id, answer, tags, why" (CSV, or tabs as a spreadsheet copies them; tags with spaces between; a first line of names is
    left out). Raises Invalid where they cannot be read.
    """
    text = text.replace("\x00", "")
    delimiter = "\t" if "\t" in text.split("\n", 1)[0] else ","
    found = []
    try:
        for n, row in enumerate(csv.reader(text.splitlines(), delimiter=delimiter, skipinitialspace=True, strict=True), 1):
            cells = [cell.strip() for cell in row] + ["", "", ""]
            if not any(cells) or (n == 1 and cells[0].lower() in ("id", "item", "external_id")):
                continue
            found.append(Typed(n, cells[0], cells[1], cells[2].split(), cells[3]))
    except csv.Error as error:
        raise Invalid(f"These lines cannot be read: {error}.", fields={"lines": "One item a line: id, answer."}) from error
    if not found:
        raise Invalid("Name at least one item.", fields={"lines": "One item a line: id, answer."})
    return found


def mark_lines(question: Question, text: str, *, practice: bool, by: Membership | None) -> list[KnownAnswer]:
    """Mark what a list names, all of it or nothing. Raises Invalid with what is wrong by "line.<n>", from 1."""
    typed = read_lines(text)
    items = dict(
        Item.objects.filter(project=question.project_id, external_id__in=[line.external_id for line in typed]).values_list(
            "external_id", "pk"
        )
    )
    names = {name.lower(): choice.value for choice in question.choices.all() for name in (choice.label, choice.value)}
    typed_choices = [names.get(line.choice.lower(), line.choice) for line in typed]
    tags = [[tag.strip(";") for tag in line.tags] for line in typed]
    offered, wrong = _Offered(question), {}
    for line, choice, own_tags in zip(typed, typed_choices, tags, strict=True):
        problems = [f"No item has the id “{line.external_id[:60]}”."] if line.external_id not in items else []
        problem = offered.problem(choice, own_tags, line.why) if choice else "An id and an answer, with a comma between."
        problems += [problem] if problem else []
        if problems:
            wrong[f"line.{line.line}"] = " ".join(problems)
    there = [place for place, line in enumerate(typed) if line.external_id in items]
    answers = [Answer(items[typed[place].external_id], typed_choices[place], tags[place], typed[place].why) for place in there]
    unfit: dict[str, str] = {}
    _check_items(question, answers, unfit)
    for name, message in unfit.items():
        wrong.setdefault(_as_line(name, [typed[place] for place in there]), message)
    if wrong:
        first = dict(sorted(wrong.items(), key=lambda one: int(one[0].removeprefix("line."))))
        raise Invalid(f"{len(wrong):,} of {len(typed):,} lines cannot be marked. None was.", fields=first)
    try:
        return mark_many(question, answers, practice=practice, by=by)
    except Invalid as error:
        fields = {_as_line(name, typed): message for name, message in error.fields.items()}
        raise Invalid(error.message, fields=fields) from error


def _as_line(name: str, typed: Sequence[Typed]) -> str:
    n = name.removeprefix("answers.")
    return f"line.{typed[int(n)].line}" if n.isdecimal() else "lines"


# ---------------------------------------------------------------- how they do
@dataclass(frozen=True)
class Line:
    """An active known answer and how it was answered: `asked` times with a choice, `missed` of them wrong; `abstained` beside."""

    known: KnownAnswer
    asked: int
    missed: int
    abstained: int

    @property
    def suspicious(self) -> bool:
        """Most people miss it: the known answer may be the one that is wrong."""
        return self.asked >= SUSPICIOUS_FROM and 2 * self.missed > self.asked

    @property
    def shown(self) -> bool:
        """Whether it is put to anyone: not while its item is quarantined."""
        return not self.known.task.item.quarantined


def active(question: Question, *, practice: bool, after: int = 0, limit: int = PAGE) -> list[Line]:
    """The active known answers in the order they were marked, which is the order of practice; from the id `after` on."""
    found = list(
        KnownAnswer.objects.filter(question=question, active=True, practice=practice, pk__gt=after)
        .select_related("choice", "task__item")
        .order_by("pk")[:limit]
    )
    counts = {row["known_id"]: row for row in sql.rows(_ASKED, known=[one.pk for one in found], practice=practice)}
    blank = {"asked": 0, "missed": 0, "abstained": 0}
    lines = []
    for known in found:
        known.question = question
        row = counts.get(known.pk, blank)
        lines.append(Line(known, row["asked"], row["missed"], row["abstained"]))
    return lines


def find(question: Question, known_id: int) -> Line:
    """One active known answer. Raises Missing."""
    known = KnownAnswer.objects.filter(question=question, pk=known_id, active=True).first()
    if known is None:
        raise Missing("There is no such known answer, or it was taken out.")
    return active(question, practice=known.practice, after=known.pk - 1, limit=1)[0]


@dataclass(frozen=True)
class Outlook:
    """How far a question's checks go: `met` is how many of them someone meets who answers all `tasks`; `lasts` after how many
    answers of all sorts there is none left, None while no share is mixed in.
    """

    practice: int
    checks: int
    share: float
    tasks: int
    met: int
    lasts: int | None
    floor: float | None = None

    @property
    def known(self) -> int:
        return self.practice + self.checks

    @property
    def missing(self) -> int:
        """How many more there must be for everyone to meet new ones to the end."""
        return max(0, self.met - self.checks)

    @property
    def below_floor(self) -> int:
        """How many more checks it takes for the floor to act at all: nobody is paused before so many answers. 0 without a floor."""
        return max(0, ANSWERS_BEFORE_PAUSE - self.checks) if self.floor is not None else 0

    @property
    def enough(self) -> bool:
        return not self.missing


def outlook(question: Question) -> Outlook:
    """Counts of now. Retired tasks are not counted; quarantined known answers are put to nobody, and are not either."""
    row = sql.the(_OUTLOOK, question=question.pk)
    share = question.check_share
    return Outlook(
        practice=row["practice"], checks=row["checks"], share=share, tasks=row["tasks"],
        met=round(row["tasks"] * share / (1 - share)),  # the share is of all that is handed out, checks included
        lasts=int(row["checks"] / share) if share else None,
        floor=question.accuracy_floor,
    )  # fmt: skip


@dataclass(frozen=True)
class Tally:
    """A member's answers to checks of a question. `counted` are those since their last pause was lifted: the pause rule reads them.

    `left` is how many checks they have not met yet.
    """

    member: Membership
    answers: int
    correct: int
    counted: int
    counted_correct: int
    left: int
    pause: Pause | None = field(default=None)


def tallies(question: Question) -> list[Tally]:
    """Everyone who answered a check or is paused, by number. Practice and abstentions are not counted."""
    return _tallies(question, None)


def tally_of(question: Question, member: Membership) -> Tally | None:
    """One member's; None when they answered no check and are not paused."""
    return next(iter(_tallies(question, member.pk)), None)


def _tallies(question: Question, member_id: int | None) -> list[Tally]:
    rows = sql.rows(_TALLIES, question=question.pk, member=member_id)
    members = Membership.objects.select_related("user", "project").in_bulk([row["member_id"] for row in rows])
    pauses = {pause.member_id: pause for pause in Pause.objects.filter(question=question, lifted_at=None)}
    return [
        Tally(
            members[row["member_id"]], row["answers"], row["correct"], row["counted"], row["counted_correct"], row["left"],
            pauses.get(row["member_id"]),
        )
        for row in rows
    ]  # fmt: skip


def paused(project: Project) -> list[Pause]:
    """Who is paused now on which question of the project, the longest first."""
    found = Pause.objects.filter(question__project=project, lifted_at=None)
    return list(found.select_related("member__user", "member__project", "question").order_by("paused_at", "pk"))


def pauses_of(member: Membership) -> list[Pause]:
    """All pauses of a member, lifted ones too, newest first."""
    found = Pause.objects.filter(member=member).select_related("question", "lifted_by__user", "lifted_by__project")
    return list(found.order_by("-paused_at", "-pk"))


@transaction.atomic
def lift_pause(question: Question, number: int, by: Membership | None) -> Pause:
    """Let a paused member go on; the rule counts their answers anew from here. Raises Missing and Conflict (not_paused)."""
    member = Membership.objects.filter(project=question.project_id, number=number, user__isnull=False).first()
    if member is None:
        raise Missing(f"Nobody in this project has the number {number}.")
    pause = Pause.objects.select_for_update(no_key=True).filter(question=question, member=member, lifted_at=None).first()
    if pause is None:
        raise Conflict(f"{member.pseudonym} is not paused on this question.", code="not_paused")
    pause.lifted_by, pause.lifted_at = by, timezone.now()
    pause.save(update_fields=["lifted_by", "lifted_at"])
    return pause


# ---------------------------------------------------------------- SQL
_SETTLED = """
    FROM annotation_groundtruth AS truth
    JOIN annotation_task AS task ON task.id = truth.task_id
    JOIN annotation_item AS item ON item.id = truth.item_id
    JOIN annotation_choice AS choice ON choice.id = truth.choice_id
    WHERE truth.question_id = %(question)s AND truth.superseded_at IS NULL AND NOT truth.tags_unsettled AND NOT choice.is_unsure
      AND (truth.source = 'adjudicated' OR truth.source = 'unanimous' AND task.votes_required > 1)
      AND task.state IN ('agreed', 'adjudicated') AND NOT item.quarantined AND (item.kind = 'text' OR item.media_hash IS NOT NULL)
      AND NOT EXISTS (SELECT FROM annotation_knownanswer AS known WHERE known.task_id = task.id)
      AND (%(items)s::bigint[] IS NULL OR truth.item_id = ANY(%(items)s))
"""
_SETTLED_COUNTS = f"SELECT truth.choice_id, count(*) AS count {_SETTLED} GROUP BY truth.choice_id"
_DRAWN = f"""
    SELECT placed.item_id, placed.choice, placed.tags FROM (
        SELECT truth.item_id, truth.choice_id, choice.value AS choice, truth.tags, task.rank, row_number() OVER (
            PARTITION BY truth.choice_id ORDER BY sha256(convert_to(%(seed)s || ':' || item.external_id, 'UTF8')), item.external_id
        ) AS place
        {_SETTLED}
    ) AS placed
    JOIN unnest(%(choices)s::bigint[], %(counts)s::int[]) AS wanted(choice_id, count)
      ON wanted.choice_id = placed.choice_id AND placed.place <= wanted.count
    ORDER BY placed.rank, placed.item_id
"""  # noqa: S608 - our own words
# The rule of checks.is_right, over what was answered before.
_RIGHT = "(answer.choice_id = known.choice_id AND (known.tags = '{}' OR known.tags = answer.tags))"
_JUDGE_ANEW = f"""
    UPDATE annotation_check AS answer SET correct = {_RIGHT} FROM annotation_knownanswer AS known
    WHERE known.id = %(known)s AND answer.known_id = known.id AND answer.choice_id IS NOT NULL AND answer.correct <> {_RIGHT}
    RETURNING answer.id
"""  # noqa: S608 - our own words
_ASKED = """
    SELECT known_id, count(correct) AS asked, count(*) FILTER (WHERE NOT correct) AS missed,
           count(*) FILTER (WHERE abstained <> '') AS abstained
    FROM annotation_check WHERE known_id = ANY(%(known)s) AND practice = %(practice)s AND answered_at IS NOT NULL GROUP BY known_id
"""
_OUTLOOK = """
    SELECT count(*) FILTER (WHERE known.practice) AS practice, count(*) FILTER (WHERE NOT known.practice) AS checks,
           (SELECT count(*) FROM annotation_task WHERE question_id = %(question)s AND state <> 'retired') AS tasks
    FROM annotation_knownanswer AS known
    JOIN annotation_task AS task ON task.id = known.task_id
    JOIN annotation_item AS item ON item.id = task.item_id AND NOT item.quarantined
    WHERE known.question_id = %(question)s AND known.active
"""
_TALLIES = """
    SELECT member.id AS member_id, count(answer.id) AS answers, count(*) FILTER (WHERE answer.correct) AS correct,
           count(*) FILTER (WHERE answer.answered_at > begun.at) AS counted,
           count(*) FILTER (WHERE answer.correct AND answer.answered_at > begun.at) AS counted_correct,
           (SELECT count(*) FROM annotation_knownanswer AS known
            JOIN annotation_task AS task ON task.id = known.task_id
            JOIN annotation_item AS item ON item.id = task.item_id AND NOT item.quarantined
            WHERE known.question_id = %(question)s AND known.active AND NOT known.practice
              AND NOT EXISTS (SELECT FROM annotation_check AS met WHERE met.known_id = known.id AND met.member_id = member.id)
              AND NOT EXISTS (SELECT FROM annotation_vote AS vote WHERE vote.task_id = task.id AND vote.member_id = member.id)) AS left
    FROM annotation_membership AS member
    JOIN LATERAL (
        SELECT coalesce(max(pause.lifted_at), '-infinity') AS at FROM annotation_pause AS pause
        WHERE pause.question_id = %(question)s AND pause.member_id = member.id
    ) AS begun ON true
    LEFT JOIN annotation_check AS answer
      ON answer.question_id = %(question)s AND answer.member_id = member.id AND NOT answer.practice AND answer.correct IS NOT NULL
    WHERE member.project_id = (SELECT project_id FROM annotation_question WHERE id = %(question)s) AND member.role <> 'rater'
      AND (%(member)s::bigint IS NULL OR member.id = %(member)s)
      AND (answer.id IS NOT NULL OR EXISTS (SELECT FROM annotation_pause AS pause WHERE pause.question_id = %(question)s
           AND pause.member_id = member.id AND pause.lifted_at IS NULL))
    GROUP BY member.id, member.number, begun.at ORDER BY member.number
"""
