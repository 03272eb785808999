"""Who may come in. One visible helper per kind of access; every view and API view begins with one of them.

Someone who is not in the project is told that it does not exist; someone with another role is told which is needed.
"""

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from annotation.errors import Forbidden, Missing
from annotation.lookup import Lookup
from annotation.models import Membership, Project, Question, Role, User

Who = User | AnonymousUser
_find_member = Lookup(
    Membership,
    """
    FROM annotation_membership JOIN annotation_project AS project ON project.id = annotation_membership.project_id
    WHERE annotation_membership.user_id = %s AND project.slug = %s AND annotation_membership.active AND project.archived_at IS NULL
    """,
)


def member(user: Who, project: str) -> Membership:
    """The signed-in person's membership of the project with this slug, whatever the role."""
    found = _find_member(user.pk or 0, project)
    if found is None or not isinstance(user, User):
        raise Missing("There is no such project, or you are not in it.")
    found.user = user
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


def person(user: Who) -> User:
    """Whoever is signed in; what is one's own begins with this."""
    if not isinstance(user, User):
        raise Forbidden("Sign in first.")
    return user


def maker(user: Who) -> User:
    """May begin a project: whoever the operator gave that right (`manage.py user add NAME --staff`)."""
    found = person(user)
    if not found.is_staff:
        raise Forbidden("Projects are begun by people with that right. Ask whoever runs this installation, or use `manage.py project add`.")
    return found


def projects(user: Who) -> QuerySet[Project]:
    """The projects that this person is in."""
    return Project.objects.filter(memberships__user_id=user.pk or 0, memberships__active=True, archived_at=None)


def question(found: Membership, slug: str) -> Question:
    """The question with this slug in the member's project."""
    asked = Question.objects.filter(project_id=found.project_id, slug=slug).first()
    if asked is None:
        raise Missing(f'There is no question "{slug}" in {found.project.name}.')
    asked.project = found.project
    return asked


def _with_role(found: Membership, *roles: Role) -> Membership:
    if found.role not in roles:
        needed = " or ".join(role.label for role in roles)
        raise Forbidden(f"This needs the role {needed}; in {found.project.name} yours is {found.get_role_display()}.")
    return found
