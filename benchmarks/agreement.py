"""How long everything that the agreement and raters pages say takes, beside plain numpy on arrays in memory.

    python -m benchmarks.agreement                                # 10,000 tasks x 5 votes by 50 people
    python -m benchmarks.agreement --tasks 1000000 --votes 3 --rounds 1

The votes lie in a scratch database; people differ in skill, and one choice is common. `seconds` is the median time of the
services, from the database, with nothing kept: all figures with their bootstrap intervals, every pair of raters, Dawid and
Skene's labels beside majority and ground truth, figures of every rater. `floor_seconds` is a plain program for the same, on
arrays that are in memory already: one pass over all tasks for each of the 2,000 bootstrap draws, a loop over the pairs, expectation
maximisation over the list of votes. Both are run in turn, on the same votes, and must say the same.
"""

import argparse
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.common import median, peak_mb, report, say, scratch_database

from django.core.cache import cache  # isort: skip
from django.db import connection  # isort: skip

from annotation.models import Membership, Question, Role  # isort: skip
from curation import agreement, raters  # isort: skip
from curation.stats.agreement import DRAWS  # isort: skip
from curation.stats.dawid_skene import SMOOTHING, TOLERANCE  # isort: skip
from tests import cast as make  # isort: skip

CHOICES = "yes no unsure"
K = 3
LONG_AGO = "2026-01-01"
Array = npt.NDArray[Any]
_ITEMS = """
    INSERT INTO annotation_item (project_id, kind, external_id, text, content_hash, metadata, quarantined, created_at)
    SELECT %s, 'text', n::text, 'A mild text, number ' || n, sha256(n::text::bytea), '{}', false, now() FROM generate_series(1, %s) AS n
"""
_TASKS = """
    COPY annotation_task
    (question_id, item_id, round, state, votes_required, vote_count, lease_count, abstention_count, rank, settled_at) FROM STDIN
"""
_VOTES = """
    COPY annotation_vote
    (task_id, question_id, member_id, round, choice_id, tags, comment, guideline_id, token, elapsed_ms, created_at) FROM STDIN
"""
_TRUTHS = """
    COPY annotation_groundtruth
    (task_id, question_id, item_id, round, choice_id, tags, tags_unsettled, source, guideline_id, created_at) FROM STDIN
"""


