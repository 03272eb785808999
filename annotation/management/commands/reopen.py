"""manage.py reopen PROJECT QUESTION TASK... | --after-guideline gaps|disputed|settled: ask anew, in a new round."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import questions, rounds
from annotation.errors import Refused
from annotation.management.of_project import question_of


class Command(BaseCommand):
    help = "Re-open tasks in a new round: ground truth is superseded, earlier votes stay on record and count no more."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("question", help="the question's short name")
        some = parser.add_mutually_exclusive_group(required=True)
        some.add_argument("--tasks", nargs="+", type=int, metavar="TASK", help="the numbers of tasks")
        some.add_argument("--after-guideline", choices=rounds.GROUPS, help="what was settled or disputed before the latest version")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        try:
            question = question_of(options["project"], options["question"])
            if options["tasks"]:
                reopened = rounds.reopen(question, options["tasks"])
            else:
                version = questions.current_guideline(question).version
                reopened = rounds.reopen_affected(question, options["after_guideline"], version=version)
        except Refused as error:
            raise CommandError(error.message) from error
        self.stdout.write(json.dumps({"reopened": reopened}) if options["json"] else f"{reopened:,} tasks open again, in a new round.")
