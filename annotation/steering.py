"""What a researcher steers: which tasks come first, who works on a question, and how much is left.

Whether a question is on offer at all is `questions.set_active`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import transaction

from annotation import sql
from annotation.errors import Invalid
from annotation.models import Assignment, Membership, Question, Role, TaskState

VOTERS = (Role.ANNOTATOR, Role.ADJUDICATOR)
# Stamps younger than queue.SETTLING_IN may be of a transaction that is not visible yet: so each block must be done well within it.
BLOCK = 2_000


@dataclass(frozen=True)
class Needed:
    """What is left of a question. `open_votes` over open tasks; `held` of them are in someone's hands; `first` tasks wait at the front."""

    tasks: dict[str, int]
    open_votes: int
    held: int
    begun: int
    first: int

    @property
    def rulings(self) -> int:
        return self.tasks.get(TaskState.DISPUTED, 0)


# ---------------------------------------------------------------- order
def put_first(question: Question, task_ids: Sequence[int]) -> int:
    """These of the question's tasks come before all fresh ones, in the order of their rank; returns how many were moved.

    Only open tasks that nobody has answered are moved: one that somebody has answered comes before them already. Tasks
    that were put first earlier keep their place. One short transaction a block, so that voters are never held up.
    """
    return sum(_moved(_PUT_FIRST, question, task_ids[start : start + BLOCK]) for start in range(0, len(task_ids), BLOCK))


def put_back(question: Question, task_ids: Sequence[int]) -> int:
    """These tasks go back to their seeded place among the fresh, unless somebody has answered them; returns how many were moved."""
    return sum(_moved(_PUT_BACK, question, task_ids[start : start + BLOCK]) for start in range(0, len(task_ids), BLOCK))


def _moved(statement: str, question: Question, task_ids: Sequence[int]) -> int:
    return len(sql.rows(statement, question=question.pk, tasks=list(task_ids)))


# Locked by id, as everywhere; stamped a microsecond apart by rank. The clock is read after the locks are held.
_PUT_FIRST = """
    WITH fresh AS MATERIALIZED (
        SELECT id, rank FROM annotation_task
        WHERE question_id = %(question)s AND id = ANY(%(tasks)s) AND state = 'open' AND queued_at IS NULL
          AND vote_count = 0 AND abstention_count = 0
        ORDER BY id FOR UPDATE
    ), placed AS MATERIALIZED (
        SELECT id, row_number() OVER (ORDER BY rank, id) AS place FROM fresh
    ), clock AS MATERIALIZED (
        SELECT clock_timestamp() AS now FROM (SELECT count(*) FROM placed) AS locked
    )
    UPDATE annotation_task AS task SET queued_at = clock.now + placed.place * interval '1 microsecond'
    FROM placed, clock WHERE task.id = placed.id RETURNING task.id
"""
_PUT_BACK = """
    WITH waiting AS MATERIALIZED (
        SELECT id FROM annotation_task
        WHERE question_id = %(question)s AND id = ANY(%(tasks)s) AND state = 'open' AND queued_at IS NOT NULL
          AND vote_count = 0 AND abstention_count = 0
        ORDER BY id FOR UPDATE
    )
    UPDATE annotation_task AS task SET queued_at = NULL FROM waiting WHERE task.id = waiting.id RETURNING task.id
"""


# ---------------------------------------------------------------- people
@transaction.atomic
def assign(question: Question, numbers: Collection[int]) -> list[Membership]:
    """Only these members are given work on the question from now on; with none, everyone who labels is. Returns them by number.

    What somebody else holds, they may still answer. Raises Invalid (people) for a number that does not label in the project.
    """
    Question.objects.select_for_update(no_key=True).get(pk=question.pk)
    chosen = {member.number: member for member in voters(question) if member.number in numbers}
    if unknown := sorted(set(numbers) - set(chosen)):
        message = f"Nobody of the number {unknown[0]} labels in this project."
        raise Invalid(message, fields={"people": message})
    there = set(Assignment.objects.filter(question=question).values_list("member_id", flat=True))
    wanted = {member.pk for member in chosen.values()}
    Assignment.objects.filter(question=question, member_id__in=there - wanted).delete()
    Assignment.objects.bulk_create(Assignment(question=question, member_id=member) for member in sorted(wanted - there))
    return [chosen[number] for number in sorted(chosen)]


def voters(question: Question) -> list[Membership]:
    """Who labels in the question's project: annotators and adjudicators with a part in it, by number."""
    found = Membership.objects.filter(project_id=question.project_id, role__in=VOTERS, active=True)
    return list(found.select_related("user").order_by("number"))


def assigned(question: Question) -> set[int]:
    """The numbers of those who work on the question; empty: everyone does."""
    return set(Assignment.objects.filter(question=question).values_list("member__number", flat=True))


