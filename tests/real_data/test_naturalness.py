"""Naturalness judged by people: 2,265 learners' sentences with five votes in one cell, and 200 texts with ten votes in rows."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from annotation.models import GroundTruth, Item, Project, Vote
from curation.importing.mapping import Mapping
from curation.importing.votes import Votes
from tests import cast as make
from tests.real_data.votes import bring, close, disputed, figures, labels, three

CROWD, EXPERT = "Crowd Flower Judgements", "Expert Judgement"
GRADES = {"1": "1", "2": "2", "3": "3", "4": "4"}
NATURAL = {"1": "no", "2": "no", "3": "yes", "4": "yes"}


def listed(question: str, column: str, choices: dict[str, str], make_from: str = "answers") -> Votes:
    return Votes(question, "list", (column,), make=make_from, policy="majority", choices=choices)


SENTENCES = Mapping(
    text="Sentence", external_id="Id",
    votes=(
        listed("grade", CROWD, GRADES), listed("expert", EXPERT, GRADES), listed("natural", CROWD, NATURAL, "naturalness"),
        listed("expert-natural", EXPERT, NATURAL, "naturalness"),
    ),
)  # fmt: skip
TEXTS = Votes(
    question="real", form="long", columns=("Answer.sentiment.label",), make="answers",
    choices={"Real": "real", "Computer-altered": "altered"},
)  # fmt: skip


@pytest.fixture
def project(db: None) -> Project:
    return make.make_project("natural")


def test_graded_sentences_with_lists_of_votes(project: Project, data: Path, facts: dict[str, Any]) -> None:
    said = facts["naturalness_a"]["gug_train_dev"]
    done = bring(project, data / "naturalness" / "gug_train_dev.tsv", SENTENCES, quotes=False)
    assert (done.created, [one["votes"] for one in done.votes]) == (said["rows"], [11325, 2265, 11325, 2265])
    given = Counter(Vote.objects.filter(question__slug="grade").values_list("choice__value", flat=True))
    assert given == said["values"]
    grade, crowd = figures(project, "grade"), said["crowd_agreement"]
    assert close(grade.alpha, crowd["alpha_nominal"])
    assert close(grade.pairwise, crowd["pairwise_observed_agreement"])
    assert close(grade.fleiss, crowd["fleiss"]["kappa"])

    binary = said["binarised_at_3"]
    majority = binary["majority"]["strict_majority"]
    assert labels(project, "natural") == {"yes": majority["natural"], "no": majority["unnatural"]}
    natural = figures(project, "natural")
    assert close(natural.alpha, binary["agreement"]["alpha_nominal"])
    assert close(natural.unanimous, binary["majority"]["unanimous_share"])

    truths = GroundTruth.objects.filter(question__project=project)
    crowds = dict(truths.filter(question__slug="natural").values_list("item_id", "choice__value"))
    experts = dict(truths.filter(question__slug="expert-natural").values_list("item_id", "choice__value"))
    held = Counter((label, experts[item]) for item, label in crowds.items())
    expected = binary["crowd_majority_vs_expert"]
    assert (held["yes", "yes"], held["yes", "no"], held["no", "yes"], held["no", "no"]) == tuple(
        expected[k] for k in ("tp", "fp", "fn", "tn")
    )


def test_ordered_grades_have_an_ordinal_alpha(project: Project, data: Path, facts: dict[str, Any]) -> None:
    question = make.make_question(project, "grade", choices="1 2 3 4", policy="majority", ordered=True)
    votes = Votes("grade", "list", (CROWD,), choices=GRADES)
    bring(project, data / "naturalness" / "gug_train_dev.tsv", Mapping(text="Sentence", external_id="Id", votes=(votes,)), quotes=False)
    said = facts["naturalness_a"]["gug_train_dev"]["crowd_agreement"]
    assert close(figures(project, question.slug).alpha_ordinal, said["alpha_ordinal"])


def test_rows_of_votes_without_raters_share_their_text(project: Project, data: Path, facts: dict[str, Any]) -> None:
    said = facts["naturalness_a"]["section3"]
    done = bring(
        project, data / "naturalness" / "non_suspicious_results.csv", Mapping(text="Input.text", votes=(TEXTS, three(TEXTS, "first")))
    )
    assert (done.rows, done.created, done.votes[0]["votes"]) == (said["votes"], said["texts"], said["votes"])
    majority = said["majority"]
    assert labels(project, "real") == {name: majority["strict_majority"][name] for name in ("real", "altered")}
    assert disputed(project, "real") == majority["strict_majority"]["no_majority"]
    found = figures(project, "real")
    assert close(found.alpha, said["agreement"]["alpha_nominal"])
    assert close(found.pairwise, said["agreement"]["pairwise_observed_agreement"])
    assert close(found.unanimous, majority["unanimous_share"])
    assert (found.fleiss_votes, found.fleiss_left_out) == (10, said["agreement"]["fleiss"]["items_left_out"])
    assert close(found.fleiss, said["agreement"]["fleiss"]["kappa"])

    rule = said["rule_3plus1"]
    assert done.votes[1]["states"] == {"agreed": rule["unanimous"], "disputed": rule["to_adjudication"]}
    assert labels(project, "first") == rule["unanimous_labels"]

    original = {item.pk: item.metadata["Input.original"] for item in Item.objects.filter(project=project)}
    assert Counter(original.values()) == {"True": said["gold"]["real"], "False": said["gold"]["altered"]}
    right = sum(
        (choice == "real") == (original[item] == "True")
        for item, choice in Vote.objects.filter(question__slug="real").values_list("task__item_id", "choice__value")
    )
    assert right / said["votes"] == pytest.approx(said["vote_accuracy"], abs=1e-4)
    truths = dict(GroundTruth.objects.filter(question__slug="real").values_list("item_id", "choice__value"))
    called = Counter((original[item] == "False", truths.get(item) == "altered") for item in original)
    expected = said["detect_altered_majority_no_majority_counts_as_not_altered"]
    assert (called[True, True], called[False, True], called[True, False], called[False, False]) == tuple(
        expected[name] for name in ("tp", "fp", "fn", "tn")
    )


def test_sentences_that_come_without_votes_come_without_votes(project: Project, data: Path) -> None:
    """CoLA has one label a sentence and no header: its first sentence names the columns."""
    path = data / "naturalness" / "cola_in_domain_dev.tsv"
    lines = path.read_text().splitlines()
    names = lines[0].split("\t")
    done = bring(project, path, Mapping(text=names[3], metadata=(names[1],)), quotes=False)
    assert (done.created, done.votes) == (len(lines) - 1, [])
    assert json.dumps(Item.objects.filter(project=project).first().metadata).count(":") == 1  # type: ignore[union-attr]
