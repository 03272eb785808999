"""The annotation loop: 32 signed-in people label text over HTTP, beside bare psycopg doing the same transactions.

    python -m benchmarks.annotation_loop --annotators 32 --tasks 10000

One loop is one answer: the vote goes out, the response brings the next task. The server is the real one (`serve`'s web
server, 2 processes), the database real, fsync on. Throughput is measured closed-loop, latency at an open rate of 16 votes
a second (32 people at two seconds each). The floor runs in the same process count on the same database just before and just
after: vote, settle and next lease, one transaction, prepared statements, no HTTP.
"""

import argparse
import asyncio
import json
import random
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import psutil
import psycopg

from benchmarks.common import conninfo, median, percentile, report, say, scratch_database, server_environment

from django.conf import settings  # isort: skip
from django.db import connection  # isort: skip
from django.test import Client  # isort: skip

from annotation.models import Item, Membership, Question, Role, Vote  # isort: skip
from annotation.items import text_hash  # isort: skip
from annotation.tasks import create_tasks  # isort: skip
from tests import cast as make  # isort: skip
from workers.serving import web  # isort: skip

PORT = 8399
WORDS = "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one".split()


# ---------------------------------------------------------------- the study
def make_study(annotators: int, tasks: int) -> tuple[Question, list[Membership]]:
    dice = random.Random(5)
    project = make.make_project("loop")
    question = make.make_question(project)
    texts = [f"{number} " + " ".join(dice.choices(WORDS, k=dice.randint(8, 30))) for number in range(tasks)]
    Item.objects.bulk_create(
        [Item(project=project, kind="text", external_id=str(number), text=text, content_hash=text_hash(text)) for number, text in enumerate(texts)],
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
_FLOOR_TABLES = """
    DROP TABLE IF EXISTS floor_task, floor_vote, floor_lease, floor_truth;
    CREATE TABLE floor_task (id bigserial PRIMARY KEY, text text, state text DEFAULT 'open', votes int DEFAULT 0, held int DEFAULT 0);
    CREATE TABLE floor_vote (id bigserial PRIMARY KEY, task_id bigint REFERENCES floor_task, person int, choice text, token uuid UNIQUE, UNIQUE (task_id, person));
    CREATE TABLE floor_lease (token uuid PRIMARY KEY, task_id bigint REFERENCES floor_task, person int, expires_at timestamptz, UNIQUE (task_id, person));
    CREATE TABLE floor_truth (task_id bigint PRIMARY KEY REFERENCES floor_task, choice text);
    CREATE INDEX floor_open ON floor_task (votes DESC, id) WHERE state = 'open' AND votes + held < 3;
    INSERT INTO floor_task (text) SELECT text FROM annotation_item;
    ANALYZE floor_task;
"""
_FLOOR_NEXT = """
    WITH chosen AS (
        SELECT id FROM floor_task WHERE state = 'open' AND votes + held < 3
          AND NOT EXISTS (SELECT FROM floor_vote v WHERE v.task_id = floor_task.id AND v.person = %(person)s)
          AND NOT EXISTS (SELECT FROM floor_lease l WHERE l.task_id = floor_task.id AND l.person = %(person)s)
        ORDER BY votes DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED
    ), held AS (UPDATE floor_task SET held = held + 1 FROM chosen WHERE floor_task.id = chosen.id RETURNING floor_task.id, text)
    INSERT INTO floor_lease SELECT %(token)s, id, %(person)s, now() + interval '15 minutes' FROM held RETURNING task_id, (SELECT text FROM held)
"""
_FLOOR_VOTE = """
    WITH gone AS (DELETE FROM floor_lease WHERE token = %(token)s),
    vote AS (INSERT INTO floor_vote (task_id, person, choice, token) VALUES (%(task)s, %(person)s, %(choice)s, %(token)s))
    UPDATE floor_task SET votes = votes + 1, held = held - 1 WHERE id = %(task)s RETURNING votes
"""
_FLOOR_SETTLE = """
    WITH tally AS (SELECT count(DISTINCT choice) AS choices, min(choice) AS choice FROM floor_vote WHERE task_id = %(task)s),
    task AS (UPDATE floor_task SET state = CASE WHEN tally.choices = 1 THEN 'agreed' ELSE 'disputed' END FROM tally WHERE id = %(task)s)
    INSERT INTO floor_truth SELECT %(task)s, choice FROM tally WHERE choices = 1
"""


def floor(people: int, seconds: float) -> float:
    """The same transactions by bare psycopg: `people` connections on threads of this process; returns loops per second."""
    with psycopg.connect(**conninfo(), autocommit=True) as connection_:
        connection_.execute(_FLOOR_TABLES)
    loops, until, dice = [0] * people, time.perf_counter() + seconds, random.Random(3)

    def work(person: int) -> None:
        with psycopg.connect(**conninfo(), prepare_threshold=1) as own:
            token = uuid.uuid4()
            task = own.execute(_FLOOR_NEXT, {"person": person, "token": token}).fetchone()
            own.commit()
            while task and time.perf_counter() < until:
                choice = "yes" if task[0] % 5 else dice.choice(["yes", "no"])
                following = uuid.uuid4()
                with own.transaction():
                    row = own.execute(_FLOOR_VOTE, {"task": task[0], "person": person, "choice": choice, "token": token}).fetchone()
                    if row and row[0] == 3:
                        own.execute(_FLOOR_SETTLE, {"task": task[0]})
                    task = own.execute(_FLOOR_NEXT, {"person": person, "token": following}).fetchone()
                token = following
                loops[person] += 1

    began = time.perf_counter()
    threads = [threading.Thread(target=work, args=(person,)) for person in range(people)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(loops) / (time.perf_counter() - began)


# ---------------------------------------------------------------- the run
class Server:
    """The web server that `serve` runs, on the scratch database."""

    def __enter__(self) -> "Server":
        self.process = subprocess.Popen(web("127.0.0.1", PORT, 2).command, env=server_environment())  # noqa: S603
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

    def cpu_seconds(self) -> float:
        """CPU used so far by the web processes and by every PostgreSQL process of this server."""
        own = psutil.Process(self.process.pid)
        with psycopg.connect(**conninfo(), autocommit=True) as asking:
            backend = psutil.Process(asking.info.backend_pid)
            postmaster = backend.parent()
            assert postmaster is not None
            processes = [own, *own.children(recursive=True), postmaster, *postmaster.children()]
            return sum(sum(process.cpu_times()[:2]) for process in processes if process.pid != backend.pid)


def check(people: list[Person]) -> dict[str, int]:
    """What must be zero, read off the tables."""
    votes = dict(Vote.objects.values_list("pk", "token"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM (SELECT task_id FROM annotation_vote GROUP BY task_id HAVING count(*) > 3) AS over")
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
    rates, cpu = [], []
    for _ in range(arguments.repeats):
        before, answered = server.cpu_seconds(), sum(len(person.acknowledged) for person in people)
        rates.append(await closed_loop(people, arguments.seconds))
        loops = sum(len(person.acknowledged) for person in people) - answered
        cpu.append((server.cpu_seconds() - before) / loops * 1000)
        say(f"closed loop: {rates[-1]:.0f} loops/s, {cpu[-1]:.2f} ms CPU a loop")
    latency = await open_rate(people, 16, arguments.open_seconds)
    return {"rates": rates, "cpu": cpu, "latency": latency}


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
        floors = [floor(arguments.annotators, arguments.seconds)]
        say(f"floor: {floors[-1]:.0f} loops/s")
        people = sign_in(members)
        with Server() as server:
            measured = asyncio.run(drive(people, server, arguments))
        found = check(people)
        floors.append(floor(arguments.annotators, arguments.seconds))
        say(f"floor: {floors[-1]:.0f} loops/s")
    loops, bottom = median(measured["rates"]), median(floors)
    latency = [seconds * 1000 for seconds in measured["latency"]]
    report(
        benchmark="annotation_loop", annotators=arguments.annotators, tasks=arguments.tasks,
        loops_per_s=round(loops, 1), floor_loops_per_s=round(bottom, 1), ratio=round(loops / bottom, 3),
        p50_ms=round(percentile(latency, 0.50), 1), p95_ms=round(percentile(latency, 0.95), 1), p99_ms=round(percentile(latency, 0.99), 1),
        cpu_ms_per_loop=round(median(measured["cpu"]), 2), **found,
    )  # fmt: skip


if __name__ == "__main__":
    main()
