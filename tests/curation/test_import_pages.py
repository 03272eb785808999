"""Imports as a researcher does them: on the page, over the API, on the command line."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation.models import Item
from curation.importing import service
from curation.importing.mapping import Mapping
from curation.models import ImportBatch
from tests.cast import Cast
from workers import tasks

TEXTS = b"key,tweet,recipe\na,The river is calm.,A2T\nb,The bridge is old.,PWWS\n"
SignIn = Callable[[Any], Client]
OnCommit = Callable[..., Any]


@pytest.fixture(autouse=True)
def _own_uploads(settings: Any, tmp_path: Path) -> None:
    settings.DATA = tmp_path / "data"


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was sent to the workers, instead of a broker that other tests share."""
    sent: list[str] = []

    def send(batch: ImportBatch) -> bool:
        sent.append(str(batch.pk))
        return True

    monkeypatch.setattr(tasks, "send_import", send)
    return sent


def uploaded(client: Client, project: str = "study", content: bytes = TEXTS, name: str = "tweets.csv") -> ImportBatch:
    answer = client.post(reverse("import_new", args=[project]), {"file": SimpleUploadedFile(name, content)})
    assert answer.status_code == 302, answer.content.decode()
    return ImportBatch.objects.latest("created_at")


def form(**given: Any) -> dict[str, Any]:
    columns = {"text": "tweet", "external_id": "key", "seed": "-", "prompt_id": "-", "origin": "-"}
    return {
        "do": "start",
        "kind": "text",
        "keep": "all",
        "format": "csv",
        "encoding": "utf-8",
        "delimiter": ",",
        "quotes": "on",
        **columns,
        **given,
    }


# ---------------------------------------------------------------- the page
def test_a_file_is_uploaded_previewed_started_and_reported(
    cast: Cast, sign_in: SignIn, worker: list[str], django_capture_on_commit_callbacks: OnCommit
) -> None:
    client = sign_in(cast.bob)
    batch = uploaded(client)
    page = reverse("import_batch", args=["study", batch.pk])
    shown = client.get(page)
    assert shown.status_code == 200
    assert b'<option value="tweet" selected>' in shown.content, "the text column is guessed"
    with django_capture_on_commit_callbacks(execute=True):
        assert client.post(page, form()).status_code == 302
    assert worker == [str(batch.pk)]
    waiting = client.get(page)
    assert b"waits for a worker" in waiting.content
    assert b'hx-trigger="every 1s"' in waiting.content
    tasks.run_import(str(batch.pk))
    done = client.get(page, headers={"HX-Request": "true"})
    assert b"<b>Imported.</b> 2 new items of 2 rows, none refused." in done.content
    assert b"hx-trigger" not in done.content, "it is asked for no longer"
    assert b"<html" not in done.content
    assert Item.objects.get(external_id="a").metadata == {"recipe": "A2T"}


def test_bad_rows_are_listed_and_the_import_can_be_started_anew(cast: Cast, sign_in: SignIn, worker: list[str]) -> None:
    client = sign_in(cast.bob)
    batch = uploaded(client, content=TEXTS + b"c\nd,,x\n")
    page = reverse("import_batch", args=["study", batch.pk])
    client.post(page, form())
    tasks.run_import(str(batch.pk))
    failed = client.get(page).content.decode()
    assert "2 rows are bad, and nothing was imported. Row 3: 3 columns are expected, and 1 found." in failed
    assert "The text is empty." in failed
    assert "<b>Import</b>" not in failed
    assert b'value="start"' in client.get(page, {"map": "1"}).content
    client.post(page, form(skip_bad_rows="on"))
    tasks.run_import(str(batch.pk))
    assert b"2 new items of 4 rows, 2 bad and left out" in client.get(page).content


def test_a_mapping_that_does_not_fit_keeps_what_was_chosen(cast: Cast, sign_in: SignIn, worker: list[str]) -> None:
    client = sign_in(cast.bob)
    batch = uploaded(client)
    answer = client.post(reverse("import_batch", args=["study", batch.pk]), form(text="-", external_id="recipe"))
    assert answer.status_code == 422
    assert b"Say which column holds the text." in answer.content
    assert b'<option value="recipe" selected>' in answer.content
    assert worker == []


