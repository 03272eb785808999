"""Agreement of a question, from the database: one pass over its votes, then pure statistics."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.core.cache import cache
from django.db import connection
from django.db.models import Count, Max
from django.utils import timezone

from annotation.models import Choice, Question, TaskState
from curation.stats.agreement import Agreement, agreement

# Seconds. The key changes whenever a task settles; a vote that settled one may be changed for a minute without it, so
# what is that young is kept only briefly.
_KEEP, _KEEP_YOUNG, _YOUNG = 600, 10, 120

# Votes of the current round of tasks that have all of theirs, counted per task and choice; then how many tasks voted alike.
# A handful of rows comes back, however many tasks there are.
_PATTERNS = """
SELECT votes, count(*)
FROM (
    SELECT array[{columns}] AS votes
    FROM annotation_task AS task
    JOIN annotation_vote AS vote ON vote.task_id = task.id AND vote.round = task.round
    WHERE task.question_id = %s AND task.state = ANY(%s) AND task.vote_count = task.votes_required
    GROUP BY task.id
) AS per_task
GROUP BY votes
"""


@dataclass(frozen=True)
class Split:
    """How many tasks voted like this: `votes[k]` for the k-th choice."""

    votes: tuple[int, ...]
    tasks: int


@dataclass(frozen=True)
class QuestionAgreement:
    """All that is known of the votes of one question. `states` counts tasks by state; `splits` come most frequent first."""

    figures: Agreement
    choices: tuple[str, ...]
    splits: tuple[Split, ...]
    states: dict[str, int]

    @property
    def votes_by_choice(self) -> list[tuple[str, int]]:
        return [(label, sum(split.votes[k] * split.tasks for split in self.splits)) for k, label in enumerate(self.choices)]


def of_question(question: Question) -> QuestionAgreement:
    """Agreement over the current round of every task that has all its votes.

    As fresh as the last settled task; a vote changed after it settled one shows within ten seconds.
    """
    states = {
        row["state"]: row
        for row in question.tasks.order_by().values("state").annotate(tasks=Count("id"), last=Max("settled_at"))
    }  # fmt: skip
    choices = list(question.choices.all())
    stamp = sorted((state, row["tasks"], str(row["last"])) for state, row in states.items())
    about = (question.pk, question.policy, question.ordered, [(choice.pk, choice.label, choice.is_unsure) for choice in choices], stamp)
    key = "agreement:" + hashlib.sha256(repr(about).encode()).hexdigest()
    kept = cache.get(key)
    if kept is not None:
        return kept  # type: ignore[no-any-return]
    splits = _splits(question, choices)
    order = [k for k, choice in enumerate(choices) if not choice.is_unsure] if question.ordered else None
    found = QuestionAgreement(
        figures=agreement(
            [split.votes for split in splits] or [[0] * len(choices)],
            [split.tasks for split in splits] or [0],
            policy=question.policy,
            order=order,
            seed=question.project.seed % 2**32,
        ),
        choices=tuple(choice.label for choice in choices),
        splits=tuple(splits),
        states={state.value: states[state]["tasks"] if state in states else 0 for state in TaskState},
    )
    newest = max((row["last"] for row in states.values() if row["last"]), default=None)
    young = newest is not None and (timezone.now() - newest).total_seconds() < _YOUNG
    cache.set(key, found, _KEEP_YOUNG if young else _KEEP)
    return found


def _splits(question: Question, choices: Sequence[Choice]) -> list[Split]:
    if not choices:
        return []
    columns = ", ".join(["count(*) FILTER (WHERE vote.choice_id = %s)"] * len(choices))
    settled = [TaskState.AGREED, TaskState.DISPUTED, TaskState.ADJUDICATED]
    with connection.cursor() as cursor:
        cursor.execute(_PATTERNS.format(columns=columns), [*(choice.pk for choice in choices), question.pk, settled])
        found = [Split(tuple(votes), tasks) for votes, tasks in cursor.fetchall()]
    return sorted(found, key=lambda split: (-split.tasks, [-count for count in split.votes]))


def as_json(question: Question, found: QuestionAgreement) -> dict[str, Any]:
    """The same for a program: an undefined figure has a null value and its reason."""
    return {
        "question": question.slug,
        "policy": question.policy,
        "tasks": found.states,
        "choices": list(found.choices),
        "splits": [{"votes": list(split.votes), "tasks": split.tasks} for split in found.splits],
        **asdict(found.figures),
    }
