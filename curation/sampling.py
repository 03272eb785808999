"""Seeded draws of items, each with the probability it had of being in."""

import hashlib
from collections.abc import Mapping
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Exists, Min, OuterRef, QuerySet

from annotation.errors import Conflict, Invalid
from annotation.models import Item, Kind, Project, User
from curation import choosing
from curation.models import Sample, SampleItem

ALLOCATIONS = {"proportional": "As many of each as its share", "equal": "As many of each as of any other"}
MOST_STRATA = 500
STRATUM_LENGTH = 120


def population(
    project: Project, kind: str, items: str = choosing.ALL, metadata: Mapping[str, Any] | None = None, *, seeds: bool = False
) -> QuerySet[Item]:
    """The items that a sample is drawn from, or tasks are made for: those of `choosing.items` that have all of `metadata`.

    Quarantined items are left out, and so are the items that others of their kind were derived from (the seeds of adversarial
    texts), unless `seeds`. A prompt of an image is of another kind, and stays.
    """
    if kind not in Kind.values:
        raise Invalid("Items are of kind text or image.", fields={"kind": "Use text or image."})
    found = choosing.items(project, kind, items).filter(quarantined=False)
    if metadata:
        found = found.filter(metadata__contains=dict(metadata))
    if not seeds:
        found = found.exclude(Exists(Item.objects.filter(origin=OuterRef("pk"), kind=OuterRef("kind"))))
    return found


def draw(
    project: Project, name: str, size: int, *, seed: int | None = None, kind: str = Kind.TEXT, items: str = choosing.ALL,
    metadata: Mapping[str, Any] | None = None, seeds: bool = False, strata: str = "", allocation: str = "proportional",
    by: User | None = None,
) -> Sample:  # fmt: skip
    """Draw `size` items without replacement: simple random, or so many from each value of the metadata key `strata`.

    Items are ordered by SHA-256 over "<seed>:<external id>", so the same seed draws the same items from the same population on any
    machine. Within a stratum every item had the same probability of being in: drawn / available.
    Raises Invalid (name, size, kind, items, strata, allocation) and Conflict for a name that is taken.
    """
    name = name.strip()
    seed = project.seed if seed is None else seed
    wrong = {}
    if not 0 < len(name) <= STRATUM_LENGTH:
        wrong["name"] = "Give it a name of at most 120 characters."
    if size < 1:
        wrong["size"] = "At least 1."
    if not -(2**63) <= seed < 2**63:
        wrong["seed"] = "A whole number of at most 18 digits."
    if allocation not in ALLOCATIONS:
        wrong["allocation"] = "Use proportional or equal."
    if wrong:
        raise Invalid("The sample cannot be drawn. " + " ".join(wrong.values()), fields=wrong)
    if Sample.objects.filter(project=project, name=name).exists():
        raise Conflict("There is a sample of this name.", fields={"name": "There is a sample of this name."})
    query = {"kind": kind, "items": items, "metadata": dict(metadata or {}), "seeds": seeds}
    query |= {"strata": strata, "allocation": allocation if strata else ""}
    with transaction.atomic():
        available = _available(population(project, kind, items, metadata, seeds=seeds), strata)
        total = sum(available.values())
        if size > total:
            raise Invalid(f"{total:,} items fit, and {size:,} are asked for.", fields={"size": f"At most {total:,}."})
        wanted = allot(available, size, allocation) if strata else {"": size}
        sample = Sample.objects.create(project=project, name=name, seed=seed, size=size, population=total, query=query, created_by=by)
        rows = _drawn(population(project, kind, items, metadata, seeds=seeds), seed, strata, wanted)
        SampleItem.objects.bulk_create(
            (
                SampleItem(sample=sample, item_id=item, stratum=stratum, probability=wanted[stratum] / available[stratum])
                for item, stratum in rows
            ),
            batch_size=10_000,
        )
    return sample


