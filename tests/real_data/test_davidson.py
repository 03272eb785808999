"""24,783 labelled tweets with vote counts (Davidson et al. 2017), played as a study and loaded as one."""

import csv
import random
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from annotation.imported import RaterVote, import_votes
from annotation.models import GroundTruth, Item, Membership, Project, Question, Role, Task, Vote
from curation import agreement
from curation.importing import service
from curation.importing.mapping import Mapping
from curation.stats.intervals import Estimate
from tests import cast as make

PLAYED = 500
RATERS = 3
CLASSES = ("hate", "offensive", "neither")  # in the file's order, 0 1 2


class Tweet:
    """One row. `votes` lists its raters' classes: hate first, then offensive, then neither."""

    def __init__(self, row: dict[str, str]) -> None:
        self.external_id = row[""]
        counts = (int(row["hate_speech"]), int(row["offensive_language"]), int(row["neither"]))
        self.votes = [name for name, count in zip(CLASSES, counts, strict=True) for _ in range(count)]
        self.label = CLASSES[int(row["class"])]


def toxic(label: str) -> str:
    return "no" if label == "neither" else "yes"


@pytest.fixture(scope="module")
def tweets(data: Path) -> dict[str, Tweet]:
    with (data / "davidson" / "labeled_data.csv").open(newline="", encoding="utf-8") as file:
        return {tweet.external_id: tweet for tweet in map(Tweet, csv.DictReader(file))}


@pytest.fixture
def project(db: None) -> Project:
    return make.make_project("davidson", seed=2017)


@pytest.fixture
def items(project: Project, data: Path, tweets: dict[str, Tweet]) -> dict[str, int]:
    """The tweets, brought in by the import that researchers use: external id -> item."""
    batch = service.take(project, data / "davidson" / "labeled_data.csv", None)
    service.start(batch, Mapping(text="tweet", external_id=""))
    done = service.run(batch.pk)
    assert (done.state, done.created, done.bad) == ("done", len(tweets), 0)
    return dict(Item.objects.filter(project=project).values_list("external_id", "pk"))


def estimate(figure: Estimate) -> float:
    assert figure.value is not None
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low <= figure.value <= figure.high
    return figure.value


# ---------------------------------------------------------------- played through HTTP
class Rater:
    """A signed-in person who answers what the queue hands out, as one of the file's raters did."""

    def __init__(self, address: str, member: Membership, question: Question, answers: dict[int, str]) -> None:
        self.http = httpx.Client(base_url=address, headers={"Accept": "application/json"}, timeout=30)
        self.home, self.question, self.answers = f"/p/{member.project.slug}/", question.slug, answers
        self.http.get("/sign-in/")
        signed_in = self.post_form("/sign-in/", login=member.user.username, password=make.PASSWORD)
        assert signed_in.status_code == 302, signed_in.text
        self.work: list[dict[str, Any]] = self.http.get(f"{self.home}label/{self.question}/next/").json()["work"]

    def post_form(self, path: str, **fields: str) -> httpx.Response:
        return self.http.post(
            path, data={**fields, "csrfmiddlewaretoken": self.http.cookies["assay_csrf"]}, headers={"Accept": "text/html"}
        )

    def answer_one(self) -> bool:
        if not self.work:
            return False
        task = self.work[0]
        answer = self.http.post(
            f"{self.home}vote/",
            json={"token": task["token"], "choice": self.answers[task["item"]], "tags": [], "comment": "", "elapsed_ms": 1500},
            headers={"X-CSRFToken": self.http.cookies["assay_csrf"]},
        )
        assert answer.status_code == 200, answer.text
        self.work = answer.json()["work"]
        return True


