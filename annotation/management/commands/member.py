"""manage.py member add PROJECT NAME ROLE: a person's part in a project; role, leave and return change that of a NUMBER; list."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import people
from annotation.errors import Refused
from annotation.models import Membership, Project


class Command(BaseCommand):
    help = "Give an account a part in a project, change or end it, let someone in again, or list everyone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("do", choices=["add", "role", "leave", "return", "list"])
        parser.add_argument("project", help="the project's short name")
        parser.add_argument(
            "who", nargs="?", default="", help="add: an account's user name; role, leave, return: the number they have here"
        )
        parser.add_argument("role", nargs="?", choices=[role.value for role in people.PEOPLE], help="for add and role")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        try:
            found = (
                list(people.members(project))
                if options["do"] == "list"
                else [_done(project, options["do"], options["who"], options["role"])]
            )
        except Refused as refusal:
            raise CommandError(" ".join([refusal.message, *refusal.fields.values()])) from refusal
        rows = [
            {"project": project.slug, "username": _username(one), "role": one.role, "number": one.number, "active": one.active}
            for one in found
        ]
        if options["json"]:
            self.stdout.write(json.dumps({"members": rows} if options["do"] == "list" else rows[0]))
        else:
            self.stdout.write("\n".join(_told(one, project) for one in found))


def _done(project: Project, do: str, who: str, role: str | None) -> Membership:
    if do in ("add", "role") and role is None:
        raise CommandError("Say which role.")
    if do == "add":
        return people.add_member(project, who, role or "").member
    if not who.isdecimal() or len(who) > 9:
        raise CommandError("Say who, by the number they have in this project; `member list` shows it.")
    if do == "role":
        return people.change_role(project, int(who), role or "")
    return people.deactivate(project, int(who)) if do == "leave" else people.reactivate(project, int(who))


def _username(member: Membership) -> str | None:
    return member.name if member.active else None


def _told(member: Membership, project: Project) -> str:
    if not member.active:
        return f"{member.pseudonym} has left {project.name}."
    return f"{member.name} is {member.get_role_display()} in {project.name}, as {member.pseudonym}."
