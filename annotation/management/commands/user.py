"""manage.py user add NAME: an account, with a generated password that is printed once."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import people
from annotation.errors import Refused


class Command(BaseCommand):
    help = "Make an account. Its password is printed once; `manage.py changepassword NAME` sets another."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("do", choices=["add"])
        parser.add_argument("name")
        parser.add_argument("--staff", action="store_true", help="may begin projects")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        try:
            user, password = people.add_user(options["name"], staff=options["staff"])
        except Refused as refusal:
            raise CommandError(" ".join([refusal.message, *refusal.fields.values()])) from refusal
        if options["json"]:
            self.stdout.write(json.dumps({"username": user.username, "password": password}))
        else:
            self.stdout.write(f"{user.username}, password {password} (shown this once)")