def votes_of(tasks: int, each: int, people: int) -> tuple[Array, Array, Array]:
    """(task, rater, choice): every task by `each` different people, who are right in 60 to 95 of 100 cases."""
    rng = np.random.default_rng(7)
    step = next(number for number in range(people // each, 0, -1) if np.gcd(number, people) == 1)
    task = np.repeat(np.arange(tasks), each)
    rater = (np.repeat(rng.integers(0, people, tasks), each) + np.tile(np.arange(each), tasks) * step) % people
    truth = rng.choice(K, tasks, p=[0.25, 0.7, 0.05])[task]
    right = rng.random(task.size) < rng.uniform(0.6, 0.95, people)[rater]
    return task, rater, np.where(right, truth, rng.integers(0, K, task.size))


def lay(tasks: int, each: int, people: int, votes: tuple[Array, Array, Array]) -> Question:
    """The votes in the database, as they would lie when all are cast: unanimous tasks agreed, the others disputed."""
    project = make.make_project("votes")
    question = make.make_question(project, votes=each, choices=CHOICES)
    guideline = question.guidelines.get().pk
    members = [make.make_member(project, f"person{number}", Role.ANNOTATOR).pk for number in range(people)]
    choices = list(question.choices.values_list("pk", flat=True))
    said = votes[2].reshape(tasks, each)
    agreed = (said == said[:, :1]).all(axis=1).tolist()
    with connection.cursor() as cursor:
        cursor.execute(_ITEMS, [project.pk, tasks])
        cursor.execute("SELECT id FROM annotation_item ORDER BY id")
        items = [row[0] for row in cursor.fetchall()]
        state = ["agreed" if one else "disputed" for one in agreed]
        _fill(
            cursor, _TASKS, ((question.pk, item, 1, now, each, each, 0, 0, item, LONG_AGO) for item, now in zip(items, state, strict=True))
        )
        cursor.execute("SELECT id FROM annotation_task ORDER BY item_id")
        ids = [row[0] for row in cursor.fetchall()]
        rows = enumerate(zip(*(array.tolist() for array in votes), strict=True))
        _fill(
            cursor,
            _VOTES,
            (
                (
                    ids[task],
                    question.pk,
                    members[rater],
                    1,
                    choices[choice],
                    "{}",
                    "",
                    guideline,
                    f"{number:032x}",
                    2000 + number % 5000,
                    LONG_AGO,
                )
                for number, (task, rater, choice) in rows
            ),
        )
        truths = ((ids[k], items[k], choices[label]) for k, label in enumerate(said[:, 0].tolist()) if agreed[k])
        _fill(
            cursor,
            _TRUTHS,
            ((task, question.pk, item, 1, choice, "{}", "f", "unanimous", guideline, LONG_AGO) for task, item, choice in truths),
        )
        cursor.execute("VACUUM ANALYZE")
    return question


def _fill(cursor: Any, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
    with cursor.cursor.copy(statement) as copy:
        for row in rows:
            copy.write("\t".join(map(str, row)) + "\n")


# ---------------------------------------------------------------- ours
def ours(question: Question) -> dict[str, Any]:
    """What both pages need, from the database, nothing kept."""
    cache.clear()
    found = agreement.of_question(question)
    standing = raters.of_question(question)
    people = raters.people(question, standing)
    raters.pair_list(standing, most=30)
    assert standing.methods is not None
    return {
        "alpha": found.figures.alpha.value,
        "low": found.figures.alpha.low,
        "kappa": standing.pairs.kappa,
        "labels": standing.methods.labels["dawid_skene"],
        "right": sum((one.figures.agreement.value or 0) * one.figures.agreement.n for one in people),
    }


# ---------------------------------------------------------------- plain
def plain(task: Array, rater: Array, choice: Array, people: int) -> dict[str, Any]:
    """The same from arrays in memory, task by task."""
    tasks = int(task.max()) + 1
    counts = np.zeros((tasks, K))
    np.add.at(counts, (task, choice), 1)
    rng = np.random.default_rng(1)
    point = figures(counts, np.ones(tasks))
    drawn = [figures(counts, np.bincount(rng.integers(0, tasks, tasks), minlength=tasks).astype(float)) for _ in range(DRAWS)]
    low = np.quantile([one["alpha"] for one in drawn], 0.025)
    answers = np.full((people, tasks), -1, dtype=np.int8)
    answers[rater, task] = choice
    kappa = [cohen(answers[one], answers[other]) for one in range(people) for other in range(one + 1, people)]
    labels = expectation_maximisation(task, rater, choice, counts, people)
    others = counts[task] - np.eye(K)[choice]
    settled = others.max(axis=1) == others.sum(axis=1)
    right = [int((settled & (rater == one) & (others.argmax(axis=1) == choice)).sum()) for one in range(people)]
    return {
        "alpha": point["alpha"], "low": low, "kappa": np.array([value for value in kappa if value is not None]),
        "labels": tuple(np.bincount(labels, minlength=K).tolist()), "right": sum(right),
    }  # fmt: skip


def figures(counts: Array, weights: Array) -> dict[str, float]:
    """Shares, pairwise agreement, Fleiss' kappa, nominal alpha and AC1 of weighted tasks with equally many votes."""
    each, total = counts[0].sum(), weights.sum()
    agreeing = (counts * (counts - 1)).sum(axis=1) / (each * (each - 1))
    observed = weights @ agreeing / total
    margins = weights @ counts
    shares = margins / margins.sum()
    by_chance = (shares**2).sum()
    n = margins.sum()
    return {
        "unanimous": weights @ (counts.max(axis=1) == each) / total,
        "disputed": weights @ (counts.max(axis=1) < each) / total,
        "pairwise": observed,
        "fleiss": (observed - by_chance) / (1 - by_chance),
        "alpha": 1 - (1 - observed) / (1 - (margins * (margins - 1)).sum() / (n * (n - 1))),
        "ac1": (observed - (e := (shares * (1 - shares)).sum() / (K - 1))) / (1 - e),
    }


def cohen(one: Array, other: Array) -> float | None:
    """None for two who share no task."""
    both = (one >= 0) & (other >= 0)
    if not both.any():
        return None
    table = np.bincount(one[both].astype(int) * K + other[both], minlength=K * K).reshape(K, K) / both.sum()
    by_chance = table.sum(axis=1) @ table.sum(axis=0)
    return float((np.trace(table) - by_chance) / (1 - by_chance)) if by_chance < 1 else np.nan


def expectation_maximisation(task: Array, rater: Array, choice: Array, counts: Array, people: int) -> Array:
    """Dawid and Skene's labels."""
    posterior, before = counts / counts.sum(axis=1, keepdims=True), -np.inf
    while True:
        priors = posterior.mean(axis=0)
        confusion = np.full((people, K, K), SMOOTHING)
        np.add.at(confusion, (rater, choice), posterior[task])
        confusion /= confusion.sum(axis=1, keepdims=True)
        joint = np.tile(np.log(priors), (len(counts), 1))
        np.add.at(joint, task, np.log(confusion[rater, choice]))
        likelihood = np.log(np.exp(joint).sum(axis=1)).sum()
        posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        if abs(likelihood - before) < TOLERANCE * abs(likelihood):
            return np.asarray(posterior.argmax(axis=1))
        before = likelihood


# ---------------------------------------------------------------- both
def timed(run: Callable[[], dict[str, Any]]) -> tuple[float, dict[str, Any]]:
    began = time.perf_counter()
    found = run()
    return time.perf_counter() - began, found


def compare(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Both programs say the same, the interval but for its draws."""
    assert abs(one["alpha"] - other["alpha"]) < 1e-9, (one["alpha"], other["alpha"])
    assert abs(one["low"] - other["low"]) < 0.01, (one["low"], other["low"])
    assert one["labels"] == other["labels"], (one["labels"], other["labels"])
    assert abs(one["right"] - other["right"]) < 1e-3
    assert np.allclose(one["kappa"], other["kappa"], equal_nan=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--votes", type=int, default=5)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-floor", action="store_true", help="only ours: the plain program takes long at a million tasks")
    asked = parser.parse_args()
    with scratch_database("agreement"):
        say("laying out the votes")
        votes = votes_of(asked.tasks, asked.votes, asked.people)
        question = lay(asked.tasks, asked.votes, asked.people, votes)
        question = Question.objects.select_related("project").get(pk=question.pk)
        assert Membership.objects.filter(votes__isnull=False).distinct().count() == asked.people
        before = peak_mb()
        mine, floor = [], []
        for number in range(asked.rounds):
            took, found = timed(lambda: ours(question))
            mine.append(took)
            if not asked.no_floor:
                took, same = timed(lambda: plain(*votes, asked.people))
                floor.append(took)
                compare(found, same)
            say(f"round {number + 1}: {mine[-1]:.3f} s" + (f", plain {floor[-1]:.3f} s" if floor else ""))
    report(
        benchmark="agreement",
        tasks=asked.tasks,
        votes=asked.tasks * asked.votes,
        people=asked.people,
        ratio=round(median(mine) / median(floor), 3) if floor else None,
        seconds=round(median(mine), 3),
        floor_seconds=round(median(floor), 3) if floor else None,
        worst=round(max(mine), 3),
        peak_mb=peak_mb(),
        peak_mb_before=before,
    )


if __name__ == "__main__":
    main()
