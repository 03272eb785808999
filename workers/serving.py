"""Keeps the programs of one installation running: the web server, the worker, and embedded PostgreSQL and Redis."""

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from config.embedded import CannotStart, Embedded

# In each web process; each keeps a database connection. Fewer label faster (they quarrel less about the interpreter), more keep
# a slow download or a large comparison from holding up the annotators.
BLOCKING_THREADS = 4
STOP_SECONDS = 30
LOOK_SECONDS = 0.5
SERVERS_SECONDS = 5.0


@dataclass
class Program:
    """A child process that is started again when it ends, after a pause that grows while it keeps failing."""

    name: str
    command: list[str]
    process: "subprocess.Popen[bytes] | None" = None
    started: float = 0.0
    pause: float = 0.0
    due: float = 0.0

    def start(self) -> None:
        # Its own process group: Ctrl-C reaches `serve` alone, which then stops everything in order.
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_end_with_parent)  # noqa: PLW1509
        self.started = time.monotonic()

    def signal_all(self, number: int) -> None:
        """The signal to the process and to what it started."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)

    def watch(self, say: Callable[[str], None]) -> None:
        """Start it again if it has ended."""
        if self.process is None:
            if time.monotonic() >= self.due:
                self.start()
            return
        code = self.process.poll()
        if code is None:
            return
        self.signal_all(signal.SIGKILL)  # what it may have left behind
        lived = time.monotonic() - self.started
        self.pause = 0.0 if lived > 60 else min(max(1.0, self.pause * 2), 30.0)
        self.due = time.monotonic() + self.pause
        self.process = None
        say(f"The {self.name} ended ({_how(code)}); starting it again{f' in {self.pause:.0f} s' if self.pause else ''}.")


def web(host: str, port: int, processes: int) -> Program:
    return Program(
        "web server",
        [
            sys.executable, "-m", "granian", "--interface", "wsgi", "--host", host, "--port", str(port), "--no-ws",
            "--workers", str(processes), "--blocking-threads", str(BLOCKING_THREADS), "--backlog", "1024",
            "--respawn-failed-workers", "--workers-kill-timeout", str(STOP_SECONDS - 5), "--log-level", "error",
            "config.wsgi:application",
        ],
    )  # fmt: skip


def worker() -> Program:
    return Program("worker", [sys.executable, "manage.py", "worker", "--queue", "cpu"])


class Supervisor:
    """Runs programs until it is told to stop, and the embedded servers beneath them."""

    def __init__(self, programs: list[Program], embedded: Embedded | None, say: Callable[[str], None], greet: Callable[[], bool]) -> None:
        """`greet` is called again and again until it returns True: until the web server could be greeted."""
        self.programs = programs
        self.embedded = embedded
        self.say = say
        self.greet = greet
        self.stopping = False
        self._servers_due = 0.0

    def run(self) -> None:
        """Returns when SIGINT or SIGTERM has come and everything has stopped."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        greeted = False
        try:
            while not self.stopping:
                self._watch_servers()
                for program in self.programs:
                    program.watch(self.say)
                greeted = greeted or self.greet()
                time.sleep(LOOK_SECONDS)
        finally:
            self._stop_programs()

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def _watch_servers(self) -> None:
        if self.embedded is None or time.monotonic() < self._servers_due:
            return
        try:
            if not self.embedded.postgres_answers():
                self.say("PostgreSQL does not answer; starting it again.")
            if not self.embedded.redis_answers():
                self.say("Redis does not answer; starting it again.")
            self.embedded.ensure()
        except (CannotStart, OSError) as error:
            self.say(str(error))
        self._servers_due = time.monotonic() + SERVERS_SECONDS

    def _stop_programs(self) -> None:
        """Ask, wait, insist. The web server answers what it has begun; the worker hands its chunk back."""
        running = [program.process for program in self.programs if program.process is not None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        for program in self.programs:
            program.signal_all(signal.SIGKILL)
        for process in running:
            process.wait()


class AlreadyServed(RuntimeError):
    """Another `serve` holds this data folder."""


@contextlib.contextmanager
def alone(data: Path) -> Iterator[None]:
    """Hold the data folder: one `serve` at a time. The kernel lets go when the process ends, however it ends."""
    with (data / "serve.pid").open("a+") as pid:
        try:
            fcntl.flock(pid, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid.seek(0)
            other = pid.read().strip() or "unknown"
            raise AlreadyServed(
                f"Assay already runs on {data} (process {other}). Stop it first, or name another folder with ASSAY_DATA."
            ) from None
        pid.truncate(0)
        pid.write(f"{os.getpid()}\n")
        pid.flush()
        yield
        pid.truncate(0)


def why_not_listen(host: str, port: int) -> str:
    """Why the web server could not listen there, in a sentence; empty when it can."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"Port {port} of {host} is taken. Choose another with --port."
        return f"Cannot listen at {host}, port {port}: {error.strerror or error}."
    return ""


def _end_with_parent() -> None:
    """On Linux the kernel asks a child to stop when `serve` is killed, so that the next `serve` finds the port free."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _how(code: int) -> str:
    return f"by signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
