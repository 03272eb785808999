"""Fleiss 1971: 30 patients, 6 raters, 5 diagnoses; the votes stand in a column per rater."""

from pathlib import Path
from typing import Any

import pytest

from annotation.models import Project
from curation.importing.mapping import Mapping
from curation.importing.votes import Votes, value_of
from tests import cast as make
from tests.real_data.votes import bring, close, disputed, figures, labels, three

DIAGNOSES = ("1. Depression", "2. Personality Disorder", "3. Schizophrenia", "4. Neurosis", "5. Other")
VOTES = Votes(
    question="diagnosis", form="wide", columns=tuple(f"rater{number}" for number in range(1, 7)), make="answers",
    choices={name: value_of(name) for name in DIAGNOSES},
)  # fmt: skip


@pytest.fixture
def project(db: None) -> Project:
    return make.make_project("fleiss")


def test_the_published_kappa_and_every_majority_come_out(project: Project, data: Path, facts: dict[str, Any]) -> None:
    said = facts["classic_a_fleiss1971"]
    done = bring(project, data / "classic" / "fleiss1971_diagnoses.csv", Mapping(kind="image", votes=(VOTES, three(VOTES, "first-three"))))
    assert [(one["votes"], one["tasks"], one["raters"]) for one in done.votes] == [(180, 30, 6), (90, 30, 0)]
    majority = said["majority"]["strict_majority"]
    assert labels(project, "diagnosis") == {value_of(name): n for name, n in majority.items() if name != "no_majority"}
    assert disputed(project, "diagnosis") == majority["no_majority"]
    found = figures(project, "diagnosis")
    assert close(found.fleiss, said["fleiss"]["kappa"])
    assert round(found.fleiss.value, 3) == said["published_kappa"]
    assert close(found.alpha, said["alpha_nominal"])
    assert close(found.unanimous, said["majority"]["unanimous_share"])


def test_three_votes_and_an_adjudicator_are_needed_as_often_as_computed(project: Project, data: Path, facts: dict[str, Any]) -> None:
    said = facts["classic_a_fleiss1971"]["rule_3plus1"]
    done = bring(project, data / "classic" / "fleiss1971_diagnoses.csv", Mapping(kind="image", votes=(three(VOTES, "diagnosis"),)))
    assert done.votes[0]["states"] == {"agreed": said["unanimous"], "disputed": said["to_adjudication"]}
    assert done.votes[0]["surplus"] == 90
    assert labels(project, "diagnosis") == {value_of(name): n for name, n in said["unanimous_labels"].items()}
