"""Rows into items, in the transaction of the caller: all good rows of a file become items together, or none.

COPY carries the rows. Where no row names an origin they go straight into the table of items; as soon as one of their ids is
taken, and always where there are origins, they go by a temporary table on which every check is one statement.
"""

import contextlib
import queue
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pyarrow as pa
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from annotation.errors import Invalid
from curation.importing import binary, readers, voting
from curation.importing import mapping as mapping_
from curation.importing.archives import LISTED
from curation.importing.images import Pictures
from curation.importing.mapping import ORIGIN_PREFIX, Mapping
from curation.importing.readers import Problem, Source

PROBLEMS_KEPT = 1000
PICTURES_AT_ONCE = 100
T = TypeVar("T")
Tell = Callable[[int, int], None]  # bytes read, rows read


@dataclass
class Tally:
    """What became of the rows."""

    rows: int = 0
    created: int = 0
    unchanged: int = 0
    bad: int = 0
    problems: list[Problem] = field(default_factory=list)
    votes: list[dict[str, Any]] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)

    def refuse(self, problems: list[Problem], bad: int | None = None) -> None:
        """Count bad rows (each once, whatever is wrong with it) and keep the first problems."""
        self.bad += len({problem.row for problem in problems}) if bad is None else bad
        self.problems += problems[: PROBLEMS_KEPT - len(self.problems)]


class BadRows(Invalid):
    """Rows were bad and nobody asked to skip them."""

    code = "bad_rows"

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        tally.problems.sort(key=lambda problem: problem.row)
        rows = "1 row is" if tally.bad == 1 else f"{tally.bad:,} rows are"
        first = tally.problems[0]
        where = f"Row {first.row:,}, {first.field}" if first.field else f"Row {first.row:,}"
        super().__init__(f"{rows} bad, and nothing was imported. {where}: {first.message}{voting.unmapped_in_words(tally.votes)}")


@dataclass(frozen=True)
class File:
    """A file and how to read it."""

    path: Path
    source: Source
    mapping: Mapping
    hash: str
    skip_bad: bool
    pictures: Pictures | None = None

    def blocks(self, remember: readers.Progress) -> Iterator[readers.Block]:
        """Its rows; where they bring pictures, fewer at once, so that one sees how far it is."""
        for block in readers.blocks(self.path, self.source, remember):
            yield from [block] if self.pictures is None else block.parts(PICTURES_AT_ONCE)

    def reached(self, position: int) -> int:
        """How many bytes have been read, when `position` of the rows have: the pictures weigh more."""
        return position if self.pictures is None else self.pictures.archive.read_bytes


def bring_in(project_id: int, batch: uuid.UUID, file: File, tell: Tell) -> Tally:
    """Make items of the file's rows. Call inside a transaction; raises Invalid, and then nothing may be kept."""
    with connection.cursor() as cursor:
        # One import of a project at a time: what is checked stays true until it is stored.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('assay.import'), %s)", [project_id])
        cursor.execute("SELECT FROM annotation_project WHERE id = %s FOR KEY SHARE", [project_id])
        if file.mapping.seed is None and file.mapping.origin is None and file.pictures is None and not file.mapping.votes:
            try:
                with transaction.atomic():
                    return _straight(cursor, project_id, batch, file, tell)
            except psycopg.errors.UniqueViolation:
                pass  # an id is taken, by the file or before it: the way by the temporary table says which and where
        return _staged(cursor, project_id, batch, file, tell)


# ---------------------------------------------------------------- carrying
def _straight(cursor: CursorWrapper, project_id: int, batch: uuid.UUID, file: File, tell: Tell) -> Tally:
    tally = Tally()
    cursor.execute(
        "SELECT (extract(epoch FROM now()) * 1000000)::bigint - extract(epoch FROM '2000-01-01Z'::timestamptz)::bigint * 1000000"
    )
    constants = {
        "project_id": binary.bigint(project_id), "kind": file.mapping.kind.encode(), "batch": binary.uid(batch),
        "quarantined": binary.boolean(False), "created_at": binary.bigint(cursor.fetchone()[0]),
    }  # fmt: skip
    with _without_row_checks(cursor):
        _copy(cursor, "annotation_item", ("external_id", "text", "content_hash", "metadata"), constants, file, tally, tell)
    tally.created = tally.rows - tally.bad
    return tally


