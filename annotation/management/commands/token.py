"""manage.py token NAME: an API token for an account, printed once."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import people
from annotation.models import User


class Command(BaseCommand):
    help = "Make an API token that speaks for an account. It is printed this once and stored hashed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the account's user name")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        user = User.objects.filter(username=options["name"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no account named {options['name']!r}.")
        _, text = people.new_token(user)
        self.stdout.write(json.dumps({"username": user.username, "token": text}) if options["json"] else text)
