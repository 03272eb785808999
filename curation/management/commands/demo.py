"""The demo project: made once, found afterwards."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from curation.demo import loader


class Command(BaseCommand):
    help = "Make the demo project, with simulated votes, a scored run and a comparison, and say how to sign in."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--fresh", action="store_true", help="Archive the demo project that is there, and make a new one.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *_: Any, **options: Any) -> None:
        demo = loader.load(fresh=options["fresh"])
        if options["json"]:
            people = [{"username": person.username, "role": person.role, "password": person.password} for person in demo.sign_ins]
            self.stdout.write(json.dumps({"project": demo.project.slug, "made": demo.made, "sign_ins": people}))
            return
        self.stdout.write(f"{'Made' if demo.made else 'Found'} the demo project “{demo.project.name}”. Sign in as:")
        for person in demo.sign_ins:
            self.stdout.write(f"  {person.username:8}  {person.role:12}  {person.password or 'with the password this account had before'}")
