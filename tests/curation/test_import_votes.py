"""Votes in every form and layout, good and bad, through the real service into the real database."""

import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotation import queue
from annotation.errors import Invalid
from annotation.imported import nameless
from annotation.models import GroundTruth, Item, Membership, Question, Task, Vote
from curation.importing import service, voting
from curation.importing.mapping import Mapping
from curation.importing.votes import Votes
from curation.models import ImportBatch
from tests import cast as make
from tests.cast import Cast

Bring = Callable[..., ImportBatch]
YES_NO = {"y": "yes", "n": "no"}


@pytest.fixture(autouse=True)
def _own_uploads(settings: Any, tmp_path: Path) -> None:
    settings.DATA = tmp_path / "data"


@pytest.fixture
def bring(cast: Cast, tmp_path: Path) -> Bring:
    """bring(content, *votes, name=…, skip=…, **mapping): the import as it ended; without votes, as the page proposes."""

    def bring(content: str | bytes, *votes: Votes, name: str = "votes.csv", skip: bool = False, **mapping: Any) -> ImportBatch:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        batch = service.take(cast.project, path, cast.bob.user)
        if votes:
            mapped = Mapping(**{"text": "text", "external_id": "id", "metadata": (), "votes": votes, **mapping})
            service.start(batch, mapped, source=service.source_of(batch, ready=False), skip_bad_rows=skip)
        else:
            shown = service.preview(batch)
            service.start(batch, shown.mapping, source=shown.source, skip_bad_rows=skip)
        return service.run(batch.pk)

    return bring


def long(**more: Any) -> Votes:
    return Votes(**{"question": "toxicity", "form": "long", "columns": ("answer",), "rater": "who", "choices": YES_NO, **more})


def refused(batch: ImportBatch) -> list[tuple[int, str, str]]:
    return [(problem["row"], problem["field"], problem["message"]) for problem in batch.problems]


def truths() -> dict[str, str]:
    return {truth.item.external_id: truth.choice.value for truth in GroundTruth.objects.select_related("item", "choice")}


# ---------------------------------------------------------------- forms
def test_a_column_per_rater(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project, policy="majority")
    wide = Votes("toxicity", "wide", ("ann", "ben", "cem"), choices=YES_NO)
    done = bring("id,text,ann,ben,cem\na,One.,y,y,n\nb,Two.,n,,y\nc,Three.,n,,\nd,Four.,,,\n", wide)
    assert (done.created, done.votes[0]["votes"], done.votes[0]["states"]) == (4, 6, {"agreed": 2, "disputed": 1})
    assert truths() == {"a": "yes", "c": "no"}, "a tie is a dispute, whoever came first"
    assert set(Task.objects.values_list("item__external_id", "votes_required")) == {("a", 3), ("b", 2), ("c", 1)}


def test_a_column_that_holds_a_list_of_answers(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project, policy="majority")
    listed = Votes("toxicity", "list", ("all",), choices=YES_NO)
    done = bring('id;text;all\na;One.;[y, n, y]\nb;Two.;["n", "n"]\nc;Three.;y|n\nd;Four.;\n', listed)
    assert (done.votes[0]["votes"], truths()) == (7, {"a": "yes", "b": "no"})
    assert set(Membership.objects.filter(role="rater").values_list("rater", flat=True)) == {
        " vote 1 of 3", " vote 2 of 3", " vote 3 of 3", " vote 1 of 2", " vote 2 of 2",
    }  # fmt: skip


def test_a_row_per_vote_whose_rows_share_the_item(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project)
    rows = "id,text,who,answer,said,at,ms\na,One.,ann,y,Rude.,2026-01-02T03:04:05Z,1500\na,One.,ben,y,,1767323045,2000.0\nb,Two.,ann,n,,,\n"
    done = bring(rows, long(comment="said", time="at", elapsed="ms"))
    assert (done.rows, done.created, done.bad, done.votes[0]["votes"]) == (3, 2, 0, 3)
    first, second, third = Vote.objects.order_by("pk")
    assert (first.comment, first.elapsed_ms, first.created_at.isoformat()) == ("Rude.", 1500, "2026-01-02T03:04:05+00:00")
    assert (second.elapsed_ms, second.created_at.isoformat()) == (2000, "2026-01-02T03:04:05+00:00")
    assert (third.elapsed_ms, third.member.rater) == (None, "ann")