def _available(found: QuerySet[Item], strata: str) -> dict[str, int]:
    """How many items each stratum has; one of no name when there are no strata."""
    if not strata:
        return {"": found.count()}
    sql, values = found.order_by().values("pk").query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT left(coalesce(metadata ->> %s, ''), {STRATUM_LENGTH}), count(*) FROM annotation_item WHERE id IN ({sql})"  # noqa: S608 - Django's
            " GROUP BY 1 ORDER BY 1 LIMIT %s",
            [strata, *values, MOST_STRATA + 1],
        )
        counts = dict(cursor.fetchall())
    if len(counts) > MOST_STRATA:
        message = f"The key {strata!r} has more than {MOST_STRATA} values. Strata are for keys with few."
        raise Invalid(message, fields={"strata": message})
    if counts and set(counts) == {""}:
        message = f"No item has the metadata key {strata!r}."
        raise Invalid(message, fields={"strata": message})
    return counts


def _drawn(found: QuerySet[Item], seed: int, strata: str, wanted: Mapping[str, int]) -> list[tuple[int, str]]:
    """The first `wanted` items of each stratum in the order of their hashes: (item id, stratum)."""
    sql, values = found.order_by().values("pk").query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT id, stratum FROM (
                SELECT id, stratum, row_number() OVER (
                    PARTITION BY stratum ORDER BY sha256(convert_to(%s || ':' || external_id, 'UTF8')), external_id
                ) AS place
                FROM (SELECT id, external_id,
                             CASE WHEN %s = '' THEN '' ELSE left(coalesce(metadata ->> %s, ''), {STRATUM_LENGTH}) END AS stratum
                      FROM annotation_item WHERE id IN ({sql})) AS available
            ) AS placed
            JOIN unnest(%s::text[], %s::int[]) AS wanted(name, size) ON wanted.name = stratum AND place <= wanted.size
            ORDER BY id
            """,  # noqa: S608 - Django's own query
            [str(seed), strata, strata, *values, list(wanted), list(wanted.values())],
        )
        return list(cursor.fetchall())


def order_key(seed: int, external_id: str) -> bytes:
    """An item's place in every draw with this seed: 32 bytes. What `_drawn` says in SQL."""
    return hashlib.sha256(f"{seed}:{external_id}".encode()).digest()


def allot(available: Mapping[str, int], size: int, allocation: str) -> dict[str, int]:
    """How many of each stratum; every stratum gets one at least, none more than it has. Sums to `size`.

    Proportional by largest remainders; equal gives what a small stratum lacks to the others.

    >>> allot({"a": 60, "b": 30, "c": 10}, 10, "proportional")
    {'a': 6, 'b': 3, 'c': 1}
    >>> allot({"a": 60, "b": 30, "c": 2}, 11, "equal")
    {'a': 5, 'b': 4, 'c': 2}
    """
    if size < len(available):
        message = f"There are {len(available)} strata: draw at least as many items."
        raise Invalid(message, fields={"size": message})
    if allocation == "equal":
        return _level(available, size)
    total = sum(available.values())
    given = {name: max(1, size * count // total) for name, count in available.items()}
    by_remainder = sorted(available, key=lambda name: (-(size * available[name] % total), name))
    while (short := size - sum(given.values())) != 0:
        if short > 0:
            for name in [name for name in by_remainder if given[name] < available[name]][:short]:
                given[name] += 1
        else:  # strata that were raised to one take from the largest
            given[max(given, key=lambda name: (given[name], name))] -= 1
    return given


def _level(available: Mapping[str, int], size: int) -> dict[str, int]:
    """Equal shares, of those that still have items, until nothing is left to give."""
    given = dict.fromkeys(available, 0)
    left = min(size, sum(available.values()))
    while left:
        room = sorted(name for name in available if given[name] < available[name])
        share = max(1, left // len(room))
        for name in room:
            more = min(share, available[name] - given[name], left)
            given[name] += more
            left -= more
    return given


def weights(sample: Sample) -> list[tuple[str, int, float]]:
    """Of each stratum: its name, how many were drawn, and their probability."""
    found = SampleItem.objects.filter(sample=sample).values("stratum").annotate(drawn=Count("pk"), p=Min("probability")).order_by("stratum")
    return [(row["stratum"], row["drawn"], row["p"]) for row in found]
