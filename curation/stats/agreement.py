"""How far people agree beyond chance, from how many votes each choice got on each item.

Everything here is a function of sums over items, so items with the same votes are one pattern with a multiplicity, and the
bootstrap over items only draws new multiplicities.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curation.stats.intervals import Estimate, Floats, Ints, resamples, with_interval

DRAWS = 2000

NO_ITEMS = "No task has all its votes yet."
NO_VOTES = "There are no such votes."
ONE_VOTE = "No item has two votes, so there is nothing that could agree."
ALL_SAME = "Every vote names the same choice: chance alone would agree every time, so there is nothing to correct for."
ONE_CHOICE = "The question has only one choice."


@dataclass(frozen=True)
class Agreement:
    """All figures of one question. `alpha_ordinal` is None where the choices have no order.

    items: with at least one vote; votes: on them; fleiss_votes: the number of votes an item had to have to enter Fleiss'
    kappa, None when no item has two; fleiss_left_out: the items with another number; ordinal_left_out: the votes for choices
    that have no place in the order.
    """

    items: int
    votes: int
    unanimous: Estimate
    disputed: Estimate
    pairwise: Estimate
    fleiss: Estimate
    alpha: Estimate
    alpha_ordinal: Estimate | None
    ac1: Estimate
    fleiss_votes: int | None
    fleiss_left_out: int
    ordinal_left_out: int


def agreement(
    counts: npt.ArrayLike,
    times: npt.ArrayLike | None = None,
    *,
    policy: str = "unanimous",
    order: Sequence[int] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Agreement:
    """Agreement figures with bootstrap intervals over items.

    counts: (patterns, choices) votes for each choice; times: (patterns,) how many items voted like that, each once when
    None. policy: "unanimous" or "majority", which says what is disputed. order: the columns of choices that have an order,
    in that order, for the ordinal alpha. Items with fewer than two votes enter no figure but the chance term of AC1.

    >>> two_to_one = agreement([[3, 0], [2, 1]], draws=50)
    >>> two_to_one.unanimous.value, round(two_to_one.pairwise.value, 3)
    (0.5, 0.667)
    """
    votes = np.atleast_2d(np.asarray(counts, dtype=np.float64))
    repeats = np.ones(len(votes), dtype=np.int64) if times is None else np.asarray(times, dtype=np.int64)
    kept = (votes.sum(axis=1) > 0) & (repeats > 0) if votes.size else np.zeros(len(repeats), dtype=bool)
    patterns, which = np.unique(votes[kept], axis=0, return_inverse=True) if kept.any() else (votes[:0], np.zeros(0, dtype=np.int64))
    table = _Table(patterns, np.bincount(which, weights=repeats[kept], minlength=len(patterns)).astype(np.int64), draws, seed)
    r = table.commonest
    used = table.sizes == r if r else np.zeros(table.sizes.size, dtype=bool)
    pairs = table.sizes >= 2
    disputed = _never_unanimous if policy == "unanimous" else _no_majority
    return Agreement(
        items=int(table.repeats.sum()),
        votes=int(table.repeats @ table.sizes),
        unanimous=table.share(1 - _never_unanimous(table.votes)),
        disputed=table.share(disputed(table.votes)),
        pairwise=table.figure(lambda w: _pairwise(w[:, pairs], table.votes[pairs]), pairs),
        fleiss=table.figure(lambda w: _fleiss(w[:, used], table.votes[used], r), used),
        alpha=table.figure(lambda w: _alpha(w[:, pairs], table.votes[pairs], _nominal), pairs),
        alpha_ordinal=None if order is None else _ordinal_alpha(table, order),
        ac1=table.figure(lambda w: _ac1(w, table.votes), pairs, undefined=ONE_CHOICE),
        fleiss_votes=r or None,
        fleiss_left_out=int(table.repeats[~used].sum()),
        ordinal_left_out=0 if order is None else int(table.repeats @ (table.sizes - table.votes[:, list(order)].sum(axis=1))),
    )


def shares(counts: npt.ArrayLike, times: npt.ArrayLike | None = None, *, draws: int = DRAWS, seed: int = 0) -> list[Estimate]:
    """The share of all votes that each choice got, with bootstrap intervals over items; `n` is how many votes that are.

    counts and times as in `agreement`.

    >>> [round(one.value, 3) for one in shares([[3, 0], [2, 1]], draws=50)]
    [0.833, 0.167]
    """
    votes = np.atleast_2d(np.asarray(counts, dtype=np.float64))
    repeats = np.ones(len(votes), dtype=np.int64) if times is None else np.asarray(times, dtype=np.int64)
    sizes = votes.sum(axis=1)
    n, units = int(repeats @ sizes), int(repeats[sizes > 0].sum())
    if not n:
        return [Estimate.undefined(NO_VOTES)] * votes.shape[1]
    kept = (sizes > 0) & (repeats > 0)
    votes, repeats, sizes = votes[kept], repeats[kept], sizes[kept]
    drawn = np.concatenate([_divide(w @ votes, (w @ sizes)[:, None]) for w in resamples(repeats, draws, seed)])
    whole = repeats @ votes / n
    return [with_interval(float(whole[k]), drawn[:, k], n, units=units, proportion=units) for k in range(votes.shape[1])]


class _Table:
    """Votes by pattern, and the one set of bootstrap weights that all figures of a table share."""

    def __init__(self, votes: Floats, repeats: Ints, draws: int, seed: int) -> None:
        self.votes, self.repeats, self.draws, self.seed = votes, repeats, draws, seed
        self.sizes = votes.sum(axis=1)

    @property
    def commonest(self) -> int:
        """The number of votes, two or more, that most items have; the larger of two as common; 0 when none has two."""
        numbers = {int(size): int(self.repeats[self.sizes == size].sum()) for size in np.unique(self.sizes) if size >= 2}
        return max(numbers, key=lambda size: (numbers[size], size), default=0)

    def figure(self, measure: Callable[[Floats], Floats], used: npt.NDArray[np.bool_], *, undefined: str = ALL_SAME) -> Estimate:
        """`measure` maps weights (draws, patterns) to values (draws,), nan where undefined."""
        n = int(self.repeats[used].sum())
        if not self.repeats.size:
            return Estimate.undefined(NO_ITEMS)
        if not n:
            return Estimate.undefined(ONE_VOTE)
        value = float(measure(self.repeats[None, :].astype(np.float64))[0])
        if np.isnan(value):
            return Estimate.undefined(undefined, n)
        replicates = np.concatenate([measure(weights) for weights in resamples(self.repeats, self.draws, self.seed)])
        return with_interval(value, replicates, n, units=n)

    def share(self, marks: Floats) -> Estimate:
        """The share of items with at least two votes that carry a mark. marks: (patterns,) of 0 and 1."""
        used = self.sizes >= 2
        n = int(self.repeats[used].sum())
        if not n:
            return Estimate.undefined(ONE_VOTE if self.repeats.size else NO_ITEMS)
        value = float(self.repeats[used] @ marks[used]) / n
        replicates = np.concatenate(
            [_divide(w[:, used] @ marks[used], w[:, used].sum(axis=1)) for w in resamples(self.repeats, self.draws, self.seed)]
        )
        return with_interval(value, replicates, n, units=n, proportion=n)


def _divide(above: Floats, below: Floats) -> Floats:
    """nan where there is nothing to divide by."""
    return np.asarray(np.divide(above, below, out=np.full(np.broadcast(above, below).shape, np.nan), where=np.abs(below) > 1e-12))


def _never_unanimous(votes: Floats) -> Floats:
    return np.asarray(votes.max(axis=1, initial=0) < votes.sum(axis=1), dtype=np.float64)


def _no_majority(votes: Floats) -> Floats:
    return np.asarray(2 * votes.max(axis=1, initial=0) <= votes.sum(axis=1), dtype=np.float64)


def _agreeing_share(votes: Floats) -> Floats:
    """Per item: the share of its pairs of votes that name the same choice."""
    sizes = votes.sum(axis=1)
    return np.asarray((votes * (votes - 1)).sum(axis=1) / (sizes * (sizes - 1)))


def _pairwise(weights: Floats, votes: Floats) -> Floats:
    """Of all pairs of votes on the same item, the share that name the same choice."""
    sizes = votes.sum(axis=1)
    return _divide(weights @ (votes * (votes - 1)).sum(axis=1), weights @ (sizes * (sizes - 1)))


def _fleiss(weights: Floats, votes: Floats, r: int) -> Floats:
    """Fleiss (1971): every item has the same number of votes `r`."""
    items = weights.sum(axis=1)
    observed = _divide(weights @ _agreeing_share(votes), items)
    shares = _divide(weights @ votes, items[:, None] * r)
    expected = (shares**2).sum(axis=1)
    return _divide(observed - expected, 1 - expected)


def _ac1(weights: Floats, votes: Floats) -> Floats:
    """Gwet (2008), any number of votes an item. Its chance term is 0, not 1, when every vote is the same."""
    sizes = votes.sum(axis=1)
    choices = votes.shape[1]
    if choices < 2:
        return np.full(len(weights), np.nan)
    pairs = sizes >= 2
    observed = _divide(weights[:, pairs] @ _agreeing_share(votes[pairs]), weights[:, pairs].sum(axis=1))
    shares = _divide(weights @ (votes / sizes[:, None]), weights.sum(axis=1)[:, None])
    expected = (shares * (1 - shares)).sum(axis=1) / (choices - 1)
    return _divide(observed - expected, 1 - expected)


def _alpha(weights: Floats, votes: Floats, distance: Callable[[Floats], Floats]) -> Floats:
    """Krippendorff (2011): 1 - observed / expected disagreement, from the matrix of coincidences within items."""
    patterns, choices = votes.shape
    together = votes[:, :, None] * votes[:, None, :] - np.eye(choices) * votes[:, :, None]
    together /= (votes.sum(axis=1) - 1)[:, None, None]
    coincidences = (weights @ together.reshape(patterns, -1)).reshape(-1, choices, choices)
    margins = coincidences.sum(axis=2)
    total = margins.sum(axis=1)
    apart = distance(margins)
    observed = (coincidences * apart).sum(axis=(1, 2))
    by_chance = margins[:, :, None] * margins[:, None, :] - np.eye(choices) * margins[:, :, None]
    expected = _divide((by_chance * apart).sum(axis=(1, 2)), total - 1)
    return 1 - _divide(observed, expected)


def _nominal(margins: Floats) -> Floats:
    return np.broadcast_to(1 - np.eye(margins.shape[1]), (*margins.shape, margins.shape[1]))


def _ordinal(margins: Floats) -> Floats:
    """Squared number of votes between two ranks, half of each end counted."""
    upto = np.cumsum(margins, axis=1)
    centre = upto - margins / 2
    return np.asarray((centre[:, :, None] - centre[:, None, :]) ** 2)


def _ordinal_alpha(table: _Table, order: Sequence[int]) -> Estimate:
    """Only the votes for choices that have a place in the order; "unsure" has none."""
    votes = table.votes[:, list(order)]
    pairs = votes.sum(axis=1) >= 2
    return table.figure(lambda w: _alpha(w[:, pairs], votes[pairs], _ordinal), pairs)
