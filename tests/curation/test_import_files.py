"""Files in every format, good and bad, through the real service into the real database."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.errors import Conflict, Invalid
from annotation.items import text_hash
from annotation.models import Item
from curation.importing import service
from curation.importing.mapping import Mapping
from curation.importing.readers import Source
from curation.models import ImportBatch
from tests.cast import Cast

TEXTS = 'id,text,recipe\na,The river is calm.,A2T\nb,"He said ""good morning"", twice.",PWWS\n'
ID_AND_TEXT = Mapping(text="text", external_id="id")
Bring = Callable[..., ImportBatch]


@pytest.fixture(autouse=True)
def _own_uploads(settings: Any, tmp_path: Path) -> None:
    settings.DATA = tmp_path / "data"


@pytest.fixture
def bring(cast: Cast, tmp_path: Path) -> Bring:
    """bring(content, name, mapping, skip=…, source=…): the import as it ended."""

    def bring(
        content: bytes | str, name: str = "texts.csv", mapping: Mapping = ID_AND_TEXT, *, skip: bool = False, **source: Any
    ) -> ImportBatch:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        batch = service.take(cast.project, path, cast.bob.user)
        found = service.source_of(batch)
        service.start(batch, mapping, source=Source(**{**vars(found), **source}), skip_bad_rows=skip)
        return service.run(batch.pk)

    return bring


def refused(batch: ImportBatch) -> list[tuple[int, str, str]]:
    return [(problem["row"], problem["field"], problem["message"]) for problem in batch.problems]


# ---------------------------------------------------------------- formats
def test_a_csv_becomes_items_with_texts_ids_and_metadata(bring: Bring, cast: Cast) -> None:
    batch = bring(TEXTS)
    assert (batch.state, batch.rows, batch.created, batch.unchanged, batch.bad) == ("done", 2, 2, 0, 0)
    first, second = Item.objects.filter(project=cast.project).order_by("pk")
    assert (first.external_id, first.text, first.metadata, first.kind) == ("a", "The river is calm.", {"recipe": "A2T"}, "text")
    assert second.text == 'He said "good morning", twice.'
    assert bytes(first.content_hash) == text_hash(first.text)
    assert first.batch == batch.pk


@pytest.mark.parametrize(
    ("name", "content", "source"),
    [
        ("a.tsv", "id\ttext\na\tThe river is calm.\n", {}),
        ("a.txt", "id;text\na;The river is calm.\n", {}),
        ("a.csv", "\ufeffid,text\r\na,The river is calm.\r\n", {}),
        ("a.csv", "id,text\ra,The river is calm.", {}),
        ("a.csv", "id,text\na,The river is calm.\n".encode("utf-16"), {}),
        ("a.csv", "id,text\na,The river is calm.\n".encode("cp1252"), {"encoding": "windows-1252"}),
        ("a.jsonl", '{"id": "a", "text": "The river is calm."}\n\n', {}),
        ("a.jsonl", '\ufeff{"text": "The river is calm.", "id": "a"}', {}),
    ],
)
def test_formats_delimiters_and_encodings_all_give_the_same_item(bring: Bring, name: str, content: Any, source: dict[str, str]) -> None:
    assert bring(content, name, **source).state == "done"
    assert list(Item.objects.values_list("external_id", "text")) == [("a", "The river is calm.")]


def test_an_encoding_that_is_named_is_used(bring: Bring) -> None:
    bring("id,text\na,café\n".encode("cp1252"), encoding="windows-1252")
    assert Item.objects.get().text == "café"


def test_parquet_keeps_nested_metadata_numbers_and_leaves_missing_values_out(bring: Bring, tmp_path: Path) -> None:
    table = pa.table({
        "id": [1, 2], "text": ["One mild text.", "Another."], "votes": [[3, 0], None],
        "score": [0.25, float("nan")], "who": [{"age": 30}, {"age": None}],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "source.parquet")
    assert bring((tmp_path / "source.parquet").read_bytes(), "a.parquet").state == "done"
    first, second = Item.objects.order_by("pk")
    assert (first.external_id, first.metadata) == ("1", {"votes": [3, 0], "score": 0.25, "who": {"age": 30}})
    assert second.metadata == {"who": {"age": None}}


def test_json_lines_keep_nested_metadata_and_unicode(bring: Bring) -> None:
    bring(json.dumps({"id": "a", "text": "Grüße 🌊", "how": {"by": ["x", {"y": 1}]}, "none": None}) + "\n", "a.jsonl")
    item = Item.objects.get()
    assert (item.text, item.metadata) == ("Grüße 🌊", {"how": {"by": ["x", {"y": 1}]}})


def test_json_lines_may_each_have_their_own_keys(bring: Bring) -> None:
    rows = [{"id": str(number), "text": "A text.", f"k{number}": number} for number in (1, 2)]
    bring("\n".join(json.dumps(row) for row in [*rows, {"id": "z", "text": "Late.", "late": True}]), "a.jsonl")
    assert list(Item.objects.order_by("pk").values_list("metadata", flat=True)) == [{"k1": 1}, {"k2": 2}, {"late": True}]


def test_tab_separated_files_that_quote_nothing_keep_their_quotes(bring: Bring) -> None:
    bring('id\ttext\na\t"Morning," she said\nb\ta plain one\n', "a.tsv")
    assert Item.objects.get(external_id="a").text == '"Morning," she said'


def test_metadata_can_be_all_that_is_left_some_or_none(bring: Bring) -> None:
    content = "id,text,x,y\n{},A text.,1,\n"
    bring(content.format("a"), mapping=Mapping(text="text", external_id="id"))
    bring(content.format("b"), mapping=Mapping(text="text", external_id="id", metadata=("x",)))
    bring(content.format("c"), mapping=Mapping(text="text", external_id="id", metadata=()))
    assert dict(Item.objects.values_list("external_id", "metadata")) == {"a": {"x": "1"}, "b": {"x": "1"}, "c": {}}


def test_metadata_with_tabs_quotes_and_backslashes_arrives_whole(bring: Bring) -> None:
    bring('id,text,note\na,A text.,"tab\there \\ and ""quotes"" and\nanother line"\n')
    assert Item.objects.get().metadata == {"note": 'tab\there \\ and "quotes" and\nanother line'}


def test_a_text_of_backslash_dot_and_one_of_backslash_n_are_just_texts(bring: Bring) -> None:
    bring("id,text\na,\\.\nb,\\N\nc,NULL\n")
    assert list(Item.objects.order_by("pk").values_list("text", flat=True)) == ["\\.", "\\N", "NULL"]


def test_image_rows_without_a_file_are_items_that_share_a_prompt(bring: Bring) -> None:
    content = "id,prompt,prompt_id,tool\ni1,A calm sea.,p1,x\ni2,A calm sea.,p1,y\ni3,,p1,z\n"
    batch = bring(content, mapping=Mapping(kind="image", external_id="id", seed="prompt", prompt_id="prompt_id"))
    assert (batch.state, batch.created) == ("done", 3)
    images = Item.objects.filter(kind="image")
    assert {(image.text, image.media_id) for image in images} == {(None, None)}
    prompt = Item.objects.get(kind="text")
    assert (prompt.text, prompt.external_id) == ("A calm sea.", "origin:p1")
    assert {image.origin_id for image in images} == {prompt.pk}


# ---------------------------------------------------------------- the same again
def test_the_same_file_twice_changes_nothing(bring: Bring) -> None:
    bring(TEXTS)
    again = bring(TEXTS)
    assert (again.state, again.created, again.unchanged, again.bad) == ("done", 0, 2, 0)
    assert Item.objects.count() == 2


def test_without_ids_items_are_known_by_file_and_row_and_equal_texts_stay_apart(bring: Bring) -> None:
    content = "text\nThe same.\nThe same.\n"
    bring(content, mapping=Mapping(text="text"))
    start = sha256(content.encode()).hexdigest()[:12]
    assert list(Item.objects.order_by("pk").values_list("external_id", flat=True)) == [f"{start}:1", f"{start}:2"]
    assert bring(content, mapping=Mapping(text="text")).unchanged == 2
    assert bring(content + "One more.\n", mapping=Mapping(text="text")).created == 3, "another file, other items"


def test_more_rows_with_known_ids_bring_only_the_new_ones(bring: Bring) -> None:
    bring(TEXTS)
    batch = bring(TEXTS + "c,A third.,BAE\n")
    assert (batch.created, batch.unchanged) == (1, 2)


@pytest.mark.parametrize(
    ("row", "other"), [("a,Another text.,A2T", "text"), ("a,The river is calm.,BAE", "metadata")], ids=["text", "metadata"]
)
def test_a_known_id_with_other_content_is_refused_and_nothing_is_overwritten(bring: Bring, row: str, other: str) -> None:
    bring(TEXTS)
    batch = bring(f"id,text,recipe\nc,New.,A2T\n{row}\n")
    assert batch.state == "failed"
    assert refused(batch) == [(2, "", f"The project already has an item 'a', with another {other}. Nothing was overwritten.")]
    assert Item.objects.count() == 2
    skipping = bring(f"id,text,recipe\nc,New.,A2T\n{row}\n", skip=True)
    assert (skipping.state, skipping.created, skipping.bad) == ("done", 1, 1)
    assert Item.objects.get(external_id="a").metadata == {"recipe": "A2T"}


def test_other_projects_may_have_the_same_ids(bring: Bring, cast: Cast) -> None:
    Item.objects.create(project=cast.mallory.project, kind="text", external_id="a", text="Elsewhere.", content_hash=text_hash("Elsewhere."))
    assert bring(TEXTS).created == 2


# ---------------------------------------------------------------- origins
SEEDED = "id,text,seed\n1,A calm rivr.,A calm river.\n2,A clam river.,A calm river.\n3,No seed.,\n"


def test_equal_seed_texts_share_one_origin(bring: Bring) -> None:
    mapping = Mapping(text="text", external_id="id", seed="seed")
    assert bring(SEEDED, mapping=mapping).created == 3
    one, two, three = (Item.objects.get(external_id=name) for name in "123")
    assert one.origin_id == two.origin_id
    assert one.origin is not None
    assert (one.origin.text, one.origin.kind, one.metadata, three.origin) == ("A calm river.", "text", {}, None)
    assert bring(SEEDED, mapping=mapping).unchanged == 3
    assert Item.objects.count() == 4
    more = bring("id,text,seed\n4,A clm river.,A calm river.\n", mapping=mapping)
    assert more.created == 1
    assert Item.objects.get(external_id="4").origin_id == one.origin_id, "shared with what was there before"


def test_seeds_stay_apart_when_the_mapping_says_one_a_row(bring: Bring) -> None:
    mapping = Mapping(text="text", external_id="id", seed="seed", seed_per_row=True)
    bring(SEEDED, mapping=mapping)
    assert Item.objects.get(external_id="1").origin_id != Item.objects.get(external_id="2").origin_id
    assert bring(SEEDED, mapping=mapping).unchanged == 3
    assert Item.objects.count() == 5


def test_one_prompt_id_with_two_texts_is_refused(bring: Bring) -> None:
    mapping = Mapping(text="text", external_id="id", seed="seed", prompt_id="p")
    batch = bring("id,text,seed,p\n1,A.,One.,p1\n2,B.,Two.,p1\n", mapping=mapping)
    assert refused(batch) == [(2, "seed", "The prompt 'p1' has another text in row 1.")]
    assert bring("id,text,seed,p\n1,A.,One.,p1\n", mapping=mapping).created == 1
    later = bring("id,text,seed,p\n3,C.,Two.,p1\n", mapping=mapping)
    assert refused(later) == [(1, "seed", "The prompt 'p1' is in the project with another text.")]
    without = bring("id,text,seed,p\n4,D.,,p9\n", mapping=mapping)
    assert refused(without) == [(1, "seed", "The prompt 'p9' has no text here nor in another row.")]


def test_an_origin_named_by_its_id_may_stand_before_after_or_in_the_project(bring: Bring) -> None:
    mapping = Mapping(text="text", external_id="id", origin="from")
    bring(TEXTS)
    assert bring("id,text,from\nx,X.,y\ny,Y.,a\nz,Z.,\n", mapping=mapping).created == 3
    origins = {item.external_id: item.origin and item.origin.external_id for item in Item.objects.select_related("origin")}
    assert origins == {"a": None, "b": None, "x": "y", "y": "a", "z": None}


def test_an_origin_that_is_nowhere_is_refused_and_so_is_what_hangs_on_it(bring: Bring) -> None:
    mapping = Mapping(text="text", external_id="id", origin="from")
    content = "id,text,from\nx,X.,nowhere\ny,Y.,x\nz,Z.,z\nok,Fine.,\n"
    batch = bring(content, mapping=mapping)
    assert batch.state == "failed"
    assert [row for row, _, _ in refused(batch)] == [1, 2, 3]
    assert (3, "from", "The item is named as its own origin.") in refused(batch)
    assert bring(content, mapping=mapping, skip=True).created == 1


# ---------------------------------------------------------------- bad input
LONG = "x" * 100_001
BAD: list[tuple[str, bytes | str, str, int, str, str]] = [
    ("ragged, too few", "id,text\na,Fine.\nb\nc,Fine.\n", "a.csv", 2, "", "2 columns are expected, and 1 found."),
    ("ragged, too many", "id,text\na,Fine.\nb,One, two\n", "a.csv", 2, "", "2 columns are expected, and 3 found."),
    ("ragged after blank lines", "id,text\n\na,Fine.\n\nb\n", "a.csv", 2, "", "2 columns are expected, and 1 found."),
    ("not UTF-8", b"id,text\na,Fine.\nb,caf\xe9\n", "a.csv", 2, "text", "Byte 4 of the cell, 0xE9, is not UTF-8."),
    ("not UTF-8 in metadata", b"id,text,m\na,Fine.,\xff\n", "a.csv", 1, "m", "Byte 1 of the cell, 0xFF, is not UTF-8."),
    ("NUL", "id,text\na,Fine.\nb,Nu\x00l\n", "a.csv", 2, "text", "There is a NUL character in it"),
    ("NUL in metadata", "id,text,m\na,Fine.,x\x00\n", "a.csv", 1, "metadata", "There is a NUL character in it"),
    ("NUL in the id", "id,text\na\x00,Fine.\n", "a.csv", 1, "id", "There is a NUL character in it"),
    ("NUL escaped in JSON", '{"id": "a", "text": "x", "m": {"k\\u0000": 1}}\n', "a.jsonl", 1, "metadata", "There is a NUL character in it"),
    ("empty text", "id,text\na,Fine.\nb,\n", "a.csv", 2, "text", "The text is empty."),
    ("blank text", "id,text\na,Fine.\nb,   \n", "a.csv", 2, "text", "The text is empty."),
    ("empty id", "id,text\na,Fine.\n,Nameless.\n", "a.csv", 2, "id", "The id is empty."),
    ("long id", f"id,text\n{'i' * 201},Fine.\n", "a.csv", 1, "id", "201 characters; the most is 200."),
    ("long text", f"id,text\na,{LONG}\n", "a.csv", 1, "text", "100,001 characters; the most is 100,000."),
    ("long metadata", f"id,text,m\na,Fine.,{LONG}\n", "a.csv", 1, "metadata", "characters; the most is 100,000."),
    (
        "10 MB field",
        f"id,text\na,Fine.\nb,{'x' * 10_000_000}\nc,Fine.\n",
        "a.csv",
        2,
        "text",
        "10,000,000 characters; the most is 100,000.",
    ),
    (
        "10 MB line",
        '{"id": "a", "text": "' + "x" * 10_000_000 + '"}\n',
        "a.jsonl",
        1,
        "text",
        "10,000,000 characters; the most is 100,000.",
    ),
    ("20 MB line", '{"id": "a", "text": "' + "x" * 20_000_000 + '"}\n', "a.jsonl", 1, "", "The line is longer than 16 MB."),
    ("twice the same id", "id,text\na,One.\nb,Two.\na,Three.\n", "a.csv", 3, "", "The id 'a' is already that of row 1."),
    ("an open quote", 'id,text\na,Fine.\nb,"never closes\nc,lost\nd,lost\n', "a.csv", 2, "text", "A quote opens here and never closes"),
    ("an open quote at the end", 'id,text\na,Fine.\nb,"never', "a.csv", 2, "text", "A quote opens here and never closes"),
    ("an open quote before the end", 'text,id\nFine.,a\n"never closes,b\nlost,c\n', "a.csv", 2, "", "perhaps a quote in it never closes"),
    ("not JSON", '{"id": "a", "text": "Fine."}\n{"id": b}\n', "a.jsonl", 2, "", "Not JSON: "),
    ("not an object", '{"id": "a", "text": "Fine."}\n["b"]\n', "a.jsonl", 2, "", "The line is not a JSON object."),
    ("NaN", '{"id": "a", "text": "Fine.", "m": NaN}\n', "a.jsonl", 1, "", "NaN is not a JSON number"),
    ("deep JSON", '{"id": "a", "text": "Fine."}\n' + "[" * 100_000 + "\n", "a.jsonl", 2, "", "Not JSON: nested too deep."),
    ("half a surrogate pair", '{"id": "a", "text": "\\ud83d"}\n', "a.jsonl", 1, "text", "Character 1 is half of a surrogate pair"),
    ("half a pair in metadata", '{"id": "a", "text": "x", "m": "\\ud83d"}\n', "a.jsonl", 1, "", "half of a surrogate pair"),
    ("JSON not UTF-8", b'{"id": "a", "text": "Fine."}\n{"id": "b", "text": "\xe9"}\n', "a.jsonl", 2, "", "0xE9, is not UTF-8."),
    ("nested text", '{"id": "a", "text": {"en": "x"}}\n', "a.jsonl", 1, "text", "Nested JSON stands where a text is needed."),
]


@pytest.mark.parametrize(("content", "name", "row", "column", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_bad_row_is_one_message_with_its_row_and_nothing_comes_in(  # noqa: PLR0917 - the columns of the table
    bring: Bring, content: bytes | str, name: str, row: int, column: str, message: str
) -> None:
    batch = bring(content, name)
    assert (batch.state, batch.created, batch.bad) == ("failed", 0, 1)
    assert [(found[0], found[1]) for found in refused(batch)] == [(row, column)]
    assert message in batch.problems[0]["message"]
    assert batch.error.startswith(f"1 row is bad, and nothing was imported. Row {row}")
    assert Item.objects.count() == 0


@pytest.mark.parametrize(("content", "name"), [case[1:3] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_rows_can_be_skipped_and_the_good_ones_come_in(bring: Bring, content: bytes | str, name: str) -> None:
    batch = bring(content, name, skip=True)
    assert (batch.state, batch.bad, batch.created) == ("done", 1, batch.rows - 1)
    assert Item.objects.count() == batch.created


def test_rows_keep_their_numbers_among_many_bad_ones(bring: Bring) -> None:
    lines = [f"{number},Text {number}." if number % 3 else f"{number}" for number in range(1, 40_001)]
    batch = bring("id,text\n" + "\n".join(lines) + "\n", skip=True)
    assert (batch.rows, batch.bad, batch.created) == (40_000, 13_333, 26_667)
    assert [problem["row"] for problem in batch.problems] == list(range(3, 3001, 3)), "the first thousand"
    batch = bring(
        "text\n" + "\n".join("Two." if number != 30_000 else "Un,even" for number in range(1, 40_001)),
        "b.csv",
        Mapping(text="text"),
        skip=True,
    )
    last = Item.objects.filter(batch=batch.pk).order_by("-pk").values_list("external_id", flat=True)[0]
    assert last.endswith(":40000")
    assert not Item.objects.filter(external_id__endswith=":30000").exists()


WHOLE: list[tuple[str, bytes | str, str, str]] = [
    ("empty", "", "a.csv", "The file is empty."),
    ("only a header", "id,text\n", "a.csv", "The file has a header and no rows."),
    ("only a header, no line end", "id,text", "a.csv", "The file has a header and no rows."),
    ("two columns of one name", "id,text,text\na,b,c\n", "a.csv", "Two columns are called 'text'."),
    ("no such column", "id,words\na,Fine.\n", "a.csv", "The file has no column 'text'."),
    ("a header in another encoding", b"id,t\xe9xt\na,b\n", "a.csv", "The header is not UTF-8."),
    ("broken Parquet", b"PAR1 and then nothing of the kind PAR1", "a.parquet", "This is not a Parquet file that can be read"),
    ("no JSON at all", "\n\n", "a.jsonl", "The file has no rows."),
    (
        "no table at all, and none of it is repeated",
        b"id,text\na,one\nb,two,\x80\n",
        "a.csv",
        "found. See whether it is such a table at all",
    ),
]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of pyarrow, on a row it cannot decode
@pytest.mark.parametrize(("content", "name", "message"), [case[1:] for case in WHOLE], ids=[case[0] for case in WHOLE])
def test_a_file_that_cannot_be_read_is_one_message(bring: Bring, content: bytes | str, name: str, message: str) -> None:
    said = ""
    try:
        said = bring(content, name).error
    except Invalid as error:
        said = error.message
    assert message in said
    assert Item.objects.count() == 0


def test_bytes_that_are_not_the_named_encoding_are_said_with_their_place(bring: Bring) -> None:
    with pytest.raises(Invalid, match="Byte 91 of the file is not cp1252"):
        bring(b"id,text\n" + b"a,Fine.\n" * 10 + b"b,\x81\n", encoding="windows-1252")
    try:  # far down: found when the import is started, where the reader reads that far ahead, or when it runs
        said = bring(b"id,text\n" + b"a,Fine.\n" * 300_000 + b"b,\x81\n", encoding="windows-1252").error
    except Invalid as error:
        said = error.message
    assert "Byte 2,400,011 of the file is not cp1252" in said
    assert not Item.objects.exists()


def test_a_quote_that_never_closes_in_a_large_file_costs_no_memory_and_says_its_row(bring: Bring) -> None:
    rows = "".join(f"{number},A text of some length that repeats itself.\n" for number in range(400_000))
    batch = bring('id,text\nx,Fine.\ny,"open ' + rows)
    assert batch.state == "failed"
    assert "Row 2, text: A quote opens here and never closes" in batch.error
    batch = bring('id,text\nx,Fine.\ny,"open ' + rows * 2)
    assert "Row 2 is longer than 16 MB: perhaps a quote in it never closes." in batch.error


def test_broken_parquet_in_the_middle_is_one_message(bring: Bring, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [str(n) for n in range(50_000)], "text": [f"Text {n} of many." for n in range(50_000)]}), tmp_path / "p")
    whole = bytearray((tmp_path / "p").read_bytes())
    whole[len(whole) // 3 : len(whole) // 3 + 2000] = b"\x00" * 2000
    batch = bring(bytes(whole), "a.parquet")
    assert batch.state == "failed"
    assert "broken" in batch.error or "bad" in batch.error
    assert Item.objects.count() == 0


def test_a_folder_and_a_file_that_vanished_are_said(cast: Cast, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="no picture in it"):
        service.take(cast.project, tmp_path, None)
    with pytest.raises(Invalid, match="no longer there"):
        service.take(cast.project, tmp_path / "nothing.csv", None)
    path = tmp_path / "texts.csv"
    path.write_text(TEXTS)
    batch = service.start(service.take(cast.project, path, None), ID_AND_TEXT)
    path.unlink()
    batch = service.run(batch.pk)
    assert (batch.state, batch.error) == ("failed", "The file is no longer there. Bring it in again.")


# ---------------------------------------------------------------- the life of an import
def test_a_failed_import_can_be_started_again_and_a_done_one_cannot(cast: Cast, tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("id,text\na,Fine.\nb,\n")
    batch = service.start(service.take(cast.project, path, None), ID_AND_TEXT)
    assert service.run(batch.pk).state == "failed"
    service.start(batch, ID_AND_TEXT, skip_bad_rows=True)
    batch = service.run(batch.pk)
    assert (batch.state, batch.created, batch.bad) == ("done", 1, 1)
    with pytest.raises(Conflict):
        service.start(batch, ID_AND_TEXT)
    assert service.run(batch.pk).created == 1, "running it again changes nothing"


def test_an_upload_goes_when_it_is_done_and_a_file_of_ones_own_stays(cast: Cast, tmp_path: Path) -> None:
    upload = service.store(cast.project, "../../texts.csv", [TEXTS.encode()], cast.bob.user)
    assert upload.filename == "texts.csv"
    assert upload.file_hash == sha256(TEXTS.encode()).hexdigest()
    service.run(service.start(upload, ID_AND_TEXT).pk)
    assert not Path(upload.path).exists()
    own = tmp_path / "own.csv"
    own.write_text(TEXTS)
    service.run(service.start(service.take(cast.project, own, None), ID_AND_TEXT).pk)
    assert own.exists()


def test_the_preview_guesses_columns_and_can_be_read_another_way(cast: Cast) -> None:
    batch = service.store(cast.project, "tweets.txt", [b"tweet_id|Tweet|label\n1|Good morning.|2\n"], cast.bob.user)
    preview = service.preview(batch)
    assert (preview.source.delimiter, preview.columns) == ("|", ["tweet_id", "Tweet", "label"])
    assert (preview.mapping.text, preview.rows) == ("Tweet", [(1, ["1", "Good morning.", "2"])])
    other = service.preview(batch, Source("csv", delimiter=","))
    assert other.columns == ["tweet_id|Tweet|label"]


def test_a_mapping_that_says_nothing_possible_is_refused() -> None:
    for given, part in [
        ({"text": 3}, "text"),
        ({"metadata": "x"}, "metadata"),
        ({"seed_per_row": "yes"}, "seed_per_row"),
        ({"colour": "x"}, ""),
    ]:
        with pytest.raises(Invalid) as refusal:
            Mapping.of(given)
        assert part in (*refusal.value.fields, "")
    for mapping, part in [
        (Mapping(), "text"),
        (Mapping(kind="video", text="a"), "kind"),
        (Mapping(kind="image", text="a"), "text"),
        (Mapping(text="a", seed="b", origin="c"), "origin"),
        (Mapping(text="a", prompt_id="b"), "prompt_id"),
        (Mapping(text="a", metadata=("zz",)), "metadata"),
    ]:
        with pytest.raises(Invalid) as refusal:
            mapping.checked(["a", "b", "c"])
        assert part in refusal.value.fields