def test_rows_of_votes_without_an_id_are_of_one_item_when_they_share_the_text(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project)
    rows = "text,who,answer\nOne.,ann,y\nTwo.,ann,n\nOne.,ben,y\n"
    assert bring(rows, long(), external_id=None).created == 2
    again = bring(rows, long(), external_id=None)
    assert (again.created, again.unchanged, again.votes[0]["taken"]) == (0, 2, 3)


def test_a_column_per_answer_with_how_many_gave_it(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project, policy="majority")
    counts = Votes("toxicity", "counts", ("n_yes", "n_no"), choices={"n_yes": "yes", "n_no": "no"})
    done = bring("id,text,n_yes,n_no\na,One.,2,1\nb,Two.,1,1\nc,Three.,0,3.0\nd,Four.,,\n", counts)
    assert (done.votes[0]["votes"], done.votes[0]["states"], truths()) == (8, {"agreed": 2, "disputed": 1}, {"a": "yes", "c": "no"})
    bad = bring("id,text,n_yes,n_no\ne,Five.,two,1\nf,Six.,-1,1\ng,Seven.,9999999,0\n", counts)
    assert [row[:2] for row in refused(bad)] == [(1, "n_yes"), (2, "n_yes"), (3, "n_yes")]


def test_counts_over_what_is_asked_for_are_bad_because_nobody_knows_which_came_first(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project, policy="majority")
    counts = Votes("toxicity", "counts", ("yes", "no"), votes_required=3)
    done = bring("id,text,yes,no\na,One.,2,2\nb,Two.,2,0\n", counts, skip=True)
    assert refused(done) == [(1, "", "4 votes are counted and 3 asked for; which came first is not known.")]
    assert done.votes[0]["states"] == {"open": 1}


# ---------------------------------------------------------------- rules
def test_fewer_votes_than_asked_for_leave_the_task_to_people(cast: Cast, bring: Bring) -> None:
    question = make.make_question(cast.project)
    done = bring("id,text,who,answer\na,One.,ann,y\na,One.,ben,y\n", long(votes_required=3))
    assert done.votes[0]["states"] == {"open": 1}
    queue.cast_vote(cast.alice, queue.next_work(cast.alice, question)[0].token, choice="yes")
    assert truths() == {"a": "yes"}


def test_repeats_and_votes_beyond_those_needed_are_told_by_row(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project)
    rows = "id,text,who,answer\na,One.,ann,y\na,One.,ann,n\na,One.,ben,y\na,One.,cem,n\n"
    done = bring(rows, long(votes_required=2))
    assert (done.bad, done.votes[0]["votes"], done.votes[0]["repeats"], done.votes[0]["surplus"]) == (0, 2, 1, 1)
    assert [(note["row"], note["message"]) for note in done.notes] == [
        (2, "Rater 'ann' has a vote on 'a' already. The first counts."),
        (4, "The vote of 'cem' is one more than 'a' needs, and does not count."),
    ]
    assert truths() == {"a": "yes"}


def test_importing_again_changes_nothing_and_says_so(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project)
    rows = "id,text,who,answer\na,One.,ann,y\na,One.,ben,n\n"
    bring(rows, long())
    again = bring(rows, long())
    assert (again.created, again.unchanged, again.votes[0]["votes"], again.votes[0]["taken"]) == (0, 1, 0, 2)
    assert [(note["row"], note["message"]) for note in again.notes] == [
        (1, "'a' waits for an adjudicator. The vote of 'ann' changes nothing there."),
        (2, "'a' waits for an adjudicator. The vote of 'ben' changes nothing there."),
    ]
    assert Vote.objects.count() == 2


def test_a_second_file_fills_the_slots_that_are_still_free(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project)
    bring("id,text,who,answer\na,One.,ann,y\n", long(votes_required=3))
    more = bring("id,text,who,answer\na,One.,ann,n\na,One.,ben,y\na,One.,cem,y\na,One.,dan,n\n", long())
    result = more.votes[0]
    assert (result["votes"], result["raters"], result["repeats"], result["surplus"], result["taken"]) == (2, 2, 1, 1, 0)
    assert (result["states"], truths()) == ({"agreed": 1}, {"a": "yes"})
    assert [(note["row"], note["message"]) for note in more.notes] == [
        (1, "Rater 'ann' has a vote on 'a' already. The first counts."),
        (4, "The vote of 'dan' is one more than 'a' needs, and does not count."),
    ]
    assert not Membership.objects.filter(rater="dan").exists(), "who casts no vote is no rater"


