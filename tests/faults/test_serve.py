"""`manage.py serve` as an operator meets it: started, doubled, broken under its feet, and stopped."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from config import embedded

ROOT = Path(__file__).resolve().parents[2]


class Installation:
    """A data folder of its own, and the `serve` that runs on it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.log = data.parent / "serve.log"

    def command(self) -> list[str]:
        return [sys.executable, "manage.py", "serve", "--port", str(self.port), "--workers", "1", "--no-worker"]

    def environment(self) -> dict[str, str]:
        ours = ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL")
        return {
            **{name: value for name, value in os.environ.items() if name not in ours},
            "ASSAY_DATA": str(self.data),
            "ASSAY_LOG_LEVEL": "WARNING",
        }

    def start(self) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            process = subprocess.Popen(self.command(), cwd=ROOT, env=self.environment(), stdout=log, stderr=log, start_new_session=True)
        self.wait_for_health(process)
        return process

    def run(self) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(self.command(), cwd=ROOT, env=self.environment(), capture_output=True, text=True, timeout=60, check=False)

    def healthy(self) -> bool:
        try:
            return httpx.get(f"{self.address}/healthz", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def wait_for_health(self, process: "subprocess.Popen[bytes]", seconds: float = 180) -> None:
        end = time.monotonic() + seconds
        while not self.healthy():
            assert process.poll() is None, f"serve ended with {process.returncode}:\n{self.log.read_text()}"
            assert time.monotonic() < end, f"not healthy after {seconds} s:\n{self.log.read_text()}"
            time.sleep(0.1)

    def web_server(self, serve: "subprocess.Popen[bytes]") -> psutil.Process:
        return next(child for child in psutil.Process(serve.pid).children() if "granian" in " ".join(child.cmdline()))

    def stopped(self) -> bool:
        servers = embedded.Embedded(self.data)
        return not (self.healthy() or servers.postgres_answers() or servers.redis_answers())


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    with tempfile.TemporaryDirectory(prefix="assay-") as name:
        yield Installation(Path(name) / "data")


def stop(process: "subprocess.Popen[bytes]", number: int = signal.SIGINT) -> int:
    process.send_signal(number)
    return process.wait(timeout=60)


def test_it_starts_from_nothing_refuses_a_double_and_ctrl_c_stops_all_of_it(installation: Installation) -> None:
    serve = installation.start()
    second = installation.run()
    assert second.returncode == 1
    assert f"Assay already runs on {installation.data} (process {serve.pid})." in second.stderr
    assert "Traceback" not in second.stderr
    assert stop(serve) == 0
    assert installation.stopped()
    assert installation.address in installation.log.read_text()


def test_a_taken_port_is_said_in_a_sentence(installation: Installation) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", installation.port))
        other.listen()
        done = installation.run()
    assert done.returncode == 1
    assert done.stderr.strip() == f"CommandError: Port {installation.port} of 127.0.0.1 is taken. Choose another with --port."


def test_what_dies_beneath_it_is_started_again(installation: Installation) -> None:
    serve = installation.start()
    servers = embedded.Embedded(installation.data)
    for pid in (
        installation.web_server(serve).pid,
        int((servers.pgdata / "postmaster.pid").read_text().split()[0]),
        int((servers.run / "redis.pid").read_text()),
    ):
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.3)
        installation.wait_for_health(serve)
    assert stop(serve) == 0
    assert installation.stopped()


def test_a_killed_serve_is_followed_by_the_next_on_the_same_servers(installation: Installation) -> None:
    serve = installation.start()
    web = installation.web_server(serve)
    serve.kill()
    serve.wait()
    web.wait(timeout=40)  # the kernel told it
    serve = installation.start()
    assert stop(serve, signal.SIGTERM) == 0
    assert installation.stopped()


def test_a_request_in_hand_is_answered_before_it_stops(installation: Installation) -> None:
    serve = installation.start()
    answers: list[int] = []
    with httpx.Client(base_url=installation.address, timeout=40) as client:
        client.get("/sign-in/")
        form = {"login": "nobody", "password": "wrong", "csrfmiddlewaretoken": client.cookies["assay_csrf"]}
        servers = embedded.Embedded(installation.data)
        with psycopg.connect(host=str(servers.run), user=embedded.USER, dbname=embedded.DATABASE) as connection:
            connection.execute("LOCK TABLE annotation_user IN ACCESS EXCLUSIVE MODE")  # the request waits for this
            sending = threading.Thread(target=lambda: answers.append(client.post("/sign-in/", data=form).status_code))
            sending.start()
            time.sleep(1)
            serve.send_signal(signal.SIGTERM)
            time.sleep(1)
            connection.rollback()
        sending.join(timeout=40)
    assert answers == [200]  # the form again: wrong password
    assert serve.wait(timeout=60) == 0
    assert installation.stopped()
