"""What a researcher does to many tasks of a question at once: make them, put them first, put them back in line.

Each is a row that says how far it is. A small one is done in the request; a large one by a worker, in short transactions,
so that voters are never held up. Doing one again changes nothing that is done: one that broke off is started again and
goes on where it stopped.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import structlog
from django.db import connection
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from annotation import steering
from annotation.errors import Conflict, Invalid
from annotation.models import Kind, Question, Task, TaskState, User
from annotation.tasks import create_tasks
from curation import choosing, sampling
from curation.holding import held
from curation.models import TaskBatch, TaskBatchState, TaskVerb

log = structlog.get_logger("assay.curation")
AT_ONCE = 20_000  # items; more are a worker's, half a second or longer
CHUNK = 10_000
LISTED = "listed"
MOST_LISTED = 1_000
LIVE = (TaskBatchState.QUEUED, TaskBatchState.RUNNING)
BROKE_OFF = "The worker stopped in the middle. What was done stays; start it again and it goes on from there."
_LOCK = 7_312_064  # one number of ours for this sort of lock; the batch's own is the other


def start(
    question: Question, verb: str, items: str = choosing.ALL, *, seeds: bool = False, metadata: Mapping[str, Any] | None = None,
    by: User | None = None,
) -> TaskBatch:  # fmt: skip
    """A batch over the chosen items (as in `choosing.items`) that have all of `metadata`. Then `run` it, here or in a worker.

    Raises Invalid (items, verb; no choices yet) and Conflict while another one of this question and verb goes on.
    """
    if verb not in TaskVerb.values:
        raise Invalid("Say what to do with the tasks.", fields={"verb": f"One of: {', '.join(TaskVerb.values)}."})
    if not question.choices.exists():
        raise Invalid("This question has no choices yet. Give it at least two, then make tasks.")
    found = _items(question, verb, items, seeds, metadata or {})
    if any(settled(batch).state in LIVE for batch in TaskBatch.objects.filter(question=question, verb=verb, state__in=LIVE)):
        raise Conflict("The last one of these still goes on. Wait until it is done.", code="still_going_on")
    return TaskBatch.objects.create(
        question=question, verb=verb, items=items, seeds=seeds, metadata=dict(metadata or {}), total=found.count(), created_by=by
    )


def move_listed(question: Question, verb: str, task_ids: Sequence[int], by: User | None = None) -> TaskBatch:
    """Put single tasks first, or back in line, at once. Raises Invalid (verb, tasks) for ids that are not this question's."""
    if verb not in (TaskVerb.PUT_FIRST, TaskVerb.PUT_BACK):
        raise Invalid("Tasks that are named are put first or put back.", fields={"verb": "put_first or put_back."})
    wanted = list(dict.fromkeys(task_ids))
    if not 0 < len(wanted) <= MOST_LISTED:
        message = f"Name between 1 and {MOST_LISTED:,} tasks."
        raise Invalid(message, fields={"tasks": message})
    known = set(Task.objects.filter(question=question, pk__in=wanted).values_list("pk", flat=True))
    if unknown := [number for number in wanted if number not in known]:
        message = f"This question has no task {unknown[0]}."
        raise Invalid(message, fields={"tasks": message})
    moved = _MOVES[verb](question, wanted)
    return TaskBatch.objects.create(
        question=question, verb=verb, items=LISTED, state=TaskBatchState.DONE, total=len(wanted), handled=len(wanted), changed=moved,
        created_by=by, finished_at=Now(),
    )  # fmt: skip


def make_tasks(question: Question, items: str = choosing.ALL, *, seeds: bool = False, by: User | None = None) -> int:
    """Open tasks of the question for the chosen items, here and now, however many. Returns how many are new."""
    return run(start(question, TaskVerb.MAKE, items, seeds=seeds, by=by).pk).changed


def run(batch_id: int) -> TaskBatch:
    """Do what the batch says. How it ends is in the batch; only a fault of ours is raised."""
    batch = TaskBatch.objects.select_related("question__project").get(pk=batch_id)
    with held(_LOCK, batch.pk) as mine:
        batch.refresh_from_db(fields=["state"])
        if not mine or batch.state == TaskBatchState.DONE:
            return batch
        TaskBatch.objects.filter(pk=batch.pk).update(state=TaskBatchState.RUNNING, handled=0, changed=0, error="", finished_at=None)
        try:
            _work(batch)
            _finish(batch, TaskBatchState.DONE)
        except Invalid as error:  # what it was to be made of is gone meanwhile
            _finish(batch, TaskBatchState.FAILED, error.message)
        except Exception:
            _finish(batch, TaskBatchState.FAILED, "It broke off on our side. What was done stays; start it again.")
            log.exception("task batch broke off", batch=batch.pk)
            raise
    batch.refresh_from_db()
    return batch


