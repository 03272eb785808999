"""Known answers as the queue hands them out: practice before live work, checks mixed in unseen (SPEC section 2, "Checks").

Called by queue.py, inside its transactions. To the person a check is a task like any other: it is held, answered, changed
and listed alike. What they answer stays here, apart from votes; below the question's floor it pauses them.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import DictRow

from annotation import sql
from annotation.errors import Conflict
from annotation.models import AbstainReason
from annotation.tasks import ASKED_UNDER

ANSWERS_BEFORE_PAUSE = 20


@dataclass(frozen=True)
class Feedback:
    """What is said after a practice answer: whether it was right, and the known answer with its reason."""

    correct: bool
    choice: str
    label: str
    tags: list[str]
    why: str


def hand_out(member_id: int, question_id: int, *, practice: bool, sensitive: bool) -> bool | None:
    """Put the next known answer to this member: whether it is sensitive, or None when they have had them all.

    `sensitive`: whether such an item may be it. One that they held and did not answer comes first. Practice comes in its
    order, checks in an order of the member's own.
    """
    arguments = {"member": member_id, "question": question_id, "practice": practice, "sensitive": sensitive}
    held = sql.one(_HOLD_AGAIN, **arguments) or sql.one(_HOLD_NEW, token=uuid.uuid4(), **arguments)
    return None if held is None else bool(held["sensitive"])


def lock(member_id: int, token: uuid.UUID) -> DictRow | None:
    """The check that this token holds, locked behind the person's rows like a task; None for a token of something else."""
    if not sql.rows(_LOCK, member=member_id, token=token):
        return None
    return sql.one(_READ, member=member_id, token=token)


def check_still_asked(check: Mapping[str, Any]) -> None:
    """Raises what a vote on a task would raise that was taken out of sight meanwhile."""
    if check["quarantined"]:
        raise Conflict("This task was settled or withdrawn while you held it. Your answer is not needed any more.", code="settled")


def answer(
    check: Mapping[str, Any], *, choice_id: int, choice: str, tags: Sequence[str], comment: str, elapsed_ms: int | None
) -> tuple[int, Feedback | None]:
    """Record the answer to a locked check; returns its number, and feedback where it was practice. Pauses who is below the floor."""
    right = is_right(check, choice, tags)
    number = sql.the(
        _ANSWER, check=check["id"], choice=choice_id, tags=sorted(set(tags)), comment=comment, elapsed=elapsed_ms, correct=right
    )["number"]
    if not check["practice"]:
        _pause_if_below_floor(check["member_id"], check["question_id"])
    return number, feedback_of(check, correct=right)


def abstain(check: Mapping[str, Any], reason: AbstainReason | str) -> None:
    """Record that the member would not answer a locked check; it counts neither as right nor as wrong."""
    sql.rows(_ABSTAIN, check=check["id"], reason=str(reason))


def change(check: Mapping[str, Any], *, choice_id: int, choice: str, tags: Sequence[str], comment: str) -> None:
    """Another answer to a check that was answered a short while ago. The earlier version is kept."""
    sql.rows(_CHANGE, check=check["id"], choice=choice_id, tags=sorted(set(tags)), comment=comment, correct=is_right(check, choice, tags))


def is_right(check: Mapping[str, Any], choice: str, tags: Sequence[str]) -> bool:
    """The known choice; and the known tags, no more and no fewer, where the known answer names any."""
    return choice == check["known_choice"] and (not check["known_tags"] or set(tags) == set(check["known_tags"]))


def feedback_of(check: Mapping[str, Any], *, correct: bool) -> Feedback | None:
    """What is said about an answer: nothing, unless it was practice."""
    if not check["practice"]:
        return None
    return Feedback(correct, check["known_choice"], check["known_label"], check["known_tags"], check["why"])