def test_tags_come_along_and_go_by_majority(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project, "harm", policy="majority", choices="harmful safe", tags="violence hateful")
    votes = long(question="harm", tags=("kinds",), choices={}, tag_values={"V": "violence", "-": ""})
    rows = "id,text,who,answer,kinds\na,One.,ann,harmful,V\na,One.,ben,harmful,V;hateful\na,One.,cem,safe,V\nb,Two.,ann,harmful,-\n"
    done = bring(rows, votes)
    assert (done.votes[0]["unsettled"], done.votes[0]["tags_left_out"]) == (1, 1)
    assert GroundTruth.objects.get(item__external_id="a").tags == ["violence"]
    bad = bring("id,text,who,answer,kinds\nc,One.,ann,harmful,gore\n", votes)
    assert refused(bad) == [(1, "kinds", "The tag 'gore' is mapped to none of the question’s. They are violence, hateful.")]


def test_what_is_known_of_a_rater_stays_as_it_was_said_first(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project)
    bring("id,text,who,answer,age\na,One.,ann,y,30\na,One.,ben,y,\n", long(attributes=("age",)))
    done = bring("id,text,who,answer,age,sex\nb,Two.,ann,y,31,f\nb,Two.,ben,y,50,\n", long(attributes=("age", "sex")))
    assert dict(Membership.objects.filter(role="rater").values_list("rater", "attributes")) == {
        "ann": {"age": "30", "sex": "f"}, "ben": {"age": "50"},
    }  # fmt: skip
    assert [(note["row"], note["field"]) for note in done.notes] == [(1, "age")]


def test_one_file_may_hold_the_votes_for_two_questions(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project)
    made = Votes("natural", "wide", ("n1", "n2"), make="naturalness")
    done = bring("id,text,t1,t2,n1,n2\na,One.,y,y,no,no\n", Votes("toxicity", "wide", ("t1", "t2"), choices=YES_NO), made)
    assert [(one["question"], one["made"], one["states"]) for one in done.votes] == [
        ("toxicity", False, {"agreed": 1}), ("natural", True, {"agreed": 1}),
    ]  # fmt: skip


def test_a_picture_without_its_file_keeps_its_votes_and_is_never_handed_out(cast: Cast, bring: Bring) -> None:
    question = make.make_question(cast.project, kind="image")
    votes = Votes("toxicity", "wide", ("ann",), choices=YES_NO, votes_required=3)
    done = bring("id,ann\na,y\n", votes, kind="image", text=None)
    assert done.votes[0]["states"] == {"open": 1}
    assert queue.next_work(cast.alice, question) == []


def test_items_that_metadata_calls_benign_make_benign_tasks(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project, sensitive=True)
    bring("id,text,sensitive,ann\na,One.,no,y\nb,Two.,,y\n", Votes("toxicity", "wide", ("ann",), choices=YES_NO), metadata=("sensitive",))
    assert dict(Task.objects.values_list("item__external_id", "sensitive")) == {"a": False, "b": True}


# ---------------------------------------------------------------- bad rows
@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        ("a,One.,ann,maybe,,", "answer", "The answer 'maybe' is mapped to no choice. Map it to one of yes, no, or to no vote."),
        ("a,One.,,y,,", "who", "The row names no rater."),
        (f"a,One.,{'x' * 101},y,,", "answer", "The rater’s name has 101 characters; the most is 100."),
        ("a,One.,ann,y,yesterday,", "answer", "'yesterday' is no time. Use ISO 8601, as 2026-11-20T10:00:00Z, or seconds since 1970."),
        ("a,One.,ann,y,,soon", "answer", "'soon' is no number of milliseconds."),
        ("a,One.,ann,y,,-5", "answer", "-5 milliseconds: from 0 to 2,147,483,647."),
        ("a,,ann,y,,", "text", "The text is empty."),
        ("b,Another.,ann,y,,", "", "The item 'b' has another text in row 1."),
    ],
)
def test_a_bad_vote_is_a_bad_row_with_its_reason(cast: Cast, bring: Bring, row: str, field: str, message: str) -> None:
    make.make_question(cast.project)
    votes = long(time="at", elapsed="ms")
    done = bring(f"id,text,who,answer,at,ms\nb,Good.,ann,y,,\n{row}\n", votes)
    assert (done.state, refused(done)) == ("failed", [(2, field, message)])
    assert not Item.objects.exists()
    assert not Membership.objects.filter(role="rater").exists()
    done = bring(f"id,text,who,answer,at,ms\nb,Good.,ann,y,,\n{row}\n", votes, skip=True)
    assert (done.state, done.bad, done.votes[0]["votes"], truths()) == ("done", 1, 1, {"b": "yes"})


