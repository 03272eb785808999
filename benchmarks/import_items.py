"""python -m benchmarks.import_items --rows 1000000: the import service beside raw COPY of the same rows.

The file is CSV: id, text (8 to 28 words, a tenth of them quoted), two metadata columns. The floor is PostgreSQL's own CSV
reader, fed the file as it is, into a table of four text columns without index or constraint (`ratio`). Beside it, as the
nearer floor: COPY of the finished rows, hash and JSON and all, into a table shaped as the items' (`ratio_as_stored`), again
without index or constraint. All are measured in turn, in one run, on one database.
`peak_mb` is of the importing process, a process of its own that does nothing else.
"""

import argparse
import multiprocessing
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import common

WORDS = [
    "the", "a", "green", "river", "small", "house", "quiet", "morning", "people", "walk", "slowly", "over", "bridge", "and", "talk",
    "about", "weather", "bread", "music", "train", "station", "garden", "letter", "friend", "window", "yellow", "paper",
]  # fmt: skip
RECIPES = ("A2T", "PWWS", "TextFooler", "BAE", "DeepWordBug")
TARGETS = ("first", "second")


def write(path: Path, rows: int, seed: int) -> None:
    """A file of mild texts, the same for the same seed."""
    chance = random.Random(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write("id,text,recipe,target\n")
        for row in range(rows):
            text = " ".join(chance.choices(WORDS, k=chance.randint(8, 28)))
            if row % 10 == 0:
                text = f'"Then, ""{text}"", it said"'
            file.write(f"row-{row},{text},{chance.choice(RECIPES)},{chance.choice(TARGETS)}\n")


def copy_bare(path: Path) -> float:
    """Seconds to COPY the file into a bare table, commit included."""
    with psycopg.connect(**common.conninfo(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bare")
        connection.execute("CREATE TABLE bare (id text, text text, recipe text, target text)")
        began = time.perf_counter()
        with connection.cursor() as cursor, cursor.copy("COPY bare FROM STDIN (FORMAT csv, HEADER)") as copy, path.open("rb") as file:
            while piece := file.read(1 << 18):
                copy.write(piece)
        took = time.perf_counter() - began
        connection.execute("DROP TABLE bare")
    return took


def copy_as_stored(path: Path) -> float:
    """Seconds to COPY the rows that the import made into a bare table of the same columns, commit included."""
    with psycopg.connect(**common.conninfo(), autocommit=True) as connection, connection.cursor() as cursor:
        with cursor.copy("COPY annotation_item TO STDOUT (FORMAT binary)") as copy, path.open("wb") as file:
            for piece in copy:
                file.write(piece)
        cursor.execute("CREATE TABLE stored (LIKE annotation_item)")
        began = time.perf_counter()
        with cursor.copy("COPY stored FROM STDIN (FORMAT binary)") as copy, path.open("rb") as file:
            while piece := file.read(1 << 18):
                copy.write(piece)
        took = time.perf_counter() - began
        cursor.execute("DROP TABLE stored")
    return took


def import_file(database: str, path: str, told: Any) -> None:
    """In a process of its own: import the file, tell seconds and peak."""
    common._connect_to(database)
    from annotation.models import Item, Project
    from curation.importing import service
    from curation.importing.mapping import Mapping

    project = Project.objects.create(slug=f"p{time.time_ns()}", name="Bench", seed=1)
    batch = service.take(project, Path(path), None)
    service.start(batch, Mapping(text="text", external_id="id"))
    began = time.perf_counter()
    batch = service.run(batch.pk)
    took = time.perf_counter() - began
    assert batch.state == "done", batch.error
    assert batch.created == Item.objects.filter(project=project).count()
    told.send((took, batch.created, common.peak_mb()))


def measure_import(database: str, path: Path) -> tuple[float, int, float]:
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=import_file, args=(database, str(path), there))
    process.start()
    there.close()
    found: tuple[float, int, float] = here.recv()
    process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3, help="how often each is measured; the medians are compared")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, common.scratch_database("import") as database:
        path = Path(folder) / "items.csv"
        write(path, arguments.rows, arguments.seed)
        common.say(f"{arguments.rows:,} rows, {path.stat().st_size / 1e6:.0f} MB")
        copies, stored, imports, peaks = [], [], [], []
        for repeat in range(arguments.repeats):
            with psycopg.connect(**common.conninfo(), autocommit=True) as connection:
                connection.execute("TRUNCATE annotation_item CASCADE")
                connection.execute("CHECKPOINT")
            copies.append(copy_bare(path))
            took, made, peak = measure_import(database, path)
            assert made == arguments.rows
            imports.append(took)
            stored.append(copy_as_stored(Path(folder) / "stored"))
            peaks.append(peak)
            common.say(f"{repeat + 1}: copy {copies[-1]:.2f} s, as stored {stored[-1]:.2f} s, import {took:.2f} s, peak {peak:.0f} MB")
        copied, imported = common.median(copies), common.median(imports)
        common.report(
            benchmark="import_items", rows=arguments.rows,
            rows_per_s=round(arguments.rows / imported), copy_rows_per_s=round(arguments.rows / copied),
            ratio=round(copied / imported, 3), ratio_as_stored=round(common.median(stored) / imported, 3),
            peak_mb=max(peaks), repeats=arguments.repeats, file_mb=round(path.stat().st_size / 1e6, 1),
        )  # fmt: skip


if __name__ == "__main__":
    main()
