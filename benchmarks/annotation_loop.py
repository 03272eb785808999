"""The annotation loop: 32 signed-in people label text over HTTP, beside bare psycopg doing the same transactions.

    python -m benchmarks.annotation_loop --annotators 32 --tasks 10000

One loop is one answer: the vote goes out, the response brings the next task. The server is the real one (`serve`'s web
server, 2 processes), the database real, fsync on. Throughput is measured closed-loop, latency at an open rate of 16 votes
a second (32 people at two seconds each). The floor is bare psycopg on the same tables, just before and just after: 32
connections, vote, settle and next lease in one transaction, prepared statements, no HTTP, no Django. Limits and breaks are off: they
would stop a person who labels all day in seconds.
"""

import argparse
import asyncio
import json
import random
import subprocess
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psutil
import psycopg

from benchmarks.common import conninfo, median, percentile, report, say, scratch_database, server_environment

from django.conf import settings  # isort: skip
from django.db import connection  # isort: skip
from django.test import Client  # isort: skip

from annotation.models import Item, Kind, Membership, Question, Role, Vote  # isort: skip
from annotation.items import text_hash  # isort: skip
from annotation.tasks import create_tasks  # isort: skip
from tests import cast as make  # isort: skip
from workers.serving import web  # isort: skip

PORT = 8399
WORDS = ["the", "of", "and", "a", "in", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not", "his", "but", "at", "are"]


# ---------------------------------------------------------------- the study
def make_study(annotators: int, tasks: int) -> tuple[Question, list[Membership]]:
    dice = random.Random(5)
    project = make.make_project("loop", hourly_limit=None, daily_limit=None, break_after_minutes=None)
    question = make.make_question(project)
    texts = [f"{number} " + " ".join(dice.choices(WORDS, k=dice.randint(8, 30))) for number in range(tasks)]
    Item.objects.bulk_create(
        [
            Item(project=project, kind="text", external_id=str(number), text=text, content_hash=text_hash(text))
            for number, text in enumerate(texts)
        ],
        batch_size=5000,
    )
    create_tasks(question)
    members = [make.make_member(project, f"annotator{number}", Role.ANNOTATOR) for number in range(annotators)]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return question, members


# ---------------------------------------------------------------- people over HTTP
@dataclass
class Person:
    """One signed-in annotator with a kept-alive connection. `acknowledged` is what the server confirmed: token -> vote id."""

    member: Membership
    cookies: str
    csrf: str
    path: str
    work: list[dict[str, Any]] = field(default_factory=list)
    acknowledged: dict[str, int] = field(default_factory=dict)
    errors: int = 0
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None

    async def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        if self.reader is None or self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", PORT)
        payload = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nAccept: application/json\r\nCookie: {self.cookies}\r\n"
            f"X-CSRFToken: {self.csrf}\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
        )
        self.writer.write(head.encode() + payload)
        answer = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        at = answer.index(b"content-length:") + 15
        content = await self.reader.readexactly(int(answer[at : answer.index(b"\r", at)]))
        if not answer.startswith(b"http/1.1 200"):
            self.errors += 1
            say(f"{method} {path}: {answer[:30]!r} {content[:200]!r}")
            return None
        return json.loads(content)

    async def fetch(self) -> None:
        answer = await self.request("GET", f"{self.path}label/toxicity/next/")
        self.work = answer["work"] if answer else []

    async def vote(self) -> float:
        """Send one answer; returns the seconds until what comes next was here."""
        token, choice = self.work[0]["token"], "yes" if int(self.work[0]["task"]) % 5 else random.choice(["yes", "no"])
        began = time.perf_counter()
        body = {"token": token, "choice": choice, "tags": [], "comment": "", "elapsed_ms": 2000}
        answer = await self.request("POST", f"{self.path}vote/", body)
        took = time.perf_counter() - began
        if answer:
            self.acknowledged[token] = answer["vote"]
            self.work = answer["work"]
        return took


def sign_in(members: list[Membership]) -> list[Person]:
    people = []
    for member in members:
        client = Client()
        assert member.user is not None
        client.force_login(member.user)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        csrf = "a" * 32
        cookies = f"{settings.SESSION_COOKIE_NAME}={session}; {settings.CSRF_COOKIE_NAME}={csrf}"
        people.append(Person(member, cookies, csrf, f"/p/{member.project.slug}/"))
    return people


async def closed_loop(people: list[Person], seconds: float) -> float:
    """Everyone answers as fast as the server does; returns loops per second."""
    until, loops = time.perf_counter() + seconds, 0
    began = time.perf_counter()

    async def work(person: Person) -> None:
        nonlocal loops
        while time.perf_counter() < until and person.work:
            await person.vote()
            loops += 1

    await asyncio.gather(*(work(person) for person in people))
    return loops / (time.perf_counter() - began)


