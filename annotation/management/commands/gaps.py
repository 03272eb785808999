"""manage.py gaps PROJECT QUESTION: what adjudicators say that the guideline leaves open."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import gaps, questions
from annotation.errors import Refused
from annotation.management.of_project import question_of


class Command(BaseCommand):
    help = "List the rulings that name a gap in a question's latest guideline, by the choice that was ruled."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("question", help="the question's short name")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        try:
            guideline = questions.current_guideline(question_of(options["project"], options["question"]))
        except Refused as error:
            raise CommandError(error.message) from error
        found = gaps.under(guideline)
        rows = [
            {"choice": of.choice, "count": of.count, "rulings": [{"task": one.task_id, "note": one.note} for one in of.rulings]}
            for of in found
        ]
        if options["json"]:
            self.stdout.write(json.dumps({"version": guideline.version, "gaps": rows}))
            return
        lines = [f"{of.choice}, task {one.task_id}: {one.note}" for of in found for one in of.rulings]
        self.stdout.write("\n".join(lines) or f"No ruling names a gap in version {guideline.version}.")
