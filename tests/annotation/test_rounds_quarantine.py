"""Possibly illegal: from the moment of the flag, nobody is shown the item, whatever they were doing with it."""

import pytest

from annotation import disputes, media, queue, rounds
from annotation.errors import Conflict, Missing
from annotation.models import Adjudication, Item, KnownAnswer, Lease, Media, Repeat, Task
from curation import disagreement
from scoring.runs import texts_of
from tests.annotation.api import Program
from tests.cast import Cast, Question, make_member, make_pictures, make_question, make_tasks

TEXT = "A mild text, number 0."


@pytest.fixture
def toxicity(cast: Cast) -> Question:
    return make_question(cast.project)


def disputed(cast: Cast, question: Question) -> Task:
    task = make_tasks(question, 1)[0]
    for member, choice in ((cast.alice, "yes"), (cast.dave, "no"), (cast.erin, "yes")):
        queue.cast_vote(member, queue.next_work(member, question)[0].token, choice=choice)
    return task


def test_whoever_holds_it_is_shown_it_no_more_and_their_answer_is_refused(cast: Cast, toxicity: Question) -> None:
    task = make_tasks(toxicity, 1)[0]
    tokens = [queue.next_work(member, toxicity)[0].token for member in (cast.alice, cast.dave)]
    queue.flag(cast.alice, task.pk, "illegal")
    for member, token in zip((cast.alice, cast.dave), tokens, strict=True):
        assert queue.next_work(member, toxicity) == []
        with pytest.raises(Conflict):
            queue.cast_vote(member, token, choice="yes")
    assert not Lease.objects.filter(lapsed=False).exists()


def test_a_dispute_in_flight_is_taken_away(cast: Cast, toxicity: Question, sign_in) -> None:
    task = disputed(cast, toxicity)
    token = disputes.next_dispute(cast.charlie, toxicity).token
    queue.flag(cast.alice, task.pk, "illegal")
    for rule in (
        lambda: disputes.rule_blind(cast.charlie, token, choice="yes"),
        lambda: disputes.rule(cast.charlie, token, choice="yes", reason="other"),
    ):
        with pytest.raises(Conflict):
            rule()
    assert TEXT not in sign_in(cast.charlie).get(f"/p/study/disputes/{toxicity.slug}/").content.decode()
    assert disputes.next_dispute(cast.bob, toxicity) is None
    assert not Adjudication.objects.filter(choice__isnull=False).exists()


def test_a_repeated_ruling_in_flight_is_taken_away(cast: Cast, toxicity: Question) -> None:
    task = disputed(cast, toxicity)
    token = disputes.next_dispute(cast.charlie, toxicity).token
    disputes.rule_blind(cast.charlie, token, choice="yes")
    disputes.rule(cast.charlie, token, choice="yes", reason="other")
    again = Repeat.objects.create(
        adjudication=Adjudication.objects.get(), question=toxicity, member=cast.charlie, guideline=toxicity.guidelines.first(),
        token="00000000-0000-0000-0000-000000000001", expires_at="2100-01-01T00:00:00Z",
    )  # fmt: skip
    assert disputes.next_dispute(cast.charlie, toxicity).task_id == task.pk
    queue.flag(cast.alice, task.pk, "illegal")
    assert disputes.next_dispute(cast.charlie, toxicity) is None
    with pytest.raises(Conflict):
        disputes.rule_blind(cast.charlie, again.token, choice="yes")


