"""An import that is killed leaves nothing, and a large file costs little memory. Real processes, real signals."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection

from annotation.models import Item
from curation.importing import service
from curation.importing.mapping import Mapping
from curation.models import ImportBatch
from tests.cast import make_project

ROOT = Path(__file__).resolve().parents[2]
LINE = "row-{0},Text number {0} of a file that goes on and on about the weather by the quiet river.,A2T\n"
ID_AND_TEXT = Mapping(text="text", external_id="id")


def write(path: Path, rows: int) -> Path:
    with path.open("w") as file:
        file.write("id,text,recipe\n")
        for start in range(0, rows, 10_000):
            file.write("".join(LINE.format(number) for number in range(start, min(start + 10_000, rows))))
    return path


def importing(path: Path, *options: str) -> "subprocess.Popen[bytes]":
    """`manage.py import_items study FILE` on the test's database, in a process of its own."""
    at = connection.settings_dict
    password = f":{quote(at['PASSWORD'])}" if at["PASSWORD"] else ""
    port = f":{at['PORT']}" if at["PORT"] else ""
    environment = {
        **os.environ,
        "DATABASE_URL": f"postgresql://{quote(at['USER'])}{password}@{port}/{at['NAME']}?host={quote(at['HOST'])}",
        "REDIS_URL": settings.REDIS_URL,
        "SECRET_KEY": "for a test",
        "ASSAY_DATA": str(settings.DATA),
    }
    command = [sys.executable, "manage.py", "import_items", "study", str(path), "--text", "text", "--id", "id", "--json", *options]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def wait_for_rows(process: "subprocess.Popen[bytes]") -> ImportBatch:
    """Until the import says, from outside its transaction, that it has read some rows."""
    for _ in range(1200):
        assert process.poll() is None, "the import ended before it could be killed"
        batch = ImportBatch.objects.filter(state="running", rows__gt=0).first()
        if batch is not None:
            return batch
        time.sleep(0.05)
    raise AssertionError("the import never told how far it is")


@pytest.mark.django_db(transaction=True)
def test_a_killed_import_leaves_nothing_is_marked_failed_and_can_be_started_again(tmp_path: Path) -> None:
    project = make_project()
    path = write(tmp_path / "large.csv", 400_000)
    process = importing(path)
    try:
        batch = wait_for_rows(process)
        assert 0 < batch.rows <= 400_000
        assert 0 < batch.bytes_read <= batch.size
        assert service.settled(batch).state == "running", "a live import is left alone"
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=30)
    for _ in range(200):  # the server ends the dead process's transaction as soon as it looks at the line
        batch = service.settled(batch)
        if batch.state != "running":
            break
        time.sleep(0.05)
    assert batch.state == "failed"
    assert batch.error == "The worker stopped in the middle, and nothing was imported. Start it again."
    assert not Item.objects.exists()
    small = write(path, 1000)
    batch = service.start(service.take(project, small, None), ID_AND_TEXT)
    assert service.run(batch.pk).created == 1000


@pytest.mark.django_db(transaction=True)
def test_an_import_that_runs_is_not_run_twice(tmp_path: Path) -> None:
    make_project()
    process = importing(write(tmp_path / "large.csv", 300_000))
    try:
        batch = wait_for_rows(process)
        again = service.run(batch.pk)
        assert again.state == "running"
        out, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
    assert json.loads(out)["created"] == 300_000
    assert Item.objects.count() == 300_000


def peak_mb_of_import(path: Path, rows: int) -> float:
    """The most memory that the importing process ever had, as the kernel kept it (VmHWM), read while it lives.

    Not its ru_maxrss: a child inherits that from the process that started it, and pytest is large.
    """
    process, peak = importing(path), 0
    while process.poll() is None:
        with contextlib.suppress(OSError, StopIteration):
            status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            peak = int(next(line for line in status if line.startswith("VmHWM:")).split()[1])
        time.sleep(0.01)
    out, _ = process.communicate()
    assert json.loads(out)["created"] == rows
    return peak / 1024


@pytest.mark.django_db(transaction=True)
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    make_project()
    small, large = (peak_mb_of_import(write(tmp_path / f"{rows}.csv", rows), new) for rows, new in ((50_000, 50_000), (200_000, 150_000)))
    assert large < 400
    assert large < small * 1.3, "four times the rows"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_file_of_two_hundred_megabytes_imports_in_bounded_memory(tmp_path: Path) -> None:
    make_project()
    rows = 2_200_000
    path = write(tmp_path / "large.csv", rows)
    assert path.stat().st_size > 200_000_000
    assert peak_mb_of_import(path, rows) < 500