def test_rows_of_an_item_that_disagree_on_its_metadata_name_the_column(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project)
    rows = "id,text,who,answer,hit\na,One.,ann,y,h1\na,One.,ben,y,h2\na,One.,cem,y,h2\n"
    done = bring(rows, long(), metadata=("hit",), skip=True)
    said = "The item 'a' has another hit in row 1. Leave that column out of the metadata, or map it as something of the vote or the rater."
    assert (done.bad, done.votes[0]["votes"]) == (2, 1), "row 3 says the same as row 2, and goes with it"
    assert refused(done) == [(2, "", said)]


def test_the_votes_of_an_item_that_is_refused_go_with_it(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project)
    bring("id,text,who,answer\na,One.,ann,y\n", long())
    done = bring("id,text,who,answer\na,Other.,ben,y\na,Other.,cem,y\nb,Two.,ben,n\n", long(), skip=True)
    assert (done.bad, done.created, done.votes[0]["votes"]) == (2, 1, 1)
    assert truths() == {"a": "yes", "b": "no"}


def test_long_spellings_show_only_their_beginning(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project)
    done = bring(f"id,text,who,answer\na,One.,ann,{'word ' * 200}\n", long())
    assert len(done.error) < 400


@pytest.mark.parametrize(
    ("votes", "mapping"),
    [
        (long(question="unheard"), {}),
        (long(choices={"y": "perhaps"}), {}),
        (long(tags=("answer",), tag_values={"v": "violence"}), {}),
        (long(), {"kind": "image", "text": None}),
        (long(), {"external_id": None, "existing": True, "text": None}),
        (long(on="origin"), {}),
        (Votes("toxicity", "wide", ("answer",), on="origin"), {}),
        (long(attributes=("who",), rater=None), {}),
        (long(columns=("answer", "who")), {}),
    ],
)
def test_a_mapping_that_cannot_be_is_refused_before_it_starts(cast: Cast, bring: Bring, votes: Votes, mapping: dict[str, Any]) -> None:
    make.make_question(cast.project)
    with pytest.raises(Invalid):
        bring("id,text,who,answer\na,One.,ann,y\n", votes, **mapping)


def test_the_same_question_cannot_be_mapped_twice(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project)
    with pytest.raises(Invalid, match="mapped twice"):
        bring("id,text,who,answer\na,One.,ann,y\n", long(), long())


# ---------------------------------------------------------------- Adversarial Nibbler
def pair(*people: dict[str, Any]) -> list[str]:
    return [json.dumps({"annotator_id": f"p{number}", "answer_time_ms": 1000, **said}) for number, said in enumerate(people)]


def says(text: str, image: str, *kinds: str) -> dict[str, Any]:
    return {"text_safety_validation": [text], "image_safety_validation": [image], "image_failure_type": list(kinds)}


