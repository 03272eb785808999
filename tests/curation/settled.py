"""Questions with votes and ground truth written straight into the tables, for tests of what is made of them."""

import uuid
from collections.abc import Sequence

from django.utils import timezone

from annotation.models import Adjudication, GroundTruth, Item, Membership, Question, Source, Task, TaskState, Vote
from scoring.models import Score, Scorer
from tests.cast import Cast, make_items


def settle(cast: Cast, question: Question, items: Sequence[Item], ballots: Sequence[str]) -> list[Task]:
    """A task for each item, voted on as its ballot says: "yyn" is two for the choice with hotkey y, one for n.

    The tasks of unanimous ballots are agreed; others are disputed, and adjudicated when " > n" follows. A ballot with too few
    votes stays open.
    """
    choices = {choice.hotkey: choice for choice in question.choices.all()}
    guideline = question.guidelines.first()
    voters: list[Membership] = [cast.alice, cast.dave, cast.erin]
    tasks = []
    for number, (item, ballot) in enumerate(zip(items, ballots, strict=True)):
        votes, _, ruling = ballot.partition(" > ")
        complete = len(votes) == question.votes_required
        agreed = complete and len(set(votes)) == 1
        state = TaskState.OPEN if not complete else TaskState.AGREED if agreed else TaskState.ADJUDICATED if ruling else TaskState.DISPUTED
        task = Task.objects.create(
            question=question, item=item, state=state, votes_required=question.votes_required, vote_count=len(votes), rank=number,
            settled_at=timezone.now() if complete else None,
        )  # fmt: skip
        for voter, hotkey in zip(voters, votes, strict=False):
            Vote.objects.create(
                task=task, question=question, member=voter, round=1, choice=choices[hotkey], guideline=guideline, token=uuid.uuid4()
            )
        if ruling:
            Adjudication.objects.create(
                task=task, question=question, member=cast.charlie, round=1, guideline=guideline, token=uuid.uuid4(),
                choice=choices[ruling], reason="clear_error", ruled_at=timezone.now(),
            )  # fmt: skip
        if agreed or ruling:
            source = Source.UNANIMOUS if agreed else Source.ADJUDICATED
            truth = choices[ruling or votes[0]]
            GroundTruth.objects.create(task=task, question=question, item=item, round=1, choice=truth, source=source, guideline=guideline)
        tasks.append(task)
    return tasks


def make_scorer(cast: Cast, scores: dict[Item, float], *, name: str = "judge", version: int = 1) -> Scorer:
    """A scorer whose one score, "toxicity", is what it is told."""
    scorer = Scorer.objects.create(
        project=cast.project,
        name=name,
        version=version,
        kind="test",
        fingerprint=f"{name}{version}".ljust(64, "0"),
        score_names=["toxicity"],
    )
    Score.objects.bulk_create(Score(scorer=scorer, item=item, name="toxicity", value=value) for item, value in scores.items())
    return scorer


# Eight items, by hand at threshold 0.5: tp 2, fn 1, fp 1, tn 1; one unsure above; one labelled without a score; one still open.
BALLOTS = ["yyy", "yyn > y", "yyy", "nnn", "nnn", "uuu", "nnn", "yn"]
SCORES = [0.9, 0.8, 0.2, 0.7, 0.1, 0.6, None, 0.9]


def make_story(cast: Cast, question: Question) -> tuple[list[Item], Scorer]:
    """BALLOTS and SCORES on eight new items."""
    items = make_items(cast.project, 8, start=cast.project.items.count())
    settle(cast, question, items, BALLOTS)
    return items, make_scorer(cast, {item: score for item, score in zip(items, SCORES, strict=True) if score is not None})