def test_the_file_can_be_read_in_another_way_and_a_wrong_encoding_is_said(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    batch = uploaded(client, content="a;text\n1;café\n".encode("cp1252"), name="x.csv")
    page = reverse("import_batch", args=["study", batch.pk])
    assert b"is not UTF-8" in client.get(page).content
    again = client.post(page, form(do="read", delimiter=";", encoding="windows-1252"))
    assert "café" in again.content.decode()
    assert client.post(page, form(do="read", delimiter=";", encoding="klingon")).status_code == 422


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", b""), ("a.csv", b"id,text\n"), ("a.parquet", b"PAR1 nothing"), ("a.bin", b"\x00\x01\x02\xff" * 100)]
)
def test_a_file_that_is_none_gives_a_sentence_never_an_error(cast: Cast, sign_in: SignIn, name: str, content: bytes) -> None:
    client = sign_in(cast.bob)
    answer = client.post(reverse("import_new", args=["study"]), {"file": SimpleUploadedFile(name, content)}, follow=True)
    assert answer.status_code < 500
    assert b"notice--danger" in answer.content or b'class="error"' in answer.content


def test_no_file_is_said(cast: Cast, sign_in: SignIn) -> None:
    answer = sign_in(cast.bob).post(reverse("import_new", args=["study"]))
    assert answer.status_code == 422
    assert b"Choose a file." in answer.content


