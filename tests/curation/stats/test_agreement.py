"""Agreement against fractions one can check by hand, and against two other implementations."""

import krippendorff
import numpy as np
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa

from curation.stats.agreement import ALL_SAME, NO_ITEMS, NO_VOTES, ONE_CHOICE, ONE_VOTE, agreement, shares


def random_counts(seed: int, items: int = 60, choices: int = 4, most: int = 7) -> np.ndarray:
    """Between no and `most` votes an item."""
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(rng.integers(0, most + 1), rng.dirichlet(np.ones(choices))) for _ in range(items)])


def test_two_items_by_hand() -> None:
    # yes yes yes and yes yes no. Pairs that agree: 3 + 1 of 6. Shares of yes and no: 5/6 and 1/6.
    found = agreement([[3, 0], [2, 1]], draws=200)
    assert found.unanimous.value == 1 / 2
    assert found.disputed.value == 1 / 2
    assert found.pairwise.value == pytest.approx(4 / 6)
    # Fleiss: observed (1 + 1/3) / 2, by chance (5/6)^2 + (1/6)^2 = 26/36.
    assert found.fleiss.value == pytest.approx((2 / 3 - 26 / 36) / (1 - 26 / 36))
    # Alpha: 2 of 6 pairable values disagree, expected 2 * 5 * 1 / (6 * 5).
    assert found.alpha.value == pytest.approx(1 - (2 / 6) / (10 / 30))
    # AC1: by chance 2 * (5/6) * (1/6).
    assert found.ac1.value == pytest.approx((2 / 3 - 10 / 36) / (1 - 10 / 36))
    assert (found.items, found.votes, found.fleiss_votes, found.fleiss_left_out) == (2, 6, 3, 0)


def test_a_majority_is_no_dispute_where_the_policy_says_so() -> None:
    assert agreement([[2, 1], [1, 1]], policy="majority", draws=20).disputed.value == 1 / 2
    assert agreement([[2, 1], [1, 1]], policy="unanimous", draws=20).disputed.value == 1


@pytest.mark.parametrize("seed", range(5))
def test_alpha_is_that_of_the_krippendorff_package(seed: int) -> None:
    counts = random_counts(seed)
    found = agreement(counts, order=range(4), draws=10)
    rated = counts[counts.sum(axis=1) > 0]
    assert found.alpha.value == pytest.approx(krippendorff.alpha(value_counts=rated, level_of_measurement="nominal"), abs=1e-12)
    expected = krippendorff.alpha(value_counts=rated, value_domain=[0, 1, 2, 3], level_of_measurement="ordinal")
    assert found.alpha_ordinal is not None
    assert found.alpha_ordinal.value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_that_of_statsmodels(seed: int) -> None:
    counts = np.random.default_rng(seed).multinomial(5, [0.6, 0.3, 0.1], size=50)
    assert agreement(counts, draws=10).fleiss.value == pytest.approx(fleiss_kappa(counts), abs=1e-12)


def test_fleiss_takes_the_commonest_number_of_votes_and_counts_the_rest() -> None:
    found = agreement([[3, 0], [2, 1], [0, 3], [4, 1]], draws=10)
    assert (found.fleiss_votes, found.fleiss_left_out, found.fleiss.n, found.alpha.n) == (3, 1, 3, 4)
    assert found.fleiss.value == agreement([[3, 0], [2, 1], [0, 3]], draws=10).fleiss.value


def test_when_every_vote_is_the_same_kappa_and_alpha_say_why_they_are_undefined() -> None:
    found = agreement([[3, 0], [3, 0]], order=[0, 1], draws=50)
    for figure in (found.fleiss, found.alpha, found.alpha_ordinal):
        assert figure is not None
        assert (figure.value, figure.low, figure.high, figure.reason) == (None, None, None, ALL_SAME)
    # What is a share stays one; its interval is not a point.
    assert found.unanimous.value == 1
    assert found.unanimous.low == pytest.approx(0.3424, abs=1e-4)
    # AC1 is built for this case: its chance term is 0. But nothing varies, so it has no interval.
    assert (found.ac1.value, found.ac1.low) == (1, None)
    assert found.ac1.note


