"""People and what they may do: accounts, projects, memberships, tokens. Each function is one transaction.

Nobody is ever deleted: who leaves is made inactive, and their votes and their pseudonym stay.
"""

import re
import secrets
from dataclasses import dataclass

import pghistory.core
from allauth.account.models import EmailAddress
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.contrib.sessions.backends.cached_db import SessionStore
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone
from knox.models import AuthToken

from annotation import imported, known, queue, rounds
from annotation.errors import Conflict, Invalid, Missing
from annotation.models import (
    Assignment,
    Consent,
    KnownAnswer,
    Membership,
    Pause,
    Progress,
    Project,
    Question,
    Role,
    TaskState,
    User,
    VoidedVote,
    Vote,
)
from annotation.queue import ABSTENTIONS_TO_DISPUTE

SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
PEOPLE = (Role.ANNOTATOR, Role.ADJUDICATOR, Role.RESEARCHER)
# Read aloud and typed once: no 0 and O, no 1 and l and I.
PASSWORD_LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # noqa: S105 - an alphabet


@dataclass(frozen=True)
class Added:
    """A new member; `password` only when their account was made with it, and never again."""

    member: Membership
    password: str | None


# ---------------------------------------------------------------- accounts and projects
@transaction.atomic
def add_user(username: str, *, staff: bool = False) -> tuple[User, str]:
    """A new account and its generated password, which is stored hashed. `staff` may begin projects.

    Raises Invalid for a name that is taken or that has characters outside letters, digits and @ . + - _.
    """
    if not _could_be_a_name(username):
        raise Invalid("That name cannot be used.", fields={"username": "1 to 150 letters, digits and @ . + - _ only."})
    if User.objects.filter(username__iexact=username).exists():
        raise Invalid("That name is taken.", fields={"username": f"There is already an account named {username}."})
    password = "-".join("".join(secrets.choice(PASSWORD_LETTERS) for _ in range(5)) for _ in range(4))
    return User.objects.create_user(username, password=password, is_staff=staff), password


def _could_be_a_name(username: str) -> bool:
    try:
        UnicodeUsernameValidator()(username)
    except ValidationError:
        return False
    return 1 <= len(username) <= 150


@transaction.atomic
def add_project(slug: str, name: str, *, founder: User | None = None) -> Project:
    """A new project; its founder becomes its first researcher. Raises Invalid for a slug that is taken or malformed."""
    if not SLUG.fullmatch(slug) or len(slug) > 60:
        raise Invalid("That short name cannot be used.", fields={"slug": "Small letters, digits and single hyphens, at most 60."})
    if not name.strip() or len(name) > 120 or not name.isprintable():
        raise Invalid("Give the project a name.", fields={"name": "1 to 120 characters, on one line."})
    if Project.objects.filter(slug=slug).exists():
        raise Invalid("That short name is taken.", fields={"slug": f'There is already a project "{slug}".'})
    project = Project.objects.create(slug=slug, name=name.strip(), seed=secrets.randbits(62))
    if founder is not None:
        add_member(project, founder.username, Role.RESEARCHER)
    return project


# ---------------------------------------------------------------- members
@transaction.atomic
def add_member(project: Project, username: str, role: str, *, new_account: bool = False) -> Added:
    """Give someone a part in the project, under the next pseudonym. Raises Invalid (username, role)."""
    _check_role(role)
    _lock(project)
    password = None
    if new_account:
        user, password = add_user(username)
    else:
        found = User.objects.filter(username=username, is_active=True).first() if _could_be_a_name(username) else None
        if found is None:
            why = f'Nobody is named "{username}". Make a new account for them, or mend the name.'
            raise Invalid("There is no such account.", fields={"username": why})
        user = found
    if (there := Membership.objects.filter(project=project, user=user).first()) is not None:
        why = f"{username} is in the list; change the role there."
        if not there.active:  # which of those who left they are, only they can tell
            why = f"{username} was in this project and left. Let them in again under the number they had."
        raise Invalid("They are already in this project.", fields={"username": why})
    number = (Membership.objects.filter(project=project).aggregate(last=Max("number"))["last"] or 0) + 1
    return Added(Membership.objects.create(project=project, user=user, role=role, number=number), password)


