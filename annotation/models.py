"""The human side: who, what is asked, what was answered, and what it settled.

What must always be true is a constraint here; `queue.py` keeps it true under concurrency. A machine's number never
enters these tables. A foreign key has no index of its own (db_index=False) where another begins with it, or where nobody
ever looks that way: every index is paid for on every vote.
"""

import pghistory
import pgtrigger
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now


class Kind(models.TextChoices):
    TEXT = "text"
    IMAGE = "image"


class Role(models.TextChoices):
    ANNOTATOR = "annotator"
    ADJUDICATOR = "adjudicator"
    RESEARCHER = "researcher"
    RATER = "rater", "rater from a file"


class Policy(models.TextChoices):
    UNANIMOUS = "unanimous"
    MAJORITY = "majority"


class TagUse(models.TextChoices):
    NONE = "none", "takes no tags"
    OFFERED = "offered", "may have tags"
    REQUIRED = "required", "needs a tag"


class TaskState(models.TextChoices):
    OPEN = "open"
    AGREED = "agreed"
    DISPUTED = "disputed"
    ADJUDICATED = "adjudicated"
    RETIRED = "retired"


class Source(models.TextChoices):
    UNANIMOUS = "unanimous"
    MAJORITY = "majority"
    ADJUDICATED = "adjudicated"
    IMPORTED = "imported"


class AbstainReason(models.TextChoices):
    CANNOT_JUDGE = "cannot_judge", "I cannot judge this"
    BROKEN = "broken", "The item is broken"
    DISTRESSING = "distressing", "Too distressing"


class FlagReason(models.TextChoices):
    WRONG = "wrong", "Something is wrong with this task"
    PRIVATE = "private", "It names or shows a private person"
    ILLEGAL = "illegal", "Possibly illegal"
    OTHER = "other", "Other"


class RulingReason(models.TextChoices):
    CLEAR_ERROR = "clear_error", "Clear error"
    AMBIGUOUS = "ambiguous", "Ambiguous item"
    GUIDELINE_GAP = "guideline_gap", "Guideline gap"
    MISSING_CONTEXT = "missing_context", "Missing context"
    OTHER = "other", "Other"


class LeaseKind(models.TextChoices):
    VOTE = "vote"
    RULING = "ruling"


# ---------------------------------------------------------------- people
@pghistory.track(pghistory.UpdateEvent(), exclude=["password", "last_login"])
class User(AbstractUser):
    """Someone who can sign in. What they do in a project, they do through a Membership."""

    single_keys = models.BooleanField(default=True, help_text="Answer by single keys; Esc works either way.")


