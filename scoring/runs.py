"""Scorer versions and their runs, as the database sees them.

A run is cut into chunks. A worker claims a chunk, says every few seconds that it is alive, and stores all of the chunk's
scores in one transaction, under its claim. A claim that has been silent for `SILENCE` may be taken by anyone; then the
first claimant's scores are refused, so that every chunk is counted once. Nothing here needs a message broker.

Locks are taken in one order, the chunk and then the run, so claims, stores and pauses never wait in a circle.
"""

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from annotation.errors import Conflict, Invalid
from annotation.models import Project, User
from scoring.models import ChunkState, RunState, Scorer, ScoringRun
from scoring.scorers import kinds
from scoring.scorers.base import Kind, Machine, Unusable

SILENCE = timedelta(seconds=15)
MOST_LOSSES = 3
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,58}[a-z0-9])?")
QUEUES = ("cpu", "gpu")
ACTIVE = (RunState.QUEUED, RunState.RUNNING)


# ---------------------------------------------------------------- scorers
def kind_of(name: str) -> Kind:
    """The kind with this name; Invalid when there is none."""
    kind = kinds().get(name)
    if kind is None:
        message = f"There is no kind of scorer named {name!r}. There are: {', '.join(kinds())}."
        raise Invalid(message, fields={"kind": message})
    return kind


def hub_cache() -> Path:
    """Where models of the hub are kept."""
    return Path(settings.DATA) / "hub"


def create_scorer(
    project: Project, name: str, kind: str, given: Mapping[str, object], by: User | None, *, any_folder: bool = False
) -> tuple[Scorer, bool]:
    """The version of scorer `name` that gives exactly these scores, and whether it is new.

    Another fingerprint than all of its versions have makes the next version. A setting that changes no score (the folder,
    the batch size) is simply kept. Model folders must lie under ASSAY_MODEL_FOLDERS unless `any_folder`, which is for
    those who own the machine. Invalid when the configuration or the files cannot work, with the fields at fault.
    """
    if not NAME.fullmatch(name):
        message = "Give it a short name of small letters, digits and hyphens (at most 60)."
        raise Invalid(message, fields={"name": message})
    found = kind_of(kind)
    try:
        config = found.read(given)
        if not any_folder:
            _check_folders(found, config)
        identity = found.identify(config, Machine(hub=hub_cache()))
    except Unusable as error:
        raise Invalid(error.message, fields=error.fields) from error
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        versions = Scorer.objects.filter(project=project, name=name)
        if (same := versions.filter(fingerprint=identity.fingerprint).first()) is not None:
            if same.config != identity.config:
                same.config = identity.config
                same.save(update_fields=["config"])
            return same, False
        latest = versions.aggregate(latest=Max("version"))["latest"] or 0
        return Scorer.objects.create(
            project=project,
            name=name,
            version=latest + 1,
            kind=kind,
            item_kind=found.item_kind,
            config=identity.config,
            fingerprint=identity.fingerprint,
            score_names=list(identity.score_names),
            created_by=by,
        ), True


def _check_folders(kind: Kind, config: Mapping[str, Any]) -> None:
    roots = [Path(root).resolve() for root in settings.MODEL_FOLDERS]
    for setting in kind.settings:
        if setting.type != "folder" or not config[setting.name]:
            continue
        folder = Path(config[setting.name]).resolve()
        if not any(folder.is_relative_to(root) for root in roots):
            where = " or ".join(map(str, roots))
            message = f"Model folders must lie under {where}. Copy it there, or have ASSAY_MODEL_FOLDERS name its place."
            raise Unusable(message, **{setting.name: message})


# ---------------------------------------------------------------- runs
_WANTED = """
INSERT INTO wanted (item_id)
SELECT id FROM annotation_item WHERE project_id = %(project)s AND kind = %(kind)s
"""
# An item's scores by one scorer come in one transaction: the first of them there means all of them.
_COUNT = """
SELECT count(*) FILTER (WHERE item.id IS NULL),
       count(*) FILTER (WHERE item.quarantined OR item.kind = 'image' AND item.media_hash IS NULL),
       count(score.item_id)
FROM wanted
LEFT JOIN annotation_item AS item ON item.id = wanted.item_id AND item.project_id = %(project)s AND item.kind = %(kind)s
LEFT JOIN scoring_score AS score ON score.scorer_id = %(scorer)s AND score.item_id = wanted.item_id AND score.name = %(name)s
"""
_CUT = """
INSERT INTO scoring_chunk (run_id, number, item_ids, state, worker, attempts)
SELECT %(run)s, chunk, array_agg(item_id ORDER BY item_id), 'waiting', '', 0
FROM (
    SELECT wanted.item_id, 1 + (row_number() OVER (ORDER BY wanted.item_id) - 1) / %(size)s AS chunk
    FROM wanted
    JOIN annotation_item AS item ON item.id = wanted.item_id
    LEFT JOIN scoring_score AS score ON score.scorer_id = %(scorer)s AND score.item_id = wanted.item_id AND score.name = %(name)s
    WHERE score.item_id IS NULL AND NOT item.quarantined AND (item.kind = 'text' OR item.media_hash IS NOT NULL)
) AS numbered
GROUP BY chunk ORDER BY chunk
RETURNING cardinality(item_ids)
"""