@transaction.atomic
def change_role(project: Project, number: int, role: str) -> Membership:
    """Another role for a member; the work they hold goes back.

    Raises Conflict for the last researcher, and for a researcher who would vote: they have seen votes and scores.
    """
    _check_role(role)
    _lock(project)
    member = find(project, number)
    if member.role == role:
        return member
    if member.role == Role.RESEARCHER:
        _check_not_last_researcher(member)
        raise Conflict(
            f"{member.name} has been a researcher here and may have seen votes and scores, so they can no longer vote or rule blind. "
            "Let them stay a researcher, or end their part in the project.",
            code="researcher_stays",
        )
    queue.release(member)
    member.role = role
    member.save(update_fields=["role"])
    return member


@transaction.atomic
def deactivate(project: Project, number: int) -> Membership:
    """End someone's part in the project: they no longer find it, the work they hold goes back, their votes stay."""
    _lock(project)
    member = find(project, number)
    if member.active:
        _check_not_last_researcher(member)
        queue.release(member)
        member.active = False
        member.save(update_fields=["active"])
    return member


@transaction.atomic
def reactivate(project: Project, number: int) -> Membership:
    """Let someone in again, with the role and the pseudonym they had."""
    _lock(project)
    member = find(project, number)
    member.active = True
    member.save(update_fields=["active"])
    return member


@transaction.atomic
def change(project: Project, number: int, *, role: str | None = None, active: bool | None = None) -> Membership:
    """Both at once, or neither: another role, and in or out."""
    member = find(project, number)
    if role is not None:
        member = change_role(project, number, role)
    if active is not None:
        member = reactivate(project, number) if active else deactivate(project, number)
    return member


@transaction.atomic
def forget(user: User) -> None:
    """Make an account nobody's: name and e-mail go, here and in the trail, and so do its password, sessions and tokens.

    Pseudonyms, votes and rulings stay. There is no way back. Raises Conflict while they have a part in a project, or may begin one.
    """
    user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if user.memberships.filter(active=True).exists():
        raise Conflict("They are still in a project. End their part there first.", code="still_in")
    if user.is_staff:
        raise Conflict("This account may begin projects. Whoever runs this installation takes that right away first.", code="staff")
    user.username, user.email, user.first_name, user.last_name = f"forgotten-{user.pk}", "", "", ""
    user.is_active = False
    user.set_unusable_password()
    user.save()
    kept = {"username": user.username, "email": "", "first_name": "", "last_name": ""}
    for events in pghistory.core.event_models(tracks_model=User):
        events._default_manager.filter(pgh_obj_id=user.pk).update(**kept)
    EmailAddress.objects.filter(user=user).delete()
    tokens(user).delete()
    end_sessions(user)


def account_to_forget(member: Membership) -> User | None:
    """The account that a researcher of the project may have forgotten: of someone who left, with no part elsewhere and no rights."""
    user = member.user
    if user is None or member.active or not user.is_active or user.is_staff:
        return None
    return None if user.memberships.exclude(pk=member.pk).exists() else user


def forget_member(project: Project, number: int) -> Membership:
    """Have the account of someone who left forgotten. Raises Conflict (not_ours) where more than this project knows it, Missing."""
    member = find(project, number)
    user = account_to_forget(member)
    if user is None:
        raise Conflict(
            "Only the account of someone who has left, and who is in no other project, can be forgotten from here. "
            "Whoever runs this installation can do it for the others: `manage.py user forget NAME`.",
            code="not_ours",
        )
    forget(user)
    return member


def end_sessions(user: User) -> None:
    """Sign the user out everywhere."""
    for session in Session.objects.filter(expire_date__gte=timezone.now()).iterator():
        if session.get_decoded().get(SESSION_KEY) == str(user.pk):
            SessionStore(session.session_key).delete()


def find(project: Project, number: int) -> Membership:
    """The person with this pseudonym. Raises Missing, for raters from files too: they are nobody's account."""
    member = Membership.objects.select_related("user", "project").filter(project=project, number=number, user__isnull=False).first()
    if member is None:
        raise Missing(f"Nobody in {project.name} has the number {number}.")
    return member


def members(project: Project) -> QuerySet[Membership]:
    """Everyone in the project by number, with `votes_cast`: how many of their votes stand, and `votes_voided`: how many were struck out.

    Raters from files are left out; see `raters`.
    """
    cast = Progress.objects.filter(member=OuterRef("pk")).order_by().values("member").annotate(total=Sum("votes")).values("total")
    gone = VoidedVote.objects.filter(member=OuterRef("pk")).order_by().values("member").annotate(total=Count("pk")).values("total")
    return (
        Membership.objects.filter(project=project, user__isnull=False)
        .select_related("user", "project")
        .annotate(votes_voided=Coalesce(Subquery(gone), 0))
        .annotate(votes_cast=Coalesce(Subquery(cast), 0) - F("votes_voided"))
        .order_by("number")
    )


