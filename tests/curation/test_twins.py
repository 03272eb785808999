"""What pages do, by command."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation import audit, queue
from annotation.models import Flag, Item
from tests import cast as make


def told(*arguments: object, **options: object) -> dict[str, object]:
    out = StringIO()
    call_command(*map(str, arguments), "--json", stdout=out, **options)
    found: dict[str, object] = json.loads(out.getvalue())
    return found


def test_progress_is_told(cast: make.Cast) -> None:
    make.make_tasks(make.make_question(cast.project, votes=2), 4)
    found = told("progress", "study", "toxicity")
    assert (found["votes_left"], found["stranded"]) == (8, {"votes": 0, "tasks": 0, "able": 4})
    out = StringIO()
    call_command("progress", "study", "toxicity", stdout=out)
    assert "8 votes left." in out.getvalue()


def test_flags_are_listed_handled_and_a_quarantine_lifted(cast: make.Cast) -> None:
    question = make.make_question(cast.project)
    make.make_tasks(question, 2)
    queue.flag(cast.alice, queue.next_work(cast.alice, question)[0].task_id, reason="illegal")
    flag, item = Flag.objects.get(), Item.objects.get(quarantined=True)
    assert [row["item"] for row in told("flags", "list", "study")["flags"]] == [item.pk]
    assert told("flags", "handle", "study", flag.pk, by="bob", why="Asked a lawyer.") == {"handled": flag.pk}
    assert told("flags", "lift", "study", item.pk, by="bob", why="It is harmless.") == {"lifted": item.pk, "shown": True}
    with pytest.raises(CommandError, match="not quarantined"):
        told("flags", "lift", "study", item.pk, by="bob", why="Again.")
    said = [(entry.who, entry.sentence) for entry in audit.trail(cast.project, "flags").entries]
    assert ("bob", f"lifted the quarantine of item {item.pk}") in said


def test_who_assigns_is_named(cast: make.Cast) -> None:
    make.make_question(cast.project)
    assert told("assign", "study", "toxicity", cast.alice.number, by="bob")["people"] == [cast.alice.number]
    [entry] = [entry for entry in audit.trail(cast.project, "people").entries if "Toxicity" in entry.sentence]
    assert (entry.who, entry.sentence) == ("bob", "gave Toxicity to Annotator 1")


def test_guideline_gaps_are_listed(cast: make.Cast) -> None:
    make.make_question(cast.project)
    assert told("gaps", "study", "toxicity") == {"version": 1, "gaps": []}