async def open_rate(people: list[Person], rate: float, seconds: float) -> list[float]:
    """Votes arrive at a fixed rate, whoever's turn it is, answered or not; returns each one's seconds."""
    began = time.perf_counter()
    waiting = []
    for number in range(int(rate * seconds)):
        due = began + number / rate
        await asyncio.sleep(max(0, due - time.perf_counter()))
        person = people[number % len(people)]
        if person.work:
            waiting.append(asyncio.create_task(person.vote()))
    return list(await asyncio.gather(*waiting))


# ---------------------------------------------------------------- the floor
# The least that keeps two people off one slot, on the very tables that Assay uses: no marks, no lease ahead, no late votes.
_FLOOR_NEXT = """
    WITH chosen AS (
        SELECT id FROM annotation_task AS task
        WHERE question_id = %(question)s AND state = 'open' AND queued_at IS NULL AND vote_count < votes_required - lease_count
          AND NOT EXISTS (SELECT FROM annotation_vote WHERE task_id = task.id AND round = 1 AND member_id = %(member)s)
          AND NOT EXISTS (SELECT FROM annotation_lease WHERE task_id = task.id AND member_id = %(member)s AND NOT lapsed)
        ORDER BY rank, id LIMIT 1 FOR UPDATE SKIP LOCKED
    ), held AS (
        UPDATE annotation_task AS task SET lease_count = lease_count + 1 FROM chosen WHERE task.id = chosen.id
        RETURNING task.id, task.item_id
    ), lease AS (
        INSERT INTO annotation_lease (task_id, question_id, member_id, kind, round, guideline_id, token, leased_at, expires_at, lapsed)
        SELECT id, %(question)s, %(member)s, 'vote', 1, %(guideline)s, %(token)s, now(), now() + interval '15 minutes', false FROM held
    )
    SELECT held.id, item.text FROM held JOIN annotation_item AS item ON item.id = held.item_id
"""
_FLOOR_VOTE = """
    WITH gone AS (DELETE FROM annotation_lease WHERE token = %(token)s),
    vote AS (
        INSERT INTO annotation_vote (task_id, question_id, member_id, round, choice_id, tags, comment, guideline_id, token, created_at)
        VALUES (%(task)s, %(question)s, %(member)s, 1, %(choice)s, '{}', '', %(guideline)s, %(token)s, now())
    )
    UPDATE annotation_task SET vote_count = vote_count + 1, lease_count = lease_count - 1 WHERE id = %(task)s RETURNING vote_count
"""
_FLOOR_SETTLE = """
    WITH tally AS (
        SELECT count(DISTINCT choice_id) AS choices, min(choice_id) AS choice FROM annotation_vote WHERE task_id = %(task)s
    ), task AS (
        UPDATE annotation_task SET state = CASE WHEN tally.choices = 1 THEN 'agreed' ELSE 'disputed' END, settled_at = now()
        FROM tally WHERE id = %(task)s RETURNING item_id
    )
    INSERT INTO annotation_groundtruth
        (task_id, question_id, item_id, round, choice_id, tags, tags_unsettled, source, created_at)
    SELECT %(task)s, %(question)s, task.item_id, 1, tally.choice, '{}', false, 'unanimous', now() FROM tally, task WHERE choices = 1
"""


def floor(members: list[Membership], slug: str, seconds: float, *, kind: str = Kind.TEXT) -> float:
    """The same transactions by bare psycopg, a connection and a thread a person, on a question of their own; loops per second."""
    question = make.make_question(members[0].project, slug, kind=kind)
    create_tasks(question)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE annotation_task")
    yes, no = question.choices.values_list("pk", flat=True)
    guideline = question.guidelines.get().pk
    loops, until, dice = [0] * len(members), time.perf_counter() + seconds, random.Random(3)

    def work(place: int) -> None:
        own = {"question": question.pk, "member": members[place].pk, "guideline": guideline}
        with psycopg.connect(**conninfo(), prepare_threshold=1, options="-c plan_cache_mode=force_generic_plan") as bare:
            token = uuid.uuid4()
            task = bare.execute(_FLOOR_NEXT, {**own, "token": token}).fetchone()
            bare.commit()
            while task and time.perf_counter() < until:
                choice, following = yes if task[0] % 5 else dice.choice([yes, no]), uuid.uuid4()
                with bare.transaction():
                    row = bare.execute(_FLOOR_VOTE, {**own, "task": task[0], "choice": choice, "token": token}).fetchone()
                    if row and row[0] == question.votes_required:
                        bare.execute(_FLOOR_SETTLE, {**own, "task": task[0]})
                    task = bare.execute(_FLOOR_NEXT, {**own, "token": following}).fetchone()
                token = following
                loops[place] += 1

    began = time.perf_counter()
    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(members))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(loops) / (time.perf_counter() - began)


