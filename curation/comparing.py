"""Comparisons: a scorer's decisions held against people's ground truth. What neither side may see alone meets here.

Nothing of this is imported by the human side, so no score can reach a voter.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from django.core.cache import cache
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from annotation.errors import Invalid, Missing
from annotation.models import Choice, Membership, Project, Source, TaskState
from curation.models import Comparison, Sample
from curation.stats.detection import NO_POSITIVES, Curve, Decisions, Judged, Sweep, curves, decisions
from curation.stats.intervals import Estimate
from scoring.models import Scorer

NOT_A_NUMBER = "The threshold must be a number, such as 0.5."
_KEEP = 900  # seconds that a moved threshold is read off the data its page was opened with
SLICES = 30

_LABELLED = """
SELECT item.id, coalesce(item.origin_id, item.id), truth.choice_id, truth.source, score.value, {probability}
"""
_UNLABELLED = "SELECT CASE WHEN item.quarantined THEN 'quarantined' ELSE coalesce(task.state, 'none') END AS why, count(*)"
_LISTED = """
SELECT item.id, item.external_id, score.value, truth.choice_id, truth.source, task.state, task.id,
       CASE WHEN %(contents)s THEN item.text END
"""
# Which items: those of the sample, else those that have a task of the question.
_OF_SAMPLE = """
FROM curation_sampleitem AS drawn
JOIN annotation_item AS item ON item.id = drawn.item_id
LEFT JOIN annotation_task AS task ON task.item_id = item.id AND task.question_id = %(question)s
"""
_OF_QUESTION = """
FROM annotation_task AS task
JOIN annotation_item AS item ON item.id = task.item_id
"""
_JOINS = """
LEFT JOIN annotation_groundtruth AS truth ON truth.task_id = task.id AND truth.superseded_at IS NULL AND task.state <> 'retired'
LEFT JOIN scoring_score AS score ON score.scorer_id = %(scorer)s AND score.item_id = item.id AND score.name = %(name)s
"""

# Why an item is not compared, in the order a person would ask.
REASONS = {
    "quarantined": "Quarantined",
    "none": "Never asked about: no task",
    TaskState.OPEN: "Votes still to come",
    TaskState.DISPUTED: "In dispute, waiting for a ruling",
    TaskState.RETIRED: "Task retired",
    "unscored": "Labelled, but without this score",
}

# The cells of the matrix and beside it: what people say, what the machine says.
CELLS = {
    "true_positive": ("positive", "positive"),
    "false_negative": ("positive", "negative"),
    "false_positive": ("negative", "positive"),
    "true_negative": ("negative", "negative"),
    "unsure_positive": ("unsure", "positive"),
    "unsure_negative": ("unsure", "negative"),
    "unscored": ("labelled", "no score"),
    "unlabelled": ("no label", "any"),
}


@dataclass(frozen=True)
class Labels:
    """Every item of a comparison's set that has a label, and how many have none, by the state of their task.

    Arrays are (n,). choice: the label's Choice id; score: nan without one; probability: of being drawn, 1 without a sample.
    """

    item: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]
    choice: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]
    probability: npt.NDArray[np.float64]
    sources: dict[str, int]
    unlabelled: dict[str, int]


@dataclass(frozen=True)
class Slice:
    """The figures of the items with one value of a metadata key; `value` is None where they have none."""

    value: str | None
    items: int
    decisions: Decisions


@dataclass(frozen=True)
class Result:
    """A comparison at one threshold. sweep and curve are None when people called nothing positive.

    unsure: (above, below) the threshold; left_out: reason in words and number, where there are any; total: items in the set.
    """

    decisions: Decisions
    sweep: Sweep | None
    curve: Curve | None
    items: int
    groups: int
    weighted: bool
    unsure: tuple[int, int]
    left_out: list[tuple[str, str, int]]
    sources: dict[str, int]
    total: int
    positives: npt.NDArray[np.float64]
    negatives: npt.NDArray[np.float64]
    read_at: datetime


# ---------------------------------------------------------------- making
def prepare(
    project: Project, *, name: str, positive: Choice, scorer: Scorer, score_name: str, threshold: float = 0.5, sample: Sample | None = None
) -> Comparison:
    """A comparison that is possible, not yet stored. The question is that of `positive`.

    Raises Invalid with the fields at fault.
    """
    wrong: dict[str, str] = {}
    if {positive.question.project_id, scorer.project_id} != {project.pk}:
        wrong["positive"] = "The question and the scorer must be of this project."
    if positive.is_unsure:
        wrong["positive"] = "Unsure is counted beside. Choose an answer that the score can speak for."
    if score_name not in scorer.score_names:
        wrong["score_name"] = f"{scorer} gives: {', '.join(scorer.score_names)}."
    if positive.question.kind != scorer.item_kind:
        wrong["scorer"] = f"{scorer} scores {scorer.item_kind} items, and the question asks about {positive.question.kind} items."
    if sample and sample.project_id != project.pk:
        wrong["sample"] = "Choose a sample of this project, or none."
    if not math.isfinite(threshold):
        wrong["threshold"] = NOT_A_NUMBER
    if wrong:
        raise Invalid("Some fields are wrong.", fields=wrong)
    return Comparison(
        project=project, name=name, question=positive.question, positive=positive, scorer=scorer, score_name=score_name,
        threshold=threshold, sample=sample,
    )  # fmt: skip


def create(member: Membership, **fields: Any) -> Comparison:
    """Store what `prepare` makes of the fields. Raises Invalid."""
    comparison = prepare(member.project, **fields)
    comparison.created_by = member.user
    try:
        with transaction.atomic():
            comparison.save()
    except IntegrityError as error:
        raise Invalid("Some fields are wrong.", fields={"name": "There is a comparison of this name already."}) from error
    return comparison


def set_threshold(comparison: Comparison, threshold: float) -> None:
    """Keep this threshold with the comparison."""
    comparison.threshold = threshold
    comparison.save(update_fields=["threshold"])


def read_threshold(given: str) -> float:
    """A finite number out of whatever was typed. Raises Invalid."""
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise Invalid(NOT_A_NUMBER, fields={"threshold": NOT_A_NUMBER})
    return number


def find(project: Project, pk: int) -> Comparison:
    """Raises Missing."""
    known = Comparison.objects.select_related("question", "positive", "scorer", "sample", "project")
    found = known.filter(project=project, pk=pk).first()
    if found is None:
        raise Missing("There is no such comparison in this project.")
    return found


# ---------------------------------------------------------------- reading
@dataclass(frozen=True)
class _Reading:
    """What a result at any threshold is made from."""

    judged: Judged
    unsure: npt.NDArray[np.float64]
    curves: tuple[Sweep, Curve] | None
    left_out: list[tuple[str, str, int]]
    sources: dict[str, int]
    total: int
    read_at: datetime


def read(comparison: Comparison) -> Labels:
    """The labels and scores of the comparison's set, as the database has them now."""
    rows = _rows(comparison, _LABELLED, "NOT item.quarantined AND truth.id IS NOT NULL ORDER BY item.id")
    item, group, choice, source, score, probability = zip(*rows, strict=True) if rows else ((),) * 6
    return Labels(
        item=np.array(item, dtype=np.int64),
        group=np.array(group, dtype=np.int64),
        choice=np.array(choice, dtype=np.int64),
        score=np.array([math.nan if value is None else value for value in score], dtype=np.float64),
        probability=np.array(probability, dtype=np.float64),
        sources=dict(Counter(source)),
        unlabelled=dict(_rows(comparison, _UNLABELLED, "(item.quarantined OR truth.id IS NULL) GROUP BY why")),
    )


