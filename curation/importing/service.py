"""An import from its file to its items: store, preview, start, run.

A batch is `uploaded` until a worker takes it, `running` while one holds its lock, then `done` or `failed`. Nothing of a failed one
stays, so it can be started again; a worker that died leaves the lock free, which `settled` finds.
"""

import contextlib
import hashlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from annotation.errors import Conflict, Invalid
from annotation.models import Kind, Project, User
from curation.holding import held
from curation.importing import archives, formats, readers, staging, voting
from curation.importing import mapping as mapping_
from curation.importing.archives import Archive
from curation.importing.images import Pictures
from curation.importing.mapping import Mapping
from curation.importing.readers import Source
from curation.models import ImportBatch, ImportState

log = structlog.get_logger("assay.import")
PREVIEW_ROWS = 8
CELL = 200  # characters shown of a cell
Tell = Callable[[int, int], None]  # bytes read, rows read


def folder() -> Path:
    """Where uploaded files wait."""
    path: Path = settings.DATA / "imports"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


# ---------------------------------------------------------------- in
def store(project: Project, filename: str, chunks: Iterable[bytes], user: User | None) -> ImportBatch:
    """Keep an upload in the data folder, hashed on the way, and guess how it is to be read."""
    batch = ImportBatch(pk=uuid.uuid4(), project=project, filename=Path(filename).name[:255] or "upload", created_by=user)
    path = folder() / str(batch.pk)
    digest = hashlib.sha256()
    size = 0
    try:
        with path.open("wb") as kept:
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                kept.write(chunk)
        return _described(batch, path, digest.hexdigest(), size)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def take(project: Project, path: Path, user: User | None) -> ImportBatch:
    """A file or a folder of pictures of this machine, read where it lies."""
    path = path.resolve()
    digest = hashlib.sha256()
    if path.is_dir():
        return _described(ImportBatch(pk=uuid.uuid4(), project=project, filename=path.name[:255], created_by=user), path, "", 0)
    size = 0
    with readers.opened(path) as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
            size += len(piece)
    return _described(
        ImportBatch(pk=uuid.uuid4(), project=project, filename=path.name[:255], created_by=user), path, digest.hexdigest(), size
    )


def _described(batch: ImportBatch, path: Path, digest: str, size: int) -> ImportBatch:
    batch.path, batch.file_hash, batch.size = str(path), digest, size
    if archives.is_archive(path):
        _describe_archive(batch, path)
    else:
        batch.format = readers.guess(path, batch.filename).format
    batch.save(force_insert=True)
    return batch


def _is_ready(path: Path, filename: str) -> bool:
    """Whether an archive is a published layout, and not one of pictures."""
    return not path.is_dir() and readers.guess(path, filename).format in formats.READY


def _describe_archive(batch: ImportBatch, path: Path) -> None:
    """Its table is taken out, so that it is read like any other file. A folder is known by its table."""
    with Archive(path) as archive:  # within its bounds, or refused
        if _is_ready(path, batch.filename):
            batch.format = readers.guess(path, batch.filename).format
            return
        batch.format, batch.kind = "folder" if path.is_dir() else "zip", Kind.IMAGE
        batch.size = archive.size
        _take_table(batch, archive)
    if path.is_dir():
        batch.file_hash = _hash(_table(batch))


def _take_table(batch: ImportBatch, archive: Archive) -> None:
    making = _table(batch).with_suffix(".making")
    try:
        archive.write_table(making)
        making.replace(_table(batch))
    finally:
        making.unlink(missing_ok=True)


def _table(batch: ImportBatch) -> Path:
    return folder() / f"{batch.pk}.table"


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_archive(batch: ImportBatch) -> bool:
    """Whether it brings pictures, named by a table."""
    return batch.format in archives.FORMATS


@dataclass(frozen=True)
class Preview:
    """The first rows of a file, read in a certain way."""

    source: Source
    columns: list[str]
    rows: list[tuple[int, list[str]]]
    mapping: Mapping
    problems: list[readers.Problem]


def preview(batch: ImportBatch, source: Source | None = None) -> Preview:
    """The first rows, and the likeliest mapping of the columns. Invalid when the file cannot be read in this way."""
    source = (source or source_of(batch)).checked()
    names = columns(batch, source)
    block = next(iter(readers.blocks(table_of(batch), source)), None)
    if block is None:
        raise Invalid("The file has a header and no rows.")
    problems = block.problems[:PREVIEW_ROWS]
    block = block.first(PREVIEW_ROWS)
    block.metadata(None, ())  # finds what cannot be read
    problems += block.problems
    cells = [_cells(block, name) for name in names]
    rows = [(row, [column[index] for column in cells]) for index, row in enumerate(block.rows)]
    return Preview(source, names, rows, guess(batch, names, source), problems)


