"""This worker process: what it is called, where it computes, and the two threads that need no broker.

One says every few seconds that the process lives. The other looks for runs that wait while the process is idle: work
whose message was lost with a killed worker, or that was never sent because the broker was away.
"""

import os
import socket
import threading
from collections.abc import Callable, Sequence

import structlog
from django.db import close_old_connections, connection

from scoring import runs, working
from scoring.scorers.base import Machine
from scoring.working import Bench
from workers import health

log = structlog.get_logger("assay.workers")
LOOK = 5.0  # seconds


_benches: list[Bench] = []


def begin(queue: str) -> Bench:
    """The bench of this process, which works for `queue`. The worker command calls it once."""
    device = "cuda" if queue == "gpu" else "cpu"
    _benches[:] = [Bench(name=f"{queue}-{socket.gethostname()}-{os.getpid()}", machine=Machine(device, runs.hub_cache()))]
    return _benches[0]


def bench() -> Bench:
    """The bench of this process; a process that never said for which queue it works has the CPU's."""
    return _benches[0] if _benches else begin("cpu")


class Companions:
    """The two threads, for as long as the worker runs."""

    def __init__(self, own: Bench, queues: Sequence[str]) -> None:
        self.bench, self.queues = own, list(queues)
        self.over = threading.Event()
        rounds: list[tuple[float, Callable[[], None]]] = [(health.REPORT, self._report), (LOOK, self._look)]
        self.threads = [threading.Thread(target=self._every, args=each, daemon=True) for each in rounds]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Also takes the worker off the list: it left, it was not lost."""
        self.over.set()
        for thread in self.threads:
            thread.join(timeout=working.BEAT)
        health.leave(self.bench.name)

    def _every(self, seconds: float, do: Callable[[], None]) -> None:
        while True:
            try:
                do()
            except Exception as error:  # noqa: BLE001 - the database may be away for a while; the thread must outlive that
                log.warning("companion", what=do.__name__, reason=f"{type(error).__name__}: {error}"[:300])
                close_old_connections()
            if self.over.wait(seconds):
                break
        connection.close()

    def _report(self) -> None:
        health.report(self.bench.name, self.queues, self.bench.machine.device, next(iter(list(self.bench.doing.values())), ""))

    def _look(self) -> None:
        while not self.bench.doing and not self.bench.stopping.is_set() and (run_id := runs.next_run(self.queues)) is not None:
            working.work_on(run_id, self.bench)
