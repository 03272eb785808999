"""Votes on the way into the database: beside the items of their file, in the same transaction, settled by annotation's rules."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from django.db.backends.utils import CursorWrapper
from django.db.models import Count

from annotation.errors import Invalid
from annotation.imported import COUNTED, UNNAMED, Contradiction, Imported, Left, import_selected, nameless
from annotation.models import Kind, Project, Question, TaskState
from annotation.questions import create_question
from curation.importing import binary, readers
from curation.importing.mapping import Mapping
from curation.importing.readers import Block, Problem, Source
from curation.importing.votes import FROM_ANSWERS, Answers, Reader, Staged, Votes, is_address, short, spec_of, survey
from curation.importing.votes import completed as completed_votes

SPELLINGS_KEPT = 50
MOST_CHOICES = 20
_COLUMNS = ("row", "item_row", "question", "key", "rater", "choice", "tags", "comment", "time", "elapsed")
_STAGE = """
CREATE TEMP TABLE import_vote (
    number bigint GENERATED ALWAYS AS IDENTITY, row bigint NOT NULL, item_row bigint NOT NULL, question bigint NOT NULL,
    key text COLLATE "C" NOT NULL, rater text, choice text NOT NULL, tags text NOT NULL, comment text NOT NULL, time text, elapsed text
) ON COMMIT DROP;
CREATE TEMP TABLE import_rater (row bigint NOT NULL, rater text NOT NULL, attributes jsonb NOT NULL) ON COMMIT DROP
"""


def kind_asked(mapping: Mapping, votes: Votes) -> str:
    """The kind of item that these votes are on."""
    return str(Kind.TEXT if votes.on == "origin" else mapping.kind)


def question_of(project: Project, votes: Votes) -> Question | None:
    return Question.objects.filter(project=project, slug=votes.question).first()


def answers_of(project: Project, slug: str) -> Answers | None:
    """What may be answered to the project's question of this slug, if there is one."""
    question = Question.objects.filter(project=project, slug=slug).first()
    return None if question is None else Answers.of_question(question)


def answers_for(project: Project, mapping: Mapping, votes: Votes) -> Answers:
    """What may be answered: by the question, or by the one that would be made. Raises Invalid where there is neither."""
    kind = kind_asked(mapping, votes)
    question = question_of(project, votes)
    if question is not None:
        if question.kind != kind:
            said = f"The question {question.slug} is about {question.kind}s, and these votes are on {kind}s."
            raise Invalid(said, code="votes", fields={"votes_question": said})
        return Answers.of_question(question)
    spec = spec_of(votes, kind)
    if spec is None:
        said = f"The project has no question {votes.question!r}. Choose one that it has, or say what to make it from."
        raise Invalid(said, code="votes", fields={"votes_question": said})
    if spec.kind != kind:
        said = f"The ready-made question {votes.make} is about {spec.kind}s, and these votes are on {kind}s."
        raise Invalid(said, code="votes", fields={"votes_make": said})
    if not 2 <= len(spec.settings.choices) <= MOST_CHOICES:
        count = len(spec.settings.choices)
        found = "No answer was" if not count else "Only one answer was" if count == 1 else f"{count} different answers were"
        said = f"{found} found for {votes.question}, and a question has from 2 to {MOST_CHOICES}. Make the question first, then map them."
        raise Invalid(said, code="votes", fields={"votes_make": said})
    return Answers.of_settings(spec.settings)


def checked(project: Project, mapping: Mapping) -> Mapping:
    """Itself, or Invalid when its votes do not fit the project's questions."""
    slugs = Counter(votes.question for votes in mapping.votes)
    for votes in mapping.votes:
        if not is_address(votes.question) and question_of(project, votes) is None:
            said = f"{short(votes.question)!r} is no address for a question: small letters and digits, with hyphens between."
            raise Invalid(said, code="votes", fields={"votes_question": said})
    if twice := [slug for slug, times in slugs.items() if times > 1]:
        raise Invalid(f"The votes for {twice[0]!r} are mapped twice.", code="votes", fields={"votes_question": "Mapped twice."})
    for votes in mapping.votes:
        answers = answers_for(project, mapping, votes)
        for what, given, among in (("choice", votes.choices, answers.choices), ("tag", votes.tag_values, answers.tags)):
            if strange := sorted({value for value in given.values() if value and value not in among}):
                known = ", ".join(among) or "none"
                said = f"{votes.question} has no {what} {short(strange[0])!r}. It has {known}."
                raise Invalid(said, code="votes", fields={f"votes_{what}s": said})
    return mapping


