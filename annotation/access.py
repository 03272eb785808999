"""Who may come in. One visible helper per kind of access; every view and API view begins with one of them.

Someone who is not in the project is told that it does not exist; someone with another role is told which is needed.
"""

from django.contrib.auth.models import AnonymousUser

from annotation.errors import Forbidden, Missing
from annotation.models import Membership, Role, User

Who = User | AnonymousUser


def member(user: Who, project: str) -> Membership:
    """The signed-in person's membership of the project with this slug, whatever the role."""
    found = (
        Membership.objects.select_related("project", "user").filter(user_id=user.pk, project__slug=project, active=True, project__archived_at=None).first()
    )
    if found is None:
        raise Missing("There is no such project, or you are not in it.")
    return found


def voter(user: Who, project: str) -> Membership:
    """May label: annotators and adjudicators. A researcher sees scores and votes, and so never votes."""
    return _with_role(member(user, project), Role.ANNOTATOR, Role.ADJUDICATOR)


def adjudicator(user: Who, project: str) -> Membership:
    """May rule on disputes: adjudicators, and researchers, whose rulings are recorded as not blind."""
    return _with_role(member(user, project), Role.ADJUDICATOR, Role.RESEARCHER)


def researcher(user: Who, project: str) -> Membership:
    """May see and do everything but vote."""
    return _with_role(member(user, project), Role.RESEARCHER)


def _with_role(found: Membership, *roles: Role) -> Membership:
    if found.role not in roles:
        needed = " or ".join(role.label for role in roles)
        raise Forbidden(f"This needs the role {needed}; in {found.project.name} yours is {found.get_role_display()}.")
    return found
