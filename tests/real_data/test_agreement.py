"""Agreement on published votes, against figures computed elsewhere (facts.json) and in the papers themselves."""

import csv
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.stats.agreement import Agreement, agreement

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
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows(data / "toxicity_gender/pilot_annotations.csv"):
        votes[row["comment"]][row["answer"]] += 1
    check(of_counters(list(votes.values())), facts["toxicity_gender"]["agreement"])
