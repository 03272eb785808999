"""Where human and machine meet: what came in, what was drawn, and what was held against what."""

import uuid

import pghistory
from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from annotation.models import Choice, Item, Kind, Project, Question, User
from scoring.models import Scorer


class ImportState(models.TextChoices):
    UPLOADED = "uploaded"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@pghistory.track(pghistory.UpdateEvent(condition=pghistory.AnyChange("state")), fields=["state", "error"])
class ImportBatch(models.Model):
    """One file brought in: what it was, how its columns were mapped, and what became of its rows."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    project = models.ForeignKey(Project, models.PROTECT, related_name="imports")
    filename = models.CharField(max_length=255)
    path = models.CharField(max_length=500, help_text="In the data folder, until the import is done.")
    file_hash = models.CharField(max_length=64)
    size = models.BigIntegerField(help_text="Bytes.")
    format = models.CharField(max_length=20)
    kind = models.CharField(max_length=5, choices=Kind, default=Kind.TEXT)
    mapping = models.JSONField(default=dict)
    skip_bad_rows = models.BooleanField(default=False)
    state = models.CharField(max_length=8, choices=ImportState, default=ImportState.UPLOADED)
    bytes_read = models.BigIntegerField(default=0)
    rows = models.PositiveIntegerField(default=0)
    created = models.PositiveIntegerField(default=0)
    unchanged = models.PositiveIntegerField(default=0)
    bad = models.PositiveIntegerField(default=0)
    problems = models.JSONField(default=list, help_text="The first bad rows: a list of {row, field, message}.")
    votes = models.JSONField(default=list, help_text="What became of the votes that came with it: one entry a question.")
    notes = models.JSONField(default=list, help_text="What is worth knowing of rows that are not bad, the first of each kind.")
    error = models.TextField(blank=True)
    created_by = models.ForeignKey(User, models.PROTECT, null=True)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)


@pghistory.track()
class Sample(models.Model):
    """A seeded draw of items."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="samples")
    name = models.CharField(max_length=120)
    seed = models.BigIntegerField()
    size = models.PositiveIntegerField()
    population = models.PositiveIntegerField(help_text="How many items it was drawn from.")
    query = models.JSONField(default=dict, help_text="What those were: kind, batch, metadata.")
    created_by = models.ForeignKey(User, models.PROTECT, null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="sample_name_once")]

    def __str__(self) -> str:
        return self.name


class TaskVerb(models.TextChoices):
    MAKE = "make", "tasks made"
    PUT_FIRST = "put_first", "put first"
    PUT_BACK = "put_back", "put back in line"


class TaskBatchState(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@pghistory.track(pghistory.InsertEvent(), pghistory.UpdateEvent(condition=pghistory.AnyChange("state")))
class TaskBatch(models.Model):
    """Something that a researcher did to many tasks of a question at once: made, put first, or put back in line.

    `items` says of which items, as `choosing.items` takes it. Doing it again changes nothing that is done, so one that
    broke off goes on where it stopped.
    """

    question = models.ForeignKey(Question, models.PROTECT, related_name="task_batches")
    verb = models.CharField(max_length=9, choices=TaskVerb)
    items = models.CharField(max_length=200, help_text="all, import:<id>, sample:<id>, question:<slug>, prompts:<one of these> or listed.")
    seeds = models.BooleanField(default=False, help_text="With items that others of their kind were derived from.")
    metadata = models.JSONField(default=dict)
    state = models.CharField(max_length=7, choices=TaskBatchState, default=TaskBatchState.QUEUED)
    total = models.PositiveIntegerField(default=0, help_text="Items to go through.")
    handled = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0, help_text="Tasks that are new, or stand elsewhere now.")
    error = models.CharField(max_length=500, blank=True)
    created_by = models.ForeignKey(User, models.PROTECT, null=True)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~Q(state__in=["done", "failed"]) | Q(finished_at__isnull=False), name="task_batch_finished_says_when"
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_verb_display()}, {self.pk}"

    def told(self, event: "TaskBatch") -> str:
        """An event of it as the audit trail says it: what was begun, and how it ended."""
        of = f"of {self.question} for {choice_in_words(self.question.project, self.items)}"
        done = {TaskVerb.MAKE: "made tasks {}", TaskVerb.PUT_FIRST: "put tasks {} first", TaskVerb.PUT_BACK: "put tasks {} back in line"}
        if event.state == TaskBatchState.DONE:
            return f"{done[TaskVerb(self.verb)].format(of)}: {self.changed:,}"
        begun = {TaskVerb.MAKE: "to make tasks {}", TaskVerb.PUT_FIRST: "to put tasks {} first", TaskVerb.PUT_BACK: "to put tasks {} back"}
        how = {TaskBatchState.QUEUED: "asked", TaskBatchState.RUNNING: "began", TaskBatchState.FAILED: "failed"}
        return f"{how[TaskBatchState(event.state)]} {begun[TaskVerb(self.verb)].format(of)}"


class SampleItem(models.Model):
    """One item of a sample, with the probability it had of being in."""

    sample = models.ForeignKey(Sample, models.CASCADE, related_name="members")
    item = models.ForeignKey(Item, models.PROTECT)
    stratum = models.CharField(max_length=120, blank=True)
    probability = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sample", "item"], name="sample_item_once"),
            models.CheckConstraint(condition=Q(probability__gt=0, probability__lte=1), name="sample_probability"),
        ]


@pghistory.track()
class Comparison(models.Model):
    """A scorer's decisions held against a question's ground truth.

    A decision is positive where the score is at least `threshold`, and the truth where the label is `positive`; labels
    marked unsure are counted beside.
    """

    project = models.ForeignKey(Project, models.PROTECT, related_name="comparisons")
    name = models.CharField(max_length=120)
    question = models.ForeignKey(Question, models.PROTECT)
    positive = models.ForeignKey(Choice, models.PROTECT, help_text="The choice that the score speaks for.")
    scorer = models.ForeignKey(Scorer, models.PROTECT)
    score_name = models.CharField(max_length=60)
    threshold = models.FloatField(default=0.5)
    sample = models.ForeignKey(Sample, models.PROTECT, null=True, help_text="Only its items; all when none.")
    created_by = models.ForeignKey(User, models.PROTECT, null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="comparison_name_once"),
            models.CheckConstraint(
                condition=Q(threshold__gt=float("-inf"), threshold__lt=float("inf")), name="comparison_threshold_is_a_number"
            ),
        ]

    def __str__(self) -> str:
        return self.name


def choice_in_words(project: Project, choice: str) -> str:
    """A choice as a page says it: all items; sample First; import of pics.zip; prompts of all pictures. What is gone: by its id."""
    sort, _, name = choice.partition(":")
    if choice == "all":
        return "all items"
    if sort == "prompts":
        return "prompts of all pictures" if name == "all" else f"prompts of {choice_in_words(project, name)}"
    try:
        if sort == "sample":
            return f"sample {Sample.objects.get(project=project, pk=name).name}"
        if sort == "import":
            return f"import of {ImportBatch.objects.get(project=project, pk=name).filename}"
        if sort == "question":
            return f"items of {project.questions.get(slug=name).title}"
    except (ObjectDoesNotExist, ValueError, ValidationError):
        pass
    return "tasks named one by one" if choice == "listed" else choice