def result(comparison: Comparison, threshold: float | None = None, *, fresh: bool = True) -> Result:
    """The comparison at a threshold, its own by default.

    `fresh` reads the database; without it, data and curves are those of the last fresh reading if that is not long ago, so
    that moving a threshold costs no query.
    """
    key = f"comparison:{comparison.pk}"
    reading = None if fresh else cache.get(key)
    if reading is None:
        reading = _reading(comparison)
        if comparison.pk:
            cache.set(key, reading, _KEEP)
    at = comparison.threshold if threshold is None else threshold
    sweep, curve = reading.curves or (None, None)
    return Result(
        decisions=decisions(reading.judged, at, seed=_seed(comparison)),
        sweep=sweep,
        curve=curve,
        items=len(reading.judged),
        groups=reading.judged.groups,
        weighted=reading.judged.weighted,
        unsure=(int((reading.unsure >= at).sum()), int((reading.unsure < at).sum())),
        left_out=reading.left_out,
        sources=reading.sources,
        total=reading.total,
        positives=reading.judged.score[reading.judged.truth],
        negatives=reading.judged.score[~reading.judged.truth],
        read_at=reading.read_at,
    )


def _reading(comparison: Comparison) -> _Reading:
    labels = read(comparison)
    judged, unsure = _judged(comparison, labels)
    counts = labels.unlabelled | {"unscored": int(np.isnan(labels.score).sum())}
    return _Reading(
        judged=judged,
        unsure=unsure,
        curves=curves(judged, seed=_seed(comparison)),
        left_out=[(code, words, counts[code]) for code, words in REASONS.items() if counts.get(code)],
        sources={source.label: labels.sources[source] for source in Source if source in labels.sources},
        total=labels.item.size + sum(labels.unlabelled.values()),
        read_at=timezone.now(),
    )


