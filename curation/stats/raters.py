"""Raters one by one: how far each two of them agree, and how far each agrees with what the others settle.

Votes are given as three arrays of the same length, (task, rater, choice), each numbered from 0; a rater votes once a task.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from scipy import sparse

from curation.stats.intervals import CONFIDENCE, Estimate, Floats, Ints, wilson

# Fewer shared items than this say too little of two raters for a kappa.
FEWEST_SHARED = 10

TOO_FEW_SHARED = f"They share fewer than {FEWEST_SHARED} items."
SAME_ANSWER = "Both always gave the same one answer: chance alone would agree every time."
NO_SPREAD = "No interval: they never disagreed."
_BLOCK = 1_000_000  # votes at a time


@dataclass(frozen=True)
class Pairs:
    """Every two raters who share an item. Arrays are (pairs,), `first` < `second`.

    n: items both voted on; agreed: of these, how often they gave the same answer; kappa: Cohen (1960), nan where chance alone
    would always agree; error: its large-sample standard error (Fleiss, Cohen and Everitt 1969).
    """

    first: Ints
    second: Ints
    n: Ints
    agreed: Ints
    kappa: Floats
    error: Floats

    def __len__(self) -> int:
        return int(self.n.size)

    def observed(self, pair: int) -> Estimate:
        """Share of their items with the same answer, with Wilson's interval."""
        n, agreed = int(self.n[pair]), int(self.agreed[pair])
        return Estimate(agreed / n, *wilson(agreed, n), n)

    def cohen(self, pair: int) -> Estimate:
        """Their kappa, or why there is none."""
        n, value, error = int(self.n[pair]), float(self.kappa[pair]), float(self.error[pair])
        if n < FEWEST_SHARED:
            return Estimate.undefined(TOO_FEW_SHARED, n)
        if np.isnan(value):
            return Estimate.undefined(SAME_ANSWER, n)
        if error < 1e-12:
            return Estimate(value, None, None, n, note=NO_SPREAD)
        half = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2) * error
        return Estimate(value, max(-1.0, value - half), min(1.0, value + half), n)


def pairs(task: npt.ArrayLike, rater: npt.ArrayLike, choice: npt.ArrayLike, *, choices: int) -> Pairs:
    """How often each two raters gave the same answer to the same item, and Cohen's kappa of the two.

    >>> two = pairs([0, 0, 1, 1, 2, 2, 3, 3], [0, 1] * 4, [0, 0, 0, 1, 1, 1, 1, 1], choices=2)
    >>> int(two.n[0]), int(two.agreed[0]), float(two.kappa[0])
    (4, 3, 0.5)
    """
    rows, raters, said = (np.asarray(given, dtype=np.int64) for given in (task, rater, choice))
    nobody = int(raters.max(initial=-1)) + 1
    given = sparse.csr_array((np.ones(rows.size), (rows, raters * choices + said)), shape=(int(rows.max(initial=-1)) + 1, nobody * choices))
    together = sparse.coo_array(given.T @ given)
    at, other = together.coords
    count = together.data
    kept = at // choices < other // choices
    at, other, count = at[kept].astype(np.int64), other[kept].astype(np.int64), count[kept]
    found, pair = np.unique((at // choices) * nobody + other // choices, return_inverse=True)
    # Shares of the two raters' table of answers: its cells, and how often each of the two gave each answer.
    n = np.bincount(pair, weights=count, minlength=found.size)
    cell, a, b = count / n[pair], at % choices, other % choices
    of_first = np.bincount(pair * choices + a, weights=cell, minlength=found.size * choices).reshape(-1, choices)
    of_second = np.bincount(pair * choices + b, weights=cell, minlength=found.size * choices).reshape(-1, choices)
    same = np.where(a == b, cell, 0.0)
    observed = np.bincount(pair, weights=same, minlength=found.size)
    expected = (of_first * of_second).sum(axis=1)
    beyond = 1 - expected
    kappa = np.divide(observed - expected, beyond, out=np.full(found.size, np.nan), where=beyond > 1e-12)
    # The three sums of equation 13: over the diagonal, off it, and what is taken away.
    both = of_second[pair, a] + of_first[pair, b]
    missing = 1 - kappa[pair]
    diagonal = np.bincount(pair, weights=same * (1 - (of_first[pair, a] + of_second[pair, a]) * missing) ** 2, minlength=found.size)
    beside = np.bincount(pair, weights=np.where(a == b, 0.0, cell * (both * missing) ** 2), minlength=found.size)
    taken = (kappa - expected * (1 - kappa)) ** 2
    variance = np.maximum(diagonal + beside - taken, 0)
    error = np.sqrt(np.divide(variance, beyond**2 * n, out=np.full(found.size, np.nan), where=beyond > 1e-12))
    return Pairs(found // max(1, nobody), found % max(1, nobody), n.astype(np.int64), np.rint(observed * n).astype(np.int64), kappa, error)


def settled_by_others(task: npt.ArrayLike, choice: npt.ArrayLike, *, choices: int, policy: str) -> Ints:
    """(votes,) for each vote, what the other votes on its task settle under the policy; -1 where they settle nothing.

    >>> settled_by_others([0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1], choices=2, policy="unanimous").tolist()
    [0, 0, 0, -1, -1, 0]
    """
    rows, said = np.asarray(task, dtype=np.int64), np.asarray(choice, dtype=np.int64)
    tasks = int(rows.max(initial=-1)) + 1
    counts = np.bincount(rows * choices + said, minlength=tasks * choices).reshape(tasks, choices)
    found = np.full(rows.size, -1, dtype=np.int64)
    for start in range(0, rows.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        others = counts[rows[block]]
        others[np.arange(len(others)), said[block]] -= 1
        label, size = others.argmax(axis=1), others.sum(axis=1)
        most = others.max(axis=1)
        settled = (most == size) if policy == "unanimous" else (2 * most > size)
        found[block] = np.where(settled & (size > 0), label, -1)
    return found


def majority(task: npt.ArrayLike, choice: npt.ArrayLike, *, choices: int) -> Ints:
    """(tasks,) the choice with more than half of a task's votes; -1 where none has.

    >>> majority([0, 0, 0, 1, 1], [2, 2, 0, 0, 1], choices=3).tolist()
    [2, -1]
    """
    rows, said = np.asarray(task, dtype=np.int64), np.asarray(choice, dtype=np.int64)
    tasks = int(rows.max(initial=-1)) + 1
    counts = np.bincount(rows * choices + said, minlength=tasks * choices).reshape(tasks, choices)
    return np.where(2 * counts.max(axis=1, initial=0) > counts.sum(axis=1), counts.argmax(axis=1), -1)


def medians(rater: npt.ArrayLike, value: npt.ArrayLike, raters: int) -> Floats:
    """(raters,) the median of each rater's values; nan for a rater without any.

    >>> medians([0, 0, 0, 2, 2], [3, 1, 9, 4, 6], 3).tolist()
    [3.0, nan, 5.0]
    """
    who, values = np.asarray(rater, dtype=np.int64), np.asarray(value, dtype=np.float64)
    order = np.lexsort((values, who))
    values = values[order]
    numbers = np.bincount(who, minlength=raters)
    ends = np.cumsum(numbers)
    low, high = ends - numbers + np.maximum(numbers - 1, 0) // 2, ends - numbers + numbers // 2
    found = np.full(raters, np.nan)
    some = numbers > 0
    found[some] = (values[low[some]] + values[high[some]]) / 2
    return found
