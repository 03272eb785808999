"""The way out: a project's items with ground truth, pseudonymous votes and scores, as JSONL or CSV (SPEC sections 6, 7).

Everything of one export is read from one snapshot (REPEATABLE READ) on a connection of its own, a block of items at a
time, so that memory stays the same however large the project is. PostgreSQL puts each item's JSON together; a CSV is
flattened from the same JSON. People appear by the number of their membership only. What is not settled says so.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import psycopg
from django.db import connection
from django.db.models import Count
from psycopg import IsolationLevel

from annotation.errors import Invalid
from annotation.models import Project, Question, Task
from curation.models import Sample

Format = Literal["jsonl", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
BLOCK = 500  # items read at once: 50 million characters at the very most
# More metadata keys than this are no table any more; then they stay together in one JSON column.
MOST_METADATA_COLUMNS = 100
# A cell that begins with one of these is a formula to a spreadsheet (OWASP, CSV injection).
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True)
class Wanted:
    """What to export of a project: all of its items, or those that pass every condition that is set.

    `question`: items with a task of it, and only its labels. `sample`: items of that draw, with their probabilities.
    `settled`: items with a ground truth in force (of the question, or of any). `comments`: voters' comments too.
    """

    project: Project
    question: Question | None = None
    sample: Sample | None = None
    settled: bool = False
    comments: bool = False


def wanted(
    project: Project, *, question: str | None = None, sample: int | None = None, settled: bool = False, comments: bool = False
) -> Wanted:
    """The same from a question's slug and a sample's id. Raises Invalid (question, sample) for what the project lacks."""
    asked = Question.objects.filter(project=project, slug=question).first() if question else None
    if question and asked is None:
        raise Invalid("There is no such question.", fields={"question": f'{project.name} has no question "{question}".'})
    drawn = Sample.objects.filter(project=project, pk=sample).first() if sample else None
    if sample and drawn is None:
        raise Invalid("There is no such sample.", fields={"sample": f"{project.name} has no sample {sample}."})
    return Wanted(project, asked, drawn, settled, comments)


def count(what: Wanted) -> int:
    """How many items an export would hold now."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ({_CHOSEN}) AS chosen", _conditions(what))  # noqa: S608 - our own text
        return int(cursor.fetchone()[0])


def tasks_by_state(question: Question) -> dict[str, int]:
    """How many tasks of a question are in each state; states without any are absent."""
    return dict(Task.objects.filter(question=question).values_list("state").annotate(n=Count("pk")))


def export(what: Wanted, form: Format) -> Iterator[tuple[int, str]]:
    """The export in pieces, each with how many items it holds; together they are the file's text.

    Quarantined items are left out.
    """
    with _snapshot() as snapshot:
        if form == "csv":
            table = _Table(snapshot, what)
            yield 0, table.header()
        for lines in _blocks(snapshot, what):
            yield len(lines), table.rows(lines) if form == "csv" else "\n".join(lines) + "\n"


@contextmanager
def _snapshot() -> Iterator[psycopg.Connection[Any]]:
    """A read-only connection whose every statement sees the database as of the first one.

    Its own, because the web server may send a response from another thread than the one that began it.
    """
    opened: psycopg.Connection[Any] = connection.get_new_connection(connection.get_connection_params())
    opened.isolation_level = IsolationLevel.REPEATABLE_READ
    opened.read_only = True
    try:
        opened.execute("SET LOCAL jit = off")  # compiling the query would take longer than a block of it
        yield opened
    finally:
        opened.close()


def _blocks(snapshot: psycopg.Connection[Any], what: Wanted) -> Iterator[list[str]]:
    """The items' JSON texts, block after block, in order of id."""
    conditions = _conditions(what)
    with snapshot.cursor(name="chosen") as chosen, snapshot.cursor() as cursor:
        chosen.execute(_CHOSEN + " ORDER BY item.id", conditions)
        while ids := [row[0] for row in chosen.fetchmany(BLOCK)]:
            cursor.execute(_LINES_WITH_COMMENTS if what.comments else _LINES, {**conditions, "ids": ids})
            yield [row[0] for row in cursor]


def _conditions(what: Wanted) -> dict[str, Any]:
    return {
        "project": what.project.pk,
        "question": what.question.pk if what.question else None,
        "sample": what.sample.pk if what.sample else None,
        "settled": what.settled,
    }


_CHOSEN = """
SELECT item.id FROM annotation_item AS item
WHERE item.project_id = %(project)s AND NOT item.quarantined
  AND (%(question)s::bigint IS NULL
       OR item.id IN (SELECT item_id FROM annotation_task WHERE question_id = %(question)s))
  AND (%(sample)s::bigint IS NULL
       OR item.id IN (SELECT item_id FROM curation_sampleitem WHERE sample_id = %(sample)s))
  AND (NOT %(settled)s
       OR item.id IN (SELECT item_id FROM annotation_groundtruth
                      WHERE superseded_at IS NULL AND (%(question)s::bigint IS NULL OR question_id = %(question)s)))
"""

