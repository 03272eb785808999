"""Many processes on one queue at once, killed at random; then the ten invariants are read off the tables.

Each process is one browser tab: it leases, votes, sends twice, sits on tasks until they run out, votes late, revises,
abstains, flags, gives back and rules, and writes down what was acknowledged. Every member has two tabs. A researcher
meanwhile brings in votes from files, writes guidelines, switches the question off and on, retires tasks, re-opens them in new
rounds, strikes out votes and lifts quarantines. The clock of leases is
pushed from outside. A tab that dies by SIGKILL is replaced.
"""

import json
import multiprocessing
import os
import random
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet

from annotation import disputes, known, questions, queue, rounds
from annotation.errors import Refused
from annotation.imported import RaterVote, import_votes
from annotation.models import Adjudication, Check, GroundTruth, Item, Lease, Membership, Question, Role, Task, TaskState, VoidedVote, Vote
from annotation.resolution import Ballot, resolve
from annotation.tasks import create_tasks
from tests import cast as make

FORK = multiprocessing.get_context("fork")
ANNOTATORS = 7
CHOICES = ["yes", "no"]


# ---------------------------------------------------------------- one tab
class Tab:
    """What one process does until it is killed or told to stop."""

    def __init__(self, member: Membership, question: Question, seed: int, log: Path) -> None:
        self.member, self.question = member, question
        self.dice = random.Random(seed)
        self.log = log.open("a", buffering=1)
        self.old_tokens: list[object] = []
        self.votes: list[int] = []

    def run(self, until: float) -> None:
        connection.connection = None  # the parent's; its socket must not be closed from here
        while time.monotonic() < until:
            try:
                self.act()
            except Refused:
                continue
            except Exception:  # noqa: BLE001 - whatever it is, the storm must hear of it
                self.write("error", detail=traceback.format_exc())
                os._exit(1)
        os._exit(0)

    def act(self) -> None:
        if self.member.role == Role.RESEARCHER:
            self.research()
        elif self.member.role == Role.ADJUDICATOR and self.dice.random() < 0.5:
            self.rule()
        else:
            self.label()

    def label(self) -> None:
        work = queue.next_work(self.member, self.question)
        if not work:
            time.sleep(0.02)
            return
        token, act = work[0].token, self.dice.random()
        if act < 0.05:
            self.old_tokens += [held.token for held in work]
            time.sleep(0.1)
        elif act < 0.10 and self.old_tokens:
            self.vote(self.old_tokens.pop(self.dice.randrange(len(self.old_tokens))))
        elif act < 0.14:
            queue.abstain(self.member, token, "cannot_judge")
        elif act < 0.18:
            queue.release(self.member, self.question)
        elif act < 0.185:
            queue.flag(self.member, work[0].task_id, "illegal")
        elif act < 0.28 and self.votes:
            vote, choice = self.votes[-1], self.choice()
            self.write("revising", vote=vote, choice=choice)
            queue.revise_vote(self.member, vote, choice=choice)
            self.write("revised", vote=vote, choice=choice)
        else:
            receipt = self.vote(token)
            if self.dice.random() < 0.3:
                again = queue.cast_vote(self.member, token, choice=self.choice())
                assert again.vote_id == receipt.vote_id, "a second sending made another vote"

    def vote(self, token: object) -> queue.Receipt:
        receipt = queue.cast_vote(self.member, token, choice=self.choice())
        self.write("vote", vote=receipt.vote_id, choice=receipt.choice, token=str(token))
        self.votes.append(receipt.vote_id)
        return receipt

    def rule(self) -> None:
        dispute = disputes.next_dispute(self.member, self.question)
        if dispute is None:
            return
        if self.dice.random() < 0.2:
            disputes.give_back(self.member, dispute.token)
            return
        disputes.rule_blind(self.member, dispute.token, choice=self.choice())
        disputes.rule(self.member, dispute.token, choice=self.choice(), reason="ambiguous")
        self.write("ruling", task=dispute.task_id)

    def research(self) -> None:
        act = self.dice.random()
        if act < 0.5:
            self.revise_history()
        elif act < 0.8:
            few = list(Task.objects.filter(question=self.question, state="open").order_by("-rank")[:40])
            chosen = self.dice.sample(few, min(3, len(few)))  # none when all are settled
            import_votes(self.question, [RaterVote(task.item_id, f"rater {self.dice.randrange(9)}", self.choice()) for task in chosen])
        elif act < 0.9:
            latest = questions.current_guideline(self.question).version
            questions.new_guideline_version(self.question, questions.GuidelineText(f"Judge with care {latest}."), after=latest)
        else:
            questions.set_active(self.question, False)
            questions.set_active(self.question, True)
        time.sleep(0.1)

    def revise_history(self) -> None:
        """Retire, ask anew, strike out, lift: over a few tasks at once, open and held ones too."""
        act = self.dice.random()
        settled = Task.objects.filter(question=self.question, item__quarantined=False)
        if act < 0.3:
            rounds.reopen(self.question, self.few(settled.exclude(state="open"), 5))
        elif act < 0.4:
            rounds.retire(self.question, self.few(settled, 2))
        elif act < 0.5:
            version = questions.current_guideline(self.question).version
            rounds.reopen_affected(self.question, self.dice.choice(["gaps", "disputed"]), version=version)
        elif act < 0.9:
            for vote in self.few(Vote.objects.filter(question=self.question), 2):
                rounds.void_vote(vote, by=self.member, why="The storm.")
        elif act < 0.92:
            for task in Task.objects.filter(pk__in=self.few(settled.filter(state="open"), 1)):
                known.mark(self.question, task.item_id, choice="yes", practice=self.dice.random() < 0.2, by=self.member)
        elif act < 0.94:
            member = Membership.objects.get(pk=self.dice.choice(self.few(Membership.objects.filter(project=self.question.project), 50)))
            rounds.void_votes(member, self.question, by=self.member, why="The storm, all of them.")
        else:
            for item in Item.objects.filter(quarantined=True).order_by("pk")[:1]:
                rounds.lift_quarantine(item, by=self.member, why="It was the storm.")

    def few(self, found: QuerySet[Any], count: int) -> list[int]:
        ids = list(found.values_list("pk", flat=True))
        return self.dice.sample(ids, min(count, len(ids)))

    def choice(self) -> str:
        return self.dice.choices(CHOICES, [3, 1])[0]

    def write(self, what: str, **fields: object) -> None:
        self.log.write(json.dumps({"what": what, "member": self.member.pk, **fields}) + "\n")


