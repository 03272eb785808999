"""`manage.py serve`: everything that an installation needs, in the foreground."""

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, CommandParser, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from workers import serving


class Command(BaseCommand):
    help = "Start the web server and a worker, and the embedded PostgreSQL and Redis where none are named. Ctrl-C stops all of it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (default 127.0.0.1: this machine only)")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument(
            "--workers", type=int, default=min(os.cpu_count() or 1, 8), help="web processes (default: one a core, at most 8)"
        )
        parser.add_argument("--no-worker", action="store_true", help="no background worker; start one with `manage.py worker`")

    def handle(self, *, host: str, port: int, workers: int, no_worker: bool, **_: Any) -> None:
        if workers < 1:
            raise CommandError("--workers must be 1 or more.")
        try:
            with serving.alone(settings.DATA):
                if reason := serving.why_not_listen(host, port):
                    raise CommandError(reason)
                self._make_ready()
                programs = [serving.web(host, port, workers), *([] if no_worker else [serving.worker()])]

                def greet() -> bool:
                    if not serving.why_not_listen(host, port):
                        return False  # nobody there yet
                    self._say(f"Assay is at http://{_shown(host)}:{port}/   (Ctrl-C stops it; data in {settings.DATA})")
                    return True

                serving.Supervisor(programs, settings.EMBEDDED, self._say, greet).run()
        except serving.AlreadyServed as error:
            raise CommandError(str(error)) from error
        self._say("Stopped.")

    def _make_ready(self) -> None:
        """The database as this code needs it, and the static files where the web server looks for them."""
        self.check(databases=["default"])
        if settings.EMBEDDED is not None:
            call_command("migrate", verbosity=0, interactive=False)
        elif missing := _missing_migrations():
            raise CommandError(f"The database lacks {missing} migration{'s' if missing > 1 else ''}. Run `manage.py migrate` first.")
        connection.close()
        call_command("collectstatic", verbosity=0, interactive=False)
        os.chdir(Path(settings.BASE_DIR))

    def _say(self, words: str) -> None:
        self.stdout.write(words)
        self.stdout.flush()


def _missing_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - what to type, not what to bind
        return "localhost"
    return f"[{host}]" if ":" in host else host