# One JSON object an item. row_to_json and array_to_json write no line breaks, which json_agg would. The pieces of a block
# come by index, per task and per item: a block is small beside the tables.
_TEMPLATE = """
SELECT row_to_json(line)::text FROM (
    SELECT item.id, item.external_id, item.kind, item.text, item.media_hash, encode(item.content_hash, 'hex') AS content_hash,
        CASE WHEN origin.id IS NOT NULL THEN (SELECT row_to_json(o) FROM (SELECT origin.id, origin.external_id) AS o) END AS origin,
        item.metadata,
        CASE WHEN drawn.id IS NOT NULL THEN
            (SELECT row_to_json(d) FROM (SELECT sample.name, sample.seed, drawn.stratum, drawn.probability) AS d) END AS sample,
        coalesce(asked.questions, '{}') AS questions,
        coalesce(given.scores, '[]') AS scores
    FROM annotation_item AS item
    LEFT JOIN annotation_item AS origin ON origin.id = item.origin_id
    LEFT JOIN curation_sampleitem AS drawn ON drawn.sample_id = %(sample)s AND drawn.item_id = item.id
    LEFT JOIN curation_sample AS sample ON sample.id = drawn.sample_id
    LEFT JOIN LATERAL (
        SELECT json_object_agg(question.slug, (SELECT row_to_json(t) FROM (
            SELECT task.state, task.round, task.votes_required,
                CASE WHEN truth.id IS NOT NULL THEN (SELECT row_to_json(g) FROM (
                    SELECT choice.value AS choice, truth.tags, truth.tags_unsettled, truth.source, truth.round, truth.created_at AS at,
                        guideline.version AS guideline,
                        CASE WHEN truth.source = 'adjudicated' THEN adjudicator.number END AS adjudicator) AS g) END AS ground_truth,
                coalesce(cast_votes.votes, '[]') AS votes, task.abstention_count AS abstentions) AS t)
            ORDER BY question.slug) AS questions
        FROM annotation_task AS task
        JOIN annotation_question AS question ON question.id = task.question_id
        LEFT JOIN annotation_groundtruth AS truth ON truth.task_id = task.id AND truth.superseded_at IS NULL
        LEFT JOIN annotation_choice AS choice ON choice.id = truth.choice_id
        LEFT JOIN annotation_guideline AS guideline ON guideline.id = truth.guideline_id
        LEFT JOIN annotation_membership AS adjudicator ON adjudicator.id = truth.member_id
        LEFT JOIN LATERAL (
            SELECT array_to_json(array_agg(v)) AS votes FROM (
                SELECT voter.number AS annotator, vote.round, chosen.value AS choice, vote.tags, /* comment */
                    vote.created_at AS at, read.version AS guideline,
                    1 + CASE WHEN vote.revised_at IS NULL THEN 0 ELSE (
                        SELECT count(*) FROM annotation_voteevent AS earlier
                        WHERE earlier.pgh_obj_id = vote.id AND earlier.pgh_label = 'revised') END AS versions
                FROM annotation_vote AS vote
                JOIN annotation_membership AS voter ON voter.id = vote.member_id
                JOIN annotation_choice AS chosen ON chosen.id = vote.choice_id
                LEFT JOIN annotation_guideline AS read ON read.id = vote.guideline_id
                WHERE vote.task_id = task.id
                ORDER BY vote.round, voter.number) AS v) AS cast_votes ON true
        WHERE task.item_id = item.id AND (%(question)s::bigint IS NULL OR task.question_id = %(question)s)) AS asked ON true
    LEFT JOIN LATERAL (
        SELECT array_to_json(array_agg(s)) AS scores FROM (
            SELECT scorer.name AS scorer, scorer.version, score.name, score.value
            FROM scoring_score AS score JOIN scoring_scorer AS scorer ON scorer.id = score.scorer_id
            WHERE score.item_id = item.id
            ORDER BY scorer.name, scorer.version, score.name) AS s) AS given ON true
    WHERE item.id = ANY(%(ids)s::bigint[])
    ORDER BY item.id) AS line
"""
_LINES = _TEMPLATE.replace("/* comment */", "")
_LINES_WITH_COMMENTS = _TEMPLATE.replace("/* comment */", "vote.comment,")


# ---------------------------------------------------------------- the table
_QUESTIONS = """
SELECT question.slug, array_agg(choice.value::text ORDER BY choice.position)
FROM annotation_question AS question JOIN annotation_choice AS choice ON choice.question_id = question.id
WHERE question.project_id = %(project)s AND (%(question)s::bigint IS NULL OR question.id = %(question)s)
GROUP BY question.id ORDER BY question.slug
"""
_SCORERS = "SELECT name, version, score_names::text[] FROM scoring_scorer WHERE project_id = %(project)s ORDER BY name, version"


