"""How well a score detects what people call positive: counts, precision, recall, F1, and the curves over all thresholds.

A decision is positive where the score is at least the threshold. Intervals are bootstraps over groups of items (a seed and
what was derived from it), because items of one group are not independent.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from curation.stats.intervals import CONFIDENCE, Estimate, Floats, Ints, resamples, with_interval

Bools = npt.NDArray[np.bool_]
DRAWS = 2000
CURVE_DRAWS = 1000
_STEPS = 200  # of the threshold grid, and again of the score's own quantiles

NO_ITEMS = "No item has both a yes-or-no label from people and a score."
NO_CALLS = "The machine calls nothing positive at this threshold."
NO_POSITIVES = "People called none of these items positive."
NO_F1 = "F1 needs precision and recall, and one of them is undefined."


@dataclass(frozen=True)
class Judged:
    """What people and a machine said of the same n items.

    truth (n,): people call it positive; score (n,): the machine's number; group (n,): a number for what it was derived
    from, its own when nothing; weight (n,): the inverse of its probability of being drawn, all 1 in a plain sample.
    """

    truth: Bools
    score: Floats
    group: Ints
    weight: Floats

    def __len__(self) -> int:
        return int(self.truth.size)

    @property
    def weighted(self) -> bool:
        return bool(np.ptp(self.weight) > 1e-9 * self.weight.max()) if len(self) else False

    @property
    def groups(self) -> int:
        return int(np.unique(self.group).size)

    def where(self, mask: Bools) -> "Judged":
        return Judged(self.truth[mask], self.score[mask], self.group[mask], self.weight[mask])


@dataclass(frozen=True)
class Decisions:
    """The scores at one threshold. The four counts are items, never weighted; the estimates are, where weights differ."""

    threshold: float
    tp: int
    fp: int
    fn: int
    tn: int
    precision: Estimate
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True)
class Sweep:
    """Figures at every threshold of a grid. Each array is (t,) with nan where undefined; bands are (t, 2)."""

    thresholds: Floats
    precision: Floats
    recall: Floats
    f1: Floats
    precision_band: Floats
    recall_band: Floats
    f1_band: Floats


@dataclass(frozen=True)
class Curve:
    """Precision against recall. recall, precision (p,): the curve; band_recall (b,), band (b, 2): its interval at a given recall."""

    recall: Floats
    precision: Floats
    band_recall: Floats
    band: Floats
    average_precision: Estimate
    positive_share: float


def decisions(judged: Judged, threshold: float, *, draws: int = DRAWS, seed: int = 0) -> Decisions:
    """Counts and estimates at one threshold, with bootstrap intervals over groups.

    >>> j = Judged(np.array([True, True, False, False]), np.array([.9, .2, .8, .1]), np.arange(4), np.ones(4))
    >>> d = decisions(j, 0.5, draws=20)
    >>> d.tp, d.fp, d.fn, d.tn, d.precision.value, d.f1.value
    (1, 1, 1, 1, 0.5, 0.5)
    """
    called = judged.score >= threshold
    cells = np.stack([judged.truth & called, ~judged.truth & called, judged.truth & ~called, ~judged.truth & ~called], axis=1)
    tp, fp, fn, tn = (int(count) for count in cells.sum(axis=0))
    if not len(judged):
        nothing = Estimate.undefined(NO_ITEMS)
        return Decisions(threshold, 0, 0, 0, 0, nothing, nothing, nothing)
    weighted = judged.weighted
    units = _sums_by_group(judged.group, cells * (judged.weight if weighted else np.ones(len(judged)))[:, None])
    patterns, times = np.unique(units, axis=0, return_counts=True)
    point = _rates(patterns, times[None, :].astype(np.float64))
    blocks = [_rates(patterns, weights) for weights in resamples(times, draws, seed)]
    independent = len(units) == len(judged) and not weighted

    def estimate(which: int, n: int, reason: str, proportion: int | None) -> Estimate:
        value = float(point[which][0])
        if np.isnan(value):
            return Estimate.undefined(reason, n)
        replicates = np.concatenate([block[which] for block in blocks])
        return with_interval(value, replicates, n, units=len(units), proportion=proportion if independent else None)

    return Decisions(
        threshold, tp, fp, fn, tn,
        precision=estimate(0, tp + fp, NO_CALLS, tp + fp),
        recall=estimate(1, tp + fn, NO_POSITIVES, tp + fn),
        f1=estimate(2, tp + fp + fn, NO_F1, None),
    )  # fmt: skip


def curves(judged: Judged, *, draws: int = CURVE_DRAWS, seed: int = 0) -> tuple[Sweep, Curve] | None:
    """The threshold sweep and the precision-recall curve with their bands; None when people called nothing positive.

    Points of the curve and the average precision are scikit-learn's, exact. Bands come from scores sorted into at most a few
    hundred steps, far finer than the bands are wide.
    """
    from sklearn.metrics import average_precision_score, precision_recall_curve  # noqa: PLC0415 - heavy, and most pages do without

    if not judged.truth.any():
        return None
    weight = judged.weight if judged.weighted else np.ones(len(judged))
    thresholds = _grid(judged.score)
    cells, times = _cells_by_unit(judged, weight, thresholds)
    point = _sweep(cells, times[None, :].astype(np.float64), thresholds.size)
    blocks = [_sweep(cells, weights, thresholds.size) for weights in resamples(times, draws, seed)]
    precision, recall, f1 = (np.concatenate([block[k] for block in blocks]) for k in range(3))
    precisions, recalls, _ = precision_recall_curve(judged.truth, judged.score, sample_weight=weight, drop_intermediate=True)
    exact = float(average_precision_score(judged.truth, judged.score, sample_weight=weight))
    at_recall = np.linspace(0.02, 1, 50)
    band = _precision_at(precision, recall, at_recall)
    area = with_interval(exact, _areas(precision, recall), len(judged), units=int(times.sum()))
    thin = np.unique(np.linspace(0, recalls.size - 1, 400).astype(int))
    return (
        Sweep(thresholds, point[0][0], point[1][0], point[2][0], _band(precision), _band(recall), _band(f1)),
        Curve(recalls[thin], precisions[thin], at_recall, _band(band), area, float(weight[judged.truth].sum() / weight.sum())),
    )


def _rates(patterns: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Precision, recall and F1 (draws,) of patterns (p, 4) under weights (draws, p); nan where undefined."""
    tp, fp, fn, _ = (weights @ patterns).T
    return _from_counts(tp, fp, fn)