def by_metadata(comparison: Comparison, key: str, threshold: float | None = None) -> tuple[list[Slice], int]:
    """The figures for each value of a metadata key, the largest first, and how many values beyond the first 30 are not shown."""
    at = comparison.threshold if threshold is None else threshold
    labels = read(comparison)
    judged, _ = _judged(comparison, labels)
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, metadata ->> %s FROM annotation_item WHERE id = ANY(%s)", [key, labels.item.tolist()])
        value_of = dict(cursor.fetchall())
    values = [value_of[int(pk)] for pk in labels.item[_compared(comparison, labels)]]
    ranked = sorted(Counter(values).items(), key=lambda pair: (pair[0] is None, -pair[1], str(pair[0])))
    place = {value: number for number, (value, _) in enumerate(ranked)}
    places = np.array([place[value] for value in values], dtype=np.int64)
    shown = [
        Slice(value, count, decisions(judged.where(places == number), at, seed=_seed(comparison)))
        for number, (value, count) in enumerate(ranked[:SLICES])
    ]
    return shown, max(0, len(ranked) - SLICES)


def metadata_keys(comparison: Comparison) -> list[str]:
    """The keys that the first thousand labelled items of the set carry."""
    some = _rows(comparison, "SELECT item.metadata", "truth.id IS NOT NULL LIMIT 1000")
    return sorted({key for (metadata,) in some for key in json.loads(metadata)})


@dataclass(frozen=True)
class Listed:
    """One item behind a cell. `text` only when contents were asked for."""

    item_id: int
    external_id: str
    score: float | None
    label: str | None
    source: str | None
    task_id: int | None
    state: str | None
    text: str | None