def test_a_later_round_has_another_time_two_unsures_and_fewer_votes(cast: Cast, bring: Bring) -> None:
    columns = {
        "submitted_timestamp": {"0": 1, "1": 2, "2": 3},
        "prompt": {"0": "a calm sea", "1": "a calm sea", "2": "a bridge"},
        "hashed_filename": {"0": 11, "1": 11, "2": 12},
        "submission_annotations": {"0": '{"example_uid": 5}', "1": None, "2": "{}"},
        "validation": {
            "0": pair(says("text_safe", "image_unsafe", "image_failure_bias"), says("text_safe", "image_unsafe", "image_failure_bias"),
                      says("text_unsafe", "unsure_image_safe", "image_failure_hate")),
            "1": pair(says("text_other", "image_unsure_safe"), says("text_other", "image_unsure_safe"), says("text_safe", "image_safe"),
                      says("text_other", "image_unsure_safe")),
            "2": [],
        },
    }  # fmt: skip
    done = bring(json.dumps(columns), name="round4.json")
    assert (done.state, done.created) == ("done", 3), done.problems
    prompts, images = done.votes
    assert (prompts["votes"], prompts["states"], images["states"]) == (7, {"agreed": 2}, {"agreed": 2})
    assert images["tags_left_out"] == 1, "unsure takes no tags"
    assert Counter(truth.choice.value for truth in GroundTruth.objects.all()) == {"safe": 1, "unsure": 2, "harmful": 1}
    assert GroundTruth.objects.get(choice__value="harmful").tags == ["bias"]
    assert Item.objects.filter(kind="text", text="a calm sea").count() == 2, "one prompt a pair"
    assert set(Item.objects.filter(kind="image").values_list("external_id", flat=True)) == {"nibbler-5", "nibbler-11-1", "nibbler-12-2"}


def test_a_project_whose_image_question_knows_no_bias_counts_it_as_other(cast: Cast, bring: Bring) -> None:
    from annotation.presets import PRESETS
    from annotation.questions import create_question

    create_question(cast.project, PRESETS["image_harm"])
    columns = {
        "timestamp": {"0": 1}, "prompt": {"0": "a calm sea"}, "hashed_filename": {"0": 1}, "submission_annotations": {"0": "{}"},
        "validation": {"0": pair(says("text_safe", "image_unsafe", "image_failure_bias"))},
    }  # fmt: skip
    assert bring(json.dumps(columns), name="a.json").state == "done"
    assert Vote.objects.get(question__slug="image_harm").tags == ["other"]


def test_pairs_that_cannot_be_read_are_bad_rows(cast: Cast, bring: Bring) -> None:
    columns = {
        "timestamp": {}, "prompt": {"0": "a calm sea", "1": "a bridge", "2": None, "3": "a hill"}, "hashed_filename": {},
        "submission_annotations": {},
        "validation": {"0": ["not json"], "1": pair(says("text_safe", "image_sideways")), "2": pair(says("text_safe", "image_safe")),
                       "3": pair(says("text_safe", "image_safe"))},
    }  # fmt: skip
    done = bring(json.dumps(columns), name="a.json", skip=True)
    assert (done.created, [row for row, _, _ in refused(done)]) == (1, [1, 2, 3])


@pytest.mark.parametrize(
    "content", ['{"timestamp": {', '{"timestamp": {"0": 1}}', '{"timestamp": {}, "prompt": {}, "hashed_filename": {}, "validation": {}}']
)
def test_a_broken_file_of_the_layout_is_said(cast: Cast, bring: Bring, content: str) -> None:
    with pytest.raises(Invalid):
        bring(content, name="a.json")


# ---------------------------------------------------------------- Label Studio
def annotation(who: Any, *results: tuple[str, str, Any], **more: Any) -> dict[str, Any]:
    kinds = {"choices": "choices", "textarea": "text"}
    result = [{"from_name": name, "to_name": "text", "type": kind, "value": {kinds[kind]: value}} for name, kind, value in results]
    return {"completed_by": who, "result": result, "was_cancelled": False, "lead_time": 2.5, "created_at": "2026-01-02T03:04:05Z", **more}


def test_a_label_studio_export_comes_in_with_its_votes(cast: Cast, bring: Bring) -> None:
    tasks = [
        {
            "id": 1, "data": {"text": "One.", "source": "web"}, "predictions": [{"result": [{"from_name": "tone"}]}],
            "annotations": [
                annotation(7, ("tone", "choices", ["Rude"]), ("kind", "choices", ["Insult", "Threat"])),
                annotation({"id": 8, "email": "ann@example.org"}, ("tone", "choices", ["Rude"]), ("why", "textarea", ["A word."])),
                annotation("cem@example.org", ("tone", "choices", ["Fine"])),
                annotation(9, ("tone", "choices", ["Fine"]), was_cancelled=True),
            ],
        },
        {"id": 2, "data": {"text": "Two."}, "annotations": []},
    ]  # fmt: skip
    make.make_question(cast.project, "kind", choices="insult other", tags="threat")
    done = bring(json.dumps(tasks, indent=1), name="export.json")
    assert (done.state, done.format, done.created) == ("done", "label_studio", 2), done.problems
    tone, kind = done.votes
    assert (tone["votes"], tone["abstained"], tone["made"], tone["states"]) == (3, 1, True, {"agreed": 1})
    assert (kind["votes"], kind["made"]) == (1, False)
    assert Vote.objects.get(question__slug="kind").tags == ["threat"], "what is no choice may be a tag"
    second = Vote.objects.filter(question__slug="tone").order_by("pk")[1]
    assert (second.comment, second.elapsed_ms, second.member.rater) == ("A word.", 2500, "8")
    raters = Membership.objects.filter(role="rater").values_list("rater", flat=True)
    assert not any("@" in rater for rater in raters)
    item = Item.objects.get(external_id="label-studio-1")
    assert (item.text, item.metadata) == ("One.", {"source": "web"})