@dataclass(frozen=True)
class Part:
    """What a member does on one question. `assigned` is None where everyone in the project works on it."""

    question: Question
    assigned: bool | None
    votes: int
    voided: int
    tally: known.Tally | None
    pause: Pause | None


def parts(member: Membership) -> list[Part]:
    """One for each question of the project, in the order they were made."""
    questions = list(member.project.questions.order_by("pk"))
    votes = dict(Vote.objects.filter(member=member).values_list("question").annotate(Count("pk")).order_by())
    voided = dict(VoidedVote.objects.filter(member=member).values_list("question").annotate(Count("pk")).order_by())
    mine: dict[int, bool] = {}
    for question, assigned in Assignment.objects.filter(question__in=questions).values_list("question", "member"):
        mine[question] = mine.get(question, False) or assigned == member.pk
    pauses = {pause.question_id: pause for pause in Pause.objects.filter(member=member, lifted_at=None)}
    return [
        Part(q, mine.get(q.pk), votes.get(q.pk, 0), voided.get(q.pk, 0), known.tally_of(q, member), pauses.get(q.pk)) for q in questions
    ]


def last_consent(member: Membership) -> Consent | None:
    """The latest content warning they agreed to, in force or ended."""
    return Consent.objects.filter(member=member).select_related("warning").order_by("-given_at", "-pk").first()


def would_void(member: Membership, question: Question | None) -> rounds.Voided:
    """What `rounds.void_votes` would do as things stand now. Changes nothing."""
    votes = Vote.objects.filter(member=member, **({"question": question} if question else {}))
    now = votes.filter(round=F("task__round"))
    settled = Q(task__state=TaskState.AGREED) | Q(task__state=TaskState.DISPUTED, task__abstention_count__lt=ABSTENTIONS_TO_DISPUTE)
    opens = now.filter(settled, task__item__quarantined=False).exclude(
        Exists(KnownAnswer.objects.filter(task=OuterRef("task"), active=True))
    )
    return rounds.Voided(votes.count(), opens.count(), now.filter(task__state=TaskState.ADJUDICATED).count())


def raters(project: Project) -> tuple[int, int, int]:
    """(raters that files name, their votes, votes that came as counts or without names)."""
    found = Membership.objects.filter(project=project, role=Role.RATER)
    nobody = found.filter(pk__in=imported.nameless_members(project.pk))
    named = found.exclude(pk__in=nobody)
    votes, nameless = (Vote.objects.filter(member__in=some).count() if some.exists() else 0 for some in (named, nobody))
    return named.count(), votes, nameless


def _lock(project: Project) -> None:
    """One change of a project's people at a time: numbers are given once, and one researcher always stays."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)


def _check_role(role: str) -> None:
    if role not in PEOPLE:
        raise Invalid("Choose a role.", fields={"role": f"One of: {', '.join(PEOPLE)}."})


def _check_not_last_researcher(member: Membership) -> None:
    others = Membership.objects.filter(project_id=member.project_id, role=Role.RESEARCHER, active=True).exclude(pk=member.pk)
    if member.role == Role.RESEARCHER and not others.exists():
        raise Conflict(f"{member.name} is the last researcher here. Add another one first.", code="last_researcher")


# ---------------------------------------------------------------- tokens
def new_token(user: User) -> tuple[AuthToken, str]:
    """A token that speaks for this person, and its text, which is stored hashed and never shown again."""
    made: tuple[AuthToken, str] = AuthToken.objects.create(user)
    return made


def tokens(user: User) -> QuerySet[AuthToken]:
    """A person's tokens, newest first; `token_key` is the beginning of each."""
    found: QuerySet[AuthToken] = AuthToken.objects.filter(user=user)
    return found.order_by("-created")


def revoke_token(user: User, key: str) -> None:
    """End a token at once. Raises Missing for one that is not this person's."""
    gone, _ = AuthToken.objects.filter(user=user, token_key=key).delete()
    if not gone:
        raise Missing("You have no such token.")
