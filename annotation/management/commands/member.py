"""manage.py member add PROJECT NAME ROLE: a person's part in a project."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import people
from annotation.errors import Refused
from annotation.models import Project


class Command(BaseCommand):
    help = "Give an account a part in a project."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("do", choices=["add"])
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("name", help="an account's user name")
        parser.add_argument("role", choices=[role.value for role in people.PEOPLE])
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        try:
            member = people.add_member(project, options["name"], options["role"]).member
        except Refused as refusal:
            raise CommandError(" ".join([refusal.message, *refusal.fields.values()])) from refusal
        if options["json"]:
            self.stdout.write(
                json.dumps({"project": project.slug, "username": options["name"], "role": member.role, "number": member.number})
            )
        else:
            self.stdout.write(f"{options['name']} is {member.get_role_display()} in {project.name}, as {member.pseudonym}.")