def _pause_if_below_floor(member_id: int, question_id: int) -> None:
    """Too few right of at least 20 answers since they last began, and the floor is set: no more work until someone lifts it."""
    tally = sql.the(_TALLY, member=member_id, question=question_id)
    below = tally["floor"] is not None and tally["answers"] >= ANSWERS_BEFORE_PAUSE and tally["correct"] < tally["floor"] * tally["answers"]
    if below:
        sql.rows(_PAUSE, member=member_id, question=question_id, **tally)


# ---------------------------------------------------------------- SQL
# A known answer that can be put to a member: its item can be shown, and they never dealt with its task before.
ASKABLE = """
    known.active AND NOT item.quarantined AND (item.kind = 'text' OR item.media_hash IS NOT NULL)
    AND NOT EXISTS (SELECT FROM annotation_vote AS cast_before
                    WHERE cast_before.task_id = known.task_id AND cast_before.member_id = {member})
    AND NOT EXISTS (SELECT FROM annotation_voidedvote AS voided
                    WHERE voided.task_id = known.task_id AND voided.member_id = {member})
    AND NOT EXISTS (SELECT FROM annotation_abstention AS abstained_before
                    WHERE abstained_before.task_id = known.task_id AND abstained_before.member_id = {member})
    AND NOT EXISTS (SELECT FROM annotation_adjudication AS ruled_before
                    WHERE ruled_before.task_id = known.task_id AND ruled_before.member_id = {member})
"""
KNOWN = """
    FROM annotation_knownanswer AS known
    JOIN annotation_task AS task ON task.id = known.task_id
    JOIN annotation_item AS item ON item.id = task.item_id
"""
_HOLD_AGAIN = f"""
    WITH held AS (
        UPDATE annotation_check AS mine SET
            practice = %(practice)s, leased_at = clock_timestamp(), expires_at = now() + question.lease_minutes * interval '1 minute'
        FROM annotation_question AS question
        WHERE question.id = mine.question_id AND mine.id = (
            SELECT again.id {KNOWN} JOIN annotation_check AS again ON again.known_id = known.id
            WHERE again.member_id = %(member)s AND again.question_id = %(question)s AND again.answered_at IS NULL
              AND again.expires_at <= now() AND known.practice = %(practice)s AND known.active AND NOT item.quarantined
              AND (%(sensitive)s OR NOT task.sensitive)
            ORDER BY again.leased_at LIMIT 1
        )
        RETURNING mine.id, mine.known_id
    ), exposed AS (
        INSERT INTO annotation_exposure (member_id, task_id, at)
        SELECT %(member)s, task.id, clock_timestamp()
        FROM held JOIN annotation_knownanswer AS known ON known.id = held.known_id
        JOIN annotation_task AS task ON task.id = known.task_id AND task.sensitive
    )
    SELECT task.sensitive FROM held JOIN annotation_knownanswer AS known ON known.id = held.known_id
    JOIN annotation_task AS task ON task.id = known.task_id
"""  # noqa: S608 - our own words
_HOLD_NEW = f"""
    WITH chosen AS (
        SELECT known.id, known.question_id, known.task_id, known.practice, task.sensitive {KNOWN}
        WHERE known.question_id = %(question)s AND known.practice = %(practice)s AND (%(sensitive)s OR NOT task.sensitive)
          AND NOT EXISTS (SELECT FROM annotation_check AS had WHERE had.known_id = known.id AND had.member_id = %(member)s)
          AND {ASKABLE.format(member="%(member)s")}
        ORDER BY CASE WHEN known.practice THEN known.id END, md5(known.id || ':' || %(member)s) LIMIT 1
    ), held AS (
        INSERT INTO annotation_check
            (known_id, question_id, member_id, practice, guideline_id, token, tags, comment, abstained, leased_at, expires_at)
        SELECT chosen.id, chosen.question_id, %(member)s, chosen.practice, guideline.id, %(token)s, '{{}}', '', '', clock_timestamp(),
               now() + question.lease_minutes * interval '1 minute'
        FROM chosen
        {ASKED_UNDER.format(of="chosen")}
        RETURNING id
    ), exposed AS (
        INSERT INTO annotation_exposure (member_id, task_id, at)
        SELECT %(member)s, chosen.task_id, clock_timestamp() FROM chosen JOIN held ON true WHERE chosen.sensitive
    )
    SELECT chosen.sensitive FROM chosen JOIN held ON true
"""  # noqa: S608 - our own words
_LOCK = """
    SELECT mine.id FROM annotation_check AS mine
    JOIN annotation_progress AS progress ON progress.member_id = mine.member_id AND progress.question_id = mine.question_id
    JOIN annotation_membership AS member ON member.id = mine.member_id
    JOIN annotation_sitting AS sitting ON sitting.user_id = member.user_id
    WHERE mine.token = %(token)s AND mine.member_id = %(member)s FOR UPDATE OF progress, sitting, mine
"""
# Read after the locks are held, so that nothing here is from before another's commit.
READ = """
    SELECT mine.id, mine.number, mine.member_id, mine.question_id, mine.practice, mine.answered_at, mine.correct, mine.abstained,
           mine.tags, mine.comment, said.value AS said, item.quarantined, known.why, known.tags AS known_tags,
           choice.value AS known_choice, choice.label AS known_label
    FROM annotation_check AS mine
    JOIN annotation_knownanswer AS known ON known.id = mine.known_id
    JOIN annotation_choice AS choice ON choice.id = known.choice_id
    JOIN annotation_task AS task ON task.id = known.task_id
    JOIN annotation_item AS item ON item.id = task.item_id
    LEFT JOIN annotation_choice AS said ON said.id = mine.choice_id
"""
_READ = f"{READ} WHERE mine.token = %(token)s AND mine.member_id = %(member)s"
_ANSWER = """
    WITH mine AS (
        UPDATE annotation_check SET choice_id = %(choice)s, tags = %(tags)s, comment = %(comment)s, elapsed_ms = %(elapsed)s,
            correct = %(correct)s, answered_at = clock_timestamp(), number = nextval('annotation_vote_id_seq')
        WHERE id = %(check)s RETURNING member_id, question_id, number, practice
    ), counted AS (
        UPDATE annotation_progress AS progress SET checks = progress.checks + 1,
            votes_on_day = CASE WHEN day = current_date THEN votes_on_day ELSE 0 END + 1, day = current_date
        FROM mine
        WHERE progress.member_id = mine.member_id AND progress.question_id = mine.question_id AND NOT mine.practice
    )
    SELECT number FROM mine
"""
_ABSTAIN = """
    UPDATE annotation_check SET abstained = %(reason)s, answered_at = clock_timestamp(), number = nextval('annotation_abstention_id_seq')
    WHERE id = %(check)s RETURNING id
"""
_CHANGE = """
    UPDATE annotation_check SET choice_id = %(choice)s, tags = %(tags)s, comment = %(comment)s, correct = %(correct)s
    WHERE id = %(check)s RETURNING id
"""
_TALLY = """
    SELECT question.accuracy_floor AS floor, count(mine.id) AS answers, count(mine.id) FILTER (WHERE mine.correct) AS correct
    FROM annotation_question AS question
    LEFT JOIN annotation_check AS mine
        ON mine.question_id = question.id AND mine.member_id = %(member)s AND NOT mine.practice AND mine.correct IS NOT NULL
        AND mine.answered_at > coalesce(
            (SELECT max(pause.lifted_at) FROM annotation_pause AS pause
             WHERE pause.question_id = %(question)s AND pause.member_id = %(member)s), '-infinity')
    WHERE question.id = %(question)s GROUP BY question.id
"""
_PAUSE = """
    INSERT INTO annotation_pause (question_id, member_id, answers, correct, floor, paused_at)
    VALUES (%(question)s, %(member)s, %(answers)s, %(correct)s, %(floor)s, clock_timestamp())
    ON CONFLICT (question_id, member_id) WHERE lifted_at IS NULL DO NOTHING RETURNING id
"""
