"""What the tests on published votes share: bring a file in, and read what it settled."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from annotation.models import GroundTruth, Project
from curation import agreement
from curation.importing import service
from curation.importing.mapping import Mapping
from curation.importing.votes import Votes
from curation.models import ImportBatch
from curation.stats.intervals import Estimate


def bring(project: Project, path: Path, mapping: Mapping, **source: Any) -> ImportBatch:
    """The file brought in by the service that page, API and command use."""
    batch = service.take(project, path, None)
    found = service.source_of(batch)
    service.start(batch, mapping, source=type(found)(**{**vars(found), **source}))
    done = service.run(batch.pk)
    assert done.state == "done", (done.error, done.problems[:3])
    return done


def labels(project: Project, question: str) -> dict[str, int]:
    """How many tasks of the question settled on each label."""
    truths = GroundTruth.objects.filter(question__project=project, question__slug=question, superseded_at=None)
    return dict(Counter(truths.values_list("choice__value", flat=True)))


def disputed(project: Project, question: str) -> int:
    return project.questions.get(slug=question).tasks.filter(state="disputed").count()


def figures(project: Project, question: str) -> Any:
    return agreement.of_question(project.questions.get(slug=question)).figures


def close(figure: Estimate, expected: float) -> bool:
    """Within the tolerance of the facts."""
    return figure.value == pytest.approx(expected, abs=1e-4)


def three(votes: Votes, question: str) -> Votes:
    """The same votes for another question that asks for three, unanimous: TaeBench's rule before its adjudication."""
    return Votes.of({**votes.as_dict(), "question": question, "votes_required": 3, "policy": "unanimous"})
