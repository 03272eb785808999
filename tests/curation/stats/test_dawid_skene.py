"""Dawid and Skene's labels: a case by hand, the formulas done one by one, and what must hold whatever the votes."""

from itertools import pairwise, product

import numpy as np
import pytest

from curation.stats import dawid_skene as module
from curation.stats.dawid_skene import SMOOTHING, DawidSkene, dawid_skene

Votes = tuple[np.ndarray, np.ndarray, np.ndarray]


def some_votes(seed: int, tasks: int = 60, raters: int = 6, choices: int = 3) -> Votes:
    """Tasks with 2 to 5 votes each, by raters who are right in 55 to 95 of 100 cases."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(choices, tasks, p=rng.dirichlet(np.ones(choices) * 3))
    skill = rng.uniform(0.55, 0.95, raters)
    votes = []
    for task in range(tasks):
        for rater in rng.permutation(raters)[: rng.integers(2, 6)]:
            right = rng.random() < skill[rater]
            votes.append((task, int(rater), int(truth[task]) if right else int(rng.integers(choices))))
    task, rater, choice = (np.array(column) for column in zip(*votes, strict=True))
    return task, rater, choice


def step_by_step(votes: Votes, choices: int, steps: int) -> tuple[np.ndarray, float]:
    """The paper's equations in plain loops: posterior and log-likelihood after so many steps."""
    task, rater, choice = votes
    tasks, raters = int(task.max()) + 1, int(rater.max()) + 1
    posterior = np.zeros((tasks, choices))
    for t, k in zip(task, choice, strict=True):
        posterior[t, k] += 1
    posterior /= posterior.sum(axis=1, keepdims=True)
    likelihood = 0.0
    for _ in range(steps):
        priors = posterior.mean(axis=0)
        confusion = np.zeros((raters, choices, choices))
        for r, j, k in product(range(raters), range(choices), range(choices)):
            said = [posterior[t, j] for t, who, what in zip(*votes, strict=True) if who == r and what == k]
            confusion[r, j, k] = sum(said) + SMOOTHING
        confusion /= confusion.sum(axis=2, keepdims=True)
        likelihood = 0.0
        for t in range(tasks):
            joint = priors.copy()
            for where, who, what in zip(*votes, strict=True):
                if where == t:
                    joint *= confusion[who, :, what]
            likelihood += float(np.log(joint.sum()))
            posterior[t] = joint / joint.sum()
    return posterior, likelihood


def test_who_always_says_the_opposite_counts_as_much_as_who_is_right() -> None:
    # Raters 0, 1 and 2 agree throughout, rater 3 says the other of two answers each time.
    task, rater = np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6)
    truth = np.array([0, 0, 0, 1, 1, 1])
    fit = dawid_skene(task, rater, np.where(rater == 3, 1 - truth[task], truth[task]), choices=2)
    assert fit.labels.tolist() == truth.tolist()
    assert fit.confusion[0] == pytest.approx(np.eye(2), abs=1e-6)
    assert fit.confusion[3] == pytest.approx(1 - np.eye(2), abs=1e-6)
    assert fit.priors == pytest.approx([0.5, 0.5])
    # Every vote is certain given its label, so what remains is which of the two labels each task has.
    assert fit.log_likelihood == pytest.approx(6 * np.log(0.5), abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_each_step_is_that_of_the_papers_equations(seed: int) -> None:
    votes = some_votes(seed, tasks=25)
    for steps in (1, 2, 5):
        posterior, likelihood = step_by_step(votes, 3, steps)
        fit = dawid_skene(*votes, choices=3, tolerance=0, most=steps)
        assert (fit.iterations, fit.converged) == (steps, False)
        assert fit.posterior == pytest.approx(posterior, abs=1e-9)
        assert fit.log_likelihood == pytest.approx(likelihood, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_no_step_makes_the_votes_less_likely(seed: int) -> None:
    votes = some_votes(seed)
    climbed = [dawid_skene(*votes, choices=3, tolerance=0, most=steps).log_likelihood for steps in range(1, 25)]
    assert all(after >= before - 1e-6 for before, after in pairwise(climbed))


def test_it_says_when_it_ran_out_of_steps() -> None:
    votes = some_votes(1)
    assert not dawid_skene(*votes, choices=3, most=2).converged
    assert dawid_skene(*votes, choices=3).converged


@pytest.mark.parametrize("seed", range(3))
def test_neither_the_order_of_votes_nor_the_numbers_of_raters_matter(seed: int) -> None:
    task, rater, choice = some_votes(seed)
    mixed = np.random.default_rng(seed).permutation(task.size)
    renamed = np.array([3, 5, 0, 1, 4, 2])
    fit = dawid_skene(task, rater, choice, choices=3)
    again = dawid_skene(task[mixed], renamed[rater[mixed]], choice[mixed], choices=3)
    assert again.posterior == pytest.approx(fit.posterior, abs=1e-9)
    assert again.confusion[renamed] == pytest.approx(fit.confusion, abs=1e-9)


def test_good_raters_are_told_from_bad_ones_and_outvote_them() -> None:
    # Two good raters against three who guess, on 400 tasks: the majority is often wrong, the model hardly ever.
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 400)
    right = rng.random((400, 5)) < np.array([0.97, 0.95, 0.5, 0.5, 0.5])
    said = np.where(right, truth[:, None], 1 - truth[:, None])
    task, rater = np.repeat(np.arange(400), 5), np.tile(np.arange(5), 400)
    fit = dawid_skene(task, rater, said.ravel(), choices=2)
    by_majority = (said.sum(axis=1) > 2).astype(int)
    assert (fit.labels == truth).mean() > 0.93
    assert (by_majority == truth).mean() < 0.88
    assert fit.confusion[0].diagonal().min() > 0.9
    assert fit.confusion[4].diagonal().max() < 0.65


def test_a_choice_that_nobody_gave_has_no_share_and_spoils_nothing() -> None:
    fit = dawid_skene([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 2, 2], choices=3)
    assert fit.priors.tolist() == pytest.approx([0.5, 0, 0.5])
    assert np.isfinite(fit.posterior).all()
    assert fit.labels.tolist() == [0, 2]


def test_an_exact_tie_is_no_label() -> None:
    # Two raters who always contradict each other: neither answer is likelier.
    fit = dawid_skene([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], choices=2)
    assert fit.labels.tolist() == [-1, -1]
    assert fit.unsure == 2


def test_one_choice_and_no_votes() -> None:
    assert dawid_skene([0, 0], [0, 1], [0, 0], choices=1).labels.tolist() == [0]
    with pytest.raises(ValueError, match="no votes"):
        dawid_skene([], [], [], choices=2)


def test_tasks_with_the_same_votes_by_the_same_raters_are_counted_as_one_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    task, rater, choice = some_votes(2, tasks=10)
    thrice = np.concatenate([task, task + 10, task + 20])
    seen: list[int] = []
    whole = module._expect

    def counted(votes, *given):  # type: ignore[no-untyped-def]
        seen.append(votes.shape[0])
        return whole(votes, *given)

    monkeypatch.setattr(module, "_expect", counted)
    fit: DawidSkene = dawid_skene(thrice, np.tile(rater, 3), np.tile(choice, 3), choices=3)
    assert max(seen) <= 10
    assert fit.posterior[:10] == pytest.approx(fit.posterior[20:])