def test_contents_of_the_preview_stand_behind_one_switch(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    batch = uploaded(client)
    shown = client.get(reverse("import_batch", args=["study", batch.pk])).content.decode()
    before, _, rest = shown.partition("<summary")
    assert "The river is calm." not in before
    assert "Show contents" in rest


def test_an_upload_can_be_discarded_while_it_brought_nothing(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    batch = uploaded(client)
    assert client.post(reverse("import_batch", args=["study", batch.pk]), {"do": "discard"}).status_code == 302
    assert not ImportBatch.objects.exists()
    assert not Path(batch.path).exists()
    done = service.run(service.start(uploaded(client), Mapping(text="tweet")).pk)
    assert client.post(reverse("import_batch", args=["study", done.pk]), {"do": "discard"}).status_code == 409
    assert Item.objects.count() == 2


def test_only_researchers_of_the_project_import(cast: Cast, sign_in: SignIn) -> None:
    batch = uploaded(sign_in(cast.bob))
    for member, status in ((cast.alice, 403), (cast.charlie, 403), (cast.mallory, 404)):
        client = sign_in(member)
        for name, arguments in (("imports", []), ("import_new", []), ("import_batch", [batch.pk])):
            assert client.get(reverse(name, args=["study", *arguments])).status_code == status
    assert sign_in(cast.mallory).get(reverse("import_batch", args=["elsewhere", batch.pk])).status_code == 404


def test_the_list_shows_every_import(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    assert b"No file yet." in client.get(reverse("imports", args=["study"])).content
    uploaded(client)
    assert b"not started" in client.get(reverse("imports", args=["study"])).content


def test_hostile_names_of_files_and_columns_are_only_text(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.bob)
    batch = uploaded(client, content=b'text,<script>alert(1)</script>,"=1+1"\nA text.,<img src=x>,2\n', name="<b>x</b>.csv")
    shown = client.get(reverse("import_batch", args=["study", batch.pk])).content
    assert b"<script>alert" not in shown
    assert b"<img src=x>" not in shown
    assert b"<b>x</b>.csv" not in shown


# ---------------------------------------------------------------- the API
def api(client: Client, project: str = "study") -> str:
    return reverse("api_imports", args=[project])


def test_the_api_takes_a_form_with_file_and_mapping(
    cast: Cast, sign_in: SignIn, worker: list[str], django_capture_on_commit_callbacks: OnCommit
) -> None:
    client = sign_in(cast.bob)
    mapping = json.dumps({"text": "tweet", "external_id": "key", "metadata": []})
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(api(client), {"file": SimpleUploadedFile("t.csv", TEXTS), "mapping": mapping})
    assert answer.status_code == 202, answer.content
    assert worker == [answer.json()["id"]]
    tasks.run_import(answer.json()["id"])
    status = client.get(reverse("api_import", args=["study", answer.json()["id"]])).json()
    assert (status["state"], status["created"], status["problems"]) == ("done", 2, [])
    assert Item.objects.get(external_id="a").metadata == {}
    assert [batch["id"] for batch in client.get(api(client)).json()] == [answer.json()["id"]]


def test_the_api_takes_the_file_as_the_body_and_guesses_the_mapping(cast: Cast, sign_in: SignIn, worker: list[str]) -> None:
    client = sign_in(cast.bob)
    answer = client.post(f"{api(client)}?filename=t.csv&skip_bad_rows=true", TEXTS + b"c\n", content_type="text/csv")
    assert answer.status_code == 202, answer.content
    tasks.run_import(answer.json()["id"])
    status = client.get(reverse("api_import", args=["study", answer.json()["id"]])).json()
    assert (status["created"], status["bad"]) == (2, 1)
    assert status["problems"] == [{"row": 3, "field": "", "message": "3 columns are expected, and 1 found."}]


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("filename=t.csv", b""),
        ("filename=t.csv&mapping=[1]", TEXTS),
        (f"filename=t.csv&mapping={'[' * 5000}", TEXTS),
        ('filename=t.csv&mapping={"text": "nowhere"}', TEXTS),
        ('filename=t.csv&mapping={"colour": "x"}', TEXTS),
        ("filename=t.csv&file_format=xml", TEXTS),
        ("filename=t.csv&encoding=klingon", TEXTS),
        ("filename=t.parquet&file_format=parquet", b"no"),
    ],
)
def test_the_api_says_what_is_wrong_and_keeps_nothing(cast: Cast, sign_in: SignIn, query: str, body: bytes) -> None:
    client = sign_in(cast.bob)
    answer = client.post(f"{api(client)}?{query}", body, content_type="application/octet-stream")
    assert answer.status_code == 400, answer.content
    assert answer.json()["detail"]
    assert not ImportBatch.objects.exists()
    assert list(service.folder().glob("*")) == []


def test_the_api_discards_and_is_for_researchers(cast: Cast, sign_in: SignIn, worker: list[str]) -> None:
    client = sign_in(cast.bob)
    made = client.post(f"{api(client)}?filename=t.csv", TEXTS, content_type="text/csv").json()
    one = reverse("api_import", args=["study", made["id"]])
    assert sign_in(cast.alice).delete(one).status_code == 403
    assert sign_in(cast.mallory).get(one).status_code == 404
    assert Client().get(one).status_code == 401
    assert client.delete(one).status_code == 204
    assert not ImportBatch.objects.exists()


# ---------------------------------------------------------------- the command line
def run(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("import_items", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_the_command_imports_and_answers_in_words_or_json(cast: Cast, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(TEXTS)
    said, _ = run("study", str(path), "--text", "tweet", "--id", "key")
    assert said == "2 rows: 2 new items, 0 unchanged, 0 bad.\n"
    answer = json.loads(run("study", str(path), "--text", "tweet", "--id", "key", "--json")[0])
    assert (answer["state"], answer["unchanged"]) == ("done", 2)
    assert path.exists()


def test_the_command_maps_seeds_and_chosen_metadata(cast: Cast, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"t": "A clam sea.", "s": "A calm sea.", "x": 1, "y": 2}\n')
    run("study", str(path), "--text", "t", "--seed", "s", "--metadata", "x")
    item = Item.objects.get(origin__isnull=False)
    assert (item.metadata, item.origin and item.origin.text) == ({"x": 1}, "A calm sea.")


def test_the_command_reports_bad_rows_and_ends_with_an_error(cast: Cast, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(TEXTS + b"c\n")
    with pytest.raises(CommandError, match="1 row is bad, and nothing was imported"):
        run("study", str(path), "--text", "tweet")
    said, complained = run("study", str(path), "--text", "tweet", "--skip-bad")
    assert said == "3 rows: 2 new items, 0 unchanged, 1 bad.\n"
    assert "row 3: 3 columns are expected, and 1 found." in complained


@pytest.mark.parametrize(
    "arguments", [["nowhere", "{}"], ["study", "{}/nothing.csv"], ["study", "{}"], ["study", "{}/t.csv", "--text", "nowhere"]]
)
def test_the_command_says_what_is_wrong(cast: Cast, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "t.csv").write_bytes(TEXTS)
    with pytest.raises(CommandError):
        run(*[argument.format(tmp_path) for argument in arguments])
    assert not ImportBatch.objects.exists()