def test_with_one_vote_an_item_nothing_can_agree() -> None:
    found = agreement([[1, 0], [0, 1]])
    for figure in (found.unanimous, found.disputed, found.pairwise, found.fleiss, found.alpha, found.ac1):
        assert (figure.value, figure.reason) == (None, ONE_VOTE)
    assert found.fleiss_votes is None


@pytest.mark.parametrize("nothing", [[[0, 0]], np.zeros((0, 2))])
def test_without_votes_every_figure_says_so(nothing: list[list[int]]) -> None:
    found = agreement(nothing)
    assert found.items == 0
    assert {e.reason for e in (found.unanimous, found.disputed, found.pairwise, found.fleiss, found.alpha, found.ac1)} == {NO_ITEMS}


def test_one_choice_leaves_ac1_undefined() -> None:
    assert agreement([[2], [2]]).ac1.reason == ONE_CHOICE


def test_one_item_has_a_value_and_no_interval() -> None:
    found = agreement([[2, 1]])
    assert found.pairwise.value == pytest.approx(1 / 3)
    assert found.pairwise.low is None
    assert "cannot be resampled" in found.pairwise.note


def test_unsure_has_no_place_in_an_order() -> None:
    found = agreement([[2, 0, 1], [0, 2, 1]], order=[0, 1], draws=20)
    assert found.ordinal_left_out == 2
    assert found.alpha_ordinal is not None
    assert found.alpha_ordinal.value == 1


def test_the_same_seed_gives_the_same_intervals_and_counted_patterns_the_same_as_items() -> None:
    items = [[3, 0]] * 40 + [[2, 1]] * 20 + [[0, 3]] * 30
    first, again = agreement(items, seed=5), agreement(items, seed=5)
    counted = agreement([[0, 3], [2, 1], [3, 0]], [30, 20, 40], seed=5)
    assert first == again == counted
    assert first.alpha.low != agreement(items, seed=6).alpha.low


def test_the_interval_covers_what_it_should() -> None:
    # Items are drawn from a known mixture; the share unanimous of the mixture is known: 0.7.
    rng, covered = np.random.default_rng(3), 0
    for seed in range(200):
        unanimous = int(rng.binomial(200, 0.7))
        e = agreement([[3, 0], [2, 1]], [unanimous, 200 - unanimous], draws=300, seed=seed).unanimous
        covered += int((e.low or 0) <= 0.7 <= (e.high or 0))
    assert 180 <= covered <= 199


def gwet(counts: np.ndarray) -> float:
    """Gwet (2008), item by item."""
    rated = counts[counts.sum(axis=1) > 0]
    agreeing = [(row * (row - 1)).sum() / (row.sum() * (row.sum() - 1)) for row in rated if row.sum() > 1]
    shares = np.mean([row / row.sum() for row in rated], axis=0)
    chance = sum(share * (1 - share) for share in shares) / (counts.shape[1] - 1)
    return float((np.mean(agreeing) - chance) / (1 - chance))


@pytest.mark.parametrize("seed", range(5))
def test_ac1_is_that_of_gwets_formula_with_any_number_of_votes(seed: int) -> None:
    counts = random_counts(seed)
    assert agreement(counts, draws=10).ac1.value == pytest.approx(gwet(counts), abs=1e-12)


def test_shares_of_votes_with_their_intervals() -> None:
    found = shares([[3, 0], [2, 1]], [10, 10], draws=300)
    assert [one.value for one in found] == pytest.approx([5 / 6, 1 / 6])
    assert found[0].n == 60
    assert found[0].low is not None
    assert found[0].low < 5 / 6 < (found[0].high or 0)
    assert [one.reason for one in shares([[0, 0]], [1])] == [NO_VOTES, NO_VOTES]