class _without_row_checks:  # noqa: N801 - a context manager
    """Lets PostgreSQL skip the look at the project for each of a million rows: it is one project, and the caller holds its lock.

    Where the role may not say so, every row is looked at, and an import takes half as long again.
    """

    def __init__(self, cursor: CursorWrapper) -> None:
        self.cursor = cursor
        cursor.execute("SELECT has_parameter_privilege('session_replication_role', 'SET')")
        self.may = bool(cursor.fetchone()[0])

    def __enter__(self) -> None:
        if self.may:
            self.cursor.execute("SET LOCAL session_replication_role = replica")

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self.may and error is None:
            self.cursor.execute("SET LOCAL session_replication_role = origin")


def _copy(  # noqa: PLR0917 - what, where to, from where
    cursor: CursorWrapper, table: str, columns: tuple[str, ...], constants: dict[str, bytes], file: File, tally: Tally, tell: Tell
) -> None:
    """COPY the file's good rows into a table, reading ahead in a thread. Raises BadRows at the end where that is asked for."""
    into = ", ".join([*columns, *constants])
    with cursor.copy(f"COPY {table} ({into}) FROM STDIN (FORMAT binary)") as copy:
        copy.write(binary.HEADER)
        for read, rows, problems, data in _ahead(_lines(file, columns, constants)):
            tally.rows += rows
            tally.refuse(problems)
            if not tally.bad or file.skip_bad:
                copy.write(data)
            tell(read, tally.rows)
        if tally.rows == 0:
            raise Invalid("The file has no rows." if file.source.format == "jsonl" else "The file has a header and no rows.")
        if tally.bad and not file.skip_bad:
            raise BadRows(tally)
        copy.write(binary.END)


_AS_BINARY = {
    "row": binary.bigints, "external_id": binary.texts, "text": binary.texts, "content_hash": binary.texts, "metadata": binary.jsonb,
    "origin_key": binary.texts, "origin_text": binary.texts,
}  # fmt: skip


def _lines(file: File, columns: tuple[str, ...], constants: dict[str, bytes]) -> Iterator[tuple[int, int, list[Problem], bytes]]:
    """Blocks as PostgreSQL takes them: bytes read so far, rows in the block, what is wrong, the good rows."""
    read = 0

    def remember(position: int) -> None:
        nonlocal read
        read = position

    for block in file.blocks(remember):
        rows, problems = mapping_.rows(block, file.mapping, file.hash, file.pictures)
        data = binary.rows([_AS_BINARY[name](rows[name]) for name in columns], list(constants.values()))
        yield file.reached(read), len(rows) + len({problem.row for problem in problems}), problems, data


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """The same, with the next one made while the last is used."""
    made: queue.Queue[tuple[str, object]] = queue.Queue(maxsize=1)
    stop = threading.Event()

    def put(*entry: object) -> None:
        while not stop.is_set():
            with contextlib.suppress(queue.Full):
                made.put(entry, timeout=0.1)  # type: ignore[arg-type]
                return

    def make() -> None:
        try:
            for item in items:
                put("item", item)
                if stop.is_set():
                    return
            put("end", None)
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            put("error", error)

    thread = threading.Thread(target=make, name="import-reader", daemon=True)
    thread.start()
    try:
        while True:
            what, value = made.get()
            if what == "end":
                return
            if what == "error":
                raise value  # type: ignore[misc]
            yield value  # type: ignore[misc]
    finally:
        stop.set()
        thread.join()


