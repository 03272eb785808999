"""manage.py project add SLUG NAME: an empty project."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import people
from annotation.errors import Refused


class Command(BaseCommand):
    help = "Begin a project. `manage.py member add SLUG NAME researcher` gives it its first researcher."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("do", choices=["add"])
        parser.add_argument("slug", help="its short name in addresses")
        parser.add_argument("name")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        try:
            project = people.add_project(options["slug"], options["name"])
        except Refused as refusal:
            raise CommandError(" ".join([refusal.message, *refusal.fields.values()])) from refusal
        self.stdout.write(
            json.dumps({"slug": project.slug, "name": project.name}) if options["json"] else f"{project.name} is at /p/{project.slug}/."
        )
