"""What a task's votes come to. Pure: no Django, no database (SPEC section 2, resolution policies)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Policy = Literal["unanimous", "majority"]


@dataclass(frozen=True)
class Ballot:
    """One vote: a choice, and the tags given with it."""

    choice: str
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Agreed:
    """The label that the votes settle on. `source` is "unanimous" or "majority"."""

    choice: str
    tags: tuple[str, ...]
    source: Policy


def resolve(policy: str, ballots: Sequence[Ballot]) -> Agreed | None:
    """The agreed label of a complete set of votes, or None when they are in dispute.

    unanimous: every vote names the same choice. majority: one choice has strictly more than half. Ties are always
    disputes; nothing is decided by order. A tag is kept when more than half of those who cast the winning choice gave it.

    >>> resolve("majority", [Ballot("yes"), Ballot("yes"), Ballot("no")])
    Agreed(choice='yes', tags=(), source='majority')
    >>> resolve("majority", [Ballot("yes"), Ballot("no")]) is None
    True

    Raises ValueError for no votes or an unknown policy.
    """
    if not ballots:
        raise ValueError("Nothing to resolve: no votes.")
    counts = Counter(ballot.choice for ballot in ballots)
    choice, most = counts.most_common(1)[0]
    if policy == "unanimous":
        agreed = most == len(ballots)
    elif policy == "majority":
        agreed = 2 * most > len(ballots)
    else:
        raise ValueError(f"Unknown resolution policy {policy!r}.")
    if not agreed:
        return None
    given = Counter(tag for ballot in ballots if ballot.choice == choice for tag in ballot.tags)
    tags = tuple(sorted(tag for tag, times in given.items() if 2 * times > most))
    return Agreed(choice, tags, "unanimous" if most == len(ballots) else "majority")
