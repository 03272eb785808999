"""Agreement on published votes, against figures computed elsewhere (facts.json) and in the papers themselves."""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.stats.agreement import Agreement, agreement, shares
from curation.stats.dawid_skene import DawidSkene, dawid_skene
from curation.stats.raters import majority

NEAR = 1e-4


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def of_counters(items: list[Counter[str]]) -> Agreement:
    names = sorted({name for item in items for name in item})
    return agreement([[item[name] for name in names] for item in items], draws=200)


def check(found: Agreement, facts: dict[str, Any]) -> None:
    """Against a block of facts: {items, votes, alpha_nominal, pairwise_observed_agreement, fleiss}."""
    assert (found.items, found.votes) == (facts["items"], facts["votes"])
    assert found.alpha.value == pytest.approx(facts["alpha_nominal"], abs=NEAR)
    assert found.pairwise.value == pytest.approx(facts["pairwise_observed_agreement"], abs=NEAR)
    assert found.fleiss.value == pytest.approx(facts["fleiss"]["kappa"], abs=NEAR)
    assert (found.fleiss_votes, found.fleiss.n) == (facts["fleiss"]["raters_per_item"], facts["fleiss"]["items_used"])
    assert found.fleiss_left_out == facts["fleiss"]["items_left_out"]
    for estimate in (found.alpha, found.pairwise, found.fleiss, found.ac1):
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.value is not None
        assert estimate.low < estimate.value < estimate.high


def test_fleiss_1971(data: Path, facts: dict[str, Any]) -> None:
    found = of_counters([Counter(row.values()) for row in rows(data / "classic/fleiss1971_diagnoses.csv")])
    told = facts["classic_a_fleiss1971"]
    assert found.fleiss.value == pytest.approx(0.430, abs=5e-4)
    assert found.fleiss.value == pytest.approx(told["fleiss"]["kappa"], abs=1e-6)
    assert found.alpha.value == pytest.approx(told["alpha_nominal"], abs=1e-6)
    assert found.unanimous.value == pytest.approx(told["majority"]["unanimous_share"], abs=1e-6)


def test_davidson_in_three_classes_and_as_toxic_or_not(data: Path, facts: dict[str, Any]) -> None:
    table = np.array(
        [[int(row[name]) for name in ("hate_speech", "offensive_language", "neither")] for row in rows(data / "davidson/labeled_data.csv")]
    )
    told = facts["davidson"]
    found = agreement(table, draws=200)
    check(
        found,
        {
            "items": told["rows"], "votes": told["votes"], "alpha_nominal": told["alpha_nominal_3class"],
            "pairwise_observed_agreement": told["pairwise_observed_agreement"], "fleiss": told["fleiss_3_vote_items"],
        },
    )  # fmt: skip
    assert found.unanimous.value == pytest.approx(told["unanimous_share"], abs=1e-6)
    toxic = np.stack([table[:, 0] + table[:, 1], table[:, 2]], axis=1)
    assert agreement(toxic, draws=20).alpha.value == pytest.approx(told["alpha_nominal_toxic_vs_not"], abs=NEAR)
    three = table[table.sum(axis=1) == 3]
    # The two figures that the issue names.
    found = agreement(three, draws=20)
    assert found.alpha.value == pytest.approx(0.549476, abs=1e-6)
    assert found.disputed.value == pytest.approx(told["exactly_3_adjudication_share"], abs=1e-5)
    found = agreement(toxic[table.sum(axis=1) == 3], draws=20)
    assert found.alpha.value == pytest.approx(0.732430, abs=1e-6)
    assert found.disputed.value == pytest.approx(told["toxic_binary"]["exactly_3_adjudication_share"], abs=1e-5)


def test_five_hundred_raters_on_a_hundred_comments(data: Path, facts: dict[str, Any]) -> None:
    told = facts["toxicity_gender"]
    found = rows(data / "toxicity_gender/pilot_annotations.csv")
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for row in found:
        votes[row["comment"]][row["answer"]] += 1
    check(of_counters(list(votes.values())), told["agreement"])
    for attribute in ("gender", "politic"):
        for value, rate in told[f"vote_rate_by_{attribute}"].items():
            by_comment: dict[str, Counter[str]] = defaultdict(Counter)
            for row in found:
                if row[attribute] == value:
                    by_comment[row["comment"]][row["answer"]] += 1
            toxic = shares([[counts["1"], counts["-1"]] for counts in by_comment.values()], draws=50)[0]
            assert (toxic.value, toxic.n) == (pytest.approx(rate["rate"], abs=NEAR), rate["n"])


# ---------------------------------------------------------------- Adversarial Nibbler
def nibbler(data: Path, kind: str) -> list[tuple[int, str, str]]:
    """(pair, rater, answer) in the file's order: the two votes that repeat a rater are in it."""
    votes, pair = [], 0
    for part in ("dev", "train"):
        held = json.loads((data / f"nibbler_r1/round1_submitted_{part}.json").read_text())
        for key in held["validation"]:
            for vote in map(json.loads, held["validation"][key]):
                (answer,) = vote[f"{kind}_safety_validation"]
                votes.append((pair, vote["annotator_id"], answer.removeprefix(f"{kind}_")))
            pair += 1
    return votes


COARSE = 1e-7