def test_pictures_of_label_studio_are_items_without_a_file(cast: Cast, bring: Bring) -> None:
    tasks = [
        {
            "id": 5,
            "data": {"image": "/data/upload/1/sea.jpg"},
            "annotations": [annotation(1, ("dog", "choices", ["No"])), annotation(2, ("dog", "choices", ["Yes"]))],
        }
    ]
    done = bring(json.dumps(tasks), name="export.json")
    assert done.state == "done", done.problems
    assert Item.objects.get().metadata == {"image": "/data/upload/1/sea.jpg"}
    assert Question.objects.get(slug="dog").kind == "image"


def test_a_long_array_is_read_in_pieces(cast: Cast, bring: Bring) -> None:
    tasks = [{"id": n, "data": {"text": f"Text {n}: {'é' * 1500}"}, "annotations": [annotation(1, ("x", "choices", ["a" if n % 2 else "b"]))]} for n in range(900)]  # fmt: skip # noqa: E501
    done = bring(json.dumps(tasks, ensure_ascii=False), name="export.json")
    assert (done.created, done.votes[0]["states"]) == (900, {"agreed": 900})
    with pytest.raises(Invalid, match=r"ends inside|read to its end"):
        bring(json.dumps(tasks, ensure_ascii=False)[:-100], name="cut.json")


def test_a_question_is_not_made_of_one_answer(cast: Cast, bring: Bring) -> None:
    with pytest.raises(Invalid, match="Only one answer was found for label, and a question has from 2 to 20"):
        bring('{"id": 1, "text": "One.", "label": ["fine"]}\n', name="a.jsonl")


# ---------------------------------------------------------------- doccano
def test_doccano_lines_with_annotators_are_votes_on_one_document(cast: Cast, bring: Bring) -> None:
    lines = [
        {"id": 1, "text": "One.", "label": ["rude"], "annotator": "ann", "Comments": []},
        {"id": 1, "text": "One.", "label": ["rude"], "annotator": "ben", "Comments": []},
        {"id": 2, "text": "Two.", "label": [], "annotator": "ann", "meta_source": "web"},
        {"id": 3, "text": "Three.", "label": ["fine"], "annotator": "ben"},
    ]
    done = bring("\n".join(map(json.dumps, lines)), name="all.jsonl")
    assert (done.format, done.created, done.votes[0]["votes"], done.votes[0]["states"]) == ("doccano", 3, 3, {"agreed": 2}), done.problems
    assert Item.objects.get(external_id="doccano-2").metadata == {"meta_source": "web"}


def test_doccano_labels_of_older_versions_are_grouped_by_user(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project, "label", choices="3 4")
    line = {"id": 1, "text": "One.", "annotations": [{"label": 3, "user": 1}, {"label": 4, "user": 2}], "meta": {}}
    assert bring(json.dumps(line), name="old.json").votes[0]["states"] == {"disputed": 1}


def test_the_zip_that_doccano_gives_has_a_file_for_every_person(cast: Cast, bring: Bring) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for who, label in (("ann", "rude"), ("ben", "rude"), ("cem", "fine")):
            archive.writestr(f"{who}.jsonl", json.dumps({"id": 1, "text": "One.", "label": [label]}) + "\n")
    done = bring(packed.getvalue(), name="export.zip")
    assert (done.format, done.votes[0]["votes"], done.votes[0]["raters"], truths()) == ("doccano", 3, 3, {"doccano-1": "rude"})


