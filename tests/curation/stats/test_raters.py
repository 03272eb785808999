"""Raters two by two and one by one, against fractions one can check by hand and against statsmodels."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa

from annotation.resolution import Ballot, resolve
from curation.stats.raters import FEWEST_SHARED, NO_SPREAD, SAME_ANSWER, TOO_FEW_SHARED, majority, medians, pairs, settled_by_others


def two(one: str, other: str):  # type: ignore[no-untyped-def]
    """Two raters' answers to the same items, as letters."""
    letters = sorted({*one, *other})
    answers = [letters.index(letter) for letter in one + other]
    items = list(range(len(one)))
    return pairs(items + items, [0] * len(one) + [1] * len(other), answers, choices=len(letters))


def test_two_raters_by_hand() -> None:
    # Same answer 8 of 10; a says y 6 of 10, b says y 6 of 10: by chance 0.36 + 0.16 = 0.52.
    found = two("yyyyyynnnn", "yyyyynnnny")
    assert (found.n.tolist(), found.agreed.tolist()) == ([10], [8])
    assert found.observed(0).value == 0.8
    assert found.observed(0).low == pytest.approx(0.4902, abs=1e-4)
    assert found.cohen(0).value == pytest.approx((0.8 - 0.52) / 0.48)


@pytest.mark.parametrize("seed", range(5))
def test_kappa_and_its_error_are_those_of_statsmodels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    answers = rng.integers(0, 3, (4, 80))
    answers[1] = np.where(rng.random(80) < 0.7, answers[0], answers[1])
    rated = rng.random((4, 80)) < 0.8
    rater, task = np.nonzero(rated)
    found = pairs(task, rater, answers[rater, task], choices=3)
    assert len(found) == 6
    for k in range(6):
        one, other = found.first[k], found.second[k]
        both = rated[one] & rated[other]
        table = np.zeros((3, 3))
        np.add.at(table, (answers[one][both], answers[other][both]), 1)
        expected = cohens_kappa(table)
        assert found.n[k] == both.sum()
        assert found.kappa[k] == pytest.approx(expected.kappa, abs=1e-12)
        assert found.error[k] == pytest.approx(expected.std_kappa, abs=1e-12)
        assert found.cohen(k).low == pytest.approx(max(-1, expected.kappa_low), abs=1e-9)
        assert found.cohen(k).high == pytest.approx(min(1, expected.kappa_upp), abs=1e-9)


def test_what_is_undefined_says_why() -> None:
    assert two("yn", "yn").cohen(0).reason == TOO_FEW_SHARED
    same = two("y" * FEWEST_SHARED, "y" * FEWEST_SHARED)
    assert (same.cohen(0).value, same.cohen(0).reason) == (None, SAME_ANSWER)
    assert same.observed(0).value == 1
    never_apart = two("yyyyynnnnn", "yyyyynnnnn").cohen(0)
    assert (never_apart.value, never_apart.low, never_apart.note) == (1, None, NO_SPREAD)


def test_who_shares_no_item_is_no_pair() -> None:
    assert len(pairs([0, 1], [0, 1], [0, 0], choices=2)) == 0
    assert len(pairs([], [], [], choices=2)) == 0


def test_a_vote_is_held_against_what_the_others_settle() -> None:
    # Three say y, y, n under "unanimous": only the lone n leaves others who agree.
    assert settled_by_others([0, 0, 0], [1, 1, 0], choices=2, policy="unanimous").tolist() == [-1, -1, 1]
    # Under "majority" of five, y y y n n: without a y, two of four are no majority; without an n, three of four are.
    assert settled_by_others([0] * 5, [1, 1, 1, 0, 0], choices=2, policy="majority").tolist() == [-1, -1, -1, 1, 1]
    # A task with one vote has no others.
    assert settled_by_others([0], [1], choices=2, policy="majority").tolist() == [-1]


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=6), st.sampled_from(["unanimous", "majority"]))
def test_the_others_settle_by_the_rules_of_the_queue(ballots: list[list[int]], policy: str) -> None:
    task = [number for number, votes in enumerate(ballots) for _ in votes]
    choice = [vote for votes in ballots for vote in votes]
    expected = []
    for votes in ballots:
        for place in range(len(votes)):
            others = [Ballot(str(vote)) for vote in votes[:place] + votes[place + 1 :]]
            settled = resolve(policy, others) if others else None
            expected.append(-1 if settled is None else int(settled.choice))
    assert settled_by_others(task, choice, choices=3, policy=policy).tolist() == expected
    counted = [Counter(votes).most_common(1)[0] for votes in ballots]
    strict = [label if 2 * most > len(votes) else -1 for (label, most), votes in zip(counted, ballots, strict=True)]
    assert majority(task, choice, choices=3).tolist() == strict


def test_medians() -> None:
    found = medians([1, 0, 1, 1, 1], [4, 7, 1, 2, 9], 3)
    assert found.tolist()[:2] == [7, 3]
    assert np.isnan(found[2])
    assert np.isnan(medians([], [], 2)).all()
