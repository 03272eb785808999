"""manage.py user add|forget NAME: an account, with a generated password that is printed once; or one that nobody is to be known by."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import people
from annotation.errors import Refused
from annotation.models import User


class Command(BaseCommand):
    help = "Make an account (its password is printed once; `manage.py changepassword NAME` sets another), or forget one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("do", choices=["add", "forget"])
        parser.add_argument("name")
        parser.add_argument("--staff", action="store_true", help="may begin projects")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        try:
            self._forget(options) if options["do"] == "forget" else self._add(options)
        except Refused as refusal:
            raise CommandError(" ".join([refusal.message, *refusal.fields.values()])) from refusal

    def _add(self, options: dict[str, Any]) -> None:
        user, password = people.add_user(options["name"], staff=options["staff"])
        if options["json"]:
            self.stdout.write(json.dumps({"username": user.username, "password": password}))
        else:
            self.stdout.write(f"{user.username}, password {password} (shown this once)")

    def _forget(self, options: dict[str, Any]) -> None:
        user = User.objects.filter(username=options["name"]).first()
        if user is None:
            raise CommandError(f"There is no account {options['name']!r}.")
        people.forget(user)
        self.stdout.write(json.dumps({"forgotten": user.pk}) if options["json"] else "The account is forgotten. Votes and pseudonyms stay.")