# ---------------------------------------------------------------- the storm
def storm(question: Question, members: list[Membership], log: Path, *, seconds: float) -> int:
    """Run two tabs a member for so long, killing and replacing them; returns how many were killed."""
    until = time.monotonic() + seconds
    seeds = iter(range(10**9))

    def open_tab(member: Membership) -> Any:
        process = FORK.Process(target=Tab(member, question, next(seeds), log).run, args=(until,))
        process.start()
        return process

    tabs = [(member, open_tab(member)) for member in members for _ in range(2)]
    try:
        return _kill_and_replace(tabs, open_tab, until)
    finally:
        for _, process in tabs:
            process.kill()


def _kill_and_replace(tabs: list[tuple[Membership, Any]], open_tab: Callable[[Membership], Any], until: float) -> int:
    dice, killed = random.Random(11), 0
    while time.monotonic() < until:
        time.sleep(0.1)
        place = dice.randrange(len(tabs))
        member, process = tabs[place]
        assert process.is_alive() or time.monotonic() > until, "a tab failed by itself; its error is in the log"
        process.kill()
        process.join()
        killed += 1
        tabs[place] = (member, open_tab(member))
        with connection.cursor() as cursor:  # time passes for some leases
            cursor.execute(
                "UPDATE annotation_lease SET expires_at = now() WHERE id IN "
                "(SELECT id FROM annotation_lease WHERE NOT lapsed AND random() < 0.15 FOR UPDATE SKIP LOCKED)"
            )
    for _, process in tabs:
        process.join(20)
        assert process.exitcode == 0, "a tab hung or failed"
    return killed


def read(log: Path) -> list[dict[str, object]]:
    """Whole lines only: a killed process may leave half of one, which acknowledges nothing."""
    entries = []
    for line in log.read_text().splitlines():
        try:
            entries.append(json.loads(line))
        except ValueError:
            continue
    return entries


def drain(question: Question, members: list[Membership]) -> None:
    """After the storm, people go on in peace until nothing waits."""
    Lease.objects.update(expires_at="2020-01-01T00:00:00Z")
    questions.set_active(question, True)  # a researcher may have been killed between off and on
    question.refresh_from_db()
    busy = True
    while busy:
        busy = False
        for member in members:
            for held in queue.next_work(member, question)[:1]:
                queue.cast_vote(member, held.token, choice="yes")
                busy = True


# ---------------------------------------------------------------- the proof
def assert_invariants(question: Question) -> None:
    tasks = list(
        Task.objects.filter(question=question).prefetch_related("votes__choice", "leases", "truths", "adjudications", "voided_votes")
    )
    for task in tasks:
        votes = [vote for vote in task.votes.all() if vote.round == task.round]
        live = [lease for lease in task.leases.all() if lease.kind == "vote" and not lease.lapsed]
        current = [truth for truth in task.truths.all() if truth.superseded_at is None]
        assert (task.vote_count, task.lease_count) == (len(votes), len(live)), f"{task}: counts are off"
        assert len(votes) + len(live) <= task.votes_required
        assert len({vote.member_id for vote in votes}) == len(votes)
        if task.state == TaskState.OPEN:
            assert len(votes) < task.votes_required, f"{task} is complete and waits"
            assert task.abstention_count < queue.ABSTENTIONS_TO_DISPUTE
            assert not current
        elif task.state == TaskState.AGREED:
            agreed = resolve(question.policy, [Ballot(vote.choice.value) for vote in votes])
            assert [truth.choice.value for truth in current] == [agreed.choice]
        elif task.state == TaskState.DISPUTED:
            assert not current
            assert task.abstention_count >= 3 or resolve(question.policy, [Ballot(vote.choice.value) for vote in votes]) is None
        elif task.state == TaskState.RETIRED:
            assert not current
            assert not live
        else:
            (ruling,) = [ruling for ruling in task.adjudications.all() if ruling.choice_id and ruling.round == task.round]
            assert [truth.choice_id for truth in current] == [ruling.choice_id]
            own = {vote.member_id for vote in [*task.votes.all(), *task.voided_votes.all()] if vote.round <= ruling.round}
            assert ruling.member_id not in own, "an adjudicator ruled on their own vote"


