"""Flags: what members marked for the researchers to look at, and that it was looked at."""

from django.db import transaction
from django.db.models import Case, QuerySet, When
from django.utils import timezone

from annotation.errors import Invalid, Missing
from annotation.models import Flag, FlagReason, Membership, Project, Question

LONGEST_NOTE = 500


def of_project(project: Project, *, handled: bool = False) -> QuerySet[Flag]:
    """The flags of all questions that wait for somebody (or were handled), newest first, "possibly illegal" before all others."""
    found = Flag.objects.filter(task__question__project=project, handled_at__isnull=not handled)
    related = found.select_related("task__question", "task__item", "member", "handled_by")
    return (
        related.order_by("-handled_at", "-pk")
        if handled
        else related.order_by(Case(When(reason=FlagReason.ILLEGAL, then=0), default=1), "-pk")
    )


def waiting(question: Question) -> int:
    """How many flags on tasks of the question nobody has handled."""
    return Flag.objects.filter(task__question=question, handled_at=None).count()


@transaction.atomic
def handle(flag_id: int, *, by: Membership, note: str = "") -> Flag:
    """Say that a flag was looked at, and what was done; a quarantine goes on until it is lifted. Once more changes nothing.

    Raises Missing for another project's flag, Invalid for a note that is too long.
    """
    if len(note) > LONGEST_NOTE:
        raise Invalid("Say it more briefly.", fields={"note": f"At most {LONGEST_NOTE} characters."})
    found = Flag.objects.select_for_update(of=("self",)).filter(pk=flag_id, task__question__project=by.project_id).first()
    if found is None:
        raise Missing("There is no such flag in this project.")
    if found.handled_at is None:
        found.handled_by, found.handled_at, found.handled_note = by, timezone.now(), note.strip()
        found.save(update_fields=["handled_by", "handled_at", "handled_note"])
    return found
