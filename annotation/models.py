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
from django.utils.functional import cached_property


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
    greyscale = models.BooleanField(default=False, help_text="Pictures are shown without colour.")


@pghistory.track()
class Project(models.Model):
    """One study, with its members, items, questions, scorers and evaluation sets."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    seed = models.BigIntegerField(help_text="Orders the queue and the samples, so that a study can be repeated.")
    # How its people are looked after (annotation.wellbeing). A limit that is None is no limit.
    hourly_limit = models.PositiveSmallIntegerField(null=True, default=200, help_text="Sensitive items handed to a person in any hour.")
    daily_limit = models.PositiveSmallIntegerField(null=True, default=800, help_text="The same in any 24 hours.")
    break_after_minutes = models.PositiveSmallIntegerField(null=True, default=50, help_text="Minutes of work, then a break is due.")
    break_minutes = models.PositiveSmallIntegerField(default=10)
    benign_share = models.FloatField(default=0.2, help_text="Share of benign items mixed in, as far as there are any.")
    support_note = models.TextField(blank=True, help_text="Who to talk to: shown on the support page.")
    archived_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=(Q(hourly_limit__isnull=True) | Q(hourly_limit__gte=1)) & (Q(daily_limit__isnull=True) | Q(daily_limit__gte=1)),
                name="project_limits",
            ),
            models.CheckConstraint(
                condition=(Q(break_after_minutes__isnull=True) | Q(break_after_minutes__gte=1)) & Q(break_minutes__gte=1),
                name="project_breaks",
            ),
            models.CheckConstraint(condition=Q(benign_share__gte=0, benign_share__lte=1), name="project_benign_share"),
        ]

    def __str__(self) -> str:
        return self.name

    def name_of(self, user: User) -> str:
        """A user as this project's researchers see them: by name, and by pseudonym once they have left."""
        return self._left.get(user.pk, user.username)

    @cached_property
    def _left(self) -> dict[int | None, str]:
        return {member.user_id: member.pseudonym for member in self.memberships.filter(active=False, user__isnull=False)}


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
    def name(self) -> str:
        """As researchers see them: by name, and by pseudonym once they have left."""
        return self.user.username if self.user and self.active else self.pseudonym

    @property
    def pseudonym(self) -> str:
        return f"{'Rater' if self.role == Role.RATER else 'Annotator'} {self.number}"


# ---------------------------------------------------------------- what is judged
class Media(models.Model):
    """A stored picture, once per content, however many items show it. Sealed: nobody is shown it any more, anywhere."""

    hash = models.CharField(max_length=64, primary_key=True, db_collation="C", help_text="SHA-256 of the stored file.")
    format = models.CharField(max_length=4, help_text="jpeg or png.")
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()
    size = models.PositiveIntegerField(help_text="Bytes.")
    created_at = models.DateTimeField(db_default=Now())
    sealed_at = models.DateTimeField(null=True)


@pghistory.track(pghistory.UpdateEvent(condition=pghistory.AnyChange("quarantined")), fields=["quarantined"])
class Item(models.Model):
    """The thing judged. `origin` is the item it was derived from: a text's seed, an image's prompt."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="items", db_index=False)  # item_browse begins with it
    kind = models.CharField(max_length=5, choices=Kind)
    # Compared by bytes: the same order anywhere, and a third of the cost of an import.
    external_id = models.CharField(max_length=200, db_collation="C", help_text="The file's id for it, else the file's hash and row.")
    text = models.TextField(null=True)
    media = models.ForeignKey(
        Media, models.PROTECT, null=True, related_name="items", db_column="media_hash", db_index=False,
        help_text="The picture; none when the file is missing.",
    )  # fmt: skip
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
                condition=Q(kind=Kind.TEXT, text__isnull=False, media__isnull=True) & ~Q(text="") | Q(kind=Kind.IMAGE, text__isnull=True),
                name="item_text_or_image",
            ),
            models.CheckConstraint(condition=Q(origin__isnull=True) | ~Q(origin=F("id")), name="item_not_its_own_origin"),
        ]
        indexes = [
            models.Index(fields=["project", "kind", "id"], name="item_browse"),
            BrinIndex(fields=["batch"], name="item_batch", autosummarize=True),  # the items of an import lie together
            models.Index(fields=["origin"], name="item_origin", condition=Q(origin__isnull=False)),
            models.Index(fields=["media"], name="item_media", condition=Q(media__isnull=False)),
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
    check_share = models.FloatField(default=0, help_text="Share of known answers mixed in unseen.")
    accuracy_floor = models.FloatField(null=True, help_text="Below this accuracy on known answers an annotator is paused.")
    repeat_share = models.FloatField(default=0, help_text="Share of an adjudicator's own rulings that come back to them, blind.")
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "slug"], name="question_slug_once"),
            models.CheckConstraint(condition=Q(votes_required__gte=1, votes_required__lte=1000), name="question_votes_required"),
            models.CheckConstraint(condition=Q(lease_minutes__gte=1), name="question_lease_minutes"),
            models.CheckConstraint(
                condition=Q(check_share__gte=0, check_share__lte=0.5, repeat_share__gte=0, repeat_share__lte=0.5), name="question_shares"
            ),
            models.CheckConstraint(
                condition=Q(accuracy_floor__isnull=True) | Q(accuracy_floor__gt=0, accuracy_floor__lte=1), name="question_accuracy_floor"
            ),
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


@pghistory.track(pghistory.InsertEvent(), pghistory.DeleteEvent())
class Assignment(models.Model):
    """Only the people assigned to a question work on it; with no assignment, everyone in the project does."""

    question = models.ForeignKey(Question, models.PROTECT, related_name="assignments", db_index=False)
    member = models.ForeignKey(Membership, models.PROTECT, related_name="assignments")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["question", "member"], name="assignment_once")]


# ---------------------------------------------------------------- the queue
# What votes settle is told by votes and truths already; kept here is what else happens to a task.
_TASK_HISTORY = pgtrigger.Condition(
    "(OLD.round <> NEW.round OR OLD.votes_required <> NEW.votes_required"
    " OR OLD.state <> NEW.state AND (OLD.state <> 'open' OR NEW.state = 'retired'))"
)


# A known answer collects no votes: its task is never open. Two tables are concerned, so a trigger on each holds it.
_REFUSE_OPEN_KNOWN = """
    IF EXISTS ({found}) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = 'The task of an active known answer cannot be open.';
    END IF;
    RETURN NEW;
