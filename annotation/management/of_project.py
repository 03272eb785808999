"""What several commands look up by the names that people type."""

from annotation.errors import Missing
from annotation.models import Membership, Question, Role


def question_of(project: str, question: str) -> Question:
    """The question by short names. Raises Missing."""
    found = Question.objects.select_related("project").filter(project__slug=project, slug=question).first()
    if found is None:
        raise Missing(f"There is no question {question!r} in a project {project!r}.")
    return found


def member_of(project: str, number: int) -> Membership:
    """The member by their number in the project: Annotator 7. Raises Missing."""
    found = Membership.objects.select_related("project").filter(project__slug=project, number=number).first()
    if found is None:
        raise Missing(f"There is no member {number} in a project {project!r}.")
    return found


def researcher_of(project: str, username: str) -> Membership:
    """The researcher in whose name something is done. Raises Missing."""
    found = Membership.objects.filter(project__slug=project, user__username=username, role=Role.RESEARCHER, active=True).first()
    if found is None:
        raise Missing(f"{username!r} is no researcher of a project {project!r}.")
    return found
