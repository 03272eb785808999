"""The way out: what an export holds, whom it does not name, and that it is one snapshot in constant memory."""

import csv
import io
import json
import tracemalloc
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command

from annotation import disputes, queue
from annotation.errors import Invalid
from annotation.models import Item, Question, User
from curation import exporting
from curation.models import Sample, SampleItem
from scoring.models import Score, Scorer
from tests import cast as make
from tests.annotation.api import Program

# An export reads by a connection of its own, so what it is to see is committed.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def study() -> make.Cast:
    """Four texts: one agreed yes with a tag, one ruled on, one with a single vote, one untouched. The first has two scores."""
    cast = make.make_cast()
    question = make.make_question(cast.project, votes=3, choices="yes no", tags="insult threat")
    make.make_tasks(question, 4)
    for member in (cast.alice, cast.dave, cast.erin):
        _vote(member, question, "yes", tags=["insult"], comment=f"{member.user.username} was here")
    for member, choice in ((cast.alice, "no"), (cast.dave, "no"), (cast.erin, "yes")):
        _vote(member, question, choice, tags=["threat"] if choice == "yes" else [])
    held = disputes.next_dispute(cast.charlie, question)
    disputes.rule_blind(cast.charlie, held.token, choice="no")
    disputes.rule(cast.charlie, held.token, choice="no", reason="ambiguous")
    _vote(cast.alice, question, "no")
    first = question.truths.get(source="unanimous").item
    for version, value in ((1, 0.25), (2, 0.75)):
        scorer = Scorer.objects.create(
            project=cast.project, name="words", version=version, kind="profanity", fingerprint=str(version), score_names=["toxicity"]
        )
        Score.objects.create(scorer=scorer, item=first, name="toxicity", value=value)
    return cast


def _vote(member: object, question: Question, choice: str, **options: object) -> int:
    work = queue.next_work(member, question)
    return queue.cast_vote(member, work[0].token, choice=choice, **options).vote_id


def text_of(cast: make.Cast, form: exporting.Format, **wanted: object) -> str:
    return "".join(text for _, text in exporting.export(exporting.wanted(cast.project, **wanted), form))


def lines(cast: make.Cast, **wanted: object) -> list[dict]:
    return [json.loads(line) for line in text_of(cast, "jsonl", **wanted).splitlines()]


def rows(cast: make.Cast, **wanted: object) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text_of(cast, "csv", **wanted), newline="")))


def by_state(items: list[dict]) -> dict[str, dict]:
    return {f"{item['questions']['toxicity']['state']} {len(item['questions']['toxicity']['votes'])}": item for item in items}


def test_an_agreed_item_has_its_label_with_source_and_its_three_votes(study: make.Cast) -> None:
    item = by_state(lines(study))["agreed 3"]
    task = item["questions"]["toxicity"]
    truth = task["ground_truth"]
    assert (truth["choice"], truth["tags"], truth["source"], truth["guideline"], truth["adjudicator"]) == (
        "yes",
        ["insult"],
        "unanimous",
        1,
        None,
    )
    assert [(vote["annotator"], vote["choice"], vote["tags"], vote["guideline"], vote["versions"]) for vote in task["votes"]] == [
        (number, "yes", ["insult"], 1, 1) for number in (study.alice.number, study.dave.number, study.erin.number)
    ]
    assert [(score["scorer"], score["version"], score["name"], score["value"]) for score in item["scores"]] == [
        ("words", 1, "toxicity", 0.25), ("words", 2, "toxicity", 0.75)
    ]  # fmt: skip


def test_a_ruled_item_says_so_and_by_whom(study: make.Cast) -> None:
    truth = by_state(lines(study))["adjudicated 3"]["questions"]["toxicity"]["ground_truth"]
    assert (truth["choice"], truth["source"], truth["adjudicator"]) == ("no", "adjudicated", study.charlie.number)


def test_what_is_not_settled_is_marked_and_never_guessed(study: make.Cast) -> None:
    items = by_state(lines(study))
    assert items["open 1"]["questions"]["toxicity"]["ground_truth"] is None
    assert items["open 0"]["questions"]["toxicity"]["ground_truth"] is None
    unsettled = [row for row in rows(study) if row["toxicity.state"] == "open"]
    assert [(row["toxicity.choice"], row["toxicity.source"]) for row in unsettled] == [("", ""), ("", "")]


def test_no_export_names_a_person(study: make.Cast) -> None:
    User.objects.update(email="somebody@example.org", first_name="Somebody")
    for form in exporting.FORMATS:
        text = text_of(study, form)
        assert not [name for name in ("alice", "bob", "charlie", "dave", "erin", "Somebody", "example.org") if name in text]


def test_comments_come_only_when_asked_for(study: make.Cast) -> None:
    assert "was here" not in text_of(study, "jsonl") + text_of(study, "csv")
    assert text_of(study, "jsonl", comments=True).count("was here") == 3
    assert text_of(study, "csv", comments=True).count("was here") == 3


