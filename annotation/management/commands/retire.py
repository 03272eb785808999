"""manage.py retire PROJECT QUESTION TASK...: ask nobody any more about these tasks."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import rounds
from annotation.errors import Refused
from annotation.management.of_project import question_of


class Command(BaseCommand):
    help = "Retire tasks: leases lapse, ground truth is superseded, votes stay on record."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("question", help="the question's short name")
        parser.add_argument("tasks", nargs="+", type=int, metavar="task", help="the number of a task")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        try:
            retired = rounds.retire(question_of(options["project"], options["question"]), options["tasks"])
        except Refused as error:
            raise CommandError(error.message) from error
        self.stdout.write(json.dumps({"retired": retired}) if options["json"] else f"{retired:,} tasks retired.")
