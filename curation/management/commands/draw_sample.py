"""manage.py draw_sample PROJECT NAME SIZE: a seeded draw of items."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import Refused
from annotation.models import Kind, Project
from curation import choosing, sampling


class Command(BaseCommand):
    help = "Draw a sample: simple random, or stratified by a metadata key."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("name")
        parser.add_argument("size", type=int)
        parser.add_argument("--seed", type=int, help="the project's own unless named")
        parser.add_argument("--kind", choices=Kind.values, default=Kind.TEXT)
        parser.add_argument("--import", dest="batch", help="only the items of the import with this id")
        parser.add_argument("--metadata", action="append", default=[], metavar="KEY=VALUE", help="only items with it; may be given again")
        parser.add_argument("--seeds", action="store_true", help="also items that others of the same kind were derived from")
        parser.add_argument("--strata", default="", metavar="KEY", help="draw from each value of this metadata key")
        parser.add_argument("--allocation", choices=list(sampling.ALLOCATIONS), default="proportional")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        metadata = dict(pair.partition("=")[::2] for pair in options["metadata"])
        try:
            sample = sampling.draw(
                project, options["name"], options["size"], seed=options["seed"], kind=options["kind"],
                items=f"import:{options['batch']}" if options["batch"] else choosing.ALL, metadata=metadata, seeds=options["seeds"],
                strata=options["strata"], allocation=options["allocation"],
            )  # fmt: skip
        except Refused as error:
            raise CommandError(error.message) from error
        strata = [{"stratum": name, "drawn": drawn, "probability": p} for name, drawn, p in sampling.weights(sample)]
        if options["json"]:
            found = {"id": sample.pk, "name": sample.name, "seed": sample.seed, "size": sample.size, "population": sample.population}
            self.stdout.write(json.dumps({**found, "strata": strata}))
        else:
            self.stdout.write(f"{sample.name}: {sample.size:,} of {sample.population:,} items, seed {sample.seed}.")
