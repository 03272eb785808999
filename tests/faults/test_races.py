"""Two requests at the same moment, one of them held in the middle of its transaction: what the second finds afterwards."""

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from django.db import connection, transaction

from annotation import disputes, queue
from annotation.imported import RaterVote, import_votes
from annotation.models import GroundTruth, Role, Task, Vote
from tests import cast as make
from tests.cast import Cast, Membership, Question

T = TypeVar("T")
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def toxicity(cast: Cast) -> Question:
    return make.make_question(cast.project)


def begin(pool: ThreadPoolExecutor, second: Callable[[], T]) -> "Future[T]":
    """`second`, begun in a thread and waiting for a lock that the caller's transaction holds."""

    def run() -> T:
        try:
            return second()
        finally:
            connection.close()

    future = pool.submit(run)
    until = time.monotonic() + 10
    while time.monotonic() < until and not future.done():
        with connection.cursor() as cursor:
            cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
            if cursor.fetchone()[0]:
                return future
        time.sleep(0.01)
    raise AssertionError("the second request did not wait for the first")


def test_a_ruling_sent_twice_at_once_is_taken_once_and_both_are_told_so(cast: Cast, toxicity: Question) -> None:
    make.make_tasks(toxicity, 1)
    for member, choice in ((cast.alice, "yes"), (cast.dave, "no"), (cast.erin, "yes")):
        queue.cast_vote(member, queue.next_work(member, toxicity)[0].token, choice=choice)
    token = disputes.next_dispute(cast.charlie, toxicity).token
    disputes.rule_blind(cast.charlie, token, choice="no")

    def rule() -> None:
        disputes.rule(cast.charlie, token, choice="no", reason="ambiguous")

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            rule()
            second = begin(pool, rule)
        assert second.exception(10) is None
    assert GroundTruth.objects.count() == 1


def test_a_task_that_votes_from_a_file_go_to_is_handed_to_nobody_meanwhile(cast: Cast, toxicity: Question) -> None:
    task = make.make_tasks(toxicity, 1)[0]
    votes = [RaterVote(task.item_id, f"rater {seat}", "yes") for seat in range(3)]

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            with connection.cursor() as cursor:  # the import has chosen its tasks when it comes to write its votes
                cursor.execute("LOCK TABLE annotation_vote IN SHARE MODE")
            importing = begin(pool, lambda: import_votes(toxicity, votes))
            assert queue.next_work(cast.alice, toxicity) == []
        assert importing.result(10).votes == 3
    task.refresh_from_db()
    assert (task.state, task.vote_count, task.lease_count) == ("agreed", 3, 0)


def test_votes_from_a_file_fill_only_the_slots_that_somebody_left_just_before(cast: Cast, toxicity: Question) -> None:
    task = make.make_tasks(toxicity, 1)[0]
    votes = [RaterVote(task.item_id, f"rater {seat}", "yes") for seat in range(3)]

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            queue.cast_vote(cast.alice, queue.next_work(cast.alice, toxicity)[0].token, choice="no")
            importing = begin(pool, lambda: import_votes(toxicity, votes))
        imported = importing.result(10)
        assert (imported.votes, imported.surplus) == (2, 1)
    task.refresh_from_db()
    assert (task.state, task.vote_count, Vote.objects.count()) == ("disputed", 3, 3)


def test_two_files_at_once_give_their_raters_different_numbers(cast: Cast, toxicity: Question) -> None:
    first, second = (task.item_id for task in make.make_tasks(toxicity, 2))
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            import_votes(toxicity, [RaterVote(first, "rater 1", "yes")])
            importing = begin(
                pool, lambda: import_votes(toxicity, [RaterVote(second, "rater 2", "yes"), RaterVote(second, "rater 1", "no")])
            )
        assert (importing.result(10).votes, importing.result().raters) == (2, 1)


def take_and_return(member: Membership, question: Question, until: float, log: Path) -> None:
    """One adjudicator's process; what goes wrong is written to the log."""
    connection.connection = None  # the parent's; its socket must not be closed from here
    taken = 0
    try:
        while time.monotonic() < until:
            if held := disputes.next_dispute(member, question):
                disputes.give_back(member, held.token)
                taken += 1
    except Exception:  # noqa: BLE001 - whatever it is, the test must hear of it
        log.write_text(traceback.format_exc())
    os._exit(0 if taken else 1)


def test_adjudicators_who_ask_at_once_each_get_a_dispute_of_their_own(cast: Cast, toxicity: Question, tmp_path: Path) -> None:
    make.make_tasks(toxicity, 50)
    Task.objects.update(state="disputed", settled_at="2026-01-01T00:00:00Z")
    people = [make.make_member(cast.project, f"adjudicator{number}", Role.ADJUDICATOR) for number in range(6)]
    until, fork = time.monotonic() + 3, multiprocessing.get_context("fork")
    processes = [fork.Process(target=take_and_return, args=(member, toxicity, until, tmp_path / str(member.pk))) for member in people]
    for process in processes:
        process.start()
    for process in processes:
        process.join(20)
    assert [log.read_text() for log in tmp_path.iterdir()] == []
    assert [process.exitcode for process in processes] == [0] * 6
