"""The embedded servers are killed in every way, and found or started again by whoever comes next."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from config import embedded

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def data() -> Iterator[Path]:
    """A data folder of its own, with a path short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="assay-") as name:
        yield Path(name) / "data"
        servers = embedded.Embedded(Path(name) / "data")
        assert not servers.postgres_answers(), "PostgreSQL was left running"
        assert not servers.redis_answers(), "Redis was left running"


def open_(folder: Path) -> embedded.Embedded:
    servers = embedded.prepare(folder)
    servers.ensure()
    return servers


def pid_of(file: Path) -> int:
    return int(file.read_text().split()[0])


def wait_until(true: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def execute(servers: embedded.Embedded, *statements: str) -> list[tuple[object, ...]]:
    with psycopg.connect(host=str(servers.run), user=embedded.USER, dbname=embedded.DATABASE) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def another_process(folder: Path, then: str) -> "subprocess.Popen[bytes]":
    """A process that uses the servers, says so, and then does `then`."""
    code = f"""
import sys, time
from pathlib import Path
from config import embedded
servers = embedded.prepare(Path({str(folder)!r}))
servers.ensure()
print("ready", flush=True)
{then}
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_the_last_one_out_stops_both_servers(data: Path) -> None:
    first, second = open_(data), open_(data)
    assert not first.leave()
    assert second.postgres_answers()
    assert second.redis_answers()
    assert second.leave()
    assert not second.postgres_answers()
    assert not second.redis_answers()


def test_what_was_written_is_there_at_the_next_start(data: Path) -> None:
    servers = open_(data)
    execute(servers, "CREATE TABLE note (body text)", "INSERT INTO note VALUES ('kept')")
    redis.Redis(unix_socket_path=str(servers.redis_socket)).set("note", "kept")
    assert servers.leave()
    servers = open_(data)
    assert execute(servers, "SELECT body FROM note") == [("kept",)]
    assert redis.Redis(unix_socket_path=str(servers.redis_socket)).get("note") == b"kept"
    servers.leave()


def test_a_killed_postmaster_is_started_again_and_has_what_was_committed(data: Path) -> None:
    servers = open_(data)
    execute(servers, "CREATE TABLE note (body text)", "INSERT INTO note VALUES ('committed')")
    os.kill(pid_of(servers.pgdata / "postmaster.pid"), signal.SIGKILL)
    wait_until(lambda: not servers.postgres_answers())
    servers.ensure()
    assert execute(servers, "SELECT body FROM note") == [("committed",)]
    servers.leave()


def test_a_killed_redis_is_started_again(data: Path) -> None:
    servers = open_(data)
    os.kill(pid_of(servers.run / "redis.pid"), signal.SIGKILL)
    wait_until(lambda: not servers.redis_answers())
    servers.ensure()
    assert servers.redis_answers()
    servers.leave()


def test_a_number_that_now_belongs_to_another_process_does_not_stop_the_start(data: Path) -> None:
    """After a reboot, or in a new container, the killed server's process id is somebody else's."""
    servers = open_(data)
    pid_file = servers.pgdata / "postmaster.pid"
    postmaster, content = pid_of(pid_file), pid_file.read_text()
    os.kill(postmaster, signal.SIGKILL)
    wait_until(lambda: not servers.postgres_answers())
    pid_file.write_text(content.replace(str(postmaster), str(os.getpid()), 1))
    servers.ensure()
    assert pid_of(pid_file) != os.getpid()
    servers.leave()


def test_a_killed_user_leaves_the_servers_to_the_next_who_then_stops_them(data: Path) -> None:
    process = another_process(data, "time.sleep(60)")
    postmaster = pid_of(data / "postgres" / "postmaster.pid")
    process.kill()
    process.wait()
    servers = open_(data)
    assert pid_of(data / "postgres" / "postmaster.pid") == postmaster, "the running server was taken over"
    assert servers.leave()


def test_two_processes_that_start_at_once_share_one_server(data: Path) -> None:
    code = f"""
from pathlib import Path
from config import embedded
servers = embedded.prepare(Path({str(data)!r}))
servers.ensure()
assert servers.postgres_answers() and servers.redis_answers()
"""
    both = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) for _ in range(2)]
    assert [process.wait(timeout=90) for process in both] == [0, 0]
    assert not embedded.Embedded(data).postgres_answers()


def test_an_interrupted_first_start_begins_anew(data: Path) -> None:
    (data / "postgres.making").mkdir(parents=True)
    (data / "postgres.making" / "PG_VERSION").write_text("18\n")
    servers = open_(data)
    assert servers.postgres_answers()
    servers.leave()


def test_a_long_path_has_its_sockets_in_the_temporary_folder(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 20) / "with a space"
    servers = open_(folder)
    assert not servers.run.is_relative_to(folder)
    assert servers.postgres_answers()
    assert servers.redis_answers()
    assert servers.leave()


def test_nobody_else_reaches_the_sockets(data: Path) -> None:
    servers = open_(data)
    assert servers.run.stat().st_mode & 0o077 == 0
    servers.leave()