# ---------------------------------------------------------------- what is left
def needed(question: Question) -> Needed:
    """How many votes and rulings the question still takes. Retired tasks take none."""
    found = sql.rows(_STATES, question=question.pk)
    standing = next((row for row in found if row["state"] == TaskState.OPEN), None)
    return Needed(
        tasks={row["state"]: row["tasks"] for row in found},
        open_votes=standing["left"] if standing else 0,
        held=standing["held"] if standing else 0,
        begun=standing["begun"] if standing else 0,
        first=standing["first"] if standing else 0,
    )


_STATES = """
    SELECT state, count(*) AS tasks, sum(votes_required - vote_count)::bigint AS left, sum(lease_count)::bigint AS held,
           count(*) FILTER (WHERE vote_count > 0 OR abstention_count > 0) AS begun,
           count(*) FILTER (
               WHERE queued_at IS NOT NULL AND vote_count = 0 AND abstention_count = 0 AND round = 1
                 AND NOT EXISTS (SELECT FROM annotation_voidedvote AS voided WHERE voided.task_id = task.id)
           ) AS first
    FROM annotation_task AS task WHERE question_id = %(question)s GROUP BY state
"""


@dataclass(frozen=True)
class Stranded:
    """Votes left that nobody can cast: `votes` of them on `tasks` tasks. `able`: how many people may work on the question at all."""

    votes: int
    tasks: int
    able: int


def stranded(question: Question) -> Stranded:
    """Which votes nobody can cast as things stand: of each open task, more are left than there are people who may still vote on it.

    Those who may: active, assigned (or nobody is), agreed to the latest content warning where there is one, not paused; and
    who has not voted on it in this round, abstained, been struck out, ruled on it or seen its votes. Breaks and limits pass, and
    do not count.
    """
    able = [row["id"] for row in sql.rows(_ABLE, question=question.pk, voters=[str(role) for role in VOTERS])]
    found = sql.the(_STRANDED, question=question.pk, able=able)
    return Stranded(found["votes"], found["tasks"], len(able))


_ABLE = """
    SELECT member.id FROM annotation_membership AS member JOIN annotation_question AS question ON question.project_id = member.project_id
    WHERE question.id = %(question)s AND member.active AND member.role = ANY(%(voters)s)
      AND (NOT EXISTS (SELECT FROM annotation_assignment AS any_one WHERE any_one.question_id = question.id)
           OR EXISTS (SELECT FROM annotation_assignment AS own WHERE own.question_id = question.id AND own.member_id = member.id))
      AND NOT EXISTS (SELECT FROM annotation_pause AS pause
                      WHERE pause.question_id = question.id AND pause.member_id = member.id AND pause.lifted_at IS NULL)
      AND (NOT EXISTS (SELECT FROM annotation_contentwarning AS warning WHERE warning.project_id = member.project_id)
           OR EXISTS (SELECT FROM annotation_consent AS consent WHERE consent.member_id = member.id AND consent.ended_at IS NULL
                      AND consent.warning_id = (SELECT latest.id FROM annotation_contentwarning AS latest
                                                WHERE latest.project_id = member.project_id ORDER BY latest.version DESC LIMIT 1)))
"""
_STRANDED = """
    WITH open AS MATERIALIZED (
        SELECT id, round, votes_required - vote_count AS left FROM annotation_task WHERE question_id = %(question)s AND state = 'open'
    ), barred AS (
        SELECT open.id, vote.member_id FROM open JOIN annotation_vote AS vote ON vote.task_id = open.id AND vote.round = open.round
        UNION SELECT open.id, given.member_id FROM open
            JOIN annotation_abstention AS given ON given.task_id = open.id AND given.round = open.round
        UNION SELECT open.id, gone.member_id FROM open
            JOIN annotation_voidedvote AS gone ON gone.task_id = open.id AND gone.round = open.round
        UNION SELECT open.id, ruling.member_id FROM open JOIN annotation_adjudication AS ruling ON ruling.task_id = open.id
        UNION SELECT open.id, asked.member_id FROM open JOIN annotation_knownanswer AS known ON known.task_id = open.id
            JOIN annotation_check AS asked ON asked.known_id = known.id
    ), counted AS (
        SELECT id, count(*) AS people FROM barred WHERE member_id = ANY(%(able)s::bigint[]) GROUP BY id
    ), lacks AS (
        SELECT open.left - (cardinality(%(able)s::bigint[]) - coalesce(counted.people, 0)) AS votes
        FROM open LEFT JOIN counted ON counted.id = open.id
    )
    SELECT coalesce(sum(votes), 0)::bigint AS votes, count(*) AS tasks FROM lacks WHERE votes > 0
"""
