"""Real worker processes on the test database, with a broker of their own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from django.conf import settings
from django.db import connection

MANAGE = Path(__file__).with_name("manage_with_slow.py")
PATIENCE = 90.0  # seconds, on a busy machine


def environment(*, silence: float | None = None, broker: str | None = None) -> dict[str, str]:
    """For a manage.py that works on the database of this test and shares no messages with anything else."""
    database = connection.settings_dict
    password = f":{quote(database['PASSWORD'])}" if database["PASSWORD"] else ""
    port = f":{database['PORT']}" if database["PORT"] else ""
    url = f"postgresql://{quote(database['USER'])}{password}@{port}/{database['NAME']}?host={quote(database['HOST'])}"
    named = {
        "DATABASE_URL": url,
        "REDIS_URL": settings.REDIS_URL,
        "CELERY_BROKER_URL": broker or own_broker(),
        "SECRET_KEY": settings.SECRET_KEY,
        "ASSAY_DATA": str(settings.DATA),
        "ASSAY_LOG_LEVEL": "WARNING",
    }
    return os.environ | named | ({"ASSAY_TEST_SILENCE": str(silence)} if silence else {})


def own_broker() -> str:
    """Another Redis database than the application's, so that neither takes the other's messages."""
    url = settings.CELERY_BROKER_URL
    return f"{url}?virtual_host=9" if url.startswith("redis+socket:") else url.rpartition("/")[0] + "/9"


def manage(*arguments: str, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(MANAGE), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)


@contextmanager
def worker(environment: dict[str, str], *arguments: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A worker process; asked to stop at the end, then made to."""
    process = subprocess.Popen([sys.executable, str(MANAGE), "worker", *arguments], env=environment, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(what: str, true: Callable[[], object], seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, f"waited {seconds:.0f} s in vain: {what}"
        time.sleep(0.1)
