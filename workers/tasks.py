"""What workers do. Each task is thin: an id in, one service call."""

from dataclasses import astuple
from uuid import UUID

import structlog
from kombu.exceptions import OperationalError

from curation import figuring, tasking
from curation.importing import service as importing
from curation.keeping import Wanted
from curation.models import ImportBatch, TaskBatch
from scoring import runs, working
from scoring.models import ScoringRun
from workers import process
from workers.celery import app

log = structlog.get_logger("assay.workers")
MOST_AT_ONCE = 4  # messages a run begins with: as many workers look at once


@app.task
def work_on_run(run_id: int) -> None:
    """A few seconds of this run; then the message goes on to the run that has waited longest, so that runs share workers."""
    bench = process.bench()
    if working.work_on(run_id, bench) and not bench.stopping.is_set():
        queue = ScoringRun.objects.values_list("queue", flat=True).get(pk=run_id)
        if (following := runs.next_run([queue])) is not None:
            _send(following, queue)


def wake(run: ScoringRun) -> None:
    """Tell workers that a run has work. Call it after the commit; without a broker, idle workers find the run by themselves."""
    for _ in range(min(MOST_AT_ONCE, run.chunks.count())):
        if not _send(run.pk, run.queue):
            return


def _send(run_id: int, queue: str) -> bool:
    try:
        work_on_run.apply_async((run_id,), queue=queue, retry=False)
    except OperationalError as error:
        log.warning("no broker", run=run_id, reason=str(error))
        return False
    return True


@app.task
def run_import(batch_id: str) -> None:
    """Bring in the items of an uploaded file."""
    importing.run(UUID(batch_id))


def send_import(batch: ImportBatch) -> bool:
    """Tell the workers of an import that was started. Call it after the commit; False when no broker answers."""
    try:
        run_import.apply_async((str(batch.pk),), retry=False)
    except OperationalError as error:
        log.warning("no broker", batch=str(batch.pk), reason=str(error))
        return False
    return True


@app.task
def run_task_batch(batch_id: int) -> None:
    """Make, put first or put back many tasks."""
    tasking.run(batch_id)


def do_or_send(batch: TaskBatch) -> TaskBatch | None:
    """Do a small batch here and now, leave a large one to a worker: None then. Without a broker it is done here as well."""
    if batch.total > tasking.AT_ONCE:
        try:
            run_task_batch.apply_async((batch.pk,), retry=False)
        except OperationalError as error:
            log.warning("no broker", task_batch=batch.pk, reason=str(error))
        else:
            return None
    return tasking.run(batch.pk)


@app.task
def make_figures(kind: str, question_id: int, by: str) -> None:
    """Make figures that are too large for a request; the pages that wait for them find them."""
    figuring.make(kind, question_id, by)


def send_wanted(wanted: Wanted) -> None:
    """Have a worker make figures. Without a broker they are made here."""
    try:
        make_figures.apply_async(astuple(wanted), retry=False)
    except OperationalError as error:
        log.warning("no broker", **vars(wanted), reason=str(error))
        figuring.make(*astuple(wanted))
