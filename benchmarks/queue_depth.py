"""How long the next task takes, however many there are and however much someone has done.

    python -m benchmarks.queue_depth

Times one lease (`queue.next_work` of someone who holds nothing, two tasks leased) at 10,000, 100,000 and 1,000,000 open tasks;
and, at a million, for someone who has voted on 0, 1,000 and 100,000 of them that are all still open and that nobody else has
touched. Their past votes are written in bulk, as they would lie after years; `first_ms` is the one lease that still has to
read them, after which their mark stands. Rounds are interleaved; `ratio` is the largest between any two medians.
Limits and breaks are off: the search is measured, not they.
"""

import argparse
import time

from benchmarks.common import median, report, say, scratch_database

from django.db import connection  # isort: skip

from annotation import queue  # isort: skip
from annotation.models import Membership, Question, Role  # isort: skip
from annotation.tasks import create_tasks  # isort: skip
from tests import cast as make  # isort: skip

SIZES = (10_000, 100_000, 1_000_000)
DONE = (0, 1_000, 100_000)
_ITEMS = """
    INSERT INTO annotation_item (project_id, kind, external_id, text, content_hash, metadata, quarantined, created_at)
    SELECT %s, 'text', n::text, 'A mild text, number ' || n, sha256(n::text::bytea), '{}', false, now() FROM generate_series(1, %s) AS n
"""
# The votes of a long past, on the first tasks by rank, each leaving its task open; stamped a microsecond apart.
_VOTES = """
    WITH task AS (
        SELECT id, question_id, row_number() OVER (ORDER BY rank) AS n FROM (
            SELECT id, question_id, rank FROM annotation_task
            WHERE question_id = %(question)s AND queued_at IS NULL ORDER BY rank LIMIT %(votes)s
        ) AS first
    ), vote AS (
        INSERT INTO annotation_vote (task_id, question_id, member_id, round, choice_id, tags, comment, guideline_id, token, created_at)
        SELECT task.id, task.question_id, %(member)s, 1, choice.id, '{}', '', guideline.id, gen_random_uuid(), now()
        FROM task
        JOIN annotation_choice AS choice ON choice.question_id = task.question_id AND choice.value = 'yes'
        JOIN annotation_guideline AS guideline ON guideline.question_id = task.question_id
    )
    UPDATE annotation_task SET vote_count = 1, queued_at = now() - interval '1 hour' + task.n * interval '1 microsecond'
    FROM task WHERE annotation_task.id = task.id
"""


def lease_ms(member: Membership, question: Question) -> float:
    began = time.perf_counter()
    work = queue.next_work(member, question)
    took = (time.perf_counter() - began) * 1000
    assert len(work) == queue.AHEAD
    queue.release(member, question)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    with scratch_database("depth"), connection.cursor() as cursor:
        project = make.make_project("depth", hourly_limit=None, daily_limit=None, break_after_minutes=None)
        cursor.execute(_ITEMS, [project.pk, max(SIZES)])
        at: dict[str, tuple[Membership, Question]] = {}
        for size in SIZES:
            say(f"{size:,} tasks")
            question = make.make_question(project, f"of-{size}")
            cursor.execute("SELECT id FROM annotation_item ORDER BY id LIMIT %s", [size])
            create_tasks(question, [row[0] for row in cursor.fetchall()])
            at[f"{size} tasks"] = (make.make_member(project, f"new{size}", Role.ANNOTATOR), question)
        for done in DONE[1:]:
            say(f"someone with {done:,} votes")
            # Each in a question of their own size, so that only their own past lies before them.
            question = make.make_question(project, f"after-{done}")
            create_tasks(question)
            member = make.make_member(project, f"old{done}", Role.ANNOTATOR)
            cursor.execute(_VOTES, {"question": question.pk, "member": member.pk, "votes": done})
            at[f"{done} voted"] = (member, question)
        at["0 voted"] = at["1000000 tasks"]
        cursor.execute("VACUUM ANALYZE")
        first = {name: round(lease_ms(*who), 2) for name, who in at.items()}
        say(f"first leases: {first}")
        for who in at.values():
            for _ in range(10):
                lease_ms(*who)
        times: dict[str, list[float]] = {name: [] for name in at}
        for _ in range(rounds):
            for name, who in at.items():
                times[name].append(lease_ms(*who))
    medians = {name: round(median(values), 3) for name, values in times.items()}
    report(
        benchmark="queue_depth",
        ratio=round(max(medians.values()) / min(medians.values()), 2),
        median_ms=medians,
        first_ms=first,
    )


if __name__ == "__main__":
    main()
