"""Labels by Dawid and Skene (1979): people differ in how they err, and the votes themselves tell how.

Every task has a true label, drawn from shares that all tasks have in common (`priors`). A rater who meets a task with true label
j says k with a probability of their own (`confusion[r, j, k]`), whatever the others say. Expectation-maximisation finds the
shares and the confusion matrices that make the votes most likely, and with them how probable each label of each task is.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from curation.stats.intervals import Floats, Ints

# The log-likelihood has converged when a step changes it by less than this share of itself. Coarser ones stop on a plateau: at 1e-7
# the published Nibbler votes keep twenty labels that change before the likelihood is at its highest.
TOLERANCE = 1e-10
MOST_ITERATIONS = 1000
# Added to every count of a confusion matrix, so that what a rater never said is unlikely, not impossible.
SMOOTHING = 1e-9
SURE = 0.99
_TIE = 1e-9


@dataclass(frozen=True)
class DawidSkene:
    """What the votes come to.

    posterior (tasks, choices): how probable each label is; priors (choices,): shares of the labels over all tasks; confusion
    (raters, choices, choices): row j is how a rater answers when the true label is j; log_likelihood: natural, of all votes;
    iterations: steps of EM; converged: False when they ran out first.
    """

    posterior: Floats
    priors: Floats
    confusion: Floats
    log_likelihood: float
    iterations: int
    converged: bool

    @property
    def labels(self) -> Ints:
        """(tasks,) the most probable label; -1 where two are equally so."""
        if self.posterior.shape[1] < 2:
            return np.zeros(len(self.posterior), dtype=np.int64)
        two = np.partition(self.posterior, -2, axis=1)[:, -2:]
        return np.where(two[:, 1] - two[:, 0] < _TIE, -1, self.posterior.argmax(axis=1))

    @property
    def unsure(self) -> int:
        """How many tasks have no label with a probability of at least SURE."""
        return int((self.posterior.max(axis=1) < SURE).sum())


def dawid_skene(
    task: npt.ArrayLike,
    rater: npt.ArrayLike,
    choice: npt.ArrayLike,
    *,
    choices: int,
    tolerance: float = TOLERANCE,
    most: int = MOST_ITERATIONS,
) -> DawidSkene:
    """Fit the model to votes, one (task, rater, choice) each, numbered from 0. Starts from each task's shares of votes.

    Stops when the log-likelihood changes by less than `tolerance` of itself, or after `most` iterations. A rater counts once a
    task: give their first vote only. Raises ValueError without votes.

    >>> fit = dawid_skene([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], [0, 0, 1, 1, 1, 1], choices=2)
    >>> fit.labels.tolist(), fit.converged
    ([0, 1], True)
    """
    rows, raters, said = (np.asarray(given, dtype=np.int64) for given in (task, rater, choice))
    if not rows.size:
        raise ValueError("There are no votes.")
    columns = raters * choices + said
    votes, which = _patterns(rows, columns, int(raters.max() + 1) * choices)
    times = np.bincount(which).astype(np.float64)
    by_rater = votes.T.tocsr()
    shape = (int(raters.max()) + 1, choices, choices)
    posterior = _shares_of_votes(votes, choices)
    before, iterations, converged = -np.inf, 0, False
    for iterations in range(1, most + 1):  # noqa: B007 - told afterwards
        weighted = posterior * times[:, None]
        priors = weighted.sum(axis=0) / times.sum()
        # (raters, said, true): how often each said what, by true label.
        counts = (by_rater @ weighted).reshape(shape) + SMOOTHING
        said_given_true = counts / counts.sum(axis=1, keepdims=True)
        posterior, log_likelihood = _expect(votes, said_given_true, priors, times)
        if abs(log_likelihood - before) < tolerance * abs(log_likelihood):
            converged = True
            break
        before = log_likelihood
    return DawidSkene(
        posterior=posterior[which],
        priors=(posterior * times[:, None]).sum(axis=0) / times.sum(),
        confusion=said_given_true.transpose(0, 2, 1),
        log_likelihood=log_likelihood,
        iterations=iterations,
        converged=converged,
    )


def _patterns(rows: Ints, columns: Ints, width: int) -> tuple[sparse.csr_array, Ints]:
    """Tasks with the same votes by the same raters are one row: (patterns, width) of ones, and each task's pattern.

    Same votes are found by a sum of random 64-bit numbers, one for each rater and choice.
    """
    marks = np.random.default_rng(1979).integers(np.iinfo(np.int64).min, np.iinfo(np.int64).max, width)
    tasks = int(rows.max()) + 1
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(tasks + 1))
    sums = np.add.reduceat(np.append(marks[columns[order]], 0), starts[:-1])  # wraps around, which is as good
    _, first, which = np.unique(sums, return_index=True, return_inverse=True)
    sizes = (starts[1:] - starts[:-1])[first]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(ends[-1]) + np.repeat(starts[first] - ends[:-1], sizes)
    return sparse.csr_array((np.ones(ends[-1]), columns[order][places], ends), shape=(first.size, width)), which


def _shares_of_votes(votes: sparse.csr_array, choices: int) -> Floats:
    by_choice = sparse.csr_array(np.tile(np.eye(choices), (votes.shape[1] // choices, 1)))
    counts = (votes @ by_choice).toarray()
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _expect(votes: sparse.csr_array, said_given_true: Floats, priors: Floats, times: Floats) -> tuple[Floats, float]:
    """How probable each label is given the votes, and the log-likelihood of them all."""
    with np.errstate(divide="ignore"):  # a label that nobody ever gave has a share of 0
        joint = votes @ np.log(said_given_true).reshape(-1, priors.size) + np.log(priors)
    top = joint.max(axis=1, keepdims=True)
    scaled = np.exp(joint - top)
    total = scaled.sum(axis=1, keepdims=True)
    return scaled / total, float(times @ (top + np.log(total))[:, 0])