def test_a_changed_vote_says_how_many_versions_it_had(study: make.Cast) -> None:
    question = Question.objects.get()
    vote = study.alice.votes.get(task__state="open")
    queue.revise_vote(study.alice, vote.pk, choice="yes", tags=["threat"])
    queue.revise_vote(study.alice, vote.pk, choice="no")
    [exported] = by_state(lines(study))["open 1"]["questions"][question.slug]["votes"]
    assert (exported["choice"], exported["versions"]) == ("no", 3)


def test_an_abstention_is_counted(study: make.Cast) -> None:
    question = Question.objects.get()
    work = queue.next_work(study.dave, question)
    queue.abstain(study.dave, work[0].token, "cannot_judge")
    assert sorted(item["questions"]["toxicity"]["abstentions"] for item in lines(study)) == [0, 0, 0, 1]


def test_the_table_has_one_row_an_item_and_a_column_for_everything(study: make.Cast) -> None:
    agreed = next(row for row in rows(study) if row["toxicity.state"] == "agreed")
    assert agreed["toxicity.choice"] == "yes"
    assert agreed["toxicity.votes"] == "1:yes[insult] 4:yes[insult] 5:yes[insult]"
    assert (agreed["toxicity.votes.yes"], agreed["toxicity.votes.no"]) == ("3", "0")
    assert (agreed["score.words.v1.toxicity"], agreed["score.words.v2.toxicity"]) == ("0.25", "0.75")
    assert len(rows(study)) == 4


def test_one_question_brings_its_items_and_labels_only(study: make.Cast) -> None:
    other = make.make_question(study.project, "naturalness")
    make.create_tasks(other, [study.project.items.order_by("pk").first().pk])
    [item] = lines(study, question="naturalness")
    assert item["questions"].keys() == {"naturalness"}
    assert "toxicity.state" not in rows(study, question="naturalness")[0]
    assert len(lines(study)) == 4


def test_only_settled_items_when_asked(study: make.Cast) -> None:
    assert sorted(by_state(lines(study, settled=True))) == ["adjudicated 3", "agreed 3"]
    assert exporting.count(exporting.wanted(study.project, settled=True)) == 2


def test_a_sample_brings_its_items_with_their_probabilities(study: make.Cast) -> None:
    sample = Sample.objects.create(project=study.project, name="half", seed=7, size=2, population=4)
    for item in study.project.items.order_by("pk")[:2]:
        SampleItem.objects.create(sample=sample, item=item, stratum="a", probability=0.5)
    drawn = lines(study, sample=sample.pk)
    assert [item["sample"] for item in drawn] == [{"name": "half", "seed": 7, "stratum": "a", "probability": 0.5}] * 2
    assert [row["sample.probability"] for row in rows(study, sample=sample.pk)] == ["0.5", "0.5"]


def test_a_quarantined_item_stays_in(study: make.Cast) -> None:
    sealed = study.project.items.order_by("pk").first()
    Item.objects.filter(pk=sealed.pk).update(quarantined=True)
    assert sealed.pk not in [item["id"] for item in lines(study)]


def test_an_item_says_where_it_came_from(study: make.Cast) -> None:
    [seed] = make.make_items(study.project, 1, start=50)
    make.make_items(study.project, 1, start=51, origin=seed, metadata={"recipe": "swap", "tries": 3, "steps": ["a", "b"]})
    derived = next(item for item in lines(study) if item["external_id"] == "t51")
    assert derived["origin"] == {"id": seed.pk, "external_id": "t50"}
    row = next(row for row in rows(study) if row["external_id"] == "t51")
    assert (row["origin_external_id"], row["metadata.recipe"], row["metadata.tries"], row["metadata.steps"]) == (
        "t50",
        "swap",
        "3",
        '["a", "b"]',
    )


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_a_text_that_a_spreadsheet_would_run_is_disarmed(study: make.Cast, start: str) -> None:
    text = f"{start}HYPERLINK(1)"
    Item.objects.filter(pk=study.project.items.order_by("pk").first().pk).update(text=text, metadata={"note": text})
    row = rows(study)[0]
    assert (row["text"], row["metadata.note"]) == (f"'{text}", f"'{text}")
    assert lines(study)[0]["text"] == text


def test_a_negative_number_stays_a_number(study: make.Cast) -> None:
    Item.objects.filter(pk=study.project.items.order_by("pk").first().pk).update(metadata={"shift": -3.5, "odd": True})
    row = rows(study)[0]
    assert (row["metadata.shift"], row["metadata.odd"]) == ("-3.5", "true")


def test_line_breaks_quotes_and_far_letters_survive(study: make.Cast) -> None:
    text = 'He said "tea",\nthen\r\nnothing.\u2028 \U0001f375 \\ done'
    Item.objects.filter(pk=study.project.items.order_by("pk").first().pk).update(text=text)
    exported = text_of(study, "jsonl").split("\n")
    assert len(exported) == 5
    assert json.loads(exported[0])["text"] == text
    assert rows(study)[0]["text"] == text