# ---------------------------------------------------------------- by the temporary table
_STAGE = """
CREATE TEMP TABLE import_row (
    id bigint NOT NULL DEFAULT nextval(pg_get_serial_sequence('annotation_item', 'id')),
    row bigint NOT NULL, external_id text COLLATE "C" NOT NULL, text text, content_hash bytea NOT NULL, metadata jsonb NOT NULL,
    origin_key text COLLATE "C", origin_text text
) ON COMMIT DROP
"""


def _staged(cursor: CursorWrapper, project_id: int, batch: uuid.UUID, file: File, tell: Tell) -> Tally:
    tally = Tally()
    names: dict[str, Any] = {"project": project_id, "batch": batch, "kind": file.mapping.kind}
    cursor.execute("DROP TABLE IF EXISTS import_row")
    cursor.execute(_STAGE)
    if file.mapping.votes:
        return _with_votes(cursor, names, file, tally, tell)
    _copy(cursor, "import_row", mapping_.COLUMNS, {}, file, tally, tell)
    cursor.execute("CREATE INDEX ON import_row (external_id, row)")
    cursor.execute("ANALYZE import_row")
    _drop_bad(cursor, _REPEATED, names, tally)
    _store(cursor, names, file, tally)
    return tally


def _store(cursor: CursorWrapper, names: dict[str, Any], file: File, tally: Tally) -> None:
    """Check the rows of the temporary table against each other and the project, and make items of them."""
    if file.mapping.seed is not None:
        _drop_bad(cursor, _OTHER_SEED, {**names, "column": file.mapping.seed}, tally)
        _drop_bad(cursor, _NO_SEED, {**names, "column": file.mapping.seed}, tally)
    if file.mapping.origin is not None:
        _drop_bad(cursor, _ITS_OWN_ORIGIN, {**names, "column": file.mapping.origin}, tally)
    cursor.execute(_UNCHANGED, names)
    tally.unchanged = cursor.rowcount
    _drop_bad(cursor, _CHANGED, names, tally)
    if file.pictures is not None:
        cursor.executemany(_MEDIA, file.pictures.rows())
        _drop_bad(cursor, _SEALED, {**names, "column": file.mapping.file or ""}, tally)
    if file.mapping.origin is not None:
        # A row that is dropped may be another's origin, and so on.
        while _drop_bad(cursor, _NO_ORIGIN, {**names, "column": file.mapping.origin}, tally):
            pass
    if tally.bad and not file.skip_bad:
        raise BadRows(tally)
    if file.mapping.seed is not None:
        of_one = [name for name in (file.mapping.file, file.mapping.external_id, mapping_.NOTE, LISTED) if name is not None]
        cursor.execute(_SEEDS, {**names, "of_one": of_one})
    cursor.execute(_ITEMS, names)
    tally.created = cursor.rowcount


# ---------------------------------------------------------------- with votes
def _with_votes(cursor: CursorWrapper, names: dict[str, Any], file: File, tally: Tally, tell: Tell) -> Tally:
    """Items and the votes on them, in the one transaction. COPY takes the two in turn, a block at a time."""
    mapping = file.mapping
    box = voting.Box(cursor, names["project"], mapping)
    for read, rows, problems, items, votes in _ahead(_blocks_with_votes(file, box)):
        tally.rows += rows
        tally.refuse(problems)
        if not tally.bad or file.skip_bad:
            _put(cursor, "import_row", mapping_.COLUMNS, items)
            box.put(votes)
        tell(read, tally.rows)
    tally.votes = box.unmapped()
    if tally.rows == 0:
        raise Invalid("The file has no rows.")
    if tally.bad and not file.skip_bad:
        raise BadRows(tally)
    cursor.execute("CREATE INDEX ON import_row (external_id, row)")
    cursor.execute("ANALYZE import_row")
    box.index()
    _drop_bad(cursor, _CONTRARY if mapping.per_vote else _REPEATED, names, tally)
    cursor.execute(_SHARED)
    if mapping.existing:
        _drop_bad(cursor, _NOT_THERE, names, tally)
        if tally.bad and not file.skip_bad:
            raise BadRows(tally)
        cursor.execute("SELECT count(*) FROM import_row")
        tally.unchanged = cursor.fetchone()[0]
    else:
        _store(cursor, names, file, tally)
    cursor.execute("ANALYZE annotation_item")
    tally.votes, tally.notes = box.record(PROBLEMS_KEPT)
    return tally


