"""manage.py make_tasks PROJECT QUESTION: open tasks for all items of the question's kind, an import, or a sample."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import Refused
from annotation.models import Question
from curation import choosing, tasking
from curation.models import Sample


class Command(BaseCommand):
    help = "Make tasks of a question. Items that have one keep it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("question", help="the question's short name")
        some = parser.add_mutually_exclusive_group()
        some.add_argument("--sample", help="only the items of the sample of this name")
        some.add_argument("--import", dest="batch", help="only the items of the import with this id")
        some.add_argument("--prompts", action="store_true", help="only what the project's pictures were made from")
        parser.add_argument("--seeds", action="store_true", help="also for items that others of the same kind were derived from")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        question = Question.objects.select_related("project").filter(project__slug=options["project"], slug=options["question"]).first()
        if question is None:
            raise CommandError(f"There is no question {options['question']!r} in a project {options['project']!r}.")
        try:
            made = tasking.make_tasks(question, _items(question, options), seeds=options["seeds"])
        except Refused as error:
            raise CommandError(error.message) from error
        self.stdout.write(
            json.dumps({"question": question.slug, "made": made}) if options["json"] else f"{made:,} new tasks of {question.title}."
        )


def _items(question: Question, options: dict[str, Any]) -> str:
    if options["batch"]:
        return f"import:{options['batch']}"
    if not options["sample"]:
        return f"prompts:{choosing.ALL}" if options["prompts"] else choosing.ALL
    sample = Sample.objects.filter(project=question.project, name=options["sample"]).first()
    if sample is None:
        raise CommandError(f"There is no sample {options['sample']!r} in this project.")
    return f"sample:{sample.pk}"
