"""Care for the people who label: content warnings and consent, limits and breaks, what each was exposed to (SPEC section 2).

What is enforced is enforced where work is handed out (gate.py, queue.py); here it is set, agreed to and counted.
Researchers get totals of their project and never one person's: no page tells who found what hard to bear.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta

from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from annotation import queue, sql
from annotation.errors import Conflict, Invalid
from annotation.models import Consent, ContentWarning, Membership, Project, Role, User

FEWEST_TOLD = 5  # a smaller number of distressed answers would come near to naming someone
DAYS_TOLD = 30
LONGEST_BODY, LONGEST_NOTE = 5000, 4000
READY_WARNING = (
    "Some of what you judge here may be hateful, violent or sexually explicit: insults, slurs and threats in texts, and the like in "
    "pictures. Much of it is harmless. Which is which cannot be told before somebody has looked."
)


# ---------------------------------------------------------------- the content warning
def warning_of(project: Project) -> ContentWarning | None:
    """The version in force; None where nothing sensitive is asked, and so nothing needs to be agreed to."""
    return ContentWarning.objects.filter(project=project).order_by("-version").first()


@transaction.atomic
def new_warning(project: Project, body: str, author: User | None = None) -> ContentWarning:
    """The next version: from now on nobody gets work before they have agreed to it. Raises Invalid (body)."""
    body = body.replace("\r\n", "\n").strip()
    _check_text("body", body, LONGEST_BODY)
    if not body:
        raise Invalid("Write what people may see here; a sentence or two will do.", fields={"body": "Write something here."})
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    latest = warning_of(project)
    if latest and latest.body == body:
        raise Invalid(
            f"This is version {latest.version} word for word. Nobody needs to agree to it again.",
            code="unchanged",
            fields={"body": "Change something, or leave it as it is."},
        )
    return ContentWarning.objects.create(project=project, version=latest.version + 1 if latest else 1, body=body, author=author)


def ensure_warning(project: Project, author: User | None = None) -> None:
    """Version 1 in our ready words, when a project has none: for whoever makes its first sensitive question."""
    if warning_of(project) is None:
        new_warning(project, READY_WARNING, author)


# ---------------------------------------------------------------- consent
def consent_of(member: Membership) -> Consent | None:
    """The member's agreement to the version in force; None when it was never given, is over, or is to an older version."""
    latest = warning_of(member.project)
    if latest is None:
        return None
    return Consent.objects.filter(member=member, warning=latest, ended_at=None).select_related("warning").first()


@transaction.atomic
def give_consent(member: Membership, version: int) -> Consent:
    """Agree to this version. Once more changes nothing. Raises Conflict when another version is in force by now."""
    Membership.objects.select_for_update(no_key=True).get(pk=member.pk)
    latest = warning_of(member.project)
    if latest is None or latest.version != version:
        raise Conflict("The content warning has changed while you read. Please read it again.", code="warning_moved_on")
    current = Consent.objects.filter(member=member, ended_at=None).first()
    if current and current.warning_id == latest.pk:
        return current
    if current:
        current.ended_at = timezone.now()
        current.save(update_fields=["ended_at"])
    return Consent.objects.create(member=member, warning=latest)


@transaction.atomic
def withdraw_consent(member: Membership) -> int:
    """End the member's consent and give back what they hold; returns how many tasks. Their answers stay."""
    queue.lock_person(member)  # a request for work that is under way is over, or comes after
    Consent.objects.filter(member=member, ended_at=None).update(ended_at=timezone.now())
    return queue.release(member)


# ---------------------------------------------------------------- limits and breaks
@dataclass(frozen=True)
class CareSettings:
    """How a project looks after its people. A limit or a break that is None is none."""

    hourly_limit: int | None
    daily_limit: int | None
    break_after_minutes: int | None
    break_minutes: int
    benign_share: float
    support_note: str


_SETTINGS = tuple(field.name for field in fields(CareSettings))
_RANGES = {
    "hourly_limit": (1, 10_000, "items", True),
    "daily_limit": (1, 30_000, "items", True),
    "break_after_minutes": (1, 24 * 60, "minutes", True),
    "break_minutes": (1, 24 * 60, "minutes", False),
}


def care_settings(project: Project) -> CareSettings:
    return CareSettings(**{name: getattr(project, name) for name in _SETTINGS})