def settled(batch: TaskBatch) -> TaskBatch:
    """The batch as it is now: one whose worker died is marked failed."""
    if batch.state == TaskBatchState.RUNNING:
        with held(_LOCK, batch.pk) as mine:
            if mine and TaskBatch.objects.filter(pk=batch.pk, state=TaskBatchState.RUNNING).exists():
                _finish(batch, TaskBatchState.FAILED, BROKE_OFF)
        batch.refresh_from_db()
    return batch


def latest(question: Question, limit: int = 5) -> list[TaskBatch]:
    """The question's last batches, newest first."""
    return [settled(batch) for batch in TaskBatch.objects.filter(question=question).select_related("created_by").order_by("-pk")[:limit]]


def in_words(batch: TaskBatch, of: str = "") -> str:
    """What came of it: 12,000 new tasks of Toxicity, where `of` is " of Toxicity"; 300 tasks put first."""
    if not batch.changed and not batch.total and batch.state == TaskBatchState.DONE:
        return f"No {'new ' if batch.verb == TaskVerb.MAKE else ''}task{of}: {nothing_fits(batch)}"
    if not batch.changed:
        return f"No {_NOTHING[batch.verb].format(of=of)}"
    noun = "task" if batch.changed == 1 else "tasks"
    return f"{batch.changed:,} new {noun}{of}" if batch.verb == TaskVerb.MAKE else f"{batch.changed:,} {noun}{of} {_DONE[batch.verb]}"


def nothing_fits(batch: TaskBatch) -> str:
    """Why a batch had no items to go through."""
    question = batch.question
    chosen = choosing.in_words(question.project, batch.items)
    other = Kind.TEXT if question.kind == Kind.IMAGE else Kind.IMAGE
    wanted, given = ("pictures", "texts") if question.kind == Kind.IMAGE else ("texts", "pictures")
    if batch.verb != TaskVerb.MAKE:
        return f"none of {chosen} has an open task"
    if choosing.items(question.project, other, batch.items).exists():
        return f"{question.title} is asked of {wanted}, and {chosen} are {given}"
    return f"{chosen} hold no {wanted[:-1]} that can be asked about"


_DONE: dict[str, str] = {TaskVerb.PUT_FIRST: "put first", TaskVerb.PUT_BACK: "put back in line"}
_NOTHING: dict[str, str] = {
    TaskVerb.MAKE: "new task{of}: all of them were there already",
    TaskVerb.PUT_FIRST: "task{of} moved: they are begun, settled, or first already",
    TaskVerb.PUT_BACK: "task{of} moved: none of them waits at the front",
}


# ---------------------------------------------------------------- the work
def _items(question: Question, verb: str, items: str, seeds: bool, metadata: Mapping[str, Any]) -> QuerySet[Any]:
    """The items to make tasks for; or the tasks to move, in the order of their rank."""
    drawn = items.startswith("sample:")  # the draw has decided about seeds
    found = sampling.population(question.project, question.kind, items, metadata, seeds=seeds or drawn or verb != TaskVerb.MAKE)
    if verb == TaskVerb.MAKE:
        return found.order_by("pk")
    tasks = Task.objects.filter(question=question, state=TaskState.OPEN).order_by("rank", "pk")
    return tasks if items == choosing.ALL and not metadata else tasks.filter(item__in=found)


def _work(batch: TaskBatch) -> None:
    question = batch.question
    found = _items(question, batch.verb, batch.items, batch.seeds, batch.metadata)
    do = create_tasks if batch.verb == TaskVerb.MAKE else _MOVES[batch.verb]
    changed = 0
    for chunk in _chunks(found):
        new = do(question, chunk)
        changed += new
        TaskBatch.objects.filter(pk=batch.pk).update(handled=F("handled") + len(chunk), changed=F("changed") + new)
    if batch.verb == TaskVerb.MAKE and changed > CHUNK:  # a plan made for a small table would read all of a large one
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE annotation_task")


def _chunks(found: QuerySet[Any]) -> Iterator[list[int]]:
    """Ids read at once, eight bytes each: a cursor left open would outlive the short transactions between."""
    ids = list(found.values_list("pk", flat=True))
    for first in range(0, len(ids), CHUNK):
        yield ids[first : first + CHUNK]


_MOVES: dict[str, Callable[[Question, Sequence[int]], int]] = {
    TaskVerb.PUT_FIRST: steering.put_first,
    TaskVerb.PUT_BACK: steering.put_back,
}


def _finish(batch: TaskBatch, state: TaskBatchState, error: str = "") -> None:
    TaskBatch.objects.filter(pk=batch.pk).update(state=state, error=error[:500], finished_at=Now())