def completed(project: Project, mapping: Mapping, path: Path, source: Source) -> Mapping:
    """The same with choices for a question that is to be made of the answers, where the mapping names none: the file is looked through."""
    open_ = [votes for votes in mapping.votes if votes.make == FROM_ANSWERS and not votes.choices and question_of(project, votes) is None]
    if not open_:
        return mapping
    found = dict(zip((votes.question for votes in open_), survey(readers.blocks(path, source), open_), strict=True))
    done = tuple(completed_votes(votes, found[votes.question]) if votes in open_ else votes for votes in mapping.votes)
    return replace(mapping, votes=done)


class Box:
    """The votes of one file: read block by block, kept in temporary tables, recorded when their items are there."""

    def __init__(self, cursor: CursorWrapper, project_id: int, mapping: Mapping) -> None:
        self.cursor, self.mapping = cursor, mapping
        self.project = Project.objects.get(pk=project_id)
        self.readers = [Reader(votes, answers_for(self.project, mapping, votes)) for votes in mapping.votes]
        cursor.execute("DROP TABLE IF EXISTS import_vote; DROP TABLE IF EXISTS import_rater")
        cursor.execute(_STAGE)

    def read(self, block: Block, rows: pa.RecordBatch) -> tuple[list[Staged], list[Problem]]:
        """The block's votes for each question, and what is wrong with them. `rows` are the good rows."""
        numbers = rows["row"].to_pylist()
        own = dict(zip(numbers, rows["external_id"].to_pylist(), strict=True))
        origins = dict(zip(numbers, (key or "" for key in rows["origin_key"].to_pylist()), strict=True))
        read: list[Staged] = []
        problems: list[Problem] = []
        for reader in self.readers:
            staged, wrong = reader.staged(block, origins if reader.votes.on == "origin" else own)
            read.append(staged)
            problems += wrong
        bad = {problem.row for problem in problems}
        return [staged.without(bad) for staged in read], problems

    def put(self, data: list[bytes]) -> None:
        """Store what `packed` made."""
        for table, columns, rows in (("import_vote", _COLUMNS, data[0]), ("import_rater", ("row", "rater", "attributes"), data[1])):
            if rows:
                with self.cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT binary)") as copy:
                    copy.write(binary.HEADER)
                    copy.write(rows)
                    copy.write(binary.END)

    def index(self) -> None:
        self.cursor.execute("CREATE INDEX ON import_vote (key); CREATE INDEX ON import_vote (item_row)")
        self.cursor.execute("ANALYZE import_vote (key, item_row, question)")

    def unmapped(self) -> list[dict[str, Any]]:
        """Answers and tags that are mapped to nothing, the most frequent first."""
        found = []
        for reader in self.readers:
            answers, tags = (_most(counts) for counts in (reader.unmapped, reader.unmapped_tags))
            if answers or tags:
                found.append({"question": reader.votes.question, "unmapped": answers, "unmapped_tags": tags})
        return found

    def record(self, most_notes: int) -> tuple[list[dict[str, Any]], list[Problem]]:
        """Make raters, tasks, votes and labels of what was kept: a result for each question, and notes on rows."""
        results: list[dict[str, Any]] = []
        notes: dict[Problem, None] = {}
        for number, reader in enumerate(self.readers):
            question, made = self._question(reader.votes)
            required = reader.votes.votes_required
            nobody = COUNTED if reader.votes.form == "counts" else UNNAMED
            parameters = {"project": self.project.pk, "number": number, "nobody": nobody}
            done = import_selected(question, _SELECT, _SELECT_RATERS, parameters, votes_required=required)
            results.append({"question": question.slug, "title": question.title, "made": made, **_counts(done, reader)})
            if made:
                _ask_as_many(question)
            notes |= dict.fromkeys(Problem(row, "", f"No votes: every count for {question.slug} is 0.") for row in reader.empty)
            told: list[Left | Contradiction] = [*done.contradictions, *done.left]
            notes |= dict.fromkeys(_note(one, self.mapping) for one in told)
        return results, sorted(notes, key=lambda note: note.row)[:most_notes]

    def _question(self, votes: Votes) -> tuple[Question, bool]:
        question = question_of(self.project, votes)
        if question is not None:
            return question, False
        spec = spec_of(votes, kind_asked(self.mapping, votes))
        if spec is None:  # deleted since the start looked
            raise Invalid(f"The project has no question {votes.question!r}.")
        return create_question(self.project, spec), True