def start_run(scorer: Scorer, item_ids: Iterable[int] | None, by: User | None, *, queue: str = "cpu") -> ScoringRun:
    """A run of `scorer` over these items of its project (all of its kind when None), cut into chunks, ready for workers.

    Items that already have this version's scores are left out and counted (`already_scored`); quarantined items and
    pictures without a file are left out. Invalid when an item is not one of the project's of the scorer's kind;
    Conflict when nothing is left to score. The caller wakes the workers after the commit (workers.tasks.wake).
    """
    kind = kind_of(scorer.kind)
    if queue not in QUEUES:
        raise Invalid(f"There is no queue {queue!r}. Choose cpu or gpu.", fields={"queue": "Choose cpu or gpu."})
    values: dict[str, Any] = {"project": scorer.project_id, "kind": scorer.item_kind, "scorer": scorer.pk, "name": scorer.score_names[0]}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE wanted (item_id bigint NOT NULL) ON COMMIT DROP")
        if item_ids is None:
            cursor.execute(_WANTED, values)
        else:
            with cursor.copy("COPY wanted (item_id) FROM STDIN") as copy:
                for item_id in dict.fromkeys(item_ids):
                    copy.write_row((item_id,))
        cursor.execute("ANALYZE wanted")
        cursor.execute(_COUNT, values)
        foreign, unfit, already = cursor.fetchone()
        if foreign:
            message = f"{foreign:,} of these are no {scorer.item_kind} items of this project."
            raise Invalid(message, fields={"items": message})
        run = ScoringRun.objects.create(
            project_id=scorer.project_id, scorer=scorer, queue=queue, created_by=by, already_scored=already, total=0
        )
        cursor.execute(_CUT, values | {"run": run.pk, "size": kind.chunk_size})
        run.total = sum(size for (size,) in cursor.fetchall())
        cursor.execute("DROP TABLE wanted")
        if not run.total:
            raise Conflict(_nothing_left(scorer, already, unfit), code="nothing_to_score")
        run.save(update_fields=["total"])
    return run


def _nothing_left(scorer: Scorer, already: int, unfit: int) -> str:
    if already:
        return f"All {already:,} items already have scores of {scorer}. Nothing is left to score."
    if unfit:
        return f"All {unfit:,} items are quarantined or have no file. Nothing is left to score."
    return f"There are no {scorer.item_kind} items to score. Import some first."


def pause(run: ScoringRun, by: User | None) -> ScoringRun:
    """No further chunk is claimed; those in work are finished and stored."""
    return _change(run, RunState.PAUSED, ACTIVE, "paused", paused_by=by)


def resume(run: ScoringRun, by: User | None) -> ScoringRun:  # noqa: ARG001 - the audit trail names the person
    """Go on with a paused run, or once more with a failed one after its cause is mended; what is stored stays stored."""
    with transaction.atomic():
        run.chunks.exclude(state=ChunkState.DONE).update(attempts=0)  # before the run's own lock, as in `store`
        return _change(run, RunState.QUEUED, (RunState.PAUSED, RunState.FAILED), "resumed", paused_by=None, error="", finished_at=None)


def cancel(run: ScoringRun, by: User | None) -> ScoringRun:
    """End it for good. Scores already stored stay; what is in work is not stored."""
    stoppable = (*ACTIVE, RunState.PAUSED, RunState.FAILED)
    return _change(run, RunState.CANCELLED, stoppable, "cancelled", paused_by=by, finished_at=timezone.now())


def _change(run: ScoringRun, to: RunState, allowed: Sequence[RunState], verb: str, **fields: Any) -> ScoringRun:
    with transaction.atomic():
        run = ScoringRun.objects.select_for_update(of=("self",)).select_related("scorer", "project").get(pk=run.pk)
        if run.state == to:
            return run
        if run.state not in allowed:
            raise Conflict(f"This run is {run.get_state_display().lower()}; it cannot be {verb}.", code="run_state")
        for name, value in (fields | {"state": to}).items():
            setattr(run, name, value)
        run.save(update_fields=["state", *fields])
    return run


# ---------------------------------------------------------------- chunks
@dataclass(frozen=True)
class Claimed:
    """A chunk that this claimant holds while it is heard of."""

    chunk_id: int
    run_id: int
    scorer_id: int
    number: int
    claim: uuid.UUID
    item_ids: list[int]
    taken_over: bool