def _blocks_with_votes(file: File, box: "voting.Box") -> Iterator[tuple[int, int, list[Problem], bytes, list[bytes]]]:
    """As `_lines`, with the votes of each block beside its items."""
    read = 0

    def remember(position: int) -> None:
        nonlocal read
        read = position

    for block in file.blocks(remember):
        rows, problems = mapping_.rows(block, file.mapping, file.hash, file.pictures)
        votes, wrong = box.read(block, rows)
        problems += wrong
        count = len(block.rows) + len({problem.row for problem in problems} - set(block.rows))
        rows = mapping_.without(rows, {problem.row for problem in wrong})
        rows, standing = _once(rows) if file.mapping.per_vote else (rows, {})
        items = binary.rows([_AS_BINARY[name](rows[name]) for name in mapping_.COLUMNS], [])
        yield file.reached(read), count, problems, items, voting.packed(votes, standing)


def _once(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, int]]:
    """Equal rows of one item only once, so that they travel once; and for those left out, the row that stands for them."""
    first: dict[tuple[Any, ...], int] = {}
    numbers = rows["row"].to_pylist()
    parts = [rows[name].to_pylist() for name in mapping_.COLUMNS[1:]]
    standing = {number: first.setdefault(key, number) for number, key in zip(numbers, zip(*parts, strict=True), strict=True)}
    keep = pa.array([standing[number] == number for number in numbers], pa.bool_())
    return rows.filter(keep), standing


def _put(cursor: CursorWrapper, table: str, columns: tuple[str, ...], data: bytes) -> None:
    with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT binary)") as copy:
        copy.write(binary.HEADER)
        copy.write(data)
        copy.write(binary.END)


def _drop_bad(cursor: CursorWrapper, find: str, names: dict[str, Any], tally: Tally) -> int:
    """Take the rows that a statement finds out of the temporary table, and count them. Returns how many."""
    cursor.execute(f"CREATE TEMP TABLE import_bad ON COMMIT DROP AS {find}", names)
    more = voting.drop_votes(cursor)
    cursor.execute("DELETE FROM import_row USING import_bad WHERE import_row.row = import_bad.row")
    bad: int = max(cursor.rowcount, more)
    cursor.execute("SELECT row, field, message FROM import_bad ORDER BY row LIMIT %s", [PROBLEMS_KEPT])
    tally.refuse([Problem(*row) for row in cursor.fetchall()], bad)
    cursor.execute("DROP TABLE import_bad")
    return bad