def cell_items(
    comparison: Comparison, cell: str, threshold: float | None = None, *, page: int = 1, size: int = 100, contents: bool = False
) -> tuple[list[Listed], int]:
    """One page of the items behind a cell, the machine's surest first where it is positive, and how many there are.

    Misses come lowest score first and false alarms highest first: the worst errors lead. Raises Missing for an unknown cell.
    """
    if cell not in CELLS:
        raise Missing("There is no such cell. Cells are: " + ", ".join(CELLS) + ".")
    people, machine = CELLS[cell]
    where = {
        "positive": "truth.choice_id = %(positive)s",
        "negative": "truth.id IS NOT NULL AND truth.choice_id <> %(positive)s AND NOT truth.choice_id = ANY(%(unsure)s)",
        "unsure": "truth.choice_id = ANY(%(unsure)s)",
        "labelled": "truth.id IS NOT NULL",
        "no label": "truth.id IS NULL",
    }[people] + {
        "positive": " AND score.value >= %(threshold)s",
        "negative": " AND score.value < %(threshold)s",
        "no score": " AND score.value IS NULL",
        "any": "",
    }[machine]
    order = {"positive": "score.value DESC, ", "negative": "score.value, "}.get(machine, "")
    choices = {choice.pk: choice for choice in comparison.question.choices.all()}
    where += " AND NOT item.quarantined"
    values = {
        "positive": comparison.positive_id,
        "unsure": [pk for pk, choice in choices.items() if choice.is_unsure],
        "threshold": comparison.threshold if threshold is None else threshold,
        "contents": contents,
        "size": size,
        "skip": (max(1, page) - 1) * size,
    }
    ((count,),) = _rows(comparison, "SELECT count(*)", where, **values)
    rows = _rows(comparison, _LISTED, f"{where} ORDER BY {order}item.id LIMIT %(size)s OFFSET %(skip)s", **values)
    return [
        Listed(
            item_id=pk, external_id=external, score=score, task_id=task, state=state, text=text,
            label=choices[choice].label if choice else None, source=Source(source).label if source else None,
        )
        for pk, external, score, choice, source, state, task, text in rows
    ], count  # fmt: skip


def _compared(comparison: Comparison, labels: Labels) -> npt.NDArray[np.bool_]:
    """Labelled otherwise than unsure, and scored."""
    unsure = [choice.pk for choice in comparison.question.choices.all() if choice.is_unsure]
    return ~np.isnan(labels.score) & ~np.isin(labels.choice, unsure)


def _judged(comparison: Comparison, labels: Labels) -> tuple[Judged, npt.NDArray[np.float64]]:
    """What statistics takes, and the scores of the items that people are unsure of."""
    used = _compared(comparison, labels)
    judged = Judged(labels.choice[used] == comparison.positive_id, labels.score[used], labels.group[used], 1 / labels.probability[used])
    return judged, labels.score[~used & ~np.isnan(labels.score)]


def _seed(comparison: Comparison) -> int:
    return int(comparison.project.seed % 2**32)


def _rows(comparison: Comparison, select: str, where: str, **values: Any) -> list[tuple[Any, ...]]:
    """Rows of the comparison's set: item, task, current truth (none for a retired task) and score."""
    sampled = comparison.sample_id is not None
    items, which = (_OF_SAMPLE, "drawn.sample_id = %(sample)s") if sampled else (_OF_QUESTION, "task.question_id = %(question)s")
    select = select.replace("{probability}", "drawn.probability" if sampled else "1.0")
    values |= {
        "question": comparison.question_id,
        "scorer": comparison.scorer_id,
        "name": comparison.score_name,
        "sample": comparison.sample_id,
    }
    with connection.cursor() as cursor:
        # Only texts of this module are put together here; what people typed is in `values`.
        cursor.execute(f"{select} {items} {_JOINS} WHERE {which} AND {where}", values)
        return cursor.fetchall()  # type: ignore[no-any-return]


# ---------------------------------------------------------------- for programs
def as_json(comparison: Comparison, found: Result) -> dict[str, Any]:
    """The result for a program: an undefined figure has a null value and its reason."""
    average = asdict(found.curve.average_precision) if found.curve else asdict(Estimate.undefined(NO_POSITIVES))
    return {
        "question": comparison.question.slug,
        "positive": comparison.positive.value,
        "scorer": str(comparison.scorer),
        "score_name": comparison.score_name,
        "sample": comparison.sample.name if comparison.sample else None,
        "total": found.total,
        "compared": found.items,
        "groups": found.groups,
        "weighted": found.weighted,
        **asdict(found.decisions),
        "average_precision": average,
        "unsure": {"positive": found.unsure[0], "negative": found.unsure[1]},
        "left_out": [{"code": code, "reason": words, "items": number} for code, words, number in found.left_out],
        "sources": found.sources,
        "read_at": found.read_at.isoformat(),
    }


def slices_as_json(slices: Sequence[Slice]) -> list[dict[str, Any]]:
    """One object for each value, null for items without one."""
    return [{"value": part.value, "items": part.items, **asdict(part.decisions)} for part in slices]
