"""Tasks made, put first and put back many at once."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client

from annotation import steering
from annotation.errors import Conflict, Invalid
from annotation.models import Item, Question, Task
from curation import choosing, sampling, tasking
from curation.models import TaskBatch, TaskBatchState, TaskVerb
from tests import cast as make
from workers.tasks import do_or_send


@pytest.fixture
def question(cast: make.Cast) -> Question:
    make.make_items(cast.project, 10)
    return make.make_question(cast.project)


def begin(question: Question, verb: str = TaskVerb.MAKE, items: str = "all", **more: object) -> TaskBatch:
    return tasking.run(tasking.start(question, verb, items, **more).pk)  # type: ignore[arg-type]


def pictures_with_prompts(cast: make.Cast, prompts: int, each: int = 2) -> None:
    """Pictures without files are enough to have origins."""
    for number, prompt in enumerate(make.make_items(cast.project, prompts, start=500)):
        Item.objects.bulk_create(
            Item(project=cast.project, kind="image", external_id=f"p{number}-{k}", content_hash=b"", origin=prompt) for k in range(each)
        )


def test_tasks_are_made_in_chunks_and_counted(cast: make.Cast, question: Question, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasking, "CHUNK", 4)
    batch = begin(question, by=cast.bob.user)
    assert (batch.state, batch.total, batch.handled, batch.changed) == ("done", 10, 10, 10)
    assert (batch.created_by, tasking.in_words(batch)) == (cast.bob.user, "10 new tasks")
    assert Task.objects.filter(question=question).count() == 10


def test_making_them_again_makes_none_and_says_so(question: Question) -> None:
    begin(question)
    assert tasking.in_words(begin(question)) == "No new task: all of them were there already"


def test_a_sample_is_put_first_and_back_again(cast: make.Cast, question: Question) -> None:
    sample = sampling.draw(cast.project, "First", 3)
    begin(question)
    batch = begin(question, TaskVerb.PUT_FIRST, f"sample:{sample.pk}")
    assert (batch.changed, tasking.in_words(batch)) == (3, "3 tasks put first")
    first = Task.objects.filter(question=question, queued_at__isnull=False).order_by("queued_at")
    assert {task.item_id for task in first} == set(sample.members.values_list("item_id", flat=True))
    assert [task.rank for task in first] == sorted(task.rank for task in first)
    assert begin(question, TaskVerb.PUT_BACK).changed == 3
    assert steering.needed(question).first == 0


def test_items_of_a_metadata_value_are_put_first(cast: make.Cast, question: Question) -> None:
    Item.objects.filter(external_id__in=["t1", "t2"]).update(metadata={"recipe": "leet"})
    begin(question)
    assert begin(question, TaskVerb.PUT_FIRST, metadata={"recipe": "leet"}).changed == 2


def test_named_tasks_are_put_first_at_once(cast: make.Cast, question: Question) -> None:
    begin(question)
    tasks = list(Task.objects.filter(question=question).order_by("rank").values_list("pk", flat=True))
    batch = tasking.move_listed(question, TaskVerb.PUT_FIRST, [tasks[7], tasks[7], tasks[9]], cast.bob.user)
    assert (batch.items, batch.total, batch.changed) == ("listed", 2, 2)


def test_a_task_of_another_question_is_named_in_the_refusal(cast: make.Cast, question: Question) -> None:
    other = make.make_tasks(make.make_question(cast.project, "naturalness"), 1)[0]
    with pytest.raises(Invalid, match=f"This question has no task {other.pk}."):
        tasking.move_listed(question, TaskVerb.PUT_FIRST, [other.pk])


def test_the_prompts_of_pictures_can_be_chosen(cast: make.Cast) -> None:
    make.make_items(cast.project, 4)  # texts that no picture came from
    pictures_with_prompts(cast, prompts=3)
    question = make.make_question(cast.project, "prompt_safety")
    assert begin(question, items="prompts:all").changed == 3
    assert {task.item.external_id for task in Task.objects.select_related("item")} == {"t500", "t501", "t502"}


def test_the_prompts_of_a_sample_of_pictures_can_be_chosen(cast: make.Cast) -> None:
    pictures_with_prompts(cast, prompts=5, each=1)
    sample = sampling.draw(cast.project, "Two pictures", 2, kind="image")
    question = make.make_question(cast.project, "prompt_safety")
    offered = [value for group in choosing.groups(cast.project) for value, _ in group.choices]
    assert "prompts:all" in offered
    assert f"prompts:sample:{sample.pk}" in offered
    assert begin(question, items=f"prompts:sample:{sample.pk}").changed == 2


@pytest.mark.parametrize("items", ["prompts:", "prompts:prompts:all", "prompts:sample:999", "prompts:nothing:1"])
def test_prompts_of_nothing_are_refused(cast: make.Cast, items: str) -> None:
    with pytest.raises(Invalid):
        choosing.items(cast.project, "text", items)


def test_prompts_are_not_offered_where_no_picture_has_one(cast: make.Cast, question: Question) -> None:
    assert "Prompts of pictures" not in {group.name for group in choosing.groups(cast.project)}


def test_a_question_without_choices_gets_no_tasks(cast: make.Cast) -> None:
    bare = Question.objects.create(project=cast.project, slug="bare", title="Bare", prompt="?")
    with pytest.raises(Invalid, match="no choices yet"):
        tasking.start(bare, TaskVerb.MAKE)


def test_one_that_waits_for_a_worker_keeps_a_second_out(question: Question) -> None:
    tasking.start(question, TaskVerb.MAKE)
    with pytest.raises(Conflict, match="still goes on"):
        tasking.start(question, TaskVerb.MAKE)
    tasking.start(question, TaskVerb.PUT_FIRST)  # another thing to do is no double


def test_one_whose_worker_died_is_marked_and_goes_on_where_it_stopped(question: Question) -> None:
    batch = tasking.start(question, TaskVerb.MAKE)
    TaskBatch.objects.filter(pk=batch.pk).update(state=TaskBatchState.RUNNING)
    batch.refresh_from_db()
    assert tasking.settled(batch).error == tasking.BROKE_OFF
    assert begin(question).changed == 10


def test_one_that_another_process_is_at_is_left_alone(transactional_db: None) -> None:
    cast = make.make_cast()
    make.make_items(cast.project, 2)
    batch = tasking.start(make.make_question(cast.project), TaskVerb.MAKE)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s, %s)", [tasking._LOCK, batch.pk])
        assert tasking.run(batch.pk).state == TaskBatchState.QUEUED
    finally:
        other.close()


def test_a_small_one_is_done_at_once_and_a_large_one_by_a_worker(question: Question, monkeypatch: pytest.MonkeyPatch) -> None:
    done = do_or_send(tasking.start(question, TaskVerb.MAKE))
    assert done is not None
    assert done.changed == 10
    monkeypatch.setattr(tasking, "AT_ONCE", 5)
    sent = tasking.start(question, TaskVerb.PUT_FIRST)
    assert do_or_send(sent) is None
    sent.refresh_from_db()
    assert sent.state == TaskBatchState.QUEUED


def test_who_did_what_stands_in_the_audit_trail(cast: make.Cast, question: Question, sign_in: Callable[[make.Membership], Client]) -> None:
    sign_in(cast.bob).post("/p/study/tasks/new/", {"question": "toxicity", "items": "all"})
    page = sign_in(cast.bob).get("/p/study/audit/").content.decode()
    assert "made tasks of Toxicity for all items: 10" in page


def test_texts_for_a_question_about_pictures_say_why_nothing_came_of_it(cast: make.Cast) -> None:
    pictures_with_prompts(cast, prompts=2)
    asked = make.make_question(cast.project, "harm", kind="image")
    batch = begin(asked, items="prompts:all")
    assert tasking.in_words(batch) == "No new task: Harm is asked of pictures, and prompts of all pictures are texts"
    sample = sampling.draw(cast.project, "Texts", 2)
    assert tasking.in_words(begin(asked, items=f"sample:{sample.pk}")).endswith("sample Texts are texts")


def test_what_can_be_chosen_says_how_many_of_what(cast: make.Cast) -> None:
    pictures_with_prompts(cast, prompts=2)
    sampling.draw(cast.project, "Some", 2, kind="image")
    assert ("Some (2 pictures)") in [words for group in choosing.groups(cast.project) for _, words in group.choices]


def test_what_is_of_another_kind_is_not_offered(cast: make.Cast, sign_in: Callable[[make.Membership], Client]) -> None:
    pictures_with_prompts(cast, prompts=2)
    make.make_question(cast.project, "harm", kind="image")
    make.make_question(cast.project, "toxicity")
    sample = sampling.draw(cast.project, "Some texts", 2)
    page = sign_in(cast.bob).get("/p/study/tasks/new/?question=harm").content.decode()
    assert f"sample:{sample.pk}" not in page
    assert "prompts:all" not in page
    assert "prompts:all" in sign_in(cast.bob).get("/p/study/tasks/new/?question=toxicity").content.decode()
