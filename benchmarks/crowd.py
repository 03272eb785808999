"""A crowd labels pictures over HTTP, looked after as people are, while web processes are killed under them.

    python -m benchmarks.crowd                                    # 200 people, 5,000 pictures, about five minutes on two cores
    python -m benchmarks.crowd --people 20 --tasks 200 --kills 2  # what the tests run

Real drawn pictures, the ready-made question `image_harm` (5 votes, harm types), real `manage.py serve` web processes on a scratch
database. Everybody consents, practises, and answers; some abstain, change an answer, or lose the response and send the same token
again; one in ten answers at random and should be paused by the unseen known answers. Limits and breaks are tight so that they bite.

Hours pass in minutes: between phases, when no request is under way, the stored times of exposures, sittings, leases and checks are moved
into the past; the code's clock is never touched. Meanwhile web processes die by SIGKILL and `serve` starts others.

At the end all is read off the tables. overassigned: tasks with more votes than they take, or whose counts are not what is there;
lost: acknowledged answers that are not stored; duplicates: two votes of a person on a task, or two acknowledgements of one token that
differ; budget_breaches: items handed out beyond the limit of an hour or a day, or work without the break; gold_wrong: people whose known
answers are counted otherwise than they gave them, or who are paused, or not, against the rule. The floor is bare psycopg on the same
tables (benchmarks.annotation_loop), just after.
"""

import argparse
import asyncio
import contextlib
import io
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from benchmarks.annotation_loop import floor, sign_in
from benchmarks.common import percentile, report, say, scratch_database, server_environment

from django.conf import settings  # isort: skip
from django.core.files.storage import default_storage  # isort: skip
from django.db import connection, connections, transaction  # isort: skip
from PIL import Image, ImageDraw  # isort: skip

from annotation import known, media, pictures, presets, sql  # isort: skip
from annotation.models import Item, Membership, Project, Question, Role  # isort: skip
from annotation.questions import create_question  # isort: skip
from annotation.tasks import create_tasks  # isort: skip
from tests import cast as make  # isort: skip

ROOT = Path(__file__).resolve().parent.parent
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # time is moved while every person waits
AT_ONCE = 16  # requests under way
TURNS = 3  # answers of each person between two moves of time
LONGEST_MOVE = timedelta(hours=12)
STEP = timedelta(minutes=4)  # of the day, between two phases in which people work on
PRACTICE, CHECKS = 3, 45
BAD_EACH = 10  # every tenth person answers at random
HOURLY, DAILY, BREAK_AFTER, BREAK = 14, 40, 25, 8
FLOOR, SHARE = 0.6, 0.4
HARMS = ("violence-and-gore", "hateful", "other")


# ---------------------------------------------------------------- the study
@dataclass
class Study:
    """`right`: of each item, the answer that a careful person gives: (choice, tags)."""

    project: Project
    question: Question
    members: list[Membership]
    right: dict[int, tuple[str, list[str]]]
    known: set[int]


def make_study(people: int, tasks: int) -> Study:
    project = make.make_project("crowd", hourly_limit=HOURLY, daily_limit=DAILY, break_after_minutes=BREAK_AFTER, break_minutes=BREAK)
    bob = make.make_member(project, "bob", Role.RESEARCHER)
    question = create_question(project, presets.IMAGE_HARM, bob.user)
    Question.objects.filter(pk=question.pk).update(check_share=SHARE, accuracy_floor=FLOOR)
    total = tasks + PRACTICE + CHECKS
    with ThreadPoolExecutor(4) as pool:
        kept = list(pool.map(_stored, range(total)))
    connections.close_all()
    answers = [_right(number) for number in range(total)]
    items = Item.objects.bulk_create(
        [
            Item(
                project=project, kind="image", external_id=f"p{number}", media=media.keep(picture),
                content_hash=bytes.fromhex(picture.hash), metadata={"sensitive": "no"} if number % 5 == 0 else {},
            )
            for number, picture in enumerate(kept)
        ],
        batch_size=1000,
    )  # fmt: skip
    right = dict(zip((item.pk for item in items), answers, strict=True))
    for some, practice in ((items[:PRACTICE], True), (items[PRACTICE : PRACTICE + CHECKS], False)):
        known.mark_many(question, [known.Answer(item.pk, *right[item.pk]) for item in some], practice=practice, by=bob)
    create_tasks(question)
    members = [make.make_member(project, f"annotator{number}", Role.ANNOTATOR) for number in range(people)]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    question.refresh_from_db()
    return Study(project, question, members, right, {item.pk for item in items[: PRACTICE + CHECKS]})


