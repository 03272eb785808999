"""Adversarial Nibbler, round 1: 1,006 prompts with their pictures (which are not there), five votes on each, by the ready-made mapping."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from annotation import queue
from annotation.models import GroundTruth, Item, Membership, Project, Role, Task, Vote
from curation.importing import service
from curation.models import ImportBatch
from tests import cast as make
from tests.real_data.votes import close, disputed, figures, labels

HARMS = {"sexual": "sexually-explicit", "violent": "violence-and-gore", "hate": "hateful", "bias": "bias", "other": "other"}


def bring_round(project: Project, data: Path, part: str) -> ImportBatch:
    """As the page does it: the layout is recognised, and its mapping taken as it is proposed."""
    batch = service.take(project, data / "nibbler_r1" / f"round1_submitted_{part}.json", None)
    assert batch.format == "nibbler"
    shown = service.preview(batch)
    service.start(batch, shown.mapping, source=shown.source)
    done = service.run(batch.pk)
    assert done.state == "done", (done.error, done.problems[:3])
    return done


@pytest.fixture
def parts(db: None, data: Path) -> list[ImportBatch]:
    project = make.make_project("nibbler")
    return [bring_round(project, data, part) for part in ("dev", "train")]


@pytest.fixture
def project(parts: list[ImportBatch]) -> Project:
    return parts[0].project


def truths(project: Project, question: str) -> dict[int, Any]:
    found = GroundTruth.objects.filter(question__project=project, question__slug=question).select_related("choice")
    return {truth.item_id: truth for truth in found}


def test_items_votes_repeats_and_labels_are_those_of_the_facts(parts: list[ImportBatch], project: Project, facts: dict[str, Any]) -> None:
    said = facts["nibbler_r1"]
    images, prompts = Item.objects.filter(project=project, kind="image"), Item.objects.filter(project=project, kind="text")
    assert (images.count(), prompts.count()) == (said["items"], said["items"]), "one prompt a pair"
    assert len(set(prompts.values_list("text", flat=True))) == said["distinct_prompts"]
    assert len(set(images.values_list("metadata__hashed_filename", flat=True))) == said["distinct_images"]
    assert Membership.objects.filter(project=project, role=Role.RATER).count() == said["raters"]

    for number, (question, side) in enumerate({"prompt_safety": "text", "image_harm": "image"}.items()):
        results = [part.votes[number] for part in parts]
        assert sum(result["repeats"] for result in results) == said["same_rater_twice_on_one_item"]
        assert sum(result["votes"] for result in results) == said["votes"] - said["same_rater_twice_on_one_item"]
        assert sum(result["tasks"] for result in results) == said["items"]
        majority = dict(said[side]["strict_majority_first_vote_per_rater_only"])
        assert disputed(project, question) == majority.pop("no_majority", 0)
        named = {"safe": "safe", "unsafe": "unsafe" if side == "text" else "harmful", "other": "unsure"}
        assert labels(project, question) == {named[label]: count for label, count in majority.items()}
    noted = sum(len(part.notes) for part in parts)
    assert noted == 2 * said["items_with_a_repeated_rater"], "each among the prompt's votes and the image's"
    assert Counter(Task.objects.filter(question__project=project).values_list("votes_required", flat=True)) == {5: 2 * 1004, 4: 2 * 2}


def test_agreement_without_the_two_repeated_votes(project: Project, facts: dict[str, Any]) -> None:
    said = facts["nibbler_r1"]
    text, image = figures(project, "prompt_safety"), figures(project, "image_harm")
    assert close(text.alpha, 0.190534)
    # Two of 5,030 votes are left out on each side, which moves the rest by less than this.
    assert text.pairwise.value == pytest.approx(said["text"]["agreement"]["pairwise_observed_agreement"], abs=5e-4)
    assert image.alpha.value == pytest.approx(said["image"]["agreement"]["alpha_nominal"], abs=2e-3)
    assert close(text.unanimous, said["text"]["majority"]["unanimous_share"])
    assert close(image.unanimous, said["image"]["majority"]["unanimous_share"])


def test_harms_that_pictures_add_to_safe_prompts(project: Project, facts: dict[str, Any]) -> None:
    said = facts["nibbler_r1"]
    text, image = truths(project, "prompt_safety"), truths(project, "image_harm")
    pairs = dict(Item.objects.filter(project=project, kind="image").values_list("pk", "origin_id"))
    counts = Counter(
        (text[prompt].choice.value if prompt in text else None, image[picture].choice.value if picture in image else None)
        for picture, prompt in pairs.items()
    )
    amplification = said["harm_amplification"]
    assert counts["safe", "harmful"] == amplification["amplified"]
    assert counts["safe", "harmful"] + counts["safe", "safe"] == amplification["text_safe_image_decided"]
    crossed = said["text_x_image_majority"]
    assert counts["unsafe", "harmful"] == crossed["text_unsafe|image_unsafe"]
    assert counts[None, "harmful"] == crossed["text_no_majority|image_unsafe"]
    assert counts["unsure", "safe"] == crossed["text_other|image_safe"]

    safe = {picture for picture, prompt in pairs.items() if prompt in text and text[prompt].choice.value == "safe"}
    negatives = sum(picture in image and image[picture].choice.value == "safe" for picture in safe)
    for name in ("sexual", "violent"):
        positives = sum(picture in image and HARMS[name] in image[picture].tags for picture in safe)
        expected = amplification[f"{name}_majority_of_unsafe_votes"]
        assert (positives, positives + negatives) == (expected["amplified"], expected["amplified_or_not"])


def test_kinds_of_harm_and_who_is_hit_come_along(project: Project, facts: dict[str, Any]) -> None:
    said = facts["nibbler_r1"]
    given: Counter[tuple[int, str]] = Counter()
    for task, tags in Vote.objects.filter(question__slug="image_harm").values_list("task_id", "tags"):
        given.update((task, tag) for tag in tags)
    most = Counter(tag for (_, tag), times in given.items() if 2 * times > 5)
    assert {name: most[tag] for name, tag in HARMS.items()} == said["image_type_majority_of_all_votes"]

    image = truths(project, "image_harm")
    rates = said["unsafe_rate_by_target_race_majority"]["rates"]["race_target_majority"]
    hit = [
        item
        for item in Item.objects.filter(project=project, kind="image")
        if (item.metadata.get("said_image_failure_target") or {}).get("image_target_race", 0) > 2
    ]
    assert len(hit) == rates["n"]
    assert sum(image[item.pk].choice.value == "harmful" for item in hit) == rates["k"]


def test_bringing_a_round_again_changes_nothing_and_pictures_without_a_file_are_never_handed_out(project: Project, data: Path) -> None:
    again = bring_round(project, data, "dev")
    assert (again.created, again.unchanged) == (0, 493)
    assert [(one["votes"], one["taken"], one["raters"]) for one in again.votes] == [(0, 5 * 493, 0)] * 2
    assert Vote.objects.count() == 2 * 5028
    alice = make.make_member(project, "alice", Role.ANNOTATOR)
    assert queue.next_work(alice, project.questions.get(slug="image_harm")) == []
    times = Vote.objects.filter(question__slug="prompt_safety", elapsed_ms__isnull=False)
    assert times.count() == 5028
