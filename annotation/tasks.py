"""Tasks: one item x one question. Made here, voted on in queue.py."""

from collections.abc import Iterable

from django.db import connection

from annotation.errors import Invalid
from annotation.models import Question

# An item's place among the fresh tasks: pseudo-random, the same for the same project seed anywhere. SQL over `item` and `seed`.
RANK = "('x' || left(md5(%(seed)s::text || ':' || item.external_id), 15))::bit(60)::bigint"
# Whether an item is hard to look at: as its metadata says, else as its question does. SQL over `item`.
SENSITIVE = """
    CASE WHEN lower(item.metadata ->> 'sensitive') IN ('true', 'yes', '1') THEN true
         WHEN lower(item.metadata ->> 'sensitive') IN ('false', 'no', '0') THEN false
         ELSE %(sensitive)s END
"""
# The question that `of` belongs to, and the version of its guideline in force: what a task handed out now is asked under.
ASKED_UNDER = """
        JOIN annotation_question AS question ON question.id = {of}.question_id
        JOIN LATERAL (
            SELECT id FROM annotation_guideline WHERE question_id = {of}.question_id ORDER BY version DESC LIMIT 1
        ) AS guideline ON true
"""
_CREATE = f"""
INSERT INTO annotation_task
    (question_id, item_id, round, state, votes_required, vote_count, lease_count, abstention_count, sensitive, rank)
SELECT %(question)s, item.id, 1, 'open', %(votes)s, 0, 0, 0, {SENSITIVE}, {RANK}
FROM annotation_item AS item
WHERE item.project_id = %(project)s AND item.kind = %(kind)s AND NOT item.quarantined
  AND (item.kind = 'text' OR item.media_hash IS NOT NULL)
  AND (%(items)s::bigint[] IS NULL OR item.id = ANY(%(items)s))
ON CONFLICT (question_id, item_id) DO NOTHING
"""  # noqa: S608 - our own words


def create_tasks(question: Question, item_ids: Iterable[int] | None = None) -> int:
    """Open tasks for these items of the question's project and kind (all when None); returns how many are new.

    Items that already have a task keep it; quarantined items and images without a file get none.
    """
    if not question.choices.exists():
        raise Invalid("This question has no choices yet. Give it at least two, then make tasks.")
    with connection.cursor() as cursor:
        cursor.execute(
            _CREATE,
            {
                "question": question.pk,
                "project": question.project_id,
                "kind": question.kind,
                "votes": question.votes_required,
                "seed": question.project.seed,
                "sensitive": question.sensitive,
                "items": None if item_ids is None else list(item_ids),
            },
        )
        new: int = cursor.rowcount
        if new > 10_000:  # a plan made for a small table would read all of a large one
            cursor.execute("ANALYZE annotation_task")
        return new
