"""manage.py scorer_add PROJECT NAME --kind KIND: add a scorer, or its next version."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.errors import Refused
from annotation.models import Project
from scoring import runs
from scoring.scorers import kinds


class Command(BaseCommand):
    help = "Add a scorer to a project. A change that could change its scores makes the next version; the same again changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("name", help="the scorer's name: small letters, digits, hyphens")
        parser.add_argument("--kind", required=True, help=f"one of: {', '.join(kinds())}")
        parser.add_argument(
            "--set", action="append", default=[], metavar="SETTING=VALUE", help="a setting of the kind, such as folder=/models/tox"
        )
        parser.add_argument(
            "--label", action="append", default=[], metavar="LABEL=SCORE", help="what a label of the model is called here; - leaves it out"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        given: dict[str, object] = {}
        for pair in options["set"]:
            name, equals, value = pair.partition("=")
            if not equals:
                raise CommandError(f"--set {pair}: write SETTING=VALUE.")
            given[name] = value
        if options["label"]:
            given["labels"] = "\n".join(options["label"])
        try:
            # Whoever has this command line owns the machine's files anyway.
            scorer, new = runs.create_scorer(project, options["name"], options["kind"], given, None, any_folder=True)
        except Refused as refusal:
            raise CommandError(refusal.message) from refusal
        if options["json"]:
            report = {"id": scorer.pk, "name": scorer.name, "version": scorer.version, "new": new, "scores": scorer.score_names}
            self.stdout.write(json.dumps(report | {"fingerprint": scorer.fingerprint}))
        else:
            self.stdout.write(f"{scorer} gives {', '.join(scorer.score_names)}{'' if new else ' (it was there already)'}.")
