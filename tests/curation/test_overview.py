"""How a project stands, against counts made by hand."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from annotation import people, questions, rounds
from annotation.disputes import next_dispute, rule, rule_blind
from annotation.models import FlagReason, Item, Question, Role, TaskState, Vote
from annotation.presets import NATURALNESS
from annotation.questions import GuidelineText
from annotation.queue import cast_vote, flag, next_work
from curation import overview as module
from curation.models import ImportBatch
from curation.overview import overview
from curation.stats.intervals import wilson
from curation.views.overview import bars
from scoring.models import RunState, ScoringRun
from tests.annotation.api import Program
from tests.cast import Cast, make_items, make_project, make_question, make_tasks
from tests.curation.settled import make_scorer


def answer(cast: Cast, question: Question, ballots: list[str], **more: object) -> None:
    """Votes of alice, dave and erin through the queue: "yyn" is yes, yes, no on one task. The queue chooses the tasks."""
    choices = {choice.hotkey: choice.value for choice in question.choices.all()}
    for ballot in ballots:
        for voter, key in zip((cast.alice, cast.dave, cast.erin), ballot, strict=False):
            work = next_work(voter, question)
            cast_vote(voter, work[0].token, choice=choices[key], **more)  # type: ignore[arg-type]


@pytest.fixture
def question(cast: Cast) -> Question:
    """Six tasks: two say yes, one says no, one is disputed and one ruled yes, one is open with one vote."""
    question = make_question(cast.project)
    make_tasks(question, 6)
    answer(cast, question, ["yyy", "yyy", "nnn", "yyn", "ynn", "y"], elapsed_ms=4000)
    dispute = next_dispute(cast.charlie, question)
    assert dispute is not None
    rule_blind(cast.charlie, dispute.token, choice="yes")
    rule(cast.charlie, dispute.token, choice="yes", reason="guideline_gap", note="Says nothing of geese.")
    return question


def test_tasks_votes_and_labels_are_what_one_counts_by_hand(cast: Cast, question: Question) -> None:
    asked = overview(cast.project).questions[0]
    assert asked.states == {"agreed": 3, "adjudicated": 1, "disputed": 1, "open": 1}
    assert (asked.tasks, asked.votes, asked.votes_wanted, asked.abstentions) == (6, 16, 18, 0)
    assert asked.sources == {"unanimous": 3, "adjudicated": 1}
    assert [(label.value, label.count) for label in asked.labels] == [("yes", 3), ("no", 1)]
    assert (asked.settled, asked.guideline_gaps, asked.provisional) == (4, 1, True)
    positives = asked.positives
    assert (positives.choice, positives.k, positives.n, positives.share) == ("Yes", 3, 4, 0.75)
    assert (positives.low, positives.high) == wilson(3, 4)


def test_unsure_labels_stand_beside_the_ratio(cast: Cast) -> None:
    question = make_question(cast.project, "naturalness", choices="yes no unsure")
    make_tasks(question, 4)
    answer(cast, question, ["yyy", "nnn", "uuu", "uuu"])
    asked = overview(cast.project).questions[0]
    assert (asked.positives.k, asked.positives.n, asked.positives.unsure) == (1, 2, 2)
    assert not asked.provisional


def test_the_share_that_stands_for_all_is_that_of_harm(cast: Cast) -> None:
    safe_first = make_question(cast.project, "safety", choices="safe harmful unsure")
    make_tasks(safe_first, 3)
    answer(cast, safe_first, ["sss", "sss"])
    found = overview(cast.project).questions[0]
    assert (found.positives.choice, found.positives.k, found.positives.n) == ("Harmful", 0, 2)
    assert [(label.value, label.share) for label in found.labels] == [("safe", 1.0), ("harmful", 0.0), ("unsure", None)]
    tagged = make_question(cast.project, "harm", choices="safe bad")
    tagged.choices.filter(value="bad").update(tag_use="required")
    assert overview(cast.project).questions[1].positives.choice == "Bad"


def test_votes_that_were_struck_out_are_told_beside(cast: Cast, question: Question) -> None:
    rounds.void_votes(cast.dave, question, by=cast.bob, why="Guessed.")
    found = overview(cast.project)
    dave = next(person for person in found.people.annotators if person.number == cast.dave.number)
    assert (dave.votes, dave.voided) == (0, 5)
    assert sum(person.votes for person in found.people.annotators) == sum(hour.votes for hour in found.hours) == 11
    assert {person.number: (person.votes_cast, person.votes_voided) for person in people.members(cast.project)}[cast.dave.number] == (0, 5)


def test_what_the_sums_leave_out_is_said(cast: Cast, question: Question, bob: Client) -> None:
    retired, again, longer = question.tasks.filter(state=TaskState.AGREED).order_by("pk")
    rounds.retire(question, [retired.pk])
    rounds.reopen(question, [again.pk])
    question.tasks.filter(state=TaskState.OPEN).update(votes_required=5)
    asked = overview(cast.project).questions[0]
    assert (asked.votes, asked.votes_retired, asked.votes_earlier) == (10, 3, 3)
    assert (asked.least_votes, asked.most_votes) == (3, 5)
    page = bob.get("/p/study/").content.decode()
    assert "3 more on retired tasks; 3 more of earlier rounds" in page
    assert "3 to 5 a task" in page
    assert longer.votes_required == 3


def test_nothing_settled_is_none_and_not_zero(cast: Cast) -> None:
    make_tasks(make_question(cast.project), 2)
    positives = overview(cast.project).questions[0].positives
    assert (positives.share, positives.low, positives.high, positives.percents) == (None, None, None, None)


def test_retired_tasks_count_for_nothing(cast: Cast) -> None:
    question = make_question(cast.project, votes=1)
    tasks = make_tasks(question, 3)
    answer(cast, question, ["y"])
    question.tasks.filter(vote_count=1).update(state=TaskState.RETIRED)
    asked = overview(cast.project).questions[0]
    assert (asked.tasks, asked.votes, asked.settled, len(tasks)) == (2, 0, 0, 3)


def test_items_and_imports_are_counted(cast: Cast) -> None:
    make_items(cast.project, 3)
    Item.objects.create(project=cast.project, kind="image", external_id="p1", content_hash=b"0" * 32)
    ended = timezone.now()
    shared = {"project": cast.project, "filename": "a.csv", "path": "", "file_hash": "0", "size": 1, "format": "csv"}
    ImportBatch.objects.create(**shared, state="done", finished_at=ended)
    ImportBatch.objects.create(**shared, state="running")
    items = overview(cast.project).items
    assert (items.total, items.kinds, items.imports, items.importing, items.last_import) == (4, {"text": 3, "image": 1}, 1, 1, ended)


def test_votes_an_hour_end_with_this_hour_and_leave_out_what_came_in_files(cast: Cast, question: Question) -> None:
    now = timezone.now()
    votes = list(Vote.objects.order_by("id").values_list("pk", flat=True))
    Vote.objects.filter(pk__in=votes[:5]).update(created_at=now - timedelta(hours=3))
    Vote.objects.filter(pk=votes[5]).update(created_at=now - timedelta(days=2))
    rater = cast.project.memberships.create(role=Role.RATER, rater="r1", number=99)
    Vote.objects.filter(pk=votes[6]).update(member=rater)
    hours = overview(cast.project).hours
    assert len(hours) == 24
    assert hours[-1].at == now.replace(minute=0, second=0, microsecond=0)
    assert (hours[-1].votes, hours[-4].votes, sum(hour.votes for hour in hours)) == (9, 5, 14)


def test_annotators_by_votes_with_the_median_of_their_times(cast: Cast, question: Question) -> None:
    for vote, ms in zip(cast.dave.votes.order_by("id"), (1000, 2000, 9000, None, None), strict=True):
        Vote.objects.filter(pk=vote.pk).update(elapsed_ms=ms)
    cast.erin.votes.update(elapsed_ms=None)
    people = overview(cast.project).people
    found = [(who.pseudonym, who.votes, who.votes_today, who.median_s) for who in people.annotators]
    assert found == [
        (f"Annotator {cast.alice.number}", 6, 6, 4.0),
        (f"Annotator {cast.dave.number}", 5, 5, 2.0),
        (f"Annotator {cast.erin.number}", 5, 5, None),
    ]
    assert (people.roles, people.voters, people.raters) == ({"annotator": 3, "adjudicator": 1, "researcher": 1}, 3, 0)


def test_what_needs_someone_is_said_in_order(cast: Cast, question: Question) -> None:
    work = next_work(cast.dave, question)[0]
    flag(cast.dave, work.task_id, FlagReason.WRONG)
    questions.create_question(cast.project, NATURALNESS)
    scorer = make_scorer(cast, {})
    ScoringRun.objects.create(project=cast.project, scorer=scorer, state=RunState.FAILED, error="No weights.")
    assert [(need.kind, f"{need.what} {need.why}") for need in overview(cast.project).needs] == [
        ("failed_runs", "1 run has failed"),
        ("disputes", "1 dispute of Toxicity waits for an adjudicator"),
        ("guideline_gaps", "1 ruling names a gap in version 1 of the Toxicity guideline"),
        ("flags", "1 flag on tasks of Toxicity, from those who label"),
        ("no_tasks", "Naturalness has no tasks yet, so annotators see nothing of it"),
    ]


def test_a_gap_is_closed_by_the_next_version_of_the_guideline(cast: Cast, question: Question) -> None:
    questions.new_guideline_version(question, GuidelineText("Of geese too."), after=1)
    assert "guideline_gaps" not in [need.kind for need in overview(cast.project).needs]


def test_another_project_changes_nothing(cast: Cast, question: Question) -> None:
    before = overview(cast.project)
    other = make_project("third")
    make_tasks(make_question(other), 5)
    after = overview(cast.project)
    assert (before.items, before.questions, before.people, before.needs) == (after.items, after.questions, after.people, after.needs)


def test_what_is_slow_to_count_is_kept_and_what_is_quick_is_not(cast: Cast, question: Question, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOW", 1e9)  # nothing is slow
    overview(cast.project)
    make_tasks(question, 1)
    assert overview(cast.project).questions[0].tasks == 7
    monkeypatch.setattr(module, "SLOW", -1.0)  # everything is, and so slow that it is kept as long as anything
    monkeypatch.setattr(module, "SHARE", 1e-9)
    overview(cast.project)
    make_tasks(question, 1)
    assert overview(cast.project).questions[0].tasks == 7
    cache.clear()
    assert overview(cast.project).questions[0].tasks == 8


# ---------------------------------------------------------------- the page
@pytest.fixture
def bob(cast: Cast, sign_in) -> Client:  # type: ignore[no-untyped-def]
    return sign_in(cast.bob)  # type: ignore[no-any-return]


def test_an_empty_project_says_what_to_do_first_and_shows_no_tables(bob: Client) -> None:
    page = bob.get("/p/study/").content.decode()
    assert "What to do first" in page
    assert "pictures from a folder" in page
    for step in ("Import a file", "Make a question", "Make tasks"):
        assert step in page
    assert "<table" not in page
    assert "Votes an hour" not in page
    assert page.count("btn--primary") == 1


def test_steps_that_are_done_are_ticked(cast: Cast, bob: Client) -> None:
    make_items(cast.project, 1)
    page = bob.get("/p/study/").content.decode()
    assert page.count('<span class="badge badge--ok">done</span>') == 2  # items are there, and annotators
    assert "Make a question</a>" in page


def test_the_page_shows_the_figures_and_no_contents(cast: Cast, bob: Client, question: Question) -> None:
    question.tasks.filter(state=TaskState.DISPUTED).update(settled_at=timezone.now() - timedelta(hours=5, minutes=20))
    page = bob.get("/p/study/").content.decode()
    assert "<b>1 dispute</b> of Toxicity waits for an adjudicator, for 5\xa0hours</span>" in page
    assert '<b>75.0%</b> <span class="ci">30–95</span><span class="sub">3 of 4</span>' in page
    assert "provisional" in page
    assert '<td class="n">5</td>' in page  # tasks with all votes: three of them unanimous
    assert "<b>0.60</b>" in page
    assert "What to do first" not in page
    assert "mild text" not in page
    assert "style=" not in page


def test_the_refresh_is_the_live_part_alone(bob: Client, question: Question) -> None:
    part = bob.get("/p/study/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert "From items to ground truth" in part


def test_a_queue_that_nobody_listens_to_is_said_in_words(cast: Cast, bob: Client) -> None:
    scorer = make_scorer(cast, {})
    ScoringRun.objects.create(project=cast.project, scorer=scorer, state=RunState.QUEUED, total=5)
    assert "<b>1 run waits on the cpu queue</b> and no worker listens to it" in bob.get("/p/study/").content.decode()


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("charlie", 403), ("mallory", 404)])
def test_others_are_refused(cast: Cast, sign_in, who: str, status: int) -> None:  # type: ignore[no-untyped-def]
    assert sign_in(getattr(cast, who)).get("/p/study/").status_code == status


def test_bars_reach_from_the_axis_to_the_top_mark(cast: Cast, question: Question) -> None:
    drawn = bars(overview(cast.project).hours)
    assert drawn.total == 16
    assert [number for _, _, number in drawn.marks] == [0, 10, 20]
    assert (drawn.bars[-1].y, drawn.bars[-1].height) == ("30.4", "81.6")  # 16 of 20, of 102 units
    assert drawn.bars[0].height == "0.0"


# ---------------------------------------------------------------- API and command
def test_api_and_command_say_the_same(cast: Cast, question: Question) -> None:
    over_api = Program(cast.bob).get("overview/").json()
    out = StringIO()
    call_command("overview", "study", "--json", stdout=out)
    printed = json.loads(out.getvalue())
    assert printed["questions"] == over_api["questions"]
    assert over_api["questions"][0]["states"] == {"agreed": 3, "adjudicated": 1, "disputed": 1, "open": 1}
    assert over_api["people"] == printed["people"]
    assert over_api["unheard_queues"] == []


def test_the_command_in_words(cast: Cast, question: Question) -> None:
    out = StringIO()
    call_command("overview", "study", stdout=out)
    assert "16 of 18 votes" in out.getvalue()
    assert "Yes: 75.0% (30 to 95) of 4 labels" in out.getvalue()
    with pytest.raises(CommandError, match="There is no project"):
        call_command("overview", "nothing")