def _cells(block: readers.Block, name: str) -> list[str]:
    cells = ["" if value is None else value for value in block.shown(name)]
    return [cell if len(cell) <= CELL else cell[:CELL] + " …" for cell in cells]


def path_of(batch: ImportBatch) -> Path:
    """Where the file lies, or the folder."""
    return Path(batch.path)


def table_of(batch: ImportBatch) -> Path:
    """The file whose rows become items: what was brought, or the table of an archive."""
    if not is_archive(batch):
        return path_of(batch)
    if not _table(batch).exists():
        with _archive(batch) as archive:
            _take_table(batch, archive)
    return _table(batch)


def _archive(batch: ImportBatch) -> Archive:
    if not path_of(batch).exists():
        raise Invalid("The file is no longer there. Bring it in again.")
    return Archive(path_of(batch))


def columns(batch: ImportBatch, source: Source) -> list[str]:
    """The names of the columns, when the file is read in this way."""
    return readers.columns(table_of(batch), source)


def guess(batch: ImportBatch, names: list[str], source: Source) -> Mapping:
    """The likeliest mapping of these columns; of a published layout, the one that fits it."""
    if source.format in formats.READY:
        mapping = formats.READY[source.format].mapping(table_of(batch), source, lambda slug: voting.answers_of(batch.project, slug))
        return voting.completed(batch.project, mapping, table_of(batch), source)
    return mapping_.guess_pictures(names) if is_archive(batch) else mapping_.guess(names)


def source_of(batch: ImportBatch, *, ready: bool = True) -> Source:
    """How the file is read: as was settled at the start, else as guessed; `ready`: also as a published layout."""
    if given := batch.mapping.get("source"):
        return Source(**given)
    return readers.guess(table_of(batch), "" if is_archive(batch) else batch.filename, ready=ready and not is_archive(batch))


def mapping_of(batch: ImportBatch) -> Mapping | None:
    """Which column is what; None until it was settled."""
    given = batch.mapping.get("columns")
    return Mapping.of(given) if given else None


# ---------------------------------------------------------------- start
def start(batch: ImportBatch, mapping: Mapping, *, source: Source | None = None, skip_bad_rows: bool = False) -> ImportBatch:
    """Settle how the file is read and mapped. Whoever calls this enqueues the run, or runs it."""
    source = (source or source_of(batch)).checked()
    mapping = voting.completed(batch.project, mapping.checked(columns(batch, source)), table_of(batch), source)
    mapping = voting.checked(batch.project, mapping)
    _check_pictures(batch, mapping)
    with transaction.atomic():
        batch = ImportBatch.objects.select_for_update().get(pk=batch.pk)
        if batch.state == ImportState.DONE:
            raise Conflict("This file has been imported. To import it again, bring it in again: nothing will double.")
        if batch.state == ImportState.RUNNING and not _free(batch):
            raise Conflict("This import is running.")
        batch.mapping = {"source": asdict(source), "columns": mapping.as_dict()}
        batch.kind, batch.skip_bad_rows = mapping.kind, skip_bad_rows
        if not is_archive(batch):
            batch.format = source.format
        batch.state, batch.error, batch.problems, batch.finished_at = ImportState.UPLOADED, "", [], None
        batch.votes, batch.notes = [], []
        batch.bytes_read = batch.rows = batch.created = batch.unchanged = batch.bad = 0
        batch.save()
    return batch


def _check_pictures(batch: ImportBatch, mapping: Mapping) -> None:
    """Pictures come from an archive, and an archive brings pictures."""
    said = ""
    if mapping.file is not None and not is_archive(batch):
        said = "A table alone brings no pictures. Bring a ZIP or a folder with the table in it."
    if mapping.file is None and is_archive(batch) and not mapping.existing:
        said = "Say which column names the files of the pictures."
    if said:
        raise Invalid(said, fields={"file": said})


