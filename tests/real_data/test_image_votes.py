"""CIFAR-10H: how many of about 51 people called each of 200 small pictures what; here without the pictures."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from annotation.models import GroundTruth, Item, Project, Vote
from curation.importing.mapping import Mapping
from curation.importing.votes import Votes
from tests import cast as make
from tests.real_data.votes import bring, close, figures, labels

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
VEHICLES = {"airplane", "automobile", "ship", "truck"}


def counted(question: str, choices: dict[str, str]) -> Votes:
    return Votes(question, "counts", tuple(f"n_{name}" for name in CLASSES), make="answers", choices=choices)


MAPPING = Mapping(
    kind="image", external_id="id",
    votes=(
        counted("class", {f"n_{name}": name for name in CLASSES}),
        counted("animal", {f"n_{name}": "vehicle" if name in VEHICLES else "animal" for name in CLASSES}),
        counted("dog", {f"n_{name}": "dog" if name == "dog" else "other" for name in CLASSES}),
    ),
)  # fmt: skip


@pytest.fixture
def project(db: None, data: Path) -> Project:
    made = make.make_project("cifar")
    done = bring(made, data / "images" / "cifar10h_counts.csv", MAPPING)
    assert done.created == 200
    return made


def test_counts_become_votes_and_labels_as_the_facts_say(project: Project, facts: dict[str, Any]) -> None:
    said = facts["images_a"]
    votes = Vote.objects.filter(question__slug="class")
    per_image = Counter(votes.values_list("task_id", flat=True))
    assert (len(per_image), votes.count(), [min(per_image.values()), max(per_image.values())]) == (
        said["images"], said["votes"], said["raters_per_image"],
    )  # fmt: skip
    assert sum(labels(project, "class").values()) == said["images"] - said["no_strict_majority_10"]
    assert labels(project, "animal")["animal"] == said["majority_animal"]
    found = figures(project, "class")
    assert close(found.alpha, said["alpha_nominal_10_classes"])
    assert close(figures(project, "animal").alpha, said["alpha_nominal_animal_vs_vehicle"])
    assert round(found.unanimous.value * said["images"]) == said["unanimous_10"]


def test_a_proxy_harm_held_against_the_published_labels(project: Project, facts: dict[str, Any]) -> None:
    said = facts["images_a"]["proxy_harm_dog"]
    original = dict(Item.objects.filter(project=project).values_list("pk", "metadata__original_label"))
    truth = dict(GroundTruth.objects.filter(question__slug="dog").values_list("item_id", "choice__value"))
    held = Counter((truth.get(item) == "dog", label == "dog") for item, label in original.items())
    expected = said["vs_original_label"]
    assert (held[True, True], held[True, False], held[False, True], held[False, False]) == tuple(
        expected[k] for k in ("tp", "fp", "fn", "tn")
    )
    assert sum(held[True, was] for was in (True, False)) == said["harmful"]