# Each finds bad rows: row, field, message.
_REPEATED = """
SELECT row, ''::text AS field, format('The id %%L is already that of row %%s.', external_id, first) AS message
FROM (SELECT row, external_id, min(row) OVER (PARTITION BY external_id) AS first FROM import_row) AS numbered
WHERE row <> first
"""
# Rows of one item that say something else of it than its first.
_CONTRARY = """
SELECT import_row.row, ''::text AS field,
       format('The item %%L has another %%s in row %%s.%%s', import_row.external_id,
              CASE WHEN first.content_hash <> import_row.content_hash THEN 'text'
                   WHEN first.metadata <> import_row.metadata THEN quote_ident(differs.key) ELSE 'origin' END, first.row,
              CASE WHEN first.content_hash = import_row.content_hash AND first.metadata <> import_row.metadata
                   THEN ' Leave that column out of the metadata, or map it as something of the vote or the rater.' ELSE '' END) AS message
FROM import_row
JOIN (SELECT DISTINCT ON (external_id) * FROM import_row ORDER BY external_id, row) AS first ON first.external_id = import_row.external_id
LEFT JOIN LATERAL (
    SELECT key FROM jsonb_each(import_row.metadata || first.metadata)
    WHERE import_row.metadata -> key IS DISTINCT FROM first.metadata -> key ORDER BY key LIMIT 1
) AS differs ON first.metadata <> import_row.metadata
WHERE first.row <> import_row.row AND (
    first.content_hash <> import_row.content_hash OR first.metadata <> import_row.metadata
    OR first.origin_key IS DISTINCT FROM import_row.origin_key OR first.origin_text IS DISTINCT FROM import_row.origin_text)
"""
# What is left of them says the same: one row stands for the item.
_SHARED = """
DELETE FROM import_row USING import_row AS first WHERE first.external_id = import_row.external_id AND first.row < import_row.row
"""
_NOT_THERE = """
SELECT row, ''::text AS field, format('There is no %%s with the id %%L in the project.', %(kind)s::text, import_row.external_id) AS message
FROM import_row WHERE NOT EXISTS (
    SELECT FROM annotation_item AS item
    WHERE item.project_id = %(project)s AND item.external_id = import_row.external_id AND item.kind = %(kind)s)
"""
_PROMPT = f"substr(origin_key, {len(ORIGIN_PREFIX) + 1})"
_OTHER_SEED = f"""
SELECT import_row.row, %(column)s::text AS field,
       CASE WHEN item.id IS NULL THEN format('The prompt %%L has another text in row %%s.', {_PROMPT}, first.row)
            ELSE format('The prompt %%L is in the project with another text.', {_PROMPT}) END AS message
FROM import_row
JOIN (SELECT DISTINCT ON (origin_key) origin_key AS key, row, origin_text AS text FROM import_row
      WHERE origin_text IS NOT NULL ORDER BY origin_key, row) AS first ON first.key = import_row.origin_key
LEFT JOIN annotation_item AS item ON item.project_id = %(project)s AND item.external_id = origin_key
WHERE origin_text IS NOT NULL AND origin_text IS DISTINCT FROM CASE WHEN item.id IS NULL THEN first.text ELSE item.text END
"""  # noqa: S608 - no input
_NO_SEED = f"""
SELECT row, %(column)s::text AS field, format('The prompt %%L has no text here nor in another row.', {_PROMPT}) AS message
FROM import_row
WHERE origin_key IS NOT NULL AND origin_text IS NULL
  AND NOT EXISTS (SELECT FROM import_row AS other WHERE other.origin_key = import_row.origin_key AND other.origin_text IS NOT NULL)
  AND NOT EXISTS (SELECT FROM annotation_item AS item WHERE item.project_id = %(project)s AND item.external_id = import_row.origin_key)
"""  # noqa: S608 - no input
_ITS_OWN_ORIGIN = """
SELECT row, %(column)s::text AS field, 'The item is named as its own origin.' AS message FROM import_row WHERE origin_key = external_id
"""
_NO_ORIGIN = """
SELECT row, %(column)s::text AS field, format('There is no item with the id %%L, in the file or the project.', origin_key) AS message
FROM import_row
WHERE origin_key IS NOT NULL
  AND NOT EXISTS (SELECT FROM import_row AS other WHERE other.external_id = import_row.origin_key)
  AND NOT EXISTS (SELECT FROM annotation_item AS item WHERE item.project_id = %(project)s AND item.external_id = import_row.origin_key)
"""
_UNCHANGED = """
DELETE FROM import_row USING annotation_item AS item LEFT JOIN annotation_item AS origin ON origin.id = item.origin_id
WHERE item.project_id = %(project)s AND item.external_id = import_row.external_id
  AND item.kind = %(kind)s AND item.content_hash = import_row.content_hash AND item.metadata = import_row.metadata
  AND origin.external_id IS NOT DISTINCT FROM import_row.origin_key
"""
_CHANGED = """
SELECT row, ''::text AS field,
       format('The project already has an item %%L, with another %%s. Nothing was overwritten.', import_row.external_id,
              CASE WHEN item.kind <> %(kind)s THEN 'kind' WHEN item.content_hash <> import_row.content_hash
                   THEN CASE %(kind)s WHEN 'image' THEN 'picture' ELSE 'text' END
                   WHEN item.metadata <> import_row.metadata THEN 'metadata' ELSE 'origin' END) AS message
FROM import_row JOIN annotation_item AS item ON item.project_id = %(project)s AND item.external_id = import_row.external_id
"""
# Locked, so that who seals one meanwhile waits, and then finds the items that show it.
_SEALED = """
SELECT import_row.row, %(column)s::text AS field, 'The picture was flagged as possibly illegal, and is shown to nobody.' AS message
FROM import_row
JOIN (SELECT hash, sealed_at FROM annotation_media
      WHERE hash IN (SELECT encode(content_hash, 'hex') FROM import_row) ORDER BY hash FOR SHARE) AS media
  ON media.hash = encode(import_row.content_hash, 'hex') AND media.sealed_at IS NOT NULL
"""
_MEDIA = """
INSERT INTO annotation_media (hash, format, width, height, size) VALUES (%s, %s, %s, %s, %s) ON CONFLICT (hash) DO NOTHING
"""
# A picture's prompt carries what all its pictures say alike, without what names or numbers one picture. Those that say whether
# they are sensitive must agree on it, in whichever words; the others do not count there.
_SEEDS = """
WITH said AS (
    SELECT import_row.row, import_row.origin_key, field.key, field.value
    FROM import_row, jsonb_each(import_row.metadata) AS field
    WHERE %(kind)s = 'image' AND import_row.origin_key IS NOT NULL AND field.key <> ALL(%(of_one)s::text[])
), of_one AS (
    SELECT key FROM said GROUP BY key HAVING count(*) > 1 AND count(DISTINCT value) = count(*)
), shared AS (
    SELECT said.origin_key, said.key, (array_agg(said.value))[1] AS value
    FROM said JOIN (SELECT origin_key, count(*) AS rows FROM import_row GROUP BY origin_key) AS prompt USING (origin_key)
    WHERE said.key <> 'sensitive' AND said.key NOT IN (SELECT key FROM of_one)
    GROUP BY said.origin_key, said.key, prompt.rows HAVING count(*) = prompt.rows AND count(DISTINCT said.value) = 1
    UNION ALL
    SELECT origin_key, key, (array_agg(value ORDER BY row))[1] FROM said
    WHERE key = 'sensitive' AND lower(value #>> '{}') IN ('true', 'yes', '1', 'false', 'no', '0')
    GROUP BY origin_key, key HAVING count(DISTINCT lower(value #>> '{}') IN ('true', 'yes', '1')) = 1
), described AS (
    SELECT origin_key, jsonb_object_agg(key, value) AS metadata FROM shared GROUP BY origin_key
)
INSERT INTO annotation_item (project_id, kind, external_id, text, content_hash, metadata, batch, quarantined)
SELECT DISTINCT ON (origin_key) %(project)s::bigint, 'text', origin_key, origin_text, sha256(convert_to(origin_text, 'UTF8')),
       coalesce(described.metadata, '{}'::jsonb), %(batch)s::uuid, false
FROM import_row LEFT JOIN described USING (origin_key) WHERE origin_text IS NOT NULL ORDER BY origin_key, import_row.row
ON CONFLICT (project_id, external_id) DO NOTHING
"""
_ITEMS = """
INSERT INTO annotation_item (id, project_id, kind, external_id, text, media_hash, content_hash, metadata, batch, quarantined, origin_id)
SELECT import_row.id, %(project)s, %(kind)s, import_row.external_id, import_row.text,
       CASE WHEN %(kind)s = 'image' AND import_row.content_hash <> '' THEN encode(import_row.content_hash, 'hex') END,
       import_row.content_hash, import_row.metadata, %(batch)s::uuid, false, coalesce(stored.id, beside.id)
FROM import_row
LEFT JOIN annotation_item AS stored ON stored.project_id = %(project)s AND stored.external_id = import_row.origin_key
LEFT JOIN import_row AS beside ON stored.id IS NULL AND beside.external_id = import_row.origin_key
ORDER BY import_row.row
"""