def adjudicate(member: Membership, question: Question, labels: dict[int, str]) -> int:
    """Rule on every dispute through the API, by the file's own class; returns how many."""
    client = Client(headers={"Accept": "application/json"})
    client.force_login(member.user)
    root, ruled = f"/api/v1/projects/{member.project.slug}/", 0
    while (dispute := client.post(f"{root}questions/{question.slug}/disputes/", {}, "application/json").json()["dispute"]) is not None:
        ruling = {"token": dispute["token"], "choice": labels[dispute["item_id"]], "tags": []}
        opened = client.post(f"{root}rulings/blind/", ruling, "application/json").json()
        assert len(opened["votes"]) == RATERS
        assert client.post(f"{root}rulings/", {**ruling, "reason": "ambiguous", "note": ""}, "application/json").status_code < 300
        ruled += 1
    return ruled


@pytest.mark.django_db(transaction=True)
def test_five_hundred_tweets_played_by_three_people_and_an_adjudicator_come_out_as_computed(
    live_server: LiveServer, project: Project, items: dict[str, int], tweets: dict[str, Tweet]
) -> None:
    three = sorted((tweet.external_id for tweet in tweets.values() if len(tweet.votes) == RATERS), key=int)
    chosen = [tweets[key] for key in random.Random(500).sample(three, PLAYED)]
    question = make.make_question(project)
    make.create_tasks(question, [items[tweet.external_id] for tweet in chosen])
    # Which of the three gave which vote is not in the file; shuffled per tweet, so that no person is one class.
    dice = random.Random(3)
    given = {items[tweet.external_id]: dice.sample([toxic(vote) for vote in tweet.votes], RATERS) for tweet in chosen}

    raters = [
        Rater(
            live_server.url,
            make.make_member(project, f"rater{seat}", Role.ANNOTATOR),
            question,
            {item: votes[seat] for item, votes in given.items()},
        )
        for seat in range(RATERS)
    ]
    while sum(rater.answer_one() for rater in raters):
        pass

    # The independent word on it: plain Python over the file.
    unanimous = {item for item, votes in given.items() if len(set(votes)) == 1}
    labels = {items[tweet.external_id]: toxic(tweet.label) for tweet in chosen}
    assert Vote.objects.count() == PLAYED * RATERS
    assert Counter(Task.objects.values_list("state", flat=True)) == {"agreed": len(unanimous), "disputed": PLAYED - len(unanimous)}
    charlie = make.make_member(project, "charlie", Role.ADJUDICATOR)
    assert adjudicate(charlie, question, labels) == PLAYED - len(unanimous)

    final = {truth.item_id: (truth.choice.value, truth.source) for truth in GroundTruth.objects.select_related("choice")}
    expected = {item: (given[item][0], "unanimous") if item in unanimous else (label, "adjudicated") for item, label in labels.items()}
    assert final == expected

    figures = agreement.of_question(question).figures
    assert estimate(figures.unanimous) == pytest.approx(len(unanimous) / PLAYED)
    assert estimate(figures.alpha) == pytest.approx(krippendorff(list(given.values())), abs=1e-9)
    assert estimate(figures.fleiss) == pytest.approx(fleiss(list(given.values())), abs=1e-9)


def fleiss(votes: list[list[str]]) -> float:
    """Fleiss 1971, by its formula."""
    n = len(votes[0])
    agreeing = [sum(count * (count - 1) for count in Counter(one).values()) / (n * (n - 1)) for one in votes]
    shares = [count / (n * len(votes)) for count in Counter(vote for one in votes for vote in one).values()]
    by_chance = sum(share * share for share in shares)
    return (sum(agreeing) / len(votes) - by_chance) / (1 - by_chance)


def krippendorff(votes: list[list[str]]) -> float:
    """Nominal alpha, by its coincidence matrix."""
    pairs: Counter[tuple[str, str]] = Counter()
    for one in votes:
        for first, left in enumerate(one):
            for second, right in enumerate(one):
                if first != second:
                    pairs[left, right] += 1 / (len(one) - 1)  # type: ignore[assignment]
    margins: Counter[str] = Counter()
    for (left, _), weight in pairs.items():
        margins[left] += weight  # type: ignore[assignment]
    total = sum(margins.values())
    observed = sum(weight for (left, right), weight in pairs.items() if left != right) / total
    expected = sum(margins[left] * margins[right] for left in margins for right in margins if left != right) / (total * (total - 1))
    return 1 - observed / expected


