"""manage.py void PROJECT NUMBER --by RESEARCHER --why "...": strike out all votes of a member."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import rounds
from annotation.errors import Refused
from annotation.management.of_project import member_of, question_of, researcher_of


class Command(BaseCommand):
    help = "Strike out a member's votes: exactly their slots are open again. There is no way back."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("number", type=int, help="the member's number: 7 for Annotator 7")
        parser.add_argument("--question", help="only votes on the question of this short name")
        parser.add_argument("--by", required=True, help="the user name of the researcher in whose name it is done")
        parser.add_argument("--why", required=True, help="kept with every vote")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        project = options["project"]
        try:
            asked = question_of(project, options["question"]) if options["question"] else None
            by = researcher_of(project, options["by"])
            done = rounds.void_votes(member_of(project, options["number"]), asked, by=by, why=options["why"])
        except Refused as error:
            raise CommandError(error.message) from error
        said = f"{done.votes:,} votes struck out, {done.reopened:,} tasks open again, {done.kept_by_ruling:,} kept by a ruling."
        self.stdout.write(json.dumps(asdict(done)) if options["json"] else said)