# ---------------------------------------------------------------- run
def run(batch_id: uuid.UUID, tell: Tell = lambda _bytes, _rows: None) -> ImportBatch:
    """Bring the items in. How it ends is in the batch: nothing is raised for a file that is at fault."""
    batch = ImportBatch.objects.select_related("project").get(pk=batch_id)
    with held(_key(batch)) as mine:
        batch.refresh_from_db()
        if not mine or batch.state == ImportState.DONE or (mapping := mapping_of(batch)) is None:
            return batch
        ImportBatch.objects.filter(pk=batch.pk).update(state=ImportState.RUNNING, error="", finished_at=None)
        try:
            with _file(batch, mapping) as file, _told(batch, tell) as told, transaction.atomic():
                tally = staging.bring_in(batch.project_id, batch.pk, file, told)
                _finish(batch, ImportState.DONE, tally)
        except Invalid as error:
            tally = error.tally if isinstance(error, staging.BadRows) else staging.Tally()
            _finish(batch, ImportState.FAILED, tally, error.message)
        except Exception:
            _finish(
                batch, ImportState.FAILED, staging.Tally(), "The import broke off on our side, and nothing was imported. Start it again."
            )
            log.exception("import broke off", batch=str(batch.pk))
            raise
    batch.refresh_from_db()
    if batch.state == ImportState.DONE:
        _drop_file(batch)
    return batch


@contextlib.contextmanager
def _file(batch: ImportBatch, mapping: Mapping) -> Iterator[staging.File]:
    """What is read. Rows of an archive are known by its table: packed anew it is the same."""
    table = table_of(batch)
    if not is_archive(batch):
        yield staging.File(table, source_of(batch), mapping, batch.file_hash, batch.skip_bad_rows)
        return
    with _archive(batch) as archive, Pictures(archive) as pictures:
        yield staging.File(table, source_of(batch), mapping, _hash(table), batch.skip_bad_rows, pictures)


def settled(batch: ImportBatch) -> ImportBatch:
    """The batch as it is now: one whose worker died is marked failed."""
    if batch.state == ImportState.RUNNING:
        with held(_key(batch)) as mine:
            if mine and ImportBatch.objects.filter(pk=batch.pk, state=ImportState.RUNNING).exists():
                _finish(
                    batch,
                    ImportState.FAILED,
                    staging.Tally(),
                    "The worker stopped in the middle, and nothing was imported. Start it again.",
                )
        batch.refresh_from_db()
    return batch


def discard(batch: ImportBatch) -> None:
    """Forget an upload that brought no items, and its file."""
    with transaction.atomic(), held(_key(batch)) as mine:
        if not mine or ImportBatch.objects.get(pk=batch.pk).state in (ImportState.DONE, ImportState.RUNNING):
            raise Conflict("Only an import that brought no items can be discarded.")
        ImportBatch.objects.filter(pk=batch.pk).delete()
    _drop_file(batch)


def _drop_file(batch: ImportBatch) -> None:
    """An upload goes when it is no longer needed; a file that was read where it lies stays."""
    _table(batch).unlink(missing_ok=True)
    if path_of(batch).parent == folder():
        path_of(batch).unlink(missing_ok=True)


def _finish(batch: ImportBatch, state: ImportState, tally: staging.Tally, error: str = "") -> None:
    ImportBatch.objects.filter(pk=batch.pk).update(
        state=state, error=error, finished_at=Now(), rows=tally.rows, created=tally.created, unchanged=tally.unchanged, bad=tally.bad,
        problems=[problem.as_dict() for problem in sorted(tally.problems, key=lambda problem: problem.row)],
        votes=tally.votes, notes=[note.as_dict() for note in tally.notes],
    )  # fmt: skip


# ---------------------------------------------------------------- who is at it
def _key(batch: ImportBatch) -> int:
    return int.from_bytes(batch.pk.bytes[:8], signed=True)


def _free(batch: ImportBatch) -> bool:
    with held(_key(batch)) as mine:
        return mine


@contextlib.contextmanager
def _told(batch: ImportBatch, also: Tell) -> Iterator[Tell]:
    """Says how far the import is, on a connection of its own: the import's transaction is not visible before its end."""
    aside: Any = connection.copy()
    last = 0.0

    def tell(bytes_read: int, rows: int) -> None:
        nonlocal last
        also(bytes_read, rows)
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            with aside.cursor() as cursor:
                cursor.execute(
                    "UPDATE curation_importbatch SET bytes_read = %s, rows = %s WHERE id = %s AND state = 'running'",
                    [bytes_read, rows, batch.pk],
                )

    try:
        yield tell
    finally:
        aside.close()