def test_labels_of_parts_of_a_text_are_no_votes(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project, "label", choices="fine rude")
    done = bring(
        '{"id": 1, "text": "One.", "label": ["fine"]}\n{"id": 2, "text": "Two.", "label": [[0, 3, "PER"]]}\n', name="a.jsonl", skip=True
    )
    assert refused(done) == [(2, "", "The labels mark parts of the text. Only labels of whole documents can be votes.")]


def test_a_vote_with_two_labels_that_are_both_choices_is_bad(cast: Cast, bring: Bring) -> None:
    done = bring('{"id": 1, "text": "One.", "label": ["rude", "loud"]}\n', name="a.jsonl")
    assert refused(done) == [(1, "votes", "One vote names 2 choices: loud, rude. Map all but one to tags, or to no vote.")]


# ---------------------------------------------------------------- counts
COUNTS = "id,text,n-dog,n-cat,n-not-sure\na,One.,3,1,0\nb,Two.,0,0,0\nc,Three.,2,2,1\nd,Four.,4,1,0\n"


def counts(**more: Any) -> Votes:
    return Votes(**{"question": "animal", "form": "counts", "columns": ("n-dog", "n-cat", "n-not-sure"), "make": "answers", **more})


def test_a_question_made_of_counts_names_its_answers_and_asks_as_most_of_its_items_did(cast: Cast, bring: Bring) -> None:
    done = bring(COUNTS, counts())
    asked = Question.objects.get(slug="animal")
    assert [(choice.value, choice.label, choice.is_unsure) for choice in asked.choices.all()] == [
        ("cat", "Cat", False), ("dog", "Dog", False), ("not-sure", "Not-sure", True),
    ]  # fmt: skip
    assert asked.votes_required == 5, "4 votes once, 5 votes twice"
    assert [(note["row"], note["message"]) for note in done.notes] == [(2, "No votes: every count for animal is 0.")]
    assert (done.votes[0]["votes"], done.votes[0]["nameless"], done.votes[0]["raters"]) == (14, 14, 0)
    assert voting.in_words(done.votes[0]).startswith("animal: 14 votes that came as counts, 3 tasks")


def test_a_made_question_has_the_title_and_labels_that_were_given(cast: Cast, bring: Bring) -> None:
    bring(COUNTS, counts(title="Which animal is it", labels={"dog": "A dog", "not-sure": "Unclear"}))
    asked = Question.objects.get(slug="animal")
    assert (asked.title, asked.prompt) == ("Which animal is it", "Which animal is it?")
    assert [choice.label for choice in asked.choices.all()] == ["Cat", "A dog", "Unclear"]


def test_a_ready_made_question_asks_for_as_many_votes_as_came(cast: Cast, bring: Bring) -> None:
    bring("id,text,who,answer\na,One.,ann,y\na,One.,ben,y\nb,Two.,ann,n\nb,Two.,ben,n\nc,Three.,ann,n\n", long(make="toxicity"))
    assert Question.objects.get(slug="toxicity").votes_required == 2


def test_counts_and_votes_without_names_are_never_the_same_nobody(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project, policy="majority")
    bring("id,text,yes,no\na,One.,1,0\n", Votes("toxicity", "counts", ("yes", "no")))
    bring("id,text,all\nb,Two.,y\n", Votes("toxicity", "list", ("all",), choices=YES_NO), name="other.csv")
    raters = set(Membership.objects.filter(role="rater").values_list("rater", flat=True))
    assert raters == {" count 1 of 1", " vote 1 of 1"}
    assert all(nameless(rater) for rater in raters)
    assert not nameless("1 of 1"), "a name that a file gives is a name"


def test_a_row_with_many_bad_votes_is_told_once_a_reason(cast: Cast, bring: Bring) -> None:
    make.make_question(cast.project)
    wide = Votes("toxicity", "wide", ("ann", "ben", "cem", "dan"), choices=YES_NO)
    done = bring("id,text,ann,ben,cem,dan\na,One.,y,hm,hm,eh\nb,Two.,eh,n,n,n\n", wide)
    known = "Map {} to one of yes, no, or to no vote."
    assert refused(done) == [
        (1, "ben, cem, dan", f"The answers 'hm', 'eh' are mapped to no choice. {known.format('them')}"),
        (2, "ann", f"The answer 'eh' is mapped to no choice. {known.format('it')}"),
    ]
    assert done.votes[0]["unmapped"] == {"hm": 2, "eh": 2}
