"""Results that take long are kept in the cache: as long as nothing changed, and a little longer where they took very long."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from django.core.cache import cache
from django.utils import timezone

KEEP = 600  # seconds
SLOW = 0.5  # seconds; from here on a result may be older than what it is about
SHARE = 0.05  # of the time, at most, goes into the same result

T = TypeVar("T")


@dataclass(frozen=True)
class Kept(Generic[T]):
    """A result, what it was made from (`stamp`), when, and in how many seconds."""

    result: T
    stamp: str
    at: datetime
    took: float


def kept(key: str, stamp: str, make: Callable[[], T], *, keep: int = KEEP) -> Kept[T]:
    """What `make` gives; the same again while `stamp` is the same, and within twenty times as long as it took.

    `keep`: at most so many seconds.
    """
    found: Kept[T] | None = cache.get(key)
    if found is not None and (found.stamp == stamp or _is_young(found)):
        return found
    began = time.perf_counter()
    result = make()
    made = Kept(result, stamp, timezone.now(), time.perf_counter() - began)
    cache.set(key, made, max(keep, int(made.took / SHARE) if made.took > SLOW else 0))
    return made


def _is_young(found: "Kept[T]") -> bool:
    return found.took > SLOW and (timezone.now() - found.at).total_seconds() < found.took / SHARE