def fitted(votes: Sequence[tuple[int, str, str]], **options: float) -> tuple[DawidSkene, list[str], np.ndarray]:
    """The model on each rater's first vote on a pair, the answers' names, and the strict majorities."""
    first: dict[tuple[int, str], str] = {}
    for pair, rater, answer in votes:
        first.setdefault((pair, rater), answer)
    pairs = [pair for pair, _ in first]
    raters = np.unique([rater for _, rater in first], return_inverse=True)[1]
    names, answers = np.unique(list(first.values()), return_inverse=True)
    fit = dawid_skene(pairs, raters, answers, choices=len(names), **options)
    return fit, names.tolist(), majority(pairs, answers, choices=len(names))


@pytest.mark.parametrize("kind", ["text", "image"])
def test_nibbler_agrees_as_told_with_the_repeated_votes(data: Path, facts: dict[str, Any], kind: str) -> None:
    told = facts["nibbler_r1"][kind]
    votes: dict[int, Counter[str]] = defaultdict(Counter)
    for pair, _, answer in nibbler(data, kind):
        votes[pair][answer] += 1
    found = of_counters(list(votes.values()))
    check(found, told["agreement"])
    assert found.unanimous.value == pytest.approx(told["majority"]["unanimous_share"], abs=1e-6)


@pytest.mark.parametrize("kind", ["text", "image"])
def test_dawid_and_skene_label_nibbler_as_told(data: Path, facts: dict[str, Any], kind: str) -> None:
    """The facts were computed to a thousandth of the app's precision."""
    told = facts["nibbler_r1"][kind]
    fit, names, strict = fitted(nibbler(data, kind), tolerance=COARSE)
    assert fit.converged
    assert fit.log_likelihood == pytest.approx(told["dawid_skene"]["log_likelihood"], abs=NEAR)
    assert {name: int((fit.labels == k).sum()) for k, name in enumerate(names)} == told["dawid_skene"]["labels"]
    for k, name in enumerate(names):
        assert fit.priors[k] == pytest.approx(told["dawid_skene"]["class_priors"][name], abs=NEAR)
    assert fit.unsure == told["dawid_skene"]["items_with_posterior_below_0p99"]
    assert int((fit.labels != strict).sum()) == told["dawid_skene"]["differs_from_strict_majority"]
    assert {name: int((strict == k).sum()) for k, name in enumerate(names)} == {
        name: told["strict_majority_first_vote_per_rater_only"][name] for name in names
    }


@pytest.mark.parametrize("kind", ["text", "image"])
def test_run_on_a_thousand_times_finer_it_comes_to_crowd_kits_converged_labels(data: Path, facts: dict[str, Any], kind: str) -> None:
    told = facts["nibbler_r1"][kind]["dawid_skene"]
    coarse, names, _ = fitted(nibbler(data, kind), tolerance=COARSE)
    fine, _, _ = fitted(nibbler(data, kind))
    assert {name: int((fine.labels == k).sum()) for k, name in enumerate(names)} == told["crowdkit_200_iterations_no_early_stop"]["labels"]
    assert fine.log_likelihood > coarse.log_likelihood
    assert int((fine.labels != coarse.labels).sum()) == told["items_where_own_and_converged_crowdkit_differ"]


# ---------------------------------------------------------------- naturalness, pictures
def test_real_or_altered_reviews(data: Path, facts: dict[str, Any]) -> None:
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows(data / "naturalness/non_suspicious_results.csv"):
        votes[row["Input.text"]][row["Answer.sentiment.label"]] += 1
    told = facts["naturalness_a"]["section3"]
    found = of_counters(list(votes.values()))
    check(found, told["agreement"])
    assert found.unanimous.value == pytest.approx(told["majority"]["unanimous_share"], abs=1e-6)


def test_grammaticality_on_four_ordered_grades(data: Path, facts: dict[str, Any]) -> None:
    with (data / "naturalness/gug_train_dev.tsv").open(encoding="utf-8", newline="") as file:
        judged = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    column = next(name for name in judged[0] if name.startswith("Crowd"))
    grades = [Counter(json.loads(row[column].strip('"'))) for row in judged]
    table = np.array([[counts[grade] for grade in (1, 2, 3, 4)] for counts in grades])
    told = facts["naturalness_a"]["gug_train_dev"]
    found = agreement(table, order=range(4), draws=50)
    check(found, told["crowd_agreement"])
    assert found.alpha_ordinal is not None
    assert found.alpha_ordinal.value == pytest.approx(told["crowd_agreement"]["alpha_ordinal"], abs=NEAR)
    binary = agreement(np.stack([table[:, :2].sum(axis=1), table[:, 2:].sum(axis=1)], axis=1), draws=50)
    check(binary, told["binarised_at_3"]["agreement"])


def test_fifty_people_on_two_hundred_small_pictures(data: Path, facts: dict[str, Any]) -> None:
    told = facts["images_a"]
    found = rows(data / "images/cifar10h_counts.csv")
    classes = [name for name in found[0] if name.startswith("n_")]
    table = np.array([[int(row[name]) for name in classes] for row in found])
    ten = agreement(table, draws=50)
    assert (ten.items, ten.votes) == (told["images"], told["votes"])
    assert ten.alpha.value == pytest.approx(told["alpha_nominal_10_classes"], abs=NEAR)
    assert ten.unanimous.value == told["unanimous_10"] / told["images"]
    assert agreement(table, policy="majority", draws=20).disputed.value == told["no_strict_majority_10"] / told["images"]
    animals = np.array([name[2:] in ("bird", "cat", "deer", "dog", "frog", "horse") for name in classes])
    two = agreement(np.stack([table[:, animals].sum(axis=1), table[:, ~animals].sum(axis=1)], axis=1), draws=50)
    assert two.alpha.value == pytest.approx(told["alpha_nominal_animal_vs_vehicle"], abs=NEAR)
