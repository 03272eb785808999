"""Estimates that say how sure they are: Wilson's interval, and the bootstrap over items or groups of items."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CONFIDENCE = 0.95
_CELLS = 4_000_000  # of one block of weights: 32 MB


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval and the number it rests on.

    `value` is None where the figure is undefined, and `reason` then says why in words. `low` and `high` are None where no
    interval can be given; `note` then says why.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str = ""
    note: str = ""

    @classmethod
    def undefined(cls, reason: str, n: int = 0) -> "Estimate":
        return cls(None, None, None, n, reason)


def wilson(k: float, n: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's score interval of k successes in n independent trials (Wilson 1927). Raises ValueError for n < 1.

    >>> [round(end, 4) for end in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    if not (n >= 1 and 0 <= k <= n):
        raise ValueError(f"{k} of {n} is not a proportion.")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    middle = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(k * (n - k) / n + z * z / 4)
    # At 0 and n the ends are exact; rounding must not push them past.
    return (0.0 if k == 0 else middle - half), (1.0 if k == n else middle + half)


def resamples(times: npt.ArrayLike, draws: int, seed: int) -> Iterator[Floats]:
    """Bootstrap weights in blocks of shape (some, len(times)), `draws` rows in all.

    `times[j]` is how many sampling units (items, or groups of items) look exactly like pattern j; each row says how often
    each pattern came up among as many units drawn with replacement. The same seed gives the same rows.
    """
    repeats = np.asarray(times, dtype=np.int64)
    total = int(repeats.sum())
    rng = np.random.default_rng(seed)
    block = max(1, min(draws, _CELLS // max(1, repeats.size)))
    # Few patterns: one multinomial draw a row. Many: counting drawn units is faster than a binomial for each pattern.
    few = 4 * repeats.size < total
    units = None if few else np.repeat(np.arange(repeats.size), repeats)
    for start in range(0, draws, block):
        rows = min(block, draws - start)
        if units is None:
            yield rng.multinomial(total, repeats / total, size=rows).astype(np.float64)
        else:
            drawn = (np.bincount(units[rng.integers(0, total, total)], minlength=repeats.size) for _ in range(rows))
            yield np.stack(list(drawn)).astype(np.float64)


def with_interval(value: float, replicates: Floats, n: int, *, units: int, proportion: float | None = None) -> Estimate:
    """The estimate with the percentile interval of its bootstrap replicates (nan where a replicate is undefined).

    `units` is how many things were resampled. `proportion` is how many independent trials `value` is a share of, when it
    is one: where every replicate came out the same, Wilson's interval stands in; without it there is none, and a note.
    """
    bare = Estimate(value, None, None, n)
    defined = replicates[~np.isnan(replicates)]
    if units < 2:
        return replace(bare, note="No interval: one item, or the items of one seed, cannot be resampled.")
    if 2 * defined.size < replicates.size:
        return replace(bare, note="No interval: the figure is undefined in most resamples.")
    low, high = (float(end) for end in np.quantile(defined, [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2]))
    if np.ptp(defined) < 1e-12:
        if proportion is None:
            return replace(bare, note="No interval: every resample gives the same value.")
        low, high = wilson(round(value * proportion), proportion)
        return replace(bare, low=low, high=high, note="Wilson's interval, because every resample gives the same value.")
    some = replicates.size - defined.size > 0.01 * replicates.size
    note = "Some resamples leave a figure undefined; its interval is of the others." if some else ""
    return replace(bare, low=low, high=high, note=note)
