"""manage.py compare PROJECT: a scorer's decisions against people's labels; a stored comparison by name, or one from options."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import Refused
from annotation.models import Choice, Project
from curation import comparing
from curation.figures.detection import say
from curation.models import Comparison, Sample
from scoring.models import Scorer


class Command(BaseCommand):
    help = "Hold a scorer's decisions against ground truth."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's short name")
        parser.add_argument("--name", help="a stored comparison; without it, say what to compare")
        parser.add_argument("--question", help="the question's short name")
        parser.add_argument("--positive", help="the choice, by its value, that the score speaks for")
        parser.add_argument("--scorer", help="a scorer's name, its newest version; or name:version")
        parser.add_argument("--score", help="the score's name; may be left out where the scorer gives one score")
        parser.add_argument("--threshold", help="0.5, or that of the stored comparison")
        parser.add_argument("--sample", help="only the items of the sample of this name")
        parser.add_argument("--by", help="a metadata key: figures for each of its values too")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        try:
            comparison = self._stored(project, options["name"]) if options["name"] else self._described(project, options)
            threshold = comparing.read_threshold(options["threshold"]) if options["threshold"] else None
        except Refused as refusal:
            raise CommandError(" ".join([refusal.message, *refusal.fields.values()])) from refusal
        found = comparing.result(comparison, threshold)
        slices, more = comparing.by_metadata(comparison, options["by"], threshold) if options["by"] else ([], 0)
        if options["json"]:
            extra = {"slices": comparing.slices_as_json(slices), "slices_not_shown": more} if options["by"] else {}
            self.stdout.write(json.dumps(comparing.as_json(comparison, found) | extra))
            return
        self._print(comparison, found)
        for part in slices:
            d = part.decisions
            self.stdout.write(f"  {options['by']}={part.value}: n={part.items:,}, precision {say(d.precision)}, recall {say(d.recall)}")

    def _stored(self, project: Project, name: str) -> Comparison:
        known = Comparison.objects.select_related("question", "positive", "scorer", "sample", "project")
        found = known.filter(project=project, name=name).first()
        if found is None:
            raise CommandError(f"There is no comparison {name!r}.")
        return found

    def _described(self, project: Project, options: dict[str, Any]) -> Comparison:
        if missing := [f"--{name}" for name in ("question", "positive", "scorer") if not options[name]]:
            raise CommandError(f"Give --name, or {', '.join(missing)} too.")
        positive = Choice.objects.filter(question__project=project, question__slug=options["question"], value=options["positive"]).first()
        if positive is None:
            raise CommandError("There is no such question, or it has no such choice.")
        name, _, version = options["scorer"].partition(":")
        scorers = Scorer.objects.filter(project=project, name=name, **({"version": int(version)} if version.isdigit() else {}))
        scorer = scorers.order_by("-version").first()
        if scorer is None:
            raise CommandError(f"There is no scorer {options['scorer']!r}.")
        sample = Sample.objects.filter(project=project, name=options["sample"]).first() if options["sample"] else None
        if options["sample"] and sample is None:
            raise CommandError(f"There is no sample {options['sample']!r}.")
        score = options["score"] or (scorer.score_names[0] if len(scorer.score_names) == 1 else "")
        return comparing.prepare(project, name="", positive=positive, scorer=scorer, score_name=score, sample=sample)

    def _print(self, comparison: Comparison, found: comparing.Result) -> None:
        d = found.decisions
        self.stdout.write(f"{comparison.scorer} {comparison.score_name} >= {d.threshold:g} against {comparison.positive.label}")
        self.stdout.write(f"  compared {found.items:,} of {found.total:,} items; tp {d.tp:,}, fp {d.fp:,}, fn {d.fn:,}, tn {d.tn:,}")
        for name, estimate in (("precision", d.precision), ("recall", d.recall), ("F1", d.f1)):
            self.stdout.write(f"  {name:<18} {say(estimate)}")
        if found.curve:
            self.stdout.write(f"  {'average precision':<18} {say(found.curve.average_precision)}")
        for _, words, number in found.left_out:
            self.stdout.write(f"  left out: {words}, {number:,}")
        if sum(found.unsure):
            self.stdout.write(f"  beside: people are unsure of {sum(found.unsure):,}")