@pghistory.track()
class Project(models.Model):
    """One study, with its members, items, questions, scorers and evaluation sets."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    seed = models.BigIntegerField(help_text="Orders the queue and the samples, so that a study can be repeated.")
    archived_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name


@pghistory.track()
class Membership(models.Model):
    """A person's part in one project, and their pseudonym there. Votes point here, never at a User.

    A rater from an imported file is a membership without a user. It is never deleted (PROTECT from below): people
    leave, their votes stay.
    """

    project = models.ForeignKey(Project, models.PROTECT, related_name="memberships")
    user = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="memberships")
    role = models.CharField(max_length=12, choices=Role)
    number = models.PositiveIntegerField(help_text="Stands for the person: Annotator 7.")
    rater = models.CharField(max_length=100, blank=True, help_text="The name an imported file gave this rater.")
    attributes = models.JSONField(default=dict, blank=True)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="membership_once_per_project"),
            models.UniqueConstraint(fields=["project", "number"], name="membership_number_once"),
            models.UniqueConstraint(fields=["project", "rater"], condition=~Q(rater=""), name="membership_rater_once"),
            models.CheckConstraint(
                condition=Q(user__isnull=True, role=Role.RATER) & ~Q(rater="") | Q(user__isnull=False, rater="") & ~Q(role=Role.RATER),
                name="membership_person_or_rater",
            ),
        ]

    def __str__(self) -> str:
        return self.pseudonym

    @property
    def pseudonym(self) -> str:
        return f"{'Rater' if self.role == Role.RATER else 'Annotator'} {self.number}"


# ---------------------------------------------------------------- what is judged
class Item(models.Model):
    """The thing judged. `origin` is the item it was derived from: a text's seed, an image's prompt."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="items", db_index=False)  # item_browse begins with it
    kind = models.CharField(max_length=5, choices=Kind)
    # Compared by bytes: the same order anywhere, and a third of the cost of an import.
    external_id = models.CharField(max_length=200, db_collation="C", help_text="The file's id for it, else the file's hash and row.")
    text = models.TextField(null=True)
    media_hash = models.CharField(max_length=64, null=True, help_text="SHA-256 of the stored picture; none when the file is missing.")
    content_hash = models.BinaryField(max_length=32, help_text="SHA-256 of the text in UTF-8, or of the picture.")
    origin = models.ForeignKey("self", models.PROTECT, null=True, related_name="derived", db_index=False)
    metadata = models.JSONField(default=dict)
    batch = models.UUIDField(null=True, help_text="The import that brought it.")
    quarantined = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "external_id"], name="item_external_id_once"),
            models.CheckConstraint(
                condition=Q(kind=Kind.TEXT, text__isnull=False, media_hash__isnull=True) & ~Q(text="")
                | Q(kind=Kind.IMAGE, text__isnull=True),
                name="item_text_or_image",
            ),
            models.CheckConstraint(condition=Q(origin__isnull=True) | ~Q(origin=F("id")), name="item_not_its_own_origin"),
        ]
        indexes = [
            models.Index(fields=["project", "kind", "id"], name="item_browse"),
            BrinIndex(fields=["batch"], name="item_batch", autosummarize=True),  # the items of an import lie together
            models.Index(fields=["origin"], name="item_origin", condition=Q(origin__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"item {self.pk}"


# ---------------------------------------------------------------- what is asked
@pghistory.track()
class Question(models.Model):
    """What is asked of items of one kind."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="questions")
    slug = models.SlugField(max_length=60)
    title = models.CharField(max_length=80)
    prompt = models.CharField(max_length=200, help_text="The question as annotators read it.")
    kind = models.CharField(max_length=5, choices=Kind, default=Kind.TEXT)
    policy = models.CharField(max_length=9, choices=Policy, default=Policy.UNANIMOUS)
    votes_required = models.PositiveSmallIntegerField(default=3)
    shows_origin = models.BooleanField(default=False, help_text="The seed can be seen on request.")
    blind_ruling = models.BooleanField(default=True, help_text="Adjudicators rule before they see the votes.")
    sensitive = models.BooleanField(default=False)
    ordered = models.BooleanField(default=False, help_text="The choices have an order; agreement can weigh distances.")
    lease_minutes = models.PositiveSmallIntegerField(default=15)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "slug"], name="question_slug_once"),
            models.CheckConstraint(condition=Q(votes_required__gte=1, votes_required__lte=1000), name="question_votes_required"),
            models.CheckConstraint(condition=Q(lease_minutes__gte=1), name="question_lease_minutes"),
        ]

    def __str__(self) -> str:
        return self.title


@pghistory.track()
class Choice(models.Model):
    """One possible answer, with its key."""

    question = models.ForeignKey(Question, models.PROTECT, related_name="choices")
    value = models.SlugField(max_length=40)
    label = models.CharField(max_length=60)
    hotkey = models.CharField(max_length=1)
    position = models.PositiveSmallIntegerField()
    tag_use = models.CharField(max_length=8, choices=TagUse, default=TagUse.NONE)
    is_unsure = models.BooleanField(default=False, help_text="A real answer that ratios and matrices count beside.")

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["question", "value"], name="choice_value_once"),
            models.UniqueConstraint(fields=["question", "hotkey"], name="choice_hotkey_once", deferrable=models.Deferrable.DEFERRED),
            models.UniqueConstraint(fields=["question", "position"], name="choice_position_once", deferrable=models.Deferrable.DEFERRED),
        ]

    def __str__(self) -> str:
        return self.label


@pghistory.track()
class Tag(models.Model):
    """A kind of harm, or whatever else a choice may be qualified by."""

    question = models.ForeignKey(Question, models.PROTECT, related_name="tags")
    value = models.SlugField(max_length=40)
    label = models.CharField(max_length=60)
    hotkey = models.CharField(max_length=1)
    position = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["question", "value"], name="tag_value_once"),
            models.UniqueConstraint(fields=["question", "hotkey"], name="tag_hotkey_once", deferrable=models.Deferrable.DEFERRED),
            models.UniqueConstraint(fields=["question", "position"], name="tag_position_once", deferrable=models.Deferrable.DEFERRED),
        ]

    def __str__(self) -> str:
        return self.label


@pghistory.track(pghistory.UpdateEvent(), pghistory.DeleteEvent())
class Guideline(models.Model):
    """One version of a question's instructions. Never changed: a change is a new version."""

    question = models.ForeignKey(Question, models.PROTECT, related_name="guidelines")
    version = models.PositiveIntegerField()
    body = models.TextField(help_text="Markdown.")
    examples = models.JSONField(default=list, help_text="Worked examples: a list of {title, text, choice, why}.")
    author = models.ForeignKey(User, models.PROTECT, null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-version"]
        constraints = [models.UniqueConstraint(fields=["question", "version"], name="guideline_version_once")]

    def __str__(self) -> str:
        return f"version {self.version}"


# ---------------------------------------------------------------- the queue
# What votes settle is told by votes and truths already; kept here is what else happens to a task.
_TASK_HISTORY = pgtrigger.Condition(
    "(OLD.round <> NEW.round OR OLD.votes_required <> NEW.votes_required"
    " OR OLD.state <> NEW.state AND (OLD.state <> 'open' OR NEW.state = 'retired'))"
)


@pghistory.track(
    pghistory.UpdateEvent(condition=_TASK_HISTORY),
    fields=["state", "round", "votes_required", "vote_count", "abstention_count"],
)
class Task(models.Model):
    """One item x one question, awaiting votes.

    `vote_count` and `lease_count` are kept by queue.py in the transactions that add and take votes and leases, so that
    their sum can be held under `votes_required` by the database itself. `queued_at` is when the task last came up
    with a free slot after someone had dealt with it; none while it is fresh. `rank` is its seeded place among the fresh.
    """

    question = models.ForeignKey(Question, models.PROTECT, related_name="tasks", db_index=False)
    item = models.ForeignKey(Item, models.PROTECT, related_name="tasks")
    round = models.PositiveSmallIntegerField(default=1)
    state = models.CharField(max_length=11, choices=TaskState, default=TaskState.OPEN)
    votes_required = models.PositiveSmallIntegerField()
    vote_count = models.PositiveSmallIntegerField(default=0)
    lease_count = models.PositiveSmallIntegerField(default=0)
    abstention_count = models.PositiveSmallIntegerField(default=0)
    rank = models.BigIntegerField()
    queued_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["question", "item"], name="task_once_per_item"),
            models.CheckConstraint(condition=Q(votes_required__gte=1), name="task_votes_required"),
            models.CheckConstraint(condition=Q(vote_count__lte=F("votes_required") - F("lease_count")), name="task_slots_never_exceeded"),
            models.CheckConstraint(
                condition=~Q(state=TaskState.AGREED) | Q(vote_count=F("votes_required")), name="task_agreed_has_its_votes"
            ),
            models.CheckConstraint(condition=Q(state=TaskState.OPEN) | Q(lease_count=0), name="task_leases_only_while_open"),
            models.CheckConstraint(
                condition=Q(state__in=[TaskState.OPEN, TaskState.RETIRED]) | Q(settled_at__isnull=False), name="task_settled_says_when"
            ),
        ]
        indexes = [
            # The two ends of the queue: tasks somebody has dealt with, in the order they came up; and fresh ones, by rank.
            models.Index(
                "question", "queued_at", "id", name="task_started",
                condition=Q(state=TaskState.OPEN, queued_at__isnull=False, vote_count__lt=F("votes_required") - F("lease_count")),
            ),
            models.Index(
                "question", "rank", "id", name="task_fresh",
                condition=Q(state=TaskState.OPEN, queued_at__isnull=True, vote_count__lt=F("votes_required") - F("lease_count")),
            ),
            models.Index("question", "settled_at", "id", name="task_disputed", condition=Q(state=TaskState.DISPUTED)),
            models.Index("question", "state", name="task_states"),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"task {self.pk}"


class Progress(models.Model):
    """How far one member is with one question, so that neither the queue nor their count reads what they did before.

    Everything that came up before `seen_until` is dealt with by this member, or comes up again later.
    """

    question = models.ForeignKey(Question, models.CASCADE, db_index=False)
    member = models.ForeignKey(Membership, models.PROTECT)
    seen_until = models.DateTimeField(null=True)
    rescanned_at = models.DateTimeField(null=True)
    votes = models.PositiveIntegerField(default=0)
    day = models.DateField(null=True)
    votes_on_day = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["question", "member"], name="progress_once")]


class Lease(models.Model):
    """One member's time-limited hold of one vote slot of a task, or of a dispute.

    Gone once used or given back. One that ran out has lapsed: it holds nothing any more, but its token still says which
    task a late answer is for.
    """

    task = models.ForeignKey(Task, models.PROTECT, related_name="leases")
    question = models.ForeignKey(Question, models.PROTECT, db_index=False)
    member = models.ForeignKey(Membership, models.PROTECT, related_name="leases", db_index=False)
    kind = models.CharField(max_length=6, choices=LeaseKind, default=LeaseKind.VOTE)
    round = models.PositiveSmallIntegerField()
    guideline = models.ForeignKey(Guideline, models.PROTECT, help_text="The version in force when the task was handed out.", db_index=False)
    token = models.UUIDField(unique=True)
    leased_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    lapsed = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "member"], condition=Q(lapsed=False), name="lease_once_per_member"),
            models.UniqueConstraint(fields=["task"], condition=Q(kind=LeaseKind.RULING, lapsed=False), name="lease_one_ruling"),
        ]
        indexes = [
            models.Index(fields=["question", "kind", "expires_at"], name="lease_expiry", condition=Q(lapsed=False)),
            models.Index(fields=["member", "question", "kind"], name="lease_mine", condition=Q(lapsed=False)),
        ]


