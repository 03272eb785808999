"""How a project stands, on the command line."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.models import Project
from curation.api.overview import shown
from curation.overview import overview
from workers import health


class Command(BaseCommand):
    help = "Say how a project stands: items, questions, labels, people, and what needs someone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="The project's short name.")
        parser.add_argument("--json", action="store_true", help="Print everything as one JSON object.")

    def handle(self, *_: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project “{options['project']}”.")
        found = overview(project)
        unheard = health.queue_health(project)
        if options["json"]:
            self.stdout.write(json.dumps(shown(found, unheard)))
            return
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.items.kinds.items()) or "none yet"
        self.stdout.write(f"{project.name}\n  items      {kinds}")
        for asked in found.questions:
            states = ", ".join(f"{count:,} {state}" for state, count in sorted(asked.states.items())) or "no tasks yet"
            self.stdout.write(f"  {asked.slug:10} {states}; {asked.votes:,} of {asked.votes_wanted:,} votes")
            if (percents := asked.positives.percents) is not None:
                share, low, high = percents
                self.stdout.write(f"             {asked.positives.choice}: {share}% ({low} to {high}) of {asked.positives.n:,} labels")
        for need in found.needs:
            self.stdout.write(f"  needs you: {need.what} {need.why}")
        for sentence in unheard:
            self.stdout.write(f"  needs you: {sentence}")