# A silent worker's chunk of any run in this queue comes before new work, so that no run waits for it while others go on.
_SILENT = """
SELECT chunk.id FROM scoring_chunk AS chunk JOIN scoring_scoringrun AS run ON run.id = chunk.run_id
WHERE run.queue = %(queue)s AND run.state IN ('queued', 'running')
  AND chunk.state = 'claimed' AND chunk.heartbeat_at < now() - %(silence)s
ORDER BY chunk.heartbeat_at LIMIT 1 FOR UPDATE OF chunk SKIP LOCKED
"""
_WAITING = """
SELECT chunk.id FROM scoring_chunk AS chunk JOIN scoring_scoringrun AS run ON run.id = chunk.run_id
WHERE run.id = %(run)s AND run.state IN ('queued', 'running') AND chunk.state = 'waiting'
ORDER BY chunk.number LIMIT 1 FOR UPDATE OF chunk SKIP LOCKED
"""
_CLAIM = """
UPDATE scoring_chunk AS chunk
SET state = 'claimed', claim = %(claim)s, worker = %(worker)s, heartbeat_at = now(), attempts = chunk.attempts + 1
FROM scoring_chunk AS before JOIN scoring_scoringrun AS run ON run.id = before.run_id
WHERE chunk.id = %(chunk)s AND before.id = chunk.id
RETURNING chunk.id, chunk.run_id, run.scorer_id, chunk.number, chunk.item_ids, chunk.attempts, before.worker
"""
_NOTE_LOSS = "UPDATE scoring_worker SET doing = %(note)s WHERE name = %(lost)s AND name <> %(worker)s"
_BEGIN = "UPDATE scoring_scoringrun SET state = 'running', started_at = COALESCE(started_at, now()) WHERE id = %s AND state = 'queued'"


def claim_chunk(run_id: int, worker: str) -> Claimed | None:
    """The next chunk for someone who works on this run, or None when there is none to take now.

    A chunk whose workers fell silent `MOST_LOSSES` times ends its run: something in it stops whoever scores it.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT queue FROM scoring_scoringrun WHERE id = %s", [run_id])
        if (row := cursor.fetchone()) is None:
            return None
        silent: dict[str, Any] = {"queue": row[0], "silence": SILENCE}
        cursor.execute(_SILENT, silent)
        chosen = cursor.fetchone()
        taken_over = chosen is not None
        if chosen is None:
            cursor.execute(_WAITING, {"run": run_id})
            chosen = cursor.fetchone()
        if chosen is None:
            return None
        claim = uuid.uuid4()
        cursor.execute(_CLAIM, {"chunk": chosen[0], "claim": claim, "worker": worker})
        chunk_id, of_run, scorer_id, number, item_ids, attempts, before = cursor.fetchone()
        if taken_over:
            note = f"chunk {number:,} of run {of_run} was taken over by {worker}"
            cursor.execute(_NOTE_LOSS, {"note": note, "lost": before, "worker": worker})
        claimed = Claimed(chunk_id, of_run, scorer_id, number, claim, item_ids, taken_over)
        if attempts > MOST_LOSSES:
            fail(
                claimed,
                f"Chunk {number:,} stopped its worker {MOST_LOSSES} times (items {item_ids[0]} to {item_ids[-1]}). See the worker's log.",
            )
            return None
        cursor.execute(_BEGIN, [of_run])
    return claimed


_BEAT = "UPDATE scoring_chunk SET heartbeat_at = now() WHERE id = %s AND claim = %s AND state = 'claimed'"


def beat(claimed: Claimed) -> bool:
    """Say that the claimant lives; False when the chunk is no longer theirs."""
    with connection.cursor() as cursor:
        cursor.execute(_BEAT, [claimed.chunk_id, claimed.claim])
        return bool(cursor.rowcount == 1)


_FINISH = "UPDATE scoring_chunk SET state = 'done', heartbeat_at = now() WHERE id = %s AND claim = %s AND state = 'claimed'"
_STORED_BEFORE = "SELECT 1 FROM scoring_chunk WHERE id = %s AND claim = %s AND state = 'done'"
_STORE = """
INSERT INTO scoring_score (scorer_id, item_id, name, value)
SELECT %(scorer)s, item_id, name, value
FROM unnest(%(items)s::bigint[], %(names)s::text[], %(values)s::float8[]) AS given (item_id, name, value)
ON CONFLICT (scorer_id, item_id, name) DO NOTHING
"""
_STORE_FAILURES = """
INSERT INTO scoring_failure (run_id, item_id, reason)
SELECT %(run)s, item_id, reason FROM unnest(%(items)s::bigint[], %(reasons)s::text[]) AS given (item_id, reason)
ON CONFLICT (run_id, item_id) DO NOTHING
"""
_COUNT_CHUNK = """
UPDATE scoring_scoringrun
SET done = done + %(done)s, failed = failed + %(failed)s,
    state = CASE WHEN done + failed + %(done)s + %(failed)s = total THEN 'done' ELSE state END,
    finished_at = CASE WHEN done + failed + %(done)s + %(failed)s = total THEN now() END