def _right(number: int) -> tuple[str, list[str]]:
    """One in four shows a mark, which stands for a harm by its colour."""
    return ("harmful", [HARMS[number // 4 % len(HARMS)]]) if number % 4 == 1 else ("safe", [])


def _stored(number: int) -> pictures.Picture:
    """A small landscape that no other number has, cleaned and written as an import would."""
    dice = random.Random(number)
    image = Image.new("RGB", (160, 120), tuple(dice.randint(120, 220) for _ in range(3)))
    pen = ImageDraw.Draw(image)
    pen.polygon([(0, 120), (0, dice.randint(60, 90)), (160, dice.randint(60, 90)), (160, 120)], fill=(60, dice.randint(90, 150), 70))
    pen.ellipse((x := dice.randint(10, 120), 12, x + 24, 36), fill=(250, 220, 90))
    choice, tags = _right(number)
    if choice == "harmful":
        colour = ("red", "purple", "black")[HARMS.index(tags[0])]
        pen.polygon([(70, 100), (90, 100), (80, 80)], fill=colour)
    pen.text((4, 4), str(number), fill="white")
    file = io.BytesIO()
    image.save(file, "PNG")
    picture = pictures.clean(file.getvalue())
    media.store(picture)
    return picture


# ---------------------------------------------------------------- the servers
class Servers:
    """`manage.py serve` with two web processes, in a data folder of its own, on the scratch database."""

    def __init__(self, folder: str, pictures_at: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.environment = server_environment() | {"ASSAY_DATA": folder, "ASSAY_MEDIA": pictures_at, "ASSAY_LOG_LEVEL": "ERROR"}
        self.kills = 0

    def __enter__(self) -> "Servers":
        command = [sys.executable, "manage.py", "serve", "--port", str(self.port), "--workers", "2", "--no-worker"]
        self.process = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                sys.exit("The web server did not start.")
            time.sleep(0.1)
        return self

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill_one(self, dice: random.Random) -> None:
        """SIGKILL to a web process; one time in five to the one above them, and so to all."""
        try:
            (above,) = [one for one in psutil.Process(self.process.pid).children() if "granian" in " ".join(one.cmdline())]
            victim = above if dice.random() < 0.2 else dice.choice(above.children() or [above])
            os.kill(victim.pid, signal.SIGKILL)
        except (ValueError, psutil.Error, ProcessLookupError):
            return  # it is being started again
        self.kills += 1

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()


# ---------------------------------------------------------------- a person
class Unreachable(Exception):
    """The connection broke, or the server is not there yet."""


@dataclass
class Person:
    """One annotator with a kept-alive connection. `answered`: of each item, what was acknowledged last."""

    member: Membership
    cookies: str
    csrf: str
    study: Study
    port: int
    dice: random.Random
    careful: bool
    gate: asyncio.Semaphore
    work: list[dict[str, Any]] = field(default_factory=list)
    stop: dict[str, Any] | None = None
    acknowledged: dict[str, set[int]] = field(default_factory=dict)
    answered: dict[int, tuple[str, list[str]]] = field(default_factory=dict)
    last: tuple[int, int] | None = None  # (vote, item)
    counts: Counter[str] = field(default_factory=Counter)
    took: float = 0.0  # seconds of the last request that was answered
    times: list[float] = field(default_factory=list)  # of each vote's
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None

    # ------------------------------------------------ HTTP
    async def send(self, method: str, path: str, body: dict[str, Any] | str | None = None, *, lose: bool = False) -> tuple[int, bytes]:
        """One request; (status, content). With `lose`, the connection is cut before the response is read. Raises Unreachable."""
        payload = b"" if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        kind = "application/x-www-form-urlencoded" if isinstance(body, str) else "application/json"
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAccept: application/json\r\nCookie: {self.cookies}\r\n"
            f"X-CSRFToken: {self.csrf}\r\nContent-Type: {kind}\r\nContent-Length: {len(payload)}\r\n\r\n"
        )
        try:
            async with self.gate, asyncio.timeout(30):
                began = time.perf_counter()
                if self.reader is None or self.writer is None:
                    self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
                self.writer.write(head.encode() + payload)
                await self.writer.drain()
                if lose:
                    await asyncio.sleep(self.dice.random() * 0.02)
                    raise ConnectionError
                answer = await self.reader.readuntil(b"\r\n\r\n")
                fields = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:] if b": " in line)
                content = await self.reader.readexactly(int(fields.get(b"content-length", 0)))
                self.took = time.perf_counter() - began
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            if self.writer is not None:
                self.writer.close()
            self.reader = self.writer = None
            raise Unreachable from None
        return int(answer.split(b" ", 2)[1]), content

    async def surely(self, method: str, path: str, body: dict[str, Any] | str | None = None) -> tuple[int, bytes]:
        """The same until an answer comes: what a browser does with an answer that could not be sent."""
        for _ in range(60):
            try:
                status, content = await self.send(method, path, body)
            except Unreachable:
                self.counts["resent"] += 1
                await asyncio.sleep(0.2)
                continue
            if status < 500:
                return status, content
            self.counts["failed"] += 1  # a killed process' pool, or a starting one
            await asyncio.sleep(0.2)
        self.counts["errors"] += 1
        return 0, b""

    # ------------------------------------------------ what people do
    @property
    def path(self) -> str:
        return f"/p/{self.study.project.slug}/"

    async def consent(self) -> None:
        warning = await self.surely("GET", f"{self.path}label/image_harm/next/")
        self.take(warning)
        if self.stop and self.stop["code"] == "consent":
            await self.surely("POST", f"{self.path}consent/", "do=agree&read=1&free=1&version=1")
        else:
            self.counts["errors"] += 1

    async def ask(self) -> None:
        self.take(await self.surely("GET", f"{self.path}label/image_harm/next/"))

    def take(self, answer: tuple[int, bytes]) -> dict[str, Any]:
        """Note what is held now, and why nothing is."""
        status, content = answer
        found: dict[str, Any] = json.loads(content) if content[:1] == b"{" else {}
        if status == 200:
            self.work, self.stop = found.get("work", []), found.get("stop")
        elif status not in (404, 409):
            self.counts["errors"] += 1
            say(f"{status} {content[:200]!r}")
        return found

    async def turn(self) -> None:
        """Up to three answers, or until nothing is held."""
        await self.ask()
        for _ in range(TURNS):
            if not self.work:
                return
            await self.answer()

    async def answer(self) -> None:
        work, luck = self.work[0], self.dice.random()
        if luck < 0.5:  # a browser has most pictures in its memory from the look ahead
            status, _ = await self.surely("GET", work["picture"])
            self.counts["pictures" if status == 200 else "late_pictures"] += 1
        if luck < 0.01:
            body = {"token": work["token"], "reason": self.dice.choice(["cannot_judge", "broken", "distressing"]), "question": "image_harm"}
            self.take(await self.surely("POST", f"{self.path}abstain/", body))
            self.counts["abstentions"] += 1
            return
        await self.vote(work, lose=luck > 0.96)
        if self.last and luck > 0.93 and not self.work:
            return
        if self.last and 0.90 < luck < 0.93:
            await self.undo()

    async def vote(self, work: dict[str, Any], *, lose: bool) -> None:
        choice, tags = self.judged(work["item"])
        body = {"token": work["token"], "choice": choice, "tags": tags, "comment": "", "elapsed_ms": 2000, "question": "image_harm"}
        if lose:
            self.counts["lost_responses"] += 1
            with contextlib.suppress(Unreachable):
                await self.send("POST", f"{self.path}vote/", body, lose=True)
        status, content = await self.surely("POST", f"{self.path}vote/", body)
        self.times.append(self.took)
        found = self.take((status, content))
        if status == 200:
            self.acknowledged.setdefault(work["token"], set()).add(found["vote"])
            self.answered[work["item"]] = (choice, tags)
            self.last = (found["vote"], work["item"])
            self.counts["votes"] += 1
            if self.dice.random() < 0.02:  # a double click
                again, content = await self.surely("POST", f"{self.path}vote/", body)
                if again == 200:
                    self.acknowledged[work["token"]].add(self.take((again, content))["vote"])
        else:
            self.counts["refused"] += 1
            await self.ask()

    async def undo(self) -> None:
        """Answer the last one otherwise, while that is allowed."""
        assert self.last is not None
        vote, item = self.last
        choice, tags = self.judged(item)
        status, _ = await self.surely("POST", f"{self.path}votes/{vote}/", {"choice": choice, "tags": tags, "comment": "changed"})
        if status == 200:
            self.answered[item] = (choice, tags)
            self.counts["undone"] += 1
        elif status != 409:
            self.counts["errors"] += 1

    def judged(self, item: int) -> tuple[str, list[str]]:
        """What this person makes of it: a careful one errs one time in twenty, another answers at random."""
        right = self.study.right[item]
        if self.careful and self.dice.random() > 0.05:
            return right
        choice = self.dice.choice(["safe", "harmful", "unsure"])
        return choice, [self.dice.choice(HARMS)] if choice == "harmful" else []


# ---------------------------------------------------------------- time
def move_time(by: timedelta) -> None:
    """Everything that was is so much longer ago. No request is under way."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table, columns in _TIMES.items():
            changes = ", ".join(f"{column} = {column} - %(by)s::interval" for column in columns)
            cursor.execute(f"UPDATE {table} SET {changes}", {"by": str(by)})  # noqa: S608 - our own names


_TIMES = {
    "annotation_exposure": ["at"],
    "annotation_sitting": ["since", "last", "break_until"],
    "annotation_lease": ["leased_at", "expires_at"],
    "annotation_check": ["leased_at", "expires_at", "answered_at"],
    "annotation_pause": ["paused_at"],
}


def until_next(people: list[Person]) -> timedelta:
    """As far as the first of those who wait may go on; a few minutes while anyone can work now."""
    waiting = [datetime.fromisoformat(person.stop["until"]) for person in people if person.stop and person.stop.get("until")]
    if any(person.work for person in people) or not waiting:
        return STEP
    return max(STEP, min(LONGEST_MOVE, min(waiting) - datetime.now(min(waiting).tzinfo) + timedelta(minutes=1)))


# ---------------------------------------------------------------- the run
async def drive(people: list[Person], servers: Servers, arguments: argparse.Namespace) -> dict[str, Any]:
    dice, began = random.Random(11), time.monotonic()
    end, passed, working = began + arguments.seconds, timedelta(0), 0.0
    await asyncio.gather(*(person.consent() for person in people))
    kills_at = [began + arguments.seconds * 0.7 * dice.random() for _ in range(arguments.kills)]
    phases = idle = 0
    while time.monotonic() < end and idle < 4:
        before, began_phase = sum(person.counts["votes"] for person in people), time.monotonic()
        killing = asyncio.create_task(_kill_when_due(servers, dice, kills_at))
        await asyncio.gather(*(person.turn() for person in people))
        killing.cancel()
        working += time.monotonic() - began_phase
        phases += 1
        idle = 0 if sum(person.counts["votes"] for person in people) > before else idle + 1
        step = until_next(people)
        move_time(step)
        passed += step
        if phases % 10 == 0:
            say(f"{sum(person.counts['votes'] for person in people):,} answers, {passed} passed, {servers.kills} kills")
    for _ in range(arguments.kills - servers.kills):  # the crowd was faster than the dice
        servers.kill_one(dice)
        await asyncio.sleep(0.5)
        await asyncio.gather(*(person.ask() for person in people[:20]))
    return {"hours": passed.total_seconds() / 3600, "working": working}


async def _kill_when_due(servers: Servers, dice: random.Random, kills_at: list[float]) -> None:
    while True:
        await asyncio.sleep(0.05)
        for due in [due for due in kills_at if due <= time.monotonic()]:
            kills_at.remove(due)
            servers.kill_one(dice)


# ---------------------------------------------------------------- what the tables say
def check(study: Study, people: list[Person]) -> dict[str, int]:
    """What must be zero, and how far it came."""
    number = {name: sql.the(statement, question=study.question.pk, hourly=HOURLY, daily=DAILY)["n"] for name, statement in _COUNTS.items()}
    stored = {row["token"]: row["number"] for row in sql.rows(_STORED)}
    acknowledged = [(uuid.UUID(token), votes) for person in people for token, votes in person.acknowledged.items()]
    return {
        "overassigned": number["too_many"] + number["miscounted"],
        "lost": sum(stored.get(token) not in votes for token, votes in acknowledged),
        "duplicates": number["twice"] + sum(len(votes) > 1 for _, votes in acknowledged),
        "budget_breaches": number["hourly"] + number["daily"] + _without_break(),
        "gold_wrong": _gold_wrong(study, people),
        "errors": sum(person.counts["errors"] for person in people),
        "settled": number["settled"], "disputed": number["disputed"], "votes": number["votes"], "checks": number["checks"],
        "paused": number["paused"], "stuck": number["stuck"],
    }  # fmt: skip


_STORED = """
    SELECT token, id AS number FROM annotation_vote UNION ALL SELECT token, number FROM annotation_check WHERE choice_id IS NOT NULL
"""
_COUNTS = {
    "too_many": """
        SELECT count(*) AS n FROM (
            SELECT FROM annotation_vote AS vote JOIN annotation_task AS task ON task.id = vote.task_id
            GROUP BY task.id, vote.round HAVING count(*) > task.votes_required
        ) AS over
    """,
    "miscounted": """
        SELECT count(*) AS n FROM annotation_task AS task
        WHERE vote_count <> (SELECT count(*) FROM annotation_vote WHERE task_id = task.id AND round = task.round)
           OR lease_count <> (SELECT count(*) FROM annotation_lease WHERE task_id = task.id AND kind = 'vote' AND NOT lapsed)
    """,
    "twice": "SELECT count(*) AS n FROM (SELECT 1 FROM annotation_vote GROUP BY task_id, round, member_id HAVING count(*) > 1) AS twice",
    "hourly": """
        SELECT count(*) AS n FROM (
            SELECT count(*) OVER (PARTITION BY member_id ORDER BY at RANGE BETWEEN '1 hour' PRECEDING AND CURRENT ROW) AS seen
            FROM annotation_exposure
        ) AS rolling WHERE seen > %(hourly)s
    """,
    "daily": """
        SELECT count(*) AS n FROM (
            SELECT count(*) OVER (PARTITION BY member_id ORDER BY at RANGE BETWEEN '24 hours' PRECEDING AND CURRENT ROW) AS seen
            FROM annotation_exposure
        ) AS rolling WHERE seen > %(daily)s
    """,
    "settled": "SELECT count(*) AS n FROM annotation_task WHERE question_id = %(question)s AND state = 'agreed'",
    "disputed": "SELECT count(*) AS n FROM annotation_task WHERE question_id = %(question)s AND state = 'disputed'",
    "stuck": "SELECT count(*) AS n FROM annotation_task WHERE state = 'open' AND vote_count >= votes_required",
    "votes": "SELECT count(*) AS n FROM annotation_vote",
    "checks": "SELECT count(*) AS n FROM annotation_check WHERE choice_id IS NOT NULL AND NOT practice",
    "paused": "SELECT count(*) AS n FROM annotation_pause",
}
# Handed out on end, never resting as long as a break, for longer than the time after which one is due. The gate writes
# down only every 15 seconds that somebody is here, so a rest may be that much shorter.
_SITTINGS = """
    SELECT count(*) AS n FROM (
        SELECT max(at) - min(at) AS length FROM (
            SELECT member_id, at, count(*) FILTER (WHERE rested) OVER (PARTITION BY member_id ORDER BY at) AS sitting FROM (
                SELECT member_id, at, at - lag(at) OVER (PARTITION BY member_id ORDER BY at) > %(rest)s::interval AS rested
                FROM annotation_exposure
            ) AS gaps
        ) AS numbered GROUP BY member_id, sitting
    ) AS sittings WHERE length > %(most)s::interval
"""


def _without_break() -> int:
    rest, most = timedelta(minutes=BREAK, seconds=-15), timedelta(minutes=BREAK_AFTER)
    found: int = sql.the(_SITTINGS, rest=rest, most=most)["n"]
    return found


def _gold_wrong(study: Study, people: list[Person]) -> int:
    """People whose checks are judged otherwise than their own answers are, or who are paused, or not, against the rule."""
    rows = sql.rows(
        """
        SELECT checked.member_id, task.item_id, checked.correct, checked.practice
        FROM annotation_check AS checked JOIN annotation_knownanswer AS known ON known.id = checked.known_id
        JOIN annotation_task AS task ON task.id = known.task_id WHERE checked.choice_id IS NOT NULL
        """
    )
    paused = {row["member_id"] for row in sql.rows("SELECT member_id FROM annotation_pause WHERE lifted_at IS NULL")}
    wrong = 0
    for person in people:
        own = [row for row in rows if row["member_id"] == person.member.pk]
        judged = {row["item_id"]: row["correct"] for row in own}
        mine = {item: answer == study.right[item] for item, answer in person.answered.items() if item in study.known}
        given = [row["correct"] for row in own if not row["practice"]]
        should = len(given) >= 20 and sum(given) / len(given) < FLOOR
        wrong += judged != mine or should != (person.member.pk in paused)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=5000)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=230, help="of labelling, at most")
    parser.add_argument("--floor-seconds", type=float, default=5)
    arguments = parser.parse_args()
    if settings.EMBEDDED is not None:
        settings.EMBEDDED.ensure_redis()
    with tempfile.TemporaryDirectory(prefix="assay-crowd-") as folder, scratch_database(f"crowd_{os.getpid()}"):
        Path(folder).chmod(0o755)  # the servers' own user passes through
        default_storage._wrapped = media.Folder(location=f"{folder}/media")  # type: ignore[attr-defined]
        say("drawing the pictures")
        study = make_study(arguments.people, arguments.tasks)
        signed_in = sign_in(study.members)
        with Servers(f"{folder}/data", f"{folder}/media") as servers:
            people, measured = asyncio.run(_crowd(study, signed_in, servers, arguments))
        found = check(study, people)
        bottom = floor(study.members[:AT_ONCE], "floor", arguments.floor_seconds, kind="image") if arguments.floor_seconds else None
    times = [1000 * seconds for person in people for seconds in person.times]
    counts = sum((person.counts for person in people), Counter())
    loops = len(times) / measured["working"]
    report(
        benchmark="crowd", people=arguments.people, tasks=arguments.tasks, **found, kills=servers.kills,
        hours_passed=round(measured["hours"], 1), **{name: counts[name] for name in _DONE},
        loops_per_s=round(loops, 1), floor_loops_per_s=bottom and round(bottom, 1), ratio=bottom and round(loops / bottom, 3),
        p50_ms=round(percentile(times, 0.5), 1), p95_ms=round(percentile(times, 0.95), 1),
        floor_ms=bottom and round(1000 * AT_ONCE / bottom, 1),
    )  # fmt: skip


_DONE = ("pictures", "abstentions", "undone", "lost_responses", "resent", "refused")


async def _crowd(
    study: Study, signed_in: list[Any], servers: Servers, arguments: argparse.Namespace
) -> tuple[list[Person], dict[str, Any]]:
    gate = asyncio.Semaphore(AT_ONCE)
    people = [
        Person(one.member, one.cookies, one.csrf, study, servers.port, random.Random(number), number % BAD_EACH != BAD_EACH - 1, gate)
        for number, one in enumerate(signed_in)
    ]
    return people, await drive(people, servers, arguments)


if __name__ == "__main__":
    main()