# ---------------------------------------------------------------- the whole set
@pytest.mark.django_db
def test_the_whole_set_settles_as_the_facts_say(
    project: Project, items: dict[str, int], tweets: dict[str, Tweet], facts: dict[str, Any]
) -> None:
    said = facts["davidson"]
    classes = make.make_question(project, "class", policy="majority", choices=" ".join(CLASSES))
    done = load(classes, items, tweets.values(), lambda vote: vote)
    assert (done.votes, done.tasks) == (said["votes"], said["rows"])
    labels = Counter(GroundTruth.objects.filter(question=classes).values_list("choice__value", flat=True))
    assert labels == {name: said["strict_majority"][name] for name in CLASSES}
    assert done.states["disputed"] == said["strict_majority"]["no_majority"]
    wrong = sum(
        tweets[key].label != label
        for key, label in GroundTruth.objects.filter(question=classes).values_list("item__external_id", "choice__value")
    )
    assert wrong == said["class_differs_from_strict_majority"]
    figures = agreement.of_question(classes).figures
    assert estimate(figures.alpha) == pytest.approx(said["alpha_nominal_3class"], abs=1e-4)
    assert estimate(figures.pairwise) == pytest.approx(said["pairwise_observed_agreement"], abs=1e-4)
    assert estimate(figures.unanimous) == pytest.approx(said["unanimous_share"], abs=1e-4)

    binary = make.make_question(project, "toxic", policy="majority")
    done = load(binary, items, tweets.values(), toxic)
    labels = Counter(GroundTruth.objects.filter(question=binary).values_list("choice__value", flat=True))
    assert labels == {"yes": said["toxic_binary"]["strict_majority_toxic"], "no": said["toxic_binary"]["strict_majority_not"]}
    assert done.states["disputed"] == said["toxic_binary"]["tie"]
    assert estimate(agreement.of_question(binary).figures.alpha) == pytest.approx(said["alpha_nominal_toxic_vs_not"], abs=1e-4)


@pytest.mark.django_db
def test_the_tweets_with_three_votes_agree_as_far_as_the_facts_say(
    project: Project, items: dict[str, int], tweets: dict[str, Tweet], facts: dict[str, Any]
) -> None:
    said = facts["davidson"]
    three = [tweet for tweet in tweets.values() if len(tweet.votes) == RATERS]
    assert len(three) == said["items_with_exactly_3"] == 22807
    for slug, name_of, alpha, unanimous in (
        ("class", lambda vote: vote, 0.549476, said["exactly_3_unanimous"]),
        ("toxic", toxic, 0.732430, said["toxic_binary"]["exactly_3_unanimous"]),
    ):
        question = make.make_question(project, slug, choices=" ".join(CLASSES) if slug == "class" else "yes no")
        done = load(question, items, three, name_of)
        assert done.states == {"agreed": unanimous, "disputed": len(three) - unanimous}
        figures = agreement.of_question(question).figures
        assert estimate(figures.alpha) == pytest.approx(alpha, abs=1e-6)
        if slug == "class":
            assert estimate(figures.fleiss) == pytest.approx(said["fleiss_3_vote_items"]["kappa"], abs=1e-4)


def load(question: Question, items: dict[str, int], tweets: Any, name_of: Any) -> Any:
    """Every vote as one of a numbered rater's: the first vote of each tweet is rater 1's, and so on."""
    return import_votes(
        question,
        (
            RaterVote(items[tweet.external_id], f"rater {seat + 1}", name_of(vote))
            for tweet in tweets
            for seat, vote in enumerate(tweet.votes)
        ),
    )