def assert_nobody_is_left_to_ask(question: Question, members: list[Membership]) -> None:
    """A task may only wait when all people voted, abstained or were struck out in its round, ruled on it or saw its votes."""
    for task in Task.objects.filter(question=question, state=TaskState.OPEN):
        answered = [*task.votes.filter(round=task.round), *task.voided_votes.filter(round=task.round)]
        asked = Check.objects.filter(known__task=task)
        done = {row.member_id for row in [*answered, *asked, *task.abstentions.filter(round=task.round), *task.adjudications.all()]}
        assert {member.pk for member in members} <= done, f"{task} is stuck"


def assert_nothing_acknowledged_is_lost(entries: list[dict[str, object]]) -> None:
    votes: dict[object, Any] = {vote.pk: vote for vote in Vote.objects.select_related("choice")}
    struck_out = {vote.vote_number: vote for vote in VoidedVote.objects.select_related("choice")}
    assert not votes.keys() & struck_out.keys(), "a vote counts and is struck out"
    votes |= struck_out
    votes |= {check.number: check for check in Check.objects.filter(choice__isnull=False).select_related("choice")}
    tokens = {str(vote.token) for vote in votes.values()}
    told: dict[object, set[object]] = {}
    for entry in entries:
        if entry["what"] == "vote":
            told.setdefault(entry["vote"], {entry["choice"]})
            assert votes[entry["vote"]].member_id == entry["member"]
            assert entry["token"] in tokens, "an acknowledged token is gone"
        elif entry["what"] == "revising":  # may have been killed between commit and answer
            told[entry["vote"]].add(entry["choice"])
        elif entry["what"] == "revised":
            told[entry["vote"]] = {entry["choice"]}
        elif entry["what"] == "ruling":
            assert Adjudication.objects.filter(task=entry["task"], member=entry["member"], choice__isnull=False).exists()
    for vote, choices in told.items():
        assert vote in votes, "an acknowledged vote is gone"
        if len(choices) == 1:
            assert votes[vote].choice.value in choices


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("tasks", "seconds"), [pytest.param(400, 8, id="short"), pytest.param(6000, 90, id="long", marks=pytest.mark.slow)]
)
def test_no_storm_of_processes_breaks_the_queue(tmp_path: Path, tasks: int, seconds: float) -> None:
    project = make.make_project(hourly_limit=None, daily_limit=None, benign_share=0.3)
    question = make.make_question(project, sensitive=True, check_share=0.1, repeat_share=0.2)
    make.make_tasks(question, tasks // 2)
    benign = make.make_items(project, tasks // 2, start=tasks, metadata={"sensitive": False})
    create_tasks(question, [item.pk for item in benign])
    members = [make.make_member(project, f"annotator{number}", Role.ANNOTATOR) for number in range(ANNOTATORS)]
    members += [make.make_member(project, f"adjudicator{number}", Role.ADJUDICATOR) for number in range(3)]
    researcher = make.make_member(project, "researcher", Role.RESEARCHER)
    known.mark_many(question, [known.Answer(item.pk, "yes") for item in benign[:20]], by=researcher)
    log = tmp_path / "acknowledged.jsonl"

    killed = storm(question, [*members, researcher], log, seconds=seconds)

    entries = read(log)
    assert [entry["detail"] for entry in entries if entry["what"] == "error"] == []
    assert_invariants(question)
    assert_nothing_acknowledged_is_lost(entries)
    votes, rulings = Vote.objects.count(), Adjudication.objects.exclude(choice=None).count()
    assert killed >= 3
    assert votes > 100, "too little happened to prove anything"
    assert rulings > 0
    assert VoidedVote.objects.exists()
    assert Task.objects.filter(round__gt=1).exists()
    assert Check.objects.filter(choice__isnull=False).exists()
    drain(question, members)
    assert_invariants(question)
    assert_nobody_is_left_to_ask(question, members)
    assert GroundTruth.objects.filter(superseded_at=None).count() == Task.objects.filter(state__in=["agreed", "adjudicated"]).count()
