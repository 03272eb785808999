"""The machine side: scorers, their runs, and the scores they gave. A human's vote never enters these tables."""

import pghistory
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from annotation.models import Item, Kind, Project, User


class RunState(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ChunkState(models.TextChoices):
    WAITING = "waiting"
    CLAIMED = "claimed"
    DONE = "done"


@pghistory.track()
class Scorer(models.Model):
    """A model with pinned weights and configuration. Rows are versions: any change that could change a score is a new one."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="scorers")
    name = models.SlugField(max_length=60)
    version = models.PositiveIntegerField(default=1)
    kind = models.SlugField(max_length=60, help_text="A module of scoring/scorers/.")
    item_kind = models.CharField(max_length=5, choices=Kind, default=Kind.TEXT)
    config = models.JSONField(default=dict)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 over kind, configuration and weights.")
    score_names = ArrayField(models.CharField(max_length=60), help_text="What it returns for each item.")
    created_by = models.ForeignKey(User, models.PROTECT, null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name", "version"], name="scorer_version_once"),
            models.UniqueConstraint(fields=["project", "name", "fingerprint"], name="scorer_fingerprint_once"),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


@pghistory.track(
    pghistory.UpdateEvent(condition=pghistory.AnyChange("state")), pghistory.InsertEvent(), fields=["state", "error", "paused_by"]
)
class ScoringRun(models.Model):
    """One pass of one scorer version over a set of items, cut into chunks."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="runs")
    scorer = models.ForeignKey(Scorer, models.PROTECT, related_name="runs")
    state = models.CharField(max_length=9, choices=RunState, default=RunState.QUEUED)
    queue = models.CharField(max_length=20, default="cpu")
    total = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    already_scored = models.PositiveIntegerField(default=0, help_text="Items left out because they had this version's scores.")
    error = models.TextField(blank=True)
    created_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    paused_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+", help_text="Who paused or cancelled it.")
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(done__lte=F("total") - F("failed")), name="run_counts_within_total"),
            models.CheckConstraint(condition=~Q(state="done") | Q(done=F("total") - F("failed")), name="run_done_is_complete"),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"


class Chunk(models.Model):
    """A few hundred items of a run. One worker at a time holds it; a silent holder loses it."""

    run = models.ForeignKey(ScoringRun, models.CASCADE, related_name="chunks")
    number = models.PositiveIntegerField()
    item_ids = ArrayField(models.BigIntegerField())
    state = models.CharField(max_length=7, choices=ChunkState, default=ChunkState.WAITING)
    worker = models.CharField(max_length=100, blank=True)
    claim = models.UUIDField(null=True, help_text="Of whoever holds it now; scores are stored only under the live claim.")
    heartbeat_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="chunk_once"),
            models.CheckConstraint(
                condition=~Q(state="claimed") | Q(claim__isnull=False, heartbeat_at__isnull=False), name="chunk_claimed_says_by_whom"
            ),
        ]
        indexes = [models.Index(fields=["run", "state", "number"], name="chunk_next")]

    def __str__(self) -> str:
        return f"chunk {self.number} of run {self.run_id}"


class Score(models.Model):
    """A machine's number for an item."""

    pk = models.CompositePrimaryKey("scorer_id", "item_id", "name")
    scorer = models.ForeignKey(Scorer, models.PROTECT, related_name="scores", db_index=False)
    item = models.ForeignKey(Item, models.PROTECT, related_name="scores")
    name = models.CharField(max_length=60)
    value = models.FloatField()

    class Meta:
        # PostgreSQL holds NaN for greater than infinity.
        constraints = [models.CheckConstraint(condition=Q(value__gt=float("-inf"), value__lt=float("inf")), name="score_is_a_number")]

    def __str__(self) -> str:
        return f"{self.name} of item {self.item_id}"


class Failure(models.Model):
    """An item a run could not score, and why."""

    run = models.ForeignKey(ScoringRun, models.CASCADE, related_name="failures")
    item = models.ForeignKey(Item, models.PROTECT)
    reason = models.CharField(max_length=300)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "item"], name="failure_once")]

    def __str__(self) -> str:
        return f"item {self.item_id} in run {self.run_id}"


class Worker(models.Model):
    """A worker process as it last reported."""

    name = models.CharField(max_length=100, unique=True)
    queues = ArrayField(models.CharField(max_length=20))
    device = models.CharField(max_length=60, blank=True)
    doing = models.CharField(max_length=120, blank=True)
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name
