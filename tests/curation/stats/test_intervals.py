import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from curation.stats.intervals import resamples, wilson, with_interval


@pytest.mark.parametrize(("k", "n"), [(0, 10), (1, 10), (8, 10), (10, 10), (4223, 6576)])
def test_wilson_is_that_of_statsmodels(k: int, n: int) -> None:
    assert wilson(k, n) == pytest.approx(proportion_confint(k, n, method="wilson"), abs=1e-12)


@pytest.mark.parametrize(("k", "n"), [(0, 0), (-1, 3), (4, 3)])
def test_what_is_no_proportion_is_refused(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="not a proportion"):
        wilson(k, n)


@pytest.mark.parametrize("times", [[1] * 50, [400, 300, 300]])
def test_every_resample_draws_as_many_units_as_there_are_and_the_seed_fixes_it(times: list[int]) -> None:
    rows = np.concatenate(list(resamples(times, 200, seed=1)))
    assert rows.shape == (200, len(times))
    assert (rows.sum(axis=1) == sum(times)).all()
    assert (rows == np.concatenate(list(resamples(times, 200, seed=1)))).all()
    assert (rows != np.concatenate(list(resamples(times, 200, seed=2)))).any()
    assert rows.mean(axis=0) == pytest.approx(np.array(times, dtype=float), rel=0.25)


def test_resamples_that_leave_a_figure_undefined_are_owned_up_to() -> None:
    e = with_interval(0.5, np.array([0.4, 0.5, 0.6, np.nan]), 10, units=10)
    assert e.low is not None
    assert e.note.startswith("Some resamples")
    lost = with_interval(0.5, np.array([0.5, np.nan, np.nan]), 10, units=10)
    assert lost.low is None
    assert "most resamples" in lost.note