def _from_counts(tp: Floats, fp: Floats, fn: Floats) -> tuple[Floats, Floats, Floats]:
    precision, recall = _divide(tp, tp + fp), _divide(tp, tp + fn)
    f1 = np.where(np.isnan(precision) | np.isnan(recall), np.nan, _divide(2 * tp, 2 * tp + fp + fn))
    return precision, recall, f1


def _divide(above: Floats, below: Floats) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0))


def _sums_by_group(group: Ints, columns: Floats) -> Floats:
    """(groups, columns): the columns of each group's items, added up."""
    found, codes = np.unique(group, return_inverse=True)
    return np.stack([np.bincount(codes, weights=column, minlength=found.size) for column in columns.T], axis=1)


def _grid(score: Floats) -> Floats:
    """Thresholds, ascending: even steps over [0, 1] (or the scores' own range) and the quantiles of the scores."""
    low, high = float(min(0.0, score.min())), float(max(1.0, score.max()))
    quantiles = np.quantile(score, np.linspace(0, 1, _STEPS + 1), method="nearest")
    return np.unique(np.concatenate([np.linspace(low, high, _STEPS + 1), quantiles]))


def _cells_by_unit(judged: Judged, weight: Floats, thresholds: Floats) -> tuple[sparse.csr_array, Ints]:
    """(units, 2 (t + 1)) weights by truth and by how many thresholds the score reaches, and how often each unit occurs.

    Lone items of weight 1 in the same cell are one unit that occurs many times; every larger group is a unit of its own.
    """
    steps = thresholds.size + 1
    cell = np.searchsorted(thresholds, judged.score, side="right") + steps * (~judged.truth)
    _, group, sizes = np.unique(judged.group, return_inverse=True, return_counts=True)
    lone = (sizes[group] == 1) & (weight == 1)
    cells, times = np.unique(cell[lone], return_counts=True)
    _, others = np.unique(group[~lone], return_inverse=True)
    rows = np.concatenate([np.arange(cells.size), cells.size + others])
    units = cells.size + (int(others.max()) + 1 if others.size else 0)
    values = np.concatenate([np.ones(cells.size), weight[~lone]])
    matrix = sparse.csr_array((values, (rows, np.concatenate([cells, cell[~lone]]))), shape=(units, 2 * steps))
    return matrix, np.concatenate([times, np.ones(units - cells.size, dtype=np.int64)])


def _sweep(cells: sparse.csr_array, weights: Floats, size: int) -> tuple[Floats, Floats, Floats]:
    """Precision, recall and F1, each (draws, t)."""
    sums = (cells.T @ weights.T).T
    reached = np.cumsum(sums.reshape(len(weights), 2, size + 1)[:, :, ::-1], axis=2)[:, :, ::-1]
    tp, fp = reached[:, 0, 1:], reached[:, 1, 1:]
    return _from_counts(tp, fp, reached[:, 0, :1] - tp)


def _areas(precision: Floats, recall: Floats) -> Floats:
    """Average precision (draws,): the sum over thresholds of precision times the recall it adds."""
    added = recall - np.concatenate([recall[:, 1:], np.zeros((len(recall), 1))], axis=1)
    return np.asarray((np.nan_to_num(precision) * added).sum(axis=1))


def _precision_at(precision: Floats, recall: Floats, wanted: Floats) -> Floats:
    """(draws, wanted): precision at the highest threshold that still reaches each recall. Recall falls along thresholds."""
    found = np.full((len(precision), wanted.size), np.nan)
    for draw in range(len(precision)):
        if not np.isnan(recall[draw, 0]):
            found[draw] = precision[draw, np.searchsorted(-recall[draw], -wanted + 1e-12, side="right") - 1]
    return found


def _band(replicates: Floats) -> Floats:
    """(t, 2) percentile intervals of (draws, t); nan where most replicates are undefined."""
    ends = [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2]
    band = np.full((replicates.shape[1], 2), np.nan)
    usable = 2 * np.isnan(replicates).sum(axis=0) <= len(replicates)
    if usable.any():
        band[usable] = np.nanquantile(replicates[:, usable], ends, axis=0).T
    return band
