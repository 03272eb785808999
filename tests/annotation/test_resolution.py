"""What votes come to, by hand."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from annotation.resolution import Agreed, Ballot, resolve


def ballots(words: str) -> list[Ballot]:
    """ "yes:a+b no" -> a yes with the tags a and b, and a no."""
    votes = []
    for word in words.split():
        choice, _, tags = word.partition(":")
        votes.append(Ballot(choice, frozenset(tags.split("+")) if tags else frozenset()))
    return votes


@pytest.mark.parametrize(
    ("policy", "votes", "label"),
    [
        ("unanimous", "yes yes yes", ("yes", "unanimous")),
        ("unanimous", "yes yes no", None),
        ("unanimous", "unsure unsure unsure", ("unsure", "unanimous")),
        ("unanimous", "no", ("no", "unanimous")),
        ("majority", "yes yes no", ("yes", "majority")),
        ("majority", "yes yes yes", ("yes", "unanimous")),
        ("majority", "yes no", None),
        ("majority", "yes yes no no unsure", None),  # the most votes, but not more than half
        ("majority", "yes yes yes no unsure", ("yes", "majority")),
    ],
)
def test_a_label_needs_all_or_more_than_half(policy: str, votes: str, label: tuple[str, str] | None) -> None:
    settled = resolve(policy, ballots(votes))
    assert (settled and (settled.choice, settled.source)) == label


def test_no_order_of_the_votes_decides_a_tie() -> None:
    assert resolve("majority", ballots("yes yes no no")) is resolve("majority", ballots("no no yes yes")) is None


VOTES = some.lists(some.builds(Ballot, some.sampled_from("abc"), some.frozensets(some.sampled_from("xyz"))), min_size=1, max_size=9)


@given(votes=VOTES, order=some.randoms(), policy=some.sampled_from(["unanimous", "majority"]))
def test_the_order_of_votes_never_matters_and_a_label_has_more_than_half(votes: list[Ballot], order: random.Random, policy: str) -> None:
    shuffled = order.sample(votes, len(votes))
    settled = resolve(policy, votes)
    assert settled == resolve(policy, shuffled)
    if settled is not None:
        winning = [vote for vote in votes if vote.choice == settled.choice]
        assert 2 * len(winning) > len(votes)
        assert all(2 * sum(tag in vote.tags for vote in winning) > len(winning) for tag in settled.tags)


def test_a_tag_is_kept_when_more_than_half_of_the_winning_side_gave_it() -> None:
    # Three say harmful; violence has 2 of 3, hateful 1 of 3. What the losing side tagged does not count.
    settled = resolve("majority", ballots("harmful:violence+hateful harmful:violence harmful safe:hateful safe:hateful"))
    assert settled == Agreed("harmful", ("violence",), "majority")


def test_half_of_the_winning_side_is_not_enough_for_a_tag() -> None:
    assert resolve("unanimous", ballots("harmful:violence harmful:other")) == Agreed("harmful", (), "unanimous")


def test_no_votes_cannot_be_resolved() -> None:
    with pytest.raises(ValueError, match="no votes"):
        resolve("unanimous", [])


def test_an_unknown_policy_is_an_error() -> None:
    with pytest.raises(ValueError, match="plurality"):
        resolve("plurality", ballots("yes"))
