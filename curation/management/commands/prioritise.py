"""manage.py prioritise PROJECT QUESTION: some tasks come before all others, or go back in line."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import Refused
from annotation.models import Question
from curation import choosing, tasking
from curation.models import TaskVerb


class Command(BaseCommand):
    help = "Put tasks of a question first, or back in line. Tasks that somebody has begun stay before them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("question", help="the question's short name")
        parser.add_argument(
            "--items", default=choosing.ALL, help="all, import:<id>, sample:<id>, question:<slug>, or prompts:<one of these>"
        )
        parser.add_argument("--where", metavar="KEY=VALUE", action="append", default=[], help="only items with this metadata")
        parser.add_argument("--task", type=int, action="append", default=[], help="a single task, by number; may be given again")
        parser.add_argument("--back", action="store_true", help="put them back in line")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        question = Question.objects.select_related("project").filter(project__slug=options["project"], slug=options["question"]).first()
        if question is None:
            raise CommandError(f"There is no question {options['question']!r} in a project {options['project']!r}.")
        verb = TaskVerb.PUT_BACK if options["back"] else TaskVerb.PUT_FIRST
        try:
            if options["task"]:
                batch = tasking.move_listed(question, verb, options["task"])
            else:
                batch = tasking.run(tasking.start(question, verb, options["items"], metadata=_metadata(options["where"])).pk)
        except Refused as error:
            raise CommandError(error.message) from error
        said = {"question": question.slug, "verb": str(batch.verb), "moved": batch.changed}
        self.stdout.write(json.dumps(said) if options["json"] else f"{tasking.in_words(batch, f' of {question.title}')}.")


def _metadata(given: list[str]) -> dict[str, str]:
    if bad := [one for one in given if "=" not in one]:
        raise CommandError(f"{bad[0]!r} is not KEY=VALUE.")
    return dict(one.split("=", 1) for one in given)
