"""manage.py score PROJECT SCORER: start a run, and wait for it or work on it here."""

import json
import sys
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from annotation.errors import Refused
from annotation.models import Project
from scoring import progress, runs, working
from scoring.models import RunState, Scorer, ScoringRun
from workers import health, process, tasks

LOOK = 0.5  # seconds
UNENDED = (*runs.ACTIVE, RunState.PAUSED)


class Command(BaseCommand):
    help = "Give items the scores of a scorer. Exits with 1 when the run fails or is cancelled."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("scorer", help="its name, for the latest version, or name:version")
        parser.add_argument("--items", nargs="+", type=int, metavar="ID", help="only these items (default: all of the scorer's kind)")
        parser.add_argument("--queue", choices=runs.QUEUES, default="cpu")
        parser.add_argument("--wait", action="store_true", help="return when the run has ended")
        parser.add_argument("--here", action="store_true", help="do the work in this process: no Redis and no worker needed")
        parser.add_argument("--json", action="store_true", help="print one JSON object at the end")

    def handle(self, **options: Any) -> None:
        scorer = _scorer(options["project"], options["scorer"])
        try:
            run = runs.start_run(scorer, options["items"], None, queue=options["queue"])
        except Refused as refusal:
            raise CommandError(refusal.message) from refusal
        if options["here"]:
            self._work(run)
        else:
            tasks.wake(run)
        if options["here"] or options["wait"]:
            self._wait(run)
        self._report(run, as_json=options["json"], ended=options["here"] or options["wait"])

    def _bar(self, run: ScoringRun) -> "tqdm[Any]":
        return tqdm(total=run.total, unit=" items", unit_scale=True, disable=not sys.stderr.isatty())

    def _work(self, run: ScoringRun) -> None:
        bench = process.begin(run.queue)
        with self._bar(run) as bar:
            while working.work_on(run.pk, bench, each=lambda claimed: bar.update(len(claimed.item_ids)) and None):
                pass

    def _wait(self, run: ScoringRun) -> None:
        run.refresh_from_db()
        if run.state not in UNENDED:
            return
        for sentence in health.queue_health(run.project):
            self.stderr.write(sentence)
        with self._bar(run) as bar:
            while run.state in UNENDED:
                bar.update(run.done + run.failed - bar.n)
                time.sleep(LOOK)
                run.refresh_from_db()

    def _report(self, run: ScoringRun, *, as_json: bool, ended: bool) -> None:
        took = progress.standing(run).took
        seconds = took.total_seconds() if took else None
        report = {
            "run": run.pk, "scorer": str(run.scorer), "state": run.state, "total": run.total, "done": run.done, "failed": run.failed,
            "already_scored": run.already_scored, "seconds": seconds, "error": run.error,
        }  # fmt: skip
        if as_json:
            self.stdout.write(json.dumps(report))
        else:
            line = f"Run {run.pk} with {run.scorer} is {run.state}: {run.done:,} of {run.total:,} scored, {run.failed:,} failed"
            self.stdout.write(f"{line}, {run.already_scored:,} had scores before.")
        if ended and run.state != RunState.DONE:
            raise CommandError(run.error or f"The run is {run.state}.")


def _scorer(slug: str, named: str) -> Scorer:
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        raise CommandError(f"There is no project {slug!r}.")
    name, _, version = named.partition(":")
    versions = Scorer.objects.filter(project=project, name=name)
    if version:
        versions = versions.filter(version=int(version) if version.isdecimal() else 0)
    found = versions.order_by("-version").first()
    if found is None:
        raise CommandError(
            f"{project.slug} has no scorer {named!r}. Add one with: python manage.py scorer_add {project.slug} {name} --kind profanity"
        )
    return found