@transaction.atomic
def change_care(project: Project, settings: CareSettings) -> Project:
    """Give the project these settings, from the next task on. Raises Invalid by field."""
    wrong = {}
    for name, (least, most, unit, may_be_none) in _RANGES.items():
        value = getattr(settings, name)
        if value is None and not may_be_none:
            wrong[name] = f"From {least} to {most:,} {unit}."
        elif value is not None and not least <= value <= most:
            wrong[name] = f"From {least} to {most:,} {unit}{', or nothing for none' if may_be_none else ''}."
    if not (math.isfinite(settings.benign_share) and 0 <= settings.benign_share <= 1):
        wrong["benign_share"] = "A share from 0 to 1."
    if settings.hourly_limit and settings.daily_limit and settings.daily_limit < settings.hourly_limit:
        wrong.setdefault("daily_limit", "At least as many as in an hour.")
    if len(settings.support_note) > LONGEST_NOTE or "\x00" in settings.support_note:
        wrong["support_note"] = f"At most {LONGEST_NOTE:,} plain characters."
    if wrong:
        raise Invalid("One field needs another look." if len(wrong) == 1 else f"{len(wrong)} fields need another look.", fields=wrong)
    project = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    for name in _SETTINGS:
        setattr(project, name, getattr(settings, name))
    project.support_note = settings.support_note.replace("\r\n", "\n").strip()
    project.save(update_fields=list(_SETTINGS))
    return project


def _check_text(name: str, text: str, longest: int) -> None:
    if len(text) > longest:
        raise Invalid("The text is too long.", fields={name: f"At most {longest:,} characters; this has {len(text):,}."})
    if "\x00" in text:
        raise Invalid("A NUL character cannot be kept.", fields={name: "Take it out."})


# ---------------------------------------------------------------- one's own exposure
@dataclass(frozen=True)
class HourCount:
    """Sensitive items handed to a person in one clock hour (UTC), in all their projects."""

    hour: datetime
    items: int


@dataclass(frozen=True)
class Day:
    """A day of one person's exposure: `hours` maps an hour of the day (UTC) to the sensitive items handed out in it."""

    date: date
    hours: Mapping[int, int]

    @property
    def items(self) -> int:
        return sum(self.hours.values())


def exposure_by_hour(user: User, since: datetime) -> list[HourCount]:
    """Oldest first; hours without any are left out. For the person themselves only."""
    found = sql.rows(
        """
        SELECT date_trunc('hour', exposure.at, 'UTC') AS hour, count(*) AS items FROM annotation_exposure AS exposure
        WHERE exposure.member_id IN (SELECT id FROM annotation_membership WHERE user_id = %(user)s) AND exposure.at >= %(since)s
        GROUP BY 1 ORDER BY 1
        """,
        user=user.pk, since=since,
    )  # fmt: skip
    return [HourCount(row["hour"].astimezone(UTC), row["items"]) for row in found]


def last_hours(user: User, hours: int) -> list[HourCount]:
    """The last clock hours, the one that runs included, oldest first; hours without any are there, with 0."""
    this_hour = timezone.now().astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    first = this_hour - timedelta(hours=hours - 1)
    found = {count.hour: count.items for count in exposure_by_hour(user, first)}
    return [HourCount(hour, found.get(hour, 0)) for hour in (first + timedelta(hours=number) for number in range(hours))]


def last_days(user: User, days: int) -> list[Day]:
    """The last days (UTC), today included, oldest first; days without any are there too."""
    first = timezone.now().astimezone(UTC).date() - timedelta(days=days - 1)
    found: dict[date, dict[int, int]] = {first + timedelta(days=number): {} for number in range(days)}
    for count in exposure_by_hour(user, datetime.combine(first, datetime.min.time(), UTC)):
        found[count.hour.date()][count.hour.hour] = count.items
    return [Day(day, hours) for day, hours in found.items()]


# ---------------------------------------------------------------- what researchers are told
@dataclass(frozen=True)
class DayCount:
    """Sensitive items handed out in a project on one day (UTC)."""

    day: date
    items: int


@dataclass(frozen=True)
class Totals:
    """A project's last DAYS_TOLD days. `distressed` is None where there were some, but fewer than FEWEST_TOLD."""

    days: Sequence[DayCount]
    exposed: int
    people: int
    reached_limit: int
    distressed: int | None
    consented: int
    must_consent: int


@dataclass(frozen=True)
class Mix:
    """The open tasks of a sensitive question, and how many benign ones its project's share asks for. No more are short than `missing`."""

    title: str
    slug: str
    sensitive: int
    benign: int
    needed: int

    @property
    def missing(self) -> int:
        return max(0, self.needed - self.benign)


def totals(project: Project) -> Totals:
    """Totals of a project over the last DAYS_TOLD days, today included; never of one person. Up to a minute old."""
    key = f"care-totals:{project.pk}:{project.hourly_limit}:{project.daily_limit}"
    kept: Totals | None = cache.get(key)
    if kept is None:
        kept = _totals(project)
        cache.set(key, kept, 60)
    return kept