def test_researchers_pages_lists_api_and_exports_show_it_no_more(cast: Cast, toxicity: Question, sign_in) -> None:
    task = disputed(cast, toxicity)
    bob, program = sign_in(cast.bob), Program(cast.bob)
    pages = [
        f"/p/study/items/{task.item_id}/", "/p/study/items/?contents=on", f"/p/study/tasks/{task.pk}/",
        f"/p/study/questions/{toxicity.slug}/disagreements/tasks/?contents=on",
    ]  # fmt: skip
    assert all(TEXT in bob.get(page).content.decode() for page in pages)
    queue.flag(cast.alice, task.pk, "illegal")
    for page in [*pages, "/p/study/flags/", f"/p/study/items/{task.item_id}/quarantine/lift/"]:
        assert TEXT not in bob.get(page).content.decode(), page
    assert TEXT not in program.get(f"items/{task.item_id}/", contents="true").content.decode()
    assert TEXT not in program.get("items/", contents="true").content.decode()
    assert TEXT not in b"".join(program.get("export/jsonl/").streaming_content).decode()
    assert disagreement.tasks(toxicity, contents=True) == []  # its task is retired


def test_a_run_under_way_leaves_it_out(cast: Cast, toxicity: Question) -> None:
    task = make_tasks(toxicity, 1)[0]
    assert texts_of([task.item_id]) == {task.item_id: TEXT}
    queue.next_work(cast.alice, toxicity)
    queue.flag(cast.alice, task.pk, "illegal")
    assert texts_of([task.item_id]) == {}


def test_a_known_answer_on_it_is_put_to_nobody(cast: Cast, toxicity: Question) -> None:
    known = make_tasks(toxicity, 1)[0]
    rounds.retire(toxicity, [known.pk])
    KnownAnswer.objects.create(task=known, question=toxicity, choice=toxicity.choices.first(), practice=True)
    held = queue.next_work(cast.alice, toxicity)
    assert [work.item_id for work in held] == [known.item_id]
    queue.flag(cast.alice, held[0].task_id, "illegal")
    assert queue.next_work(cast.alice, toxicity) == []
    assert queue.next_work(cast.dave, toxicity) == []


def test_its_picture_is_sealed_for_everyone_and_in_every_project(cast: Cast) -> None:
    question = make_question(cast.project, "harm", kind="image")
    (item,) = make_pictures(question, 1)
    elsewhere = make_question(cast.mallory.project, "harm", kind="image")
    (other,) = make_pictures(elsewhere, 1)  # the same picture
    nina = make_member(cast.mallory.project, "nina", "annotator")
    assert queue.next_work(nina, elsewhere)[0].item_id == other.pk
    held = queue.next_work(cast.alice, question)[0]
    assert media.visible(cast.alice, item.pk).pk == item.media_id
    queue.flag(cast.alice, held.task_id, "illegal")
    for member, seen in ((cast.alice, item), (cast.bob, item), (nina, other), (cast.mallory, other)):
        with pytest.raises(Missing):
            media.visible(member, seen.pk)
    assert queue.next_work(nina, elsewhere) == []
    assert Media.objects.get().sealed_at is not None

    # Lifted where it was flagged, it is lifted wherever it was quarantined with it.
    assert rounds.lift_quarantine(item, by=cast.bob, why="Checked.") is True
    assert not Item.objects.filter(quarantined=True).exists()
    assert media.visible(cast.mallory, other.pk).pk == item.media_id


def test_a_picture_flagged_in_two_projects_stays_sealed_until_both_lift_it(cast: Cast) -> None:
    question = make_question(cast.project, "harm", kind="image")
    (item,) = make_pictures(question, 1)
    elsewhere = make_question(cast.mallory.project, "harm", kind="image")
    (other,) = make_pictures(elsewhere, 1)
    nina = make_member(cast.mallory.project, "nina", "annotator")
    tasks = [(nina, queue.next_work(nina, elsewhere)[0].task_id), (cast.alice, queue.next_work(cast.alice, question)[0].task_id)]
    for member, task in tasks:
        queue.flag(member, task, "illegal")
    assert rounds.lift_quarantine(item, by=cast.bob, why="Checked.") is False
    assert Item.objects.get(quarantined=True) == other
    with pytest.raises(Missing):
        media.visible(cast.bob, item.pk)
    assert rounds.lift_quarantine(other, by=cast.mallory, why="Checked here too.") is True
    assert media.visible(cast.bob, item.pk).pk == item.media_id
