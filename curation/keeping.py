"""Results that take long are kept in the cache: as long as nothing changed, and a little longer where they took very long.

What a web request asks for and is made of many votes, a worker makes: the request gets the result before, or learns that it is
being worked out. Commands and workers wait for theirs.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import astuple, dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from django.core.cache import cache
from django.db import connection, transaction
from django.utils import timezone

from annotation.errors import Refused

KEEP = 600  # seconds
SLOW = 0.5  # seconds; from here on a result may be older than what it is about
SHARE = 0.05  # of the time, at most, goes into the same result
MOST_AT_ONCE = 200_000  # votes; what is made of more takes a request too long
_STALE = 7 * 86400  # seconds for which the result before is shown while the next is being worked out
_TELL_AGAIN = 60  # seconds after which a worker is told once more

T = TypeVar("T")


@dataclass(frozen=True)
class Wanted:
    """A result by name: what is counted (`kind`, of `curation.figuring`), of which question, and by what."""

    kind: str
    question_id: int
    by: str = ""

    @property
    def key(self) -> str:
        return "kept:" + hashlib.sha256(repr(astuple(self)).encode()).hexdigest()

    @property
    def told(self) -> str:
        """The key of a mark that a worker was told of it."""
        return f"{self.key}:told"


@dataclass(frozen=True)
class About:
    """What a result is made of: `stamp` changes when that does and can be relied on for `keep` seconds; `votes` says how much."""

    stamp: str
    votes: int
    keep: int = KEEP


@dataclass(frozen=True)
class Kept(Generic[T]):
    """A result, when it was made, in how many seconds, and how long it is good for while its stamp is the same."""

    result: T
    stamp: str
    at: datetime
    took: float
    keep: int

    @property
    def is_young(self) -> bool:
        """Still within twenty times as long as it took."""
        return self.took > SLOW and self._age < self.took / SHARE

    def holds(self, stamp: str) -> bool:
        return self.stamp == stamp and self._age < self.keep

    @property
    def _age(self) -> float:
        return (timezone.now() - self.at).total_seconds()


class BeingWorkedOut(Refused):
    """A worker makes it now. The same request gets it in a while."""

    status = 503
    code = "being_worked_out"

    def __init__(self) -> None:
        super().__init__("These figures rest on very many votes and are being worked out. Ask again in a few seconds.")


@dataclass
class Asked:
    """What was asked for without waiting: a worker must be told of all that is `wanted`; `behind`: something older was given."""

    wanted: list[Wanted] = field(default_factory=list)
    behind: bool = False


_asked: ContextVar[Asked | None] = ContextVar("asked", default=None)


@contextmanager
def without_waiting() -> Iterator[Asked]:
    """Inside, nothing large is made."""
    asked = Asked()
    token = _asked.set(asked)
    try:
        yield asked
    finally:
        _asked.reset(token)


def behind() -> bool:
    """Whether newer figures than those that were given are being worked out."""
    asked = _asked.get()
    return asked is not None and asked.behind


def kept(wanted: Wanted, about: Callable[[], About], make: Callable[[], T]) -> Kept[T]:
    """What `make` gives; the same again while it is about the same, and within twenty times as long as it took.

    Raises BeingWorkedOut `without_waiting` where there is none yet of so many votes; an older one is given meanwhile.
    """
    found: Kept[T] | None = cache.get(wanted.key)
    if found is not None and found.is_young:
        return found
    asked = _asked.get()
    if asked is not None and cache.get(wanted.told):
        return _meanwhile(found, asked)
    now = about()
    if found is not None and found.holds(now.stamp):
        return found
    if asked is not None and now.votes > MOST_AT_ONCE:
        if cache.add(wanted.told, True, _TELL_AGAIN):
            asked.wanted.append(wanted)
        return _meanwhile(found, asked)
    large = now.votes > MOST_AT_ONCE
    began = time.perf_counter()
    with _many_rows() if large else nullcontext():
        result = make()
    made = Kept(result, now.stamp, timezone.now(), time.perf_counter() - began, now.keep)
    cache.set(wanted.key, made, _STALE if large else max(now.keep, int(made.took / SHARE)))
    cache.delete(wanted.told)
    return made


@contextmanager
def _many_rows() -> Iterator[None]:
    """Inside, tables are read from end to end and joined in memory: looking up a million rows one by one takes thrice as long."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '128MB'; SET LOCAL enable_nestloop = off")
        yield


def _meanwhile(found: Kept[T] | None, asked: Asked) -> Kept[T]:
    if found is None:
        raise BeingWorkedOut
    asked.behind = True
    return found