def test_metadata_with_a_thousand_keys_stays_one_column(study: make.Cast) -> None:
    item = study.project.items.order_by("pk").first()
    Item.objects.filter(pk=item.pk).update(metadata={f"key {number}": number for number in range(1000)})
    row = rows(study)[0]
    assert json.loads(row["metadata"])["key 999"] == 999
    assert "metadata.key 1" not in row


def test_an_export_is_one_snapshot(study: make.Cast) -> None:
    make.make_items(study.project, exporting.BLOCK + 10, start=100)
    pieces = exporting.export(exporting.wanted(study.project), "jsonl")
    first = next(pieces)
    Item.objects.filter(project=study.project).update(metadata={"later": True})
    make.make_items(study.project, 5, start=5000)
    rest = list(pieces)
    assert first[0] + sum(many for many, _ in rest) == exporting.BLOCK + 14
    assert "later" not in first[1] + "".join(text for _, text in rest)


def test_an_export_that_is_broken_off_leaves_no_connection_behind(study: make.Cast) -> None:
    pieces = exporting.export(exporting.wanted(study.project), "jsonl")
    next(pieces)
    pieces.close()
    with exporting._snapshot() as snapshot:
        sleeping = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
        assert snapshot.execute(sleeping).fetchone() == (0,)


def test_an_export_cannot_write(study: make.Cast) -> None:
    with exporting._snapshot() as snapshot, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        snapshot.execute("DELETE FROM annotation_flag")


def test_another_projects_items_are_in_no_export(study: make.Cast) -> None:
    make.make_items(study.mallory.project, 2, start=900)
    assert "t900" not in text_of(study, "jsonl") + text_of(study, "csv")


@pytest.mark.parametrize(("field", "value"), [("question", "nothing"), ("sample", 999)])
def test_what_the_project_lacks_is_refused_by_name(study: make.Cast, field: str, value: object) -> None:
    with pytest.raises(Invalid) as refused:
        exporting.wanted(study.project, **{field: value})
    assert refused.value.fields.keys() == {field}


def test_page_and_api_give_the_same_file(study: make.Cast, sign_in: object) -> None:
    page = sign_in(study.bob).get("/p/study/export/items.csv?settled=on&comments=on")
    program = Program(study.bob).get("export/csv/", settled="true", comments="true")
    assert page.getvalue() == program.getvalue()
    assert page["Content-Disposition"].startswith('attachment; filename="study-')
    assert program["Content-Type"].startswith("text/csv")


def test_the_api_refuses_what_it_does_not_understand(study: make.Cast) -> None:
    bob = Program(study.bob)
    for query in ({"question": "nothing"}, {"sample": "first"}, {"settled": "perhaps"}):
        answer = bob.get("export/jsonl/", **query)
        assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
        assert answer.json()["fields"].keys() == query.keys()
    assert bob.client.get(f"{bob.base}export/csv/", headers={"Accept": "text/csv"}).status_code == 200


def test_the_page_counts_what_would_go_out(study: make.Cast, sign_in: object) -> None:
    bob = sign_in(study.bob)
    assert "4 items" in bob.get("/p/study/export/").content.decode()
    assert "2 items" in bob.get("/p/study/export/?settled=on").content.decode()
    assert bob.get("/p/study/export/?sample=x").status_code == 422
    assert bob.get("/p/study/export/items.xlsx", headers={"Accept": "application/json"}).status_code == 400


def test_the_command_writes_the_file_whole_or_not_at_all(study: make.Cast, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "out.jsonl"
    call_command("export", "study", "--output", str(file), "--settled", "--json")
    assert json.loads(capsys.readouterr().out) == {"items": 2, "bytes": file.stat().st_size, "file": str(file)}
    assert len(file.read_text().splitlines()) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize("words", [("no-such",), ("study", "--question", "nothing"), ("study", "--output", "/no/such/folder/out.jsonl")])
def test_the_command_says_what_is_wrong(study: make.Cast, tmp_path: Path, words: tuple[str, ...]) -> None:
    extra = () if "--output" in words else ("--output", str(tmp_path / "out"))
    with pytest.raises(CommandError):
        call_command("export", *words, *extra)


def test_memory_does_not_grow_with_the_project(study: make.Cast) -> None:
    """Eight blocks of long texts pass through in far less than they weigh together (32 MB)."""
    long = "A long mild text. " * 450
    items = [
        Item(project=study.project, kind="text", external_id=f"long{number}", text=long, content_hash=b"0" * 32)
        for number in range(8 * exporting.BLOCK)
    ]
    Item.objects.bulk_create(items, batch_size=1000)
    tracemalloc.start()
    try:
        sent = sum(len(text) for _, text in exporting.export(exporting.wanted(study.project), "jsonl"))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sent > 32_000_000
    assert most < 24_000_000