"""


@pghistory.track(
    pghistory.UpdateEvent(condition=_TASK_HISTORY),
    fields=["state", "round", "votes_required", "vote_count", "abstention_count"],
)
class Task(models.Model):
    """One item x one question, awaiting votes.

    `vote_count` and `lease_count` are kept by queue.py in the transactions that add and take votes and leases, so that
    their sum can be held under `votes_required` by the database itself. `queued_at` is when the task last came up
    with a free slot after someone had dealt with it, or was put first; none while it is fresh. `rank` is its seeded place
    among the fresh.
    """

    question = models.ForeignKey(Question, models.PROTECT, related_name="tasks", db_index=False)
    item = models.ForeignKey(Item, models.PROTECT, related_name="tasks")
    round = models.PositiveSmallIntegerField(default=1)
    state = models.CharField(max_length=11, choices=TaskState, default=TaskState.OPEN)
    votes_required = models.PositiveSmallIntegerField()
    vote_count = models.PositiveSmallIntegerField(default=0)
    lease_count = models.PositiveSmallIntegerField(default=0)
    abstention_count = models.PositiveSmallIntegerField(default=0)
    sensitive = models.BooleanField(db_default=False, help_text="From the question, unless the item's metadata says otherwise.")
    rank = models.BigIntegerField()
    queued_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

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
                "question", "sensitive", "queued_at", "id", name="task_started",
                condition=Q(state=TaskState.OPEN, queued_at__isnull=False, vote_count__lt=F("votes_required") - F("lease_count")),
            ),
            models.Index(
                "question", "sensitive", "rank", "id", name="task_fresh",
                condition=Q(state=TaskState.OPEN, queued_at__isnull=True, vote_count__lt=F("votes_required") - F("lease_count")),
            ),
            models.Index("question", "settled_at", "id", name="task_disputed", condition=Q(state=TaskState.DISPUTED)),
            models.Index("question", "state", name="task_states"),
        ]  # fmt: skip
        triggers = [
            pgtrigger.Trigger(
                name="open_is_not_known", when=pgtrigger.Before, operation=pgtrigger.Update,
                condition=pgtrigger.Condition("(NEW.state = 'open' AND OLD.state <> 'open')"),
                func=_REFUSE_OPEN_KNOWN.format(found="SELECT FROM annotation_knownanswer WHERE task_id = NEW.id AND active"),
            )
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"task {self.pk}"


class Progress(models.Model):
    """How far one member is with one question, so that neither the queue nor their count reads what they did before.

    Everything that came up before `seen_until` (`benign_until` for benign tasks) is dealt with by this member, or comes
    up again later. `votes_on_day` counts check answers too: the person's own count must not tell them apart.
    """

    question = models.ForeignKey(Question, models.CASCADE, db_index=False)
    member = models.ForeignKey(Membership, models.PROTECT)
    seen_until = models.DateTimeField(null=True)
    benign_until = models.DateTimeField(null=True)
    rescanned_at = models.DateTimeField(null=True)
    votes = models.PositiveIntegerField(default=0)
    checks = models.PositiveIntegerField(db_default=0, help_text="Answers to checks.")
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


class VoidedVote(models.Model):
    """A vote that a researcher struck out: it counts nowhere any more, and its slot is open again. Nothing of it is lost."""

    task = models.ForeignKey(Task, models.PROTECT, related_name="voided_votes", db_index=False)
    question = models.ForeignKey(Question, models.PROTECT)
    member = models.ForeignKey(Membership, models.PROTECT, related_name="voided_votes")
    vote_number = models.BigIntegerField(help_text="The id it had as a vote.")
    round = models.PositiveSmallIntegerField()
    choice = models.ForeignKey(Choice, models.PROTECT)
    tags = ArrayField(models.CharField(max_length=40), default=list)
    comment = models.CharField(max_length=2000, blank=True)
    guideline = models.ForeignKey(Guideline, models.PROTECT, null=True)
    token = models.UUIDField(unique=True)
    elapsed_ms = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField()
    revised_at = models.DateTimeField(null=True)
    voided_by = models.ForeignKey(Membership, models.PROTECT, related_name="+")
    why = models.CharField(max_length=500)
    voided_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "round", "member"], name="voided_once_per_round")]


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
    handled_by = models.ForeignKey(Membership, models.PROTECT, null=True, related_name="+")
    handled_at = models.DateTimeField(null=True)
    handled_note = models.CharField(max_length=500, blank=True, db_default="", help_text="What was done; why a quarantine was lifted.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "member", "reason"], name="flag_once"),
            models.CheckConstraint(condition=Q(handled_by__isnull=True) | Q(handled_at__isnull=False), name="flag_handled_says_when"),
        ]


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


# ---------------------------------------------------------------- checks
@pghistory.track()
class KnownAnswer(models.Model):
    """A task whose answer is known: shown for practice, with feedback, or mixed in unseen. It collects no votes of its own."""

    task = models.OneToOneField(Task, models.PROTECT, related_name="known_answer")
    question = models.ForeignKey(Question, models.PROTECT, related_name="known_answers", db_index=False)
    choice = models.ForeignKey(Choice, models.PROTECT)
    tags = ArrayField(models.CharField(max_length=40), default=list)
    why = models.CharField(max_length=2000, blank=True, help_text="Said after a practice answer.")
    practice = models.BooleanField(default=False)
    active = models.BooleanField(default=True)
    author = models.ForeignKey(Membership, models.PROTECT, null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["question", "practice", "id"], name="known_active", condition=Q(active=True))]
        triggers = [
            pgtrigger.Trigger(
                name="known_is_not_open", when=pgtrigger.Before, operation=pgtrigger.Insert | pgtrigger.Update,
                condition=pgtrigger.Condition("NEW.active"),
                func=_REFUSE_OPEN_KNOWN.format(found="SELECT FROM annotation_task WHERE id = NEW.task_id AND state = 'open'"),
            )
        ]  # fmt: skip


@pghistory.track(pghistory.UpdateEvent("revised", row=pghistory.Old))
class Check(models.Model):
    """A known answer that was put to a member, and what they said. Apart from votes: it settles, agrees and exports nowhere.

    To the member it looks like any task and any vote: `number` is drawn from the votes' own sequence.
    """

    known = models.ForeignKey(KnownAnswer, models.PROTECT, related_name="checks", db_index=False)
    question = models.ForeignKey(Question, models.PROTECT, db_index=False)
    member = models.ForeignKey(Membership, models.PROTECT, related_name="checks", db_index=False)
    practice = models.BooleanField()
    guideline = models.ForeignKey(Guideline, models.PROTECT, db_index=False)
    token = models.UUIDField(unique=True)
    number = models.BigIntegerField(null=True, help_text="Given when it is answered: its id among the member's votes or abstentions.")
    leased_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    choice = models.ForeignKey(Choice, models.PROTECT, null=True, db_index=False)
    tags = ArrayField(models.CharField(max_length=40), default=list)
    comment = models.CharField(max_length=2000, blank=True)
    correct = models.BooleanField(null=True)
    abstained = models.CharField(max_length=12, choices=AbstainReason, blank=True)
    elapsed_ms = models.PositiveIntegerField(null=True)
    answered_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["known", "member"], name="check_once_per_member"),
            models.UniqueConstraint(fields=["number"], condition=Q(choice__isnull=False), name="check_number_once"),
            models.CheckConstraint(
                condition=Q(answered_at__isnull=True, number__isnull=True, choice__isnull=True, abstained="", correct__isnull=True)
                | Q(answered_at__isnull=False, number__isnull=False, choice__isnull=False, abstained="", correct__isnull=False)
                | Q(answered_at__isnull=False, number__isnull=False, choice__isnull=True, correct__isnull=True) & ~Q(abstained=""),
                name="check_answered_or_not",
            ),
        ]
        indexes = [
            models.Index(fields=["member", "question", "leased_at"], name="check_held", condition=Q(answered_at__isnull=True)),
            models.Index(fields=["member", "question", "-answered_at"], name="check_recent", condition=Q(answered_at__isnull=False)),
            models.Index(fields=["question", "member"], name="check_of_question", condition=Q(practice=False, correct__isnull=False)),
        ]


@pghistory.track()
class Pause(models.Model):
    """A member who is not given work on a question, because too few of their check answers were right, until someone lifts it."""

    question = models.ForeignKey(Question, models.PROTECT, related_name="pauses", db_index=False)
    member = models.ForeignKey(Membership, models.PROTECT, related_name="pauses")
    answers = models.PositiveIntegerField()
    correct = models.PositiveIntegerField()
    floor = models.FloatField()
    paused_at = models.DateTimeField(db_default=Now())
    lifted_by = models.ForeignKey(Membership, models.PROTECT, null=True, related_name="+")
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["question", "member"], condition=Q(lifted_at__isnull=True), name="pause_one_current"),
            models.CheckConstraint(condition=Q(lifted_by__isnull=True) | Q(lifted_at__isnull=False), name="pause_lifted_says_when"),
        ]


class Repeat(models.Model):
    """A ruling put to its adjudicator once more, as if it were new. It changes nothing: it tells how consistent they are."""

    adjudication = models.OneToOneField(Adjudication, models.PROTECT, related_name="repeat")
    question = models.ForeignKey(Question, models.PROTECT, db_index=False)
    member = models.ForeignKey(Membership, models.PROTECT, related_name="repeats", db_index=False)
    guideline = models.ForeignKey(Guideline, models.PROTECT, db_index=False)
    token = models.UUIDField(unique=True)
    leased_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    blind_choice = models.ForeignKey(Choice, models.PROTECT, null=True, related_name="+", db_index=False)
    blind_tags = ArrayField(models.CharField(max_length=40), default=list)
    blind_at = models.DateTimeField(null=True)
    choice = models.ForeignKey(Choice, models.PROTECT, null=True, related_name="+", db_index=False)
    tags = ArrayField(models.CharField(max_length=40), default=list)
    reason = models.CharField(max_length=15, choices=RulingReason, blank=True)
    note = models.CharField(max_length=2000, blank=True)
    ruled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(choice__isnull=True, ruled_at__isnull=True) | Q(choice__isnull=False, ruled_at__isnull=False),
                name="repeat_ruling_says_when",
            ),
            models.UniqueConstraint(fields=["question", "member"], condition=Q(ruled_at__isnull=True), name="repeat_one_at_a_time"),
        ]
        indexes = [models.Index(fields=["member", "question"], name="repeat_mine")]


# ---------------------------------------------------------------- care
class ContentWarning(models.Model):
    """What annotators may see in a project, and what they agree to. Never changed: a change is a new version, agreed to anew."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="warnings")
    version = models.PositiveIntegerField()
    body = models.TextField(help_text="Plain sentences: what may be seen, and how often.")
    author = models.ForeignKey(User, models.PROTECT, null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-version"]
        constraints = [models.UniqueConstraint(fields=["project", "version"], name="warning_version_once")]

    def __str__(self) -> str:
        return f"version {self.version}"


class Consent(models.Model):
    """A member's agreement to a content warning, until it ends: withdrawn, or replaced by a newer one."""

    member = models.ForeignKey(Membership, models.PROTECT, related_name="consents")
    warning = models.ForeignKey(ContentWarning, models.PROTECT, related_name="consents")
    given_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["member"], condition=Q(ended_at__isnull=True), name="consent_one_current")]


class Exposure(models.Model):
    """A sensitive item was handed to a member: a task, a check or a dispute."""

    member = models.ForeignKey(Membership, models.PROTECT, related_name="exposures", db_index=False)
    # Without a constraint: it would lock the task of a check, out of the order of locks (annotation.queue). Tasks are never deleted.
    task = models.ForeignKey(Task, models.PROTECT, db_index=False, db_constraint=False)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["member", "at"], name="exposure_when")]


class Sitting(models.Model):
    """How long someone has worked without a break, in whatever project; one row a person, locked while they are given work."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True)
    since = models.DateTimeField(help_text="When they began, or came back from their last break.")
    last = models.DateTimeField(help_text="When they last answered or asked for work.")
    break_until = models.DateTimeField(null=True)
