"""manage.py worker: one worker process."""

import warnings
from typing import Any

from celery.signals import worker_shutting_down
from django.core.management.base import BaseCommand, CommandError, CommandParser

from scoring.runs import QUEUES
from workers import process
from workers.celery import app


class Command(BaseCommand):
    help = "Do the background work of a queue: imports and scoring. Ctrl-C (or SIGTERM) finishes the chunk in hand first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--queue", choices=QUEUES, default="cpu", help="which to listen to; gpu scores on the CUDA device (default: cpu)"
        )
        parser.add_argument("--concurrency", type=int, default=2, help="jobs at a time, in threads that share what is loaded (default: 2)")

    def handle(self, *, queue: str, concurrency: int, **_: Any) -> None:
        if concurrency < 1:
            raise CommandError("--concurrency must be 1 or more.")
        if queue == "gpu":
            _need_cuda()
        bench = process.begin(queue)
        worker_shutting_down.connect(lambda **_: bench.stopping.set(), weak=False)
        companions = process.Companions(bench, [queue])
        companions.start()
        warnings.filterwarnings("ignore", "You're running the worker with superuser privileges")  # allowed, and said in docs/operators.md
        self.stdout.write(f"Worker {bench.name} listens to the {queue} queue.")
        try:
            app.worker_main(
                ["--quiet", "worker", "--pool", "threads", "--concurrency", str(concurrency), "--queues", queue,
                 "--hostname", f"{bench.name}@%h", "--loglevel", "WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat"]
            )  # fmt: skip
        finally:
            bench.stopping.set()
            companions.stop()


def _need_cuda() -> None:
    import torch  # noqa: PLC0415 - only where a GPU is asked for

    if not torch.cuda.is_available():
        raise CommandError("torch finds no CUDA device here. Use --queue cpu, or install a torch with CUDA and its driver.")