WHERE id = %(run)s AND state IN ('queued', 'running', 'paused')
"""


class _NotTaken(Exception):
    """The run has ended: roll the chunk back."""


def store(claimed: Claimed, scores: Mapping[int, Mapping[str, float]], failures: Mapping[int, str]) -> bool:
    """All of a chunk, in one transaction: scores, failures, the run's counts, and its end when this was the last chunk.

    `scores` and `failures` (item id to reason) together hold each item of the chunk once. True when the chunk is
    stored under this claim, now or before; False, with nothing stored, when it was taken over or the run has ended.
    """
    if len(scores) + len(failures) != len(claimed.item_ids):
        raise ValueError(f"Chunk {claimed.number} has {len(claimed.item_ids)} items, not {len(scores)} scored and {len(failures)} failed.")
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_FINISH, [claimed.chunk_id, claimed.claim])
            if cursor.rowcount == 0:
                cursor.execute(_STORED_BEFORE, [claimed.chunk_id, claimed.claim])
                return cursor.fetchone() is not None
            rows = [(item, name, value) for item, named in scores.items() for name, value in named.items()]
            items, names, values = zip(*rows, strict=True) if rows else ((), (), ())
            cursor.execute(_STORE, {"scorer": claimed.scorer_id, "items": list(items), "names": list(names), "values": list(values)})
            if failures:
                reasons = [reason[:300] for reason in failures.values()]
                cursor.execute(_STORE_FAILURES, {"run": claimed.run_id, "items": list(failures), "reasons": reasons})
            cursor.execute(_COUNT_CHUNK, {"run": claimed.run_id, "done": len(scores), "failed": len(failures)})
            if cursor.rowcount == 0:
                raise _NotTaken  # noqa: TRY301 - rolls back what is above
    except _NotTaken:
        return False
    return True


_RELEASE = """
UPDATE scoring_chunk SET state = 'waiting', attempts = GREATEST(attempts - 1, 0) WHERE id = %s AND claim = %s AND state = 'claimed'
"""


def release(claimed: Claimed) -> None:
    """Give a chunk back unscored; that is no loss of a worker."""
    with connection.cursor() as cursor:
        cursor.execute(
            _RELEASE,
            [claimed.chunk_id, claimed.claim],
        )


def fail(claimed: Claimed, message: str) -> None:
    """End the run with one clear error, for a fault that no item is to blame for. It can be resumed once that is mended."""
    with transaction.atomic():
        release(claimed)
        ScoringRun.objects.filter(pk=claimed.run_id, state__in=ACTIVE).update(
            state=RunState.FAILED, error=message, finished_at=timezone.now()
        )


_NEXT_RUN = """
SELECT run.id FROM scoring_scoringrun AS run
WHERE run.queue = ANY(%(queues)s) AND run.state IN ('queued', 'running')
  AND EXISTS (SELECT FROM scoring_chunk AS chunk WHERE chunk.run_id = run.id
              AND (chunk.state = 'waiting' OR chunk.state = 'claimed' AND chunk.heartbeat_at < now() - %(silence)s))
ORDER BY (SELECT max(chunk.heartbeat_at) FROM scoring_chunk AS chunk WHERE chunk.run_id = run.id) NULLS FIRST, run.id
LIMIT 1
"""


def next_run(queues: Sequence[str]) -> int | None:
    """The run in these queues that has work to give and has waited longest for someone, so that runs share the workers."""
    with connection.cursor() as cursor:
        values: dict[str, Any] = {"queues": list(queues), "silence": SILENCE}
        cursor.execute(_NEXT_RUN, values)
        row = cursor.fetchone()
    return row[0] if row else None


_TEXTS = "SELECT id, text FROM annotation_item WHERE id = ANY(%s) AND text IS NOT NULL AND NOT quarantined"


def texts_of(item_ids: Sequence[int]) -> dict[int, str]:
    """The texts of these items by id, without those that were quarantined since."""
    with connection.cursor() as cursor:
        cursor.execute(_TEXTS, [list(item_ids)])
        return dict(cursor.fetchall())


def model_folders() -> list[str]:
    """The model folders that pages and API may name, as far as there are any yet."""
    roots = [Path(root) for root in settings.MODEL_FOLDERS]
    return sorted(str(config.parent) for root in roots if root.is_dir() for config in root.glob("*/config.json"))