# ---------------------------------------------------------------- the run
class Server:
    """The web server that `serve` runs, on the scratch database."""

    def __enter__(self) -> "Server":
        self.process = subprocess.Popen(web("127.0.0.1", PORT, 2).command, env=server_environment())
        for _ in range(200):
            try:
                asyncio.run(self._answers())
            except OSError:
                time.sleep(0.1)
            else:
                break
        return self

    async def _answers(self) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", PORT)
        writer.close()

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(20)

    def cpu_seconds(self) -> tuple[float, float]:
        """CPU used so far by the web processes, and by every PostgreSQL process of this server."""
        own = psutil.Process(self.process.pid)
        with psycopg.connect(**conninfo(), autocommit=True) as asking:
            backend = psutil.Process(asking.info.backend_pid)
            postmaster = backend.parent()
            assert postmaster is not None
            others = [process for process in postmaster.children() if process.pid != backend.pid]
            return _cpu_of([own, *own.children(recursive=True)]), _cpu_of([postmaster, *others])


def _cpu_of(processes: Sequence[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def check(people: list[Person]) -> dict[str, int]:
    """What must be zero, read off the tables."""
    votes = dict(Vote.objects.values_list("pk", "token"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM (SELECT FROM annotation_vote GROUP BY task_id HAVING count(*) > 3) AS over")
        (overassigned,) = cursor.fetchone()
        cursor.execute("SELECT count(*) FROM (SELECT 1 FROM annotation_vote GROUP BY task_id, member_id HAVING count(*) > 1) AS twice")
        (duplicates,) = cursor.fetchone()
    acknowledged = [(token, vote) for person in people for token, vote in person.acknowledged.items()]
    return {
        "overassigned": overassigned,
        "duplicates": duplicates,
        "lost": sum(str(votes.get(vote)) != token for token, vote in acknowledged),
        "errors": sum(person.errors for person in people),
    }


async def drive(people: list[Person], server: Server, arguments: argparse.Namespace) -> dict[str, Any]:
    await asyncio.gather(*(person.fetch() for person in people))
    await closed_loop(people, 3)  # warm
    rates, web_cpu, database_cpu = [], [], []
    for _ in range(arguments.repeats):
        web_before, database_before = server.cpu_seconds()
        answered = sum(len(person.acknowledged) for person in people)
        rates.append(await closed_loop(people, arguments.seconds))
        loops = sum(len(person.acknowledged) for person in people) - answered
        web_after, database_after = server.cpu_seconds()
        web_cpu.append((web_after - web_before) / loops * 1000)
        database_cpu.append((database_after - database_before) / loops * 1000)
        say(f"closed loop: {rates[-1]:.0f} loops/s, CPU a loop {web_cpu[-1]:.2f} ms web, {database_cpu[-1]:.2f} ms database")
    latency = await open_rate(people, 16, arguments.open_seconds)
    return {"rates": rates, "web_cpu": web_cpu, "database_cpu": database_cpu, "latency": latency}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotators", type=int, default=32)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=8, help="of each closed-loop round")
    parser.add_argument("--open-seconds", type=float, default=30, help="of the open-rate round")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    if settings.EMBEDDED is not None:
        settings.EMBEDDED.ensure_redis()
    with scratch_database("loop"):
        say("making the study")
        _, members = make_study(arguments.annotators, arguments.tasks)
        floors = [floor(members, "floor-before", arguments.seconds)]
        say(f"floor: {floors[-1]:.0f} loops/s")
        people = sign_in(members)
        with Server() as server:
            measured = asyncio.run(drive(people, server, arguments))
        found = check(people)
        floors.append(floor(members, "floor-after", arguments.seconds))
        say(f"floor: {floors[-1]:.0f} loops/s")
    loops, bottom = median(measured["rates"]), median(floors)
    latency = [seconds * 1000 for seconds in measured["latency"]]
    report(
        benchmark="annotation_loop", annotators=arguments.annotators, tasks=arguments.tasks,
        loops_per_s=round(loops, 1), floor_loops_per_s=round(bottom, 1), ratio=round(loops / bottom, 3),
        p50_ms=round(percentile(latency, 0.50), 1), p95_ms=round(percentile(latency, 0.95), 1), p99_ms=round(percentile(latency, 0.99), 1),
        cpu_ms_per_loop=round(median(measured["web_cpu"]) + median(measured["database_cpu"]), 2),
        web_cpu_ms=round(median(measured["web_cpu"]), 2), database_cpu_ms=round(median(measured["database_cpu"]), 2), **found,
    )  # fmt: skip


if __name__ == "__main__":
    main()