@pghistory.track(pghistory.UpdateEvent("revised", row=pghistory.Old), pghistory.DeleteEvent())
class Vote(models.Model):
    """One member's answer. `token` is the lease's: sending it again finds this row."""

    task = models.ForeignKey(Task, models.PROTECT, related_name="votes", db_index=False)
    question = models.ForeignKey(Question, models.PROTECT, related_name="votes")
    member = models.ForeignKey(Membership, models.PROTECT, related_name="votes", db_index=False)
    round = models.PositiveSmallIntegerField()
    choice = models.ForeignKey(Choice, models.PROTECT, db_index=False)
    tags = ArrayField(models.CharField(max_length=40), default=list)
    comment = models.CharField(max_length=2000, blank=True)
    guideline = models.ForeignKey(Guideline, models.PROTECT, null=True, help_text="None for a vote that came in a file.", db_index=False)
    token = models.UUIDField(unique=True)
    elapsed_ms = models.PositiveIntegerField(null=True, help_text="From the item on screen to the answer, as the browser measured.")
    created_at = models.DateTimeField(db_default=Now())
    revised_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "round", "member"], name="vote_once_per_round")]
        indexes = [models.Index(fields=["member", "question", "-created_at"], name="vote_recent")]


class Abstention(models.Model):
    """An explicit non-vote. It frees the slot and bars the member from the task for the round."""

    task = models.ForeignKey(Task, models.PROTECT, related_name="abstentions", db_index=False)
    question = models.ForeignKey(Question, models.PROTECT, related_name="abstentions")
    member = models.ForeignKey(Membership, models.PROTECT, related_name="abstentions", db_index=False)
    round = models.PositiveSmallIntegerField()
    reason = models.CharField(max_length=12, choices=AbstainReason)
    token = models.UUIDField(unique=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "round", "member"], name="abstention_once_per_round")]
        indexes = [models.Index(fields=["member", "question", "-created_at"], name="abstention_recent")]


