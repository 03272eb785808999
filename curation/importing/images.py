"""The pictures that the rows of a table name: read from their archive, cleaned in a few threads, kept in the storage."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from annotation import media, pictures
from annotation.pictures import BadPicture
from curation.importing.archives import Archive

THREADS = min(8, 2 * (os.cpu_count() or 1))  # each holds one picture; half of them wait for the storage


@dataclass(frozen=True)
class Kept:
    """A picture in the storage, as its row in the table of media will say."""

    digest: bytes
    format: str
    width: int
    height: int
    size: int
    note: str


class Pictures:
    """What became of each picture that was named so far. No row of the database is written here, and none is read."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.folder = archive.folder
        self.found: dict[str, Kept | str] = {}  # by the name that the row gives: a picture, or why there is none
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="pictures")

    def __enter__(self) -> "Pictures":
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)

    def of(self, names: list[str | None]) -> list[Kept | str | None]:
        """For each name its picture, or in words why there is none; None where a row names none."""
        new = [name for name in dict.fromkeys(names) if name is not None and name not in self.found]
        self.found.update(zip(new, self._threads.map(self._kept, new), strict=True))
        return [None if name is None else self.found[name] for name in names]

    def _kept(self, name: str) -> Kept | str:
        try:
            picture = pictures.clean(self.archive.read(self.archive.find(name, self.folder)))
        except BadPicture as error:
            return error.reason
        media.store(picture)
        return Kept(bytes.fromhex(picture.hash), picture.format, picture.width, picture.height, len(picture.data), picture.note)

    def rows(self) -> list[tuple[str, str, int, int, int]]:
        """hash, format, width, height and size of every picture, each once; by hash, so that two imports never wait in a circle."""
        return sorted({(kept.digest.hex(), kept.format, kept.width, kept.height, kept.size) for kept in self._kept_ones()})

    def _kept_ones(self) -> Iterator[Kept]:
        return (kept for kept in self.found.values() if isinstance(kept, Kept))
