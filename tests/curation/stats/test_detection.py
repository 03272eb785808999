"""Precision, recall, F1 and curves, by hand and against scikit-learn."""

import time

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score

from curation.stats.detection import NO_CALLS, NO_F1, NO_ITEMS, NO_POSITIVES, Judged, curves, decisions


def judged(truth: str, scores: list[float], *, group: list[int] | None = None, weight: list[float] | None = None) -> Judged:
    """ "yyn": what people say of each item."""
    n = len(scores)
    return Judged(
        np.array([letter == "y" for letter in truth], dtype=bool), np.array(scores, dtype=float),
        np.array(group if group is not None else range(n), dtype=np.int64), np.array(weight if weight is not None else [1.0] * n),
    )  # fmt: skip


def random_judged(seed: int, n: int, groups: int | None = None) -> Judged:
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.3
    scores = np.clip(rng.normal(0.35 + 0.3 * truth, 0.2), 0, 1)
    return Judged(truth, scores, np.arange(n) if groups is None else rng.integers(0, groups, n), np.ones(n))


def test_counts_and_rates_by_hand() -> None:
    d = decisions(judged("yyynn", [0.9, 0.8, 0.2, 0.7, 0.1]), 0.5)
    assert (d.tp, d.fp, d.fn, d.tn) == (2, 1, 1, 1)
    assert d.precision.value == pytest.approx(2 / 3)
    assert d.recall.value == pytest.approx(2 / 3)
    assert d.f1.value == pytest.approx(2 / 3)
    assert (d.precision.n, d.recall.n, d.f1.n) == (3, 3, 4)


def test_a_score_equal_to_the_threshold_is_positive() -> None:
    assert decisions(judged("y", [0.5]), 0.5).tp == 1


def test_undefined_figures_say_why() -> None:
    d = decisions(judged("yn", [0.1, 0.2]), 0.5)
    assert (d.precision.value, d.precision.reason) == (None, NO_CALLS)
    assert (d.f1.value, d.f1.reason) == (None, NO_F1)
    assert d.recall.value == 0
    d = decisions(judged("nn", [0.1, 0.9]), 0.5)
    assert (d.recall.value, d.recall.reason) == (None, NO_POSITIVES)
    assert decisions(judged("", []), 0.5).precision.reason == NO_ITEMS
    assert curves(judged("nn", [0.1, 0.9])) is None
    assert curves(judged("", [])) is None


def test_a_perfect_precision_gets_wilsons_interval_and_says_so() -> None:
    d = decisions(judged("yyyn", [0.9, 0.8, 0.7, 0.1]), 0.5)
    assert d.precision.value == 1
    assert d.precision.low == pytest.approx(0.4385, abs=1e-4)
    assert "Wilson" in d.precision.note


def test_no_wilson_where_items_share_a_seed() -> None:
    d = decisions(judged("yyyn", [0.9, 0.8, 0.7, 0.1], group=[1, 1, 2, 2]), 0.5)
    assert d.precision.value == 1
    assert d.precision.low is None
    assert d.precision.note


def test_rates_and_average_precision_are_those_of_scikit_learn() -> None:
    j = random_judged(1, 500)
    called = j.score >= 0.5
    d = decisions(j, 0.5, draws=100)
    assert d.precision.value == pytest.approx(precision_score(j.truth, called))
    assert d.recall.value == pytest.approx(recall_score(j.truth, called))
    assert d.f1.value == pytest.approx(f1_score(j.truth, called))
    drawn = curves(j, draws=100)
    assert drawn is not None
    assert drawn[1].average_precision.value == pytest.approx(average_precision_score(j.truth, j.score))
    # The sweep goes through the same numbers.
    at = int(np.searchsorted(drawn[0].thresholds, 0.5))
    assert drawn[0].thresholds[at] == pytest.approx(0.5)
    assert drawn[0].precision[at] == pytest.approx(d.precision.value)
    assert drawn[0].recall[0] == 1


def test_weights_are_the_inverse_of_the_chance_to_be_drawn() -> None:
    # A hit that stands for 1 item and a false alarm that stands for 9: precision is 1/10, though one of two calls is right.
    d = decisions(judged("yn", [0.9, 0.9], weight=[1, 9]), 0.5)
    assert (d.tp, d.fp) == (1, 1)
    assert d.precision.value == pytest.approx(0.1)
    plain = decisions(judged("yn", [0.9, 0.9], weight=[4, 4]), 0.5)
    assert plain.precision.value == 0.5


def test_derivatives_of_one_seed_widen_the_interval() -> None:
    # The same items, in 50 groups of four alike or one by one: groups carry less information.
    rng = np.random.default_rng(2)
    truth, score = np.repeat(rng.random(50) < 0.5, 4), np.repeat(rng.random(50), 4)
    alone = decisions(Judged(truth, score, np.arange(200), np.ones(200)), 0.5)
    grouped = decisions(Judged(truth, score, np.repeat(np.arange(50), 4), np.ones(200)), 0.5)
    assert alone.precision.value == grouped.precision.value
    assert None not in (alone.precision.low, alone.precision.high, grouped.precision.low, grouped.precision.high)
    assert grouped.precision.high - grouped.precision.low > 1.6 * (alone.precision.high - alone.precision.low)  # type: ignore[operator]


def test_the_seed_fixes_every_interval() -> None:
    j = random_judged(1, 300, groups=80)
    assert decisions(j, 0.4, seed=1) == decisions(j, 0.4, seed=1)
    first, again, other = curves(j, seed=1), curves(j, seed=1), curves(j, seed=2)
    assert first is not None
    assert again is not None
    assert other is not None
    np.testing.assert_array_equal(first[1].band, again[1].band)
    assert first[1].average_precision == again[1].average_precision
    assert (first[1].band != other[1].band).any()


def test_bands_hold_the_curves() -> None:
    drawn = curves(random_judged(4, 2000))
    assert drawn is not None
    sweep, _ = drawn
    inside = (sweep.precision_band[:, 0] <= sweep.precision + 0.02) & (sweep.precision <= sweep.precision_band[:, 1] + 0.02)
    assert inside[~np.isnan(sweep.precision_band[:, 0])].mean() > 0.95


def test_scores_outside_the_unit_interval_have_their_own_thresholds() -> None:
    drawn = curves(judged("yyn", [-3.5, 4.0, -1.0]), draws=20)
    assert drawn is not None
    assert (drawn[0].thresholds[0], drawn[0].thresholds[-1]) == (-3.5, 4.0)
    assert drawn[0].recall[0] == 1


def test_a_hundred_thousand_items_in_groups_are_fast() -> None:
    j = random_judged(5, 100_000, groups=30_000)
    began = time.perf_counter()
    decisions(j, 0.5)
    curves(j)
    assert time.perf_counter() - began < 10