def _ask_as_many(question: Question) -> None:
    """A question that was made of votes asks for as many as most of its tasks have."""
    most = question.tasks.order_by().values_list("votes_required").annotate(times=Count("pk")).order_by("-times", "-votes_required").first()
    if most is not None:
        Question.objects.filter(pk=question.pk).update(votes_required=most[0])


def packed(read: Sequence[Staged], item_rows: dict[int, int]) -> list[bytes]:
    """Votes, and what is said of raters, as PostgreSQL takes them. `item_rows`: for a row, the one that stands for its item."""
    votes = b"".join(_votes(number, staged, item_rows) for number, staged in enumerate(read))
    return [votes, _raters(list(dict.fromkeys(said for staged in read for said in staged.raters)))]


def _votes(number: int, staged: Staged, item_rows: dict[int, int]) -> bytes:
    texts = (staged.key, staged.rater, staged.choice, staged.tags, staged.comment, staged.time, staged.elapsed)
    numbers = (staged.row, [item_rows.get(row, row) for row in staged.row], [number] * len(staged.row))
    columns = [binary.bigints(pa.array(column, pa.int64())) for column in numbers]
    return binary.rows([*columns, *(binary.texts(pa.array(column, pa.string())) for column in texts)], [])


def _raters(said: Sequence[tuple[int, str, str]]) -> bytes:
    rows, raters, attributes = zip(*said, strict=True) if said else ((), (), ())
    return binary.rows(
        [
            binary.bigints(pa.array(rows, pa.int64())),
            binary.texts(pa.array(raters, pa.string())),
            binary.jsonb(pa.array(attributes, pa.string())),
        ],
        [],
    )


def drop_votes(cursor: CursorWrapper) -> int:
    """Take out the votes of the rows in import_bad, or of their items where rows are votes; returns how many rows brought them."""
    cursor.execute("SELECT to_regclass('pg_temp.import_vote') IS NOT NULL AND EXISTS (SELECT FROM import_bad)")
    if not cursor.fetchone()[0]:
        return 0
    cursor.execute(_DROP)
    dropped: int = cursor.fetchone()[0]
    return dropped


def unmapped_in_words(found: Sequence[dict[str, Any]]) -> str:
    """A sentence for the end of an error; empty when all is mapped."""
    parts = [
        f"{what} {', '.join(f'{short(spelling)!r} ({times:,})' for spelling, times in list(entry[key].items())[:10])}"
        for entry in found
        for key, what in (("unmapped", "answers"), ("unmapped_tags", "tags"))
        if entry.get(key)
    ]
    return f" Mapped to nothing: {'; '.join(parts)}." if parts else ""