def _totals(project: Project) -> Totals:
    today = timezone.now().astimezone(UTC).date()
    first = today - timedelta(days=DAYS_TOLD - 1)
    counts = {
        row["day"]: row["items"]
        for row in sql.rows(_EXPOSED_BY_DAY, project=project.pk, since=datetime.combine(first, datetime.min.time(), UTC))
    }
    days = [DayCount(first + timedelta(days=number), counts.get(first + timedelta(days=number), 0)) for number in range(DAYS_TOLD)]
    row = sql.the(
        _TOTALS, project=project.pk, since=days[0].day, hourly=project.hourly_limit, daily=project.daily_limit,
        bound=[Role.ANNOTATOR.value, Role.ADJUDICATOR.value],
    )  # fmt: skip
    distressed = row["distressed"]
    return Totals(
        days, sum(day.items for day in days), row["people"], row["reached"],
        distressed if distressed == 0 or distressed >= FEWEST_TOLD else None, row["consented"], row["must_consent"],
    )  # fmt: skip


def mixes(project: Project) -> list[Mix]:
    """The questions on offer with sensitive tasks open: are there benign ones to mix in? Questions by name."""
    found = sql.rows(
        """
        SELECT question.title, question.slug, count(*) FILTER (WHERE task.sensitive) AS sensitive,
               count(*) FILTER (WHERE NOT task.sensitive) AS benign
        FROM annotation_question AS question JOIN annotation_task AS task ON task.question_id = question.id AND task.state = 'open'
        WHERE question.project_id = %(project)s AND question.active
        GROUP BY question.id HAVING bool_or(task.sensitive) ORDER BY question.title
        """,
        project=project.pk,
    )
    share = project.benign_share
    return [Mix(**row, needed=_needed(row["sensitive"], row["benign"], share)) for row in found]


def _needed(sensitive: int, benign: int, share: float) -> int:
    """So many benign tasks that they are this share of all: s / (1 - s) of the sensitive ones."""
    return math.ceil(round(sensitive * share / (1 - share), 6)) if share < 1 else sensitive + benign


_EXPOSED_BY_DAY = """
    SELECT (exposure.at AT TIME ZONE 'UTC')::date AS day, count(*) AS items
    FROM annotation_exposure AS exposure JOIN annotation_membership AS member ON member.id = exposure.member_id
    WHERE member.project_id = %(project)s AND exposure.at >= %(since)s GROUP BY 1
"""
# The limits hold over all of a person's projects; what they met elsewhere is not this project's to know, so here only its own counts.
_TOTALS = """
    WITH seen AS (
        SELECT exposure.member_id,
               count(*) OVER (PARTITION BY exposure.member_id ORDER BY exposure.at
                              RANGE BETWEEN interval '1 hour' PRECEDING AND CURRENT ROW) AS in_hour,
               count(*) OVER (PARTITION BY exposure.member_id ORDER BY exposure.at
                              RANGE BETWEEN interval '24 hours' PRECEDING AND CURRENT ROW) AS in_day
        FROM annotation_exposure AS exposure JOIN annotation_membership AS member ON member.id = exposure.member_id
        WHERE member.project_id = %(project)s AND exposure.at >= %(since)s::date
    )
    SELECT (SELECT count(DISTINCT member_id) FROM seen) AS people,
           (SELECT count(DISTINCT member_id) FROM seen WHERE in_hour >= %(hourly)s OR in_day >= %(daily)s) AS reached,
           (SELECT count(*) FROM annotation_abstention AS given JOIN annotation_question AS question ON question.id = given.question_id
            WHERE question.project_id = %(project)s AND given.reason = 'distressing' AND given.created_at >= %(since)s::date)
           + (SELECT count(*) FROM annotation_check AS given JOIN annotation_question AS question ON question.id = given.question_id
              WHERE question.project_id = %(project)s AND given.abstained = 'distressing' AND given.answered_at >= %(since)s::date)
           AS distressed,
           (SELECT count(*) FROM annotation_membership
            WHERE project_id = %(project)s AND active AND role = ANY(%(bound)s)) AS must_consent,
           (SELECT count(*) FROM annotation_membership AS member
            JOIN annotation_consent AS consent ON consent.member_id = member.id AND consent.ended_at IS NULL
            WHERE member.project_id = %(project)s AND member.active AND member.role = ANY(%(bound)s)
              AND consent.warning_id = (SELECT id FROM annotation_contentwarning
                                        WHERE project_id = %(project)s ORDER BY version DESC LIMIT 1)) AS consented
"""