class Flag(models.Model):
    """A member's mark on a task, for the researchers to read."""

    task = models.ForeignKey(Task, models.PROTECT, related_name="flags")
    member = models.ForeignKey(Membership, models.PROTECT)
    reason = models.CharField(max_length=7, choices=FlagReason)
    note = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "member", "reason"], name="flag_once")]


@pghistory.track(pghistory.UpdateEvent(), pghistory.DeleteEvent())
class Adjudication(models.Model):
    """A ruling on a disputed task: first blind, then, with the votes open, confirmed or changed. Both are kept.

    A row without a final ruling marks someone who has seen the votes and gave the dispute back.
    """

    task = models.ForeignKey(Task, models.PROTECT, related_name="adjudications")
    question = models.ForeignKey(Question, models.PROTECT, related_name="adjudications")
    member = models.ForeignKey(Membership, models.PROTECT, related_name="adjudications")
    round = models.PositiveSmallIntegerField()
    guideline = models.ForeignKey(Guideline, models.PROTECT)
    token = models.UUIDField(unique=True)
    blind_choice = models.ForeignKey(Choice, models.PROTECT, null=True, related_name="+")
    blind_tags = ArrayField(models.CharField(max_length=40), default=list)
    blind_at = models.DateTimeField(null=True)
    choice = models.ForeignKey(Choice, models.PROTECT, null=True, related_name="+")
    tags = ArrayField(models.CharField(max_length=40), default=list)
    reason = models.CharField(max_length=15, choices=RulingReason, blank=True)
    note = models.CharField(max_length=2000, blank=True)
    ruled_at = models.DateTimeField(null=True)
    blind = models.BooleanField(default=True, help_text="False for a researcher, who may have seen scores and votes.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "round", "member"], name="adjudication_once_per_member"),
            models.UniqueConstraint(fields=["task", "round"], condition=Q(choice__isnull=False), name="adjudication_one_ruling"),
            models.CheckConstraint(
                condition=Q(choice__isnull=True, ruled_at__isnull=True) | Q(choice__isnull=False, ruled_at__isnull=False) & ~Q(reason=""),
                name="adjudication_ruling_says_why_and_when",
            ),
        ]