class _Table:
    """One row an item. Its columns are known before the first row: the project's questions, scorers and metadata keys."""

    def __init__(self, snapshot: psycopg.Connection[Any], what: Wanted) -> None:
        conditions = _conditions(what)
        self.questions: dict[str, list[str]] = dict(snapshot.execute(_QUESTIONS, conditions).fetchall())
        self.scores = [
            (scorer, version, name) for scorer, version, names in snapshot.execute(_SCORERS, conditions) for name in sorted(names)
        ]
        self.with_sample = what.sample is not None
        self.with_comments = what.comments
        self.metadata = self._metadata_keys(snapshot, what)

    def _metadata_keys(self, snapshot: psycopg.Connection[Any], what: Wanted) -> list[str] | None:
        """Every key that an item of the export has; None when there are too many for columns."""
        found = snapshot.execute(
            f"SELECT DISTINCT jsonb_object_keys(metadata) FROM annotation_item "  # noqa: S608 - our own text
            f"WHERE jsonb_typeof(metadata) = 'object' AND id IN ({_CHOSEN}) LIMIT {MOST_METADATA_COLUMNS + 1}",
            _conditions(what),
        ).fetchall()
        return sorted(row[0] for row in found) if len(found) <= MOST_METADATA_COLUMNS else None

    def header(self) -> str:
        names = ["id", "external_id", "kind", "text", "media_hash", "content_hash", "origin_id", "origin_external_id"]
        names += ["metadata"] if self.metadata is None else [f"metadata.{key}" for key in self.metadata]
        if self.with_sample:
            names += ["sample.stratum", "sample.probability"]
        for slug, choices in self.questions.items():
            names += [
                f"{slug}.{name}"
                for name in ("state", "round", "choice", "tags", "tags_unsettled", "source", "at", "guideline", "adjudicator")
            ]
            names += [f"{slug}.votes", *(f"{slug}.votes.{value}" for value in choices), f"{slug}.abstentions"]
            names += [f"{slug}.comments"] if self.with_comments else []
        names += [f"score.{scorer}.v{version}.{name}" for scorer, version, name in self.scores]
        return _write([names])

    def rows(self, lines: Sequence[str]) -> str:
        return _write([self._row(json.loads(line)) for line in lines])

    def _row(self, item: Mapping[str, Any]) -> list[Any]:
        origin, metadata = item["origin"] or {}, item["metadata"]
        cells = [item[name] for name in ("id", "external_id", "kind", "text", "media_hash", "content_hash")]
        cells += [origin.get("id"), origin.get("external_id")]
        if self.metadata is None:
            cells.append(metadata)
        else:
            cells += [metadata.get(key) for key in self.metadata] if isinstance(metadata, dict) else [None] * len(self.metadata)
        if self.with_sample:
            cells += [item["sample"]["stratum"], item["sample"]["probability"]]
        for slug, choices in self.questions.items():
            cells += self._answers(item["questions"].get(slug), choices)
        scores = {(score["scorer"], score["version"], score["name"]): score["value"] for score in item["scores"]}
        return cells + [scores.get(key) for key in self.scores]

    def _answers(self, task: Mapping[str, Any] | None, choices: Sequence[str]) -> list[Any]:
        """A question's cells: all empty where the item has no task of it."""
        if task is None:
            return [None] * (11 + len(choices) + self.with_comments)
        truth = task["ground_truth"] or {}
        given = Counter(vote["choice"] for vote in task["votes"] if vote["round"] == task["round"])
        cells = [task["state"], task["round"], truth.get("choice"), " ".join(truth.get("tags", ())), truth.get("tags_unsettled")]
        cells += [truth.get(name) for name in ("source", "at", "guideline", "adjudicator")]
        cells += [" ".join(_vote(vote, task["round"]) for vote in task["votes"]), *(given[value] for value in choices), task["abstentions"]]
        if self.with_comments:
            cells.append(
                [{"annotator": vote["annotator"], "comment": vote["comment"]} for vote in task["votes"] if vote["comment"]] or None
            )
        return cells


def _vote(vote: Mapping[str, Any], round_: int) -> str:
    """`3:yes`; with tags `3:yes[insult,threat]`; of an earlier round `3:yes@1`."""
    tags = f"[{','.join(vote['tags'])}]" if vote["tags"] else ""
    earlier = f"@{vote['round']}" if vote["round"] != round_ else ""
    return f"{vote['annotator']}:{vote['choice']}{tags}{earlier}"


def _write(rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([[_cell(value) for value in row] for row in rows])
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Empty for none; JSON for lists and objects; a text that a spreadsheet would run gets an apostrophe in front."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def as_format(name: str) -> Format:
    """Raises Invalid for a format there is not."""
    if name not in FORMATS:
        raise Invalid("There is no such format.", fields={"format": f"One of: {', '.join(FORMATS)}."})
    return name