def in_words(result: dict[str, Any]) -> str:
    """What became of one question's votes, in a line; empty for an import that failed."""
    if "votes" not in result:
        return ""
    states = ", ".join(f"{count:,} {state}" for state, count in sorted(result["states"].items())) or "none new"
    parts = {
        "repeats": "repeats left out", "surplus": "more than needed", "taken": "on tasks that are closed", "struck": "struck out before",
        "abstained": "without an answer", "unsettled": "labels without a settled tag",
        "tags_left_out": "given tags that their choice does not take",
    }  # fmt: skip
    beside = "".join(f" {result[name]:,} {words}." for name, words in parts.items() if result.get(name))
    votes, nameless = f"{result['votes']:,} votes", result.get("nameless", 0)
    raters = ", 1 new rater" if result["raters"] == 1 else f", {result['raters']:,} new raters"
    if nameless:
        how = "came as counts" if result.get("form") == "counts" else "came without names"
        votes += f" that {how}" if nameless == result["votes"] else f", {nameless:,} of which {how}"
        raters = raters if result["raters"] else ""
    return f"{result['question']}: {votes}{raters}, {result['tasks']:,} tasks: {states}.{beside}"


def _most(counts: Counter[str]) -> dict[str, int]:
    return {spelling[:100]: times for spelling, times in counts.most_common(SPELLINGS_KEPT)}


def _counts(done: Imported, reader: Reader) -> dict[str, Any]:
    counts = {name: value for name, value in asdict(done).items() if name not in ("left", "contradictions")}
    return {**counts, "form": reader.votes.form, "abstained": reader.abstained, "tags_left_out": reader.tags_left_out}


def _note(told: Left | Contradiction, mapping: Mapping) -> Problem:
    column = next((votes.rater for votes in mapping.votes if votes.rater), None) or ""
    if isinstance(told, Contradiction):
        message = f"Rater {told.rater!r} is said to have {told.attribute} {told.kept!r} before, and {told.given!r} here. The first is kept."
        return Problem(told.row, told.attribute, message)
    vote = f"A vote of nobody in particular ({told.rater.strip()})" if nameless(told.rater) else f"The vote of {told.rater!r}"
    messages = {
        "repeat": f"Rater {told.rater.strip()!r} has a vote on {told.item!r} already. The first counts.",
        "surplus": f"{vote} is one more than {told.item!r} needs, and does not count.",
        "taken": f"{told.item!r} {_CLOSED.get(told.state, '')}. {vote} changes nothing there.",
        "struck": f"{vote} on {told.item!r} was struck out, and does not come back.",
    }
    return Problem(told.row, column, messages[told.why])


_CLOSED: dict[str, str] = {
    TaskState.AGREED: "is settled", TaskState.DISPUTED: "waits for an adjudicator", TaskState.ADJUDICATED: "was ruled on",
    TaskState.RETIRED: "is retired",
}  # fmt: skip


# ---------------------------------------------------------------- SQL
# A vote without a rater is by one of the item's, whichever: they are numbered anew for every item.
_SELECT = """
SELECT vote.row, item.id,
       coalesce(vote.rater, %(nobody)s || row_number() OVER (PARTITION BY vote.key, vote.rater IS NULL ORDER BY vote.number)
                            || ' of ' || count(*) OVER (PARTITION BY vote.key, vote.rater IS NULL)),
       vote.choice, CASE WHEN vote.tags = '' THEN '{}'::text[] ELSE string_to_array(vote.tags, ',') END, vote.comment,
       vote.time::timestamptz, vote.elapsed::integer
FROM import_vote AS vote JOIN annotation_item AS item ON item.project_id = %(project)s AND item.external_id = vote.key
WHERE vote.question = %(number)s ORDER BY vote.number
"""
_SELECT_RATERS = "SELECT row, rater, attributes FROM import_rater"
# A row's votes go with it. Where rows are votes and one row is left of an item, the votes of all its rows go.
_DROP = """
WITH gone AS (
    DELETE FROM import_vote USING import_bad JOIN import_row ON import_row.row = import_bad.row
    WHERE import_vote.item_row = import_bad.row
       OR (import_vote.key = import_row.external_id AND NOT EXISTS (
               SELECT FROM import_row AS other WHERE other.external_id = import_row.external_id AND other.row <> import_row.row))
    RETURNING import_vote.row
) SELECT count(DISTINCT row) FROM gone
"""