@pghistory.track(pghistory.UpdateEvent(), pghistory.DeleteEvent())
class GroundTruth(models.Model):
    """The final label of a task. A superseded one stays, with the time it ended."""

    task = models.ForeignKey(Task, models.PROTECT, related_name="truths", db_index=False)
    question = models.ForeignKey(Question, models.PROTECT, related_name="truths", db_index=False)
    item = models.ForeignKey(Item, models.PROTECT, related_name="truths")
    round = models.PositiveSmallIntegerField()
    choice = models.ForeignKey(Choice, models.PROTECT, db_index=False)
    tags = ArrayField(models.CharField(max_length=40), default=list)
    tags_unsettled = models.BooleanField(default=False, help_text="A tag was required and none had a majority.")
    source = models.CharField(max_length=11, choices=Source)
    member = models.ForeignKey(Membership, models.PROTECT, null=True, help_text="The adjudicator, or whose vote came last.", db_index=False)
    guideline = models.ForeignKey(Guideline, models.PROTECT, null=True, db_index=False)
    created_at = models.DateTimeField(db_default=Now())
    superseded_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task"], condition=Q(superseded_at__isnull=True), name="truth_one_current")]
        indexes = [models.Index(fields=["question", "choice"], condition=Q(superseded_at__isnull=True), name="truth_current")]
