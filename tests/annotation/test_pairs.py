"""Prompts and the pictures made from them, judged apart from each other: five votes each, harm types by majority, ties ruled.

The two questions are the ready-made ones, over one set of pictures with their prompts.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from django.test import Client

from annotation import disputes, presets, queue, wellbeing
from annotation.errors import Invalid
from annotation.models import GroundTruth, Item, Membership, Question, Role, Task, TaskState
from annotation.questions import create_question
from curation import tasking
from curation.overview import overview
from tests import cast as make

SignIn = Callable[[Membership], Client]
PROMPT = "A harmless prompt, number"


@dataclass
class Pairs:
    """Four pictures with a prompt each, both questions with their tasks, and five people who label."""

    cast: make.Cast
    voters: list[Membership]
    pictures: list[Item]
    image_harm: Question
    prompt_safety: Question


@pytest.fixture
def pairs(cast: make.Cast) -> Pairs:
    voters = [cast.alice, cast.dave, cast.erin, *(make.make_member(cast.project, name, Role.ANNOTATOR) for name in ("frank", "gina"))]
    pictures = make.make_picture_items(cast.project, 4, prompt=PROMPT)
    image_harm = create_question(cast.project, presets.IMAGE_HARM, cast.bob.user)
    prompt_safety = create_question(cast.project, presets.PROMPT_SAFETY, cast.bob.user)
    assert tasking.make_tasks(image_harm) == 4
    assert tasking.make_tasks(prompt_safety, "prompts:question:image_harm") == 4
    warning = wellbeing.warning_of(cast.project)
    assert warning is not None
    for member in (*voters, cast.charlie):
        wellbeing.give_consent(member, warning.version)
    return Pairs(cast, voters, pictures, image_harm, prompt_safety)


def vote(pairs: Pairs, question: Question, ballots: Sequence[str]) -> Task:
    """One task, answered by one voter a ballot: "harmful:hateful,other" is a choice with its tags. Returns it as it stands then."""
    task_id = None
    for member, ballot in zip(pairs.voters, ballots, strict=False):
        choice, _, tags = ballot.partition(":")
        work = queue.next_work(member, question)
        assert task_id in (None, work[0].task_id), "a begun task comes first"
        task_id = work[0].task_id
        queue.cast_vote(member, work[0].token, choice=choice, tags=tags.split(",") if tags else [])
    return Task.objects.get(pk=task_id)


def truth(task: Task) -> tuple[str, list[str], bool, str]:
    """(choice, tags, whether the tags are unsettled, source)."""
    found = GroundTruth.objects.select_related("choice").get(task=task, superseded_at=None)
    return found.choice.value, found.tags, found.tags_unsettled, found.source


# ---------------------------------------------------------------- how votes become labels
def test_three_of_five_settle_a_prompt(pairs: Pairs) -> None:
    task = vote(pairs, pairs.prompt_safety, ["safe", "unsafe", "safe", "unsure", "safe"])
    assert (task.state, truth(task)) == (TaskState.AGREED, ("safe", [], False, "majority"))


def test_all_five_are_collected_even_when_three_agree(pairs: Pairs) -> None:
    assert vote(pairs, pairs.prompt_safety, ["safe", "safe", "safe", "safe"]).state == TaskState.OPEN


def test_two_against_two_and_one_unsure_is_a_dispute(pairs: Pairs) -> None:
    task = vote(pairs, pairs.prompt_safety, ["safe", "unsafe", "safe", "unsure", "unsafe"])
    assert task.state == TaskState.DISPUTED
    assert not GroundTruth.objects.filter(task=task).exists()


def test_harmful_without_a_kind_of_harm_is_refused(pairs: Pairs) -> None:
    work = queue.next_work(pairs.cast.alice, pairs.image_harm)
    with pytest.raises(Invalid, match="needs at least one tag"):
        queue.cast_vote(pairs.cast.alice, work[0].token, choice="harmful")
    with pytest.raises(Invalid, match="takes no tags"):
        queue.cast_vote(pairs.cast.alice, work[0].token, choice="safe", tags=["hateful"])


def test_a_harm_is_kept_by_more_than_half_of_those_who_said_harmful(pairs: Pairs) -> None:
    # Three say harmful: violence by two of three stays, hateful by one of three does not. The two who said safe have no say.
    task = vote(
        pairs, pairs.image_harm, ["harmful:violence-and-gore", "safe", "harmful:violence-and-gore,hateful", "safe", "harmful:other"]
    )
    assert truth(task) == ("harmful", ["violence-and-gore"], False, "majority")


def test_more_than_one_harm_can_be_kept(pairs: Pairs) -> None:
    task = vote(pairs, pairs.image_harm, ["harmful:hateful,violence-and-gore"] * 3 + ["safe"] * 2)
    assert truth(task) == ("harmful", ["hateful", "violence-and-gore"], False, "majority")


def test_half_of_them_is_not_a_majority_and_the_kind_of_harm_stays_unsettled(pairs: Pairs) -> None:
    four = ["harmful:hateful", "harmful:hateful", "harmful:other", "harmful:sexually-explicit", "safe"]
    assert truth(vote(pairs, pairs.image_harm, four)) == ("harmful", [], True, "majority")


def test_a_tie_goes_to_an_adjudicator_who_names_the_harm(pairs: Pairs) -> None:
    task = vote(pairs, pairs.image_harm, ["harmful:other", "safe", "harmful:other", "safe", "unsure"])
    held = disputes.next_dispute(pairs.cast.charlie, pairs.image_harm)
    assert held is not None
    assert held.task_id == task.pk
    disputes.rule_blind(pairs.cast.charlie, held.token, choice="harmful", tags=["other"])
    with pytest.raises(Invalid):
        disputes.rule(pairs.cast.charlie, held.token, choice="harmful", reason="ambiguous")
    disputes.rule(pairs.cast.charlie, held.token, choice="harmful", tags=["other"], reason="ambiguous")
    assert truth(task) == ("harmful", ["other"], False, "adjudicated")


def test_prompt_and_picture_are_labelled_independently(pairs: Pairs) -> None:
    prompt = vote(pairs, pairs.prompt_safety, ["safe"] * 5)
    picture = vote(pairs, pairs.image_harm, ["harmful:hateful"] * 5)
    assert truth(prompt)[0] == "safe"
    assert truth(picture)[0] == "harmful"
    assert Task.objects.filter(question=pairs.image_harm).count() == Task.objects.filter(question=pairs.prompt_safety).count() == 4


# ---------------------------------------------------------------- where unsettled harms are said
def unsettled(pairs: Pairs) -> Task:
    return vote(pairs, pairs.image_harm, ["harmful:hateful", "harmful:hateful", "harmful:other", "harmful:sexually-explicit", "safe"])


def test_the_items_page_says_that_the_kind_of_harm_is_unsettled(pairs: Pairs, sign_in: SignIn) -> None:
    page = sign_in(pairs.cast.bob).get(f"/p/study/items/{unsettled(pairs).item_id}/").content.decode()
    assert "kind unsettled: no tag has a majority" in page


def test_the_overview_counts_unsettled_harms(pairs: Pairs, sign_in: SignIn) -> None:
    unsettled(pairs)
    asked = next(asked for asked in overview(pairs.cast.project).questions if asked.slug == "image_harm")
    assert asked.unsettled == 1
    assert "1 lacks its tag: none had a majority" in sign_in(pairs.cast.bob).get("/p/study/").content.decode()


def test_the_export_says_so_in_its_row(transactional_db: None, pairs: Pairs, sign_in: SignIn) -> None:
    task = unsettled(pairs)
    file = b"".join(sign_in(pairs.cast.bob).get("/p/study/export/items.jsonl"))  # type: ignore[arg-type]
    rows = [json.loads(line) for line in file.decode().splitlines()]
    row = next(row for row in rows if row["external_id"] == task.item.external_id)
    assert '"tags_unsettled": true' in json.dumps(row)


# ---------------------------------------------------------------- neither shows the other's side
def everything_shown(client: Client, question: str, extra: Sequence[str] = ()) -> str:
    """All that a voter of the question can get of it: the page, what its script asks, the API."""
    addresses = [
        f"/p/study/label/{question}/", f"/p/study/label/{question}/next/", "/", "/api/v1/projects/study/answers/",
        "/api/v1/projects/study/asked/", *extra,
    ]  # fmt: skip
    found = [client.get(address).content.decode() for address in addresses]
    found.append(client.post(f"/api/v1/projects/study/questions/{question}/work/").content.decode())
    return "\n".join(found)


def test_who_judges_pictures_never_meets_a_prompt(pairs: Pairs, sign_in: SignIn) -> None:
    vote(pairs, pairs.image_harm, ["safe"])
    shown = everything_shown(sign_in(pairs.cast.alice), "image_harm")
    assert PROMPT not in shown
    assert not any(item.origin.external_id in shown for item in pairs.pictures if item.origin)


def test_who_judges_prompts_never_meets_a_picture(pairs: Pairs, sign_in: SignIn) -> None:
    vote(pairs, pairs.prompt_safety, ["safe"])
    client = sign_in(pairs.cast.alice)
    shown = everything_shown(client, "prompt_safety")
    assert PROMPT in shown
    for picture in pairs.pictures:
        assert picture.media_id not in shown
        assert f"/items/{picture.pk}/" not in shown
        assert client.get(f"/p/study/items/{picture.pk}/picture").status_code == 404
    for held in queue.next_work(pairs.cast.alice, pairs.prompt_safety):  # a prompt has no picture of its own either
        assert client.get(f"/p/study/items/{held.item_id}/picture").status_code == 404


def test_who_judges_both_gets_the_picture_only_while_it_is_theirs(pairs: Pairs, sign_in: SignIn) -> None:
    client = sign_in(pairs.cast.alice)
    mine = {work.item_id for work in queue.next_work(pairs.cast.alice, pairs.image_harm)}
    for picture in pairs.pictures:
        assert client.get(f"/p/study/items/{picture.pk}/picture").status_code == (200 if picture.pk in mine else 404)


def test_an_adjudicator_of_pictures_never_meets_the_prompt(pairs: Pairs, sign_in: SignIn) -> None:
    vote(pairs, pairs.image_harm, ["harmful:other", "safe", "harmful:other", "safe", "unsure"])
    client = sign_in(pairs.cast.charlie)
    page = client.get("/p/study/disputes/image_harm/").content.decode()
    work = client.post("/api/v1/projects/study/questions/image_harm/disputes/").content.decode()
    assert PROMPT not in page + work
    assert "held" not in work or "task_id" in work


def test_the_presets_never_show_the_other_side() -> None:
    assert not presets.IMAGE_HARM.settings.shows_origin
    assert not presets.PROMPT_SAFETY.settings.shows_origin
