"""How many votes a question still takes, how that went down, and when it will be done.

The line is drawn from what was written down as it happened: each vote takes one off when it was cast; tasks that were made,
opened for another round or freed by a voided vote put theirs on when that was done; a task that was retired, or that
abstentions sent to the adjudicator, takes off what it lacked. It is counted backwards from what is left now.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import pghistory.core
from django.utils import timezone

from annotation import gate, sql, steering
from annotation.models import Membership, Question, Role, Task
from annotation.steering import Needed, Stranded
from curation.overview import kept

Ints = npt.NDArray[np.int64]
MINUTE, QUARTER, HOUR, DAY = timedelta(minutes=1), timedelta(minutes=15), timedelta(hours=1), timedelta(days=1)
# Work that began so long ago is drawn by this; what is older, by the day.
SPANS = ((2 * HOUR, MINUTE), (DAY, QUARTER), (3 * DAY, HOUR))
BACK = timedelta(days=14)  # as much of the past as the forecast goes by
QUIET = timedelta(days=7)
LEAST_VOTES, LEAST_HOURS = 20, 3
LEAST_DAYS = 3  # from then on whole days are drawn: nights and pauses come with them
DRAWS, SEED = 1000, 20261120
FARTHEST = 366  # days
AT_WORK = timedelta(minutes=15)


@dataclass(frozen=True)
class Point:
    """Votes left at the end of the span that begins at `at`, and votes cast in it."""

    at: datetime
    left: int
    votes: int


@dataclass(frozen=True)
class Forecast:
    """When the last vote will be in: the median, and the ends of a 95% interval. None where it is undefined, `reason` then says why.

    `votes` and `hours`: what it rests on; `by` names what was drawn: "hours" or "days".
    """

    at: datetime | None
    low: datetime | None
    high: datetime | None
    reason: str = ""
    votes: int = 0
    hours: int = 0
    by: str = ""

    @property
    def pace(self) -> float | None:
        """Votes a day over the hours it rests on, nights and pauses included."""
        return 24 * self.votes / self.hours if self.hours else None


@dataclass(frozen=True)
class AtWork:
    """Somebody who answered lately. `pseudonym` as in exports; `votes` in the last hour; `last` when they last answered."""

    number: int
    votes: int
    last: datetime

    @property
    def pseudonym(self) -> str:
        return f"Annotator {self.number}"


@dataclass(frozen=True)
class Standing:
    """All of it, as of `at`. `held_up`: how many people each reason keeps from working; `free`: how many none keeps."""

    at: datetime
    needed: Needed
    span: timedelta
    points: list[Point]
    forecast: Forecast
    at_work: list[AtWork]
    held_up: dict[str, int]
    free: int
    stranded: Stranded


def standing(question: Question) -> Standing:
    """How far the question is, and when it will be done. The line is a minute old at most, where it is slow to count."""
    at, span, points, ahead = kept(f"standing:{question.pk}:{question.active}", lambda: _line(question))
    held_up, free = _held_up(question)
    stranded = kept(f"stranded:{question.pk}", lambda: steering.stranded(question))
    return Standing(at, steering.needed(question), span, points, ahead, _at_work(question), held_up, free, stranded)


def _line(question: Question) -> tuple[datetime, timedelta, list[Point], Forecast]:
    now, left = timezone.now(), steering.needed(question).open_votes
    deltas, cast = _history(question, HOUR)
    span = _span(now, deltas, cast)
    drawn = _history(question, span) if span < HOUR else (deltas, cast)
    return now, span, _points(now, left, span, *drawn), _forecast(question, now, left, cast)


def _span(now: datetime, deltas: dict[datetime, int], cast: dict[datetime, int]) -> timedelta:
    """How finely the line is drawn: the sooner after the first vote, the finer. Before it, as old as the tasks are."""
    began = min(cast, default=None) or min(deltas, default=now)
    return next((span for age, span in SPANS if now - began <= age and (cast or span >= HOUR)), DAY)


# ---------------------------------------------------------------- the past
def _history(question: Question, span: timedelta) -> tuple[dict[datetime, int], dict[datetime, int]]:
    """(change of the votes left, votes cast), by the span in which it happened."""
    raters = list(Membership.objects.filter(project_id=question.project_id, role=Role.RATER).values_list("pk", flat=True))
    found = sql.rows(_HISTORY, question=question.pk, raters=raters, span=span)
    return {row["since"]: row["delta"] for row in found}, {row["since"]: row["votes"] for row in found if row["votes"]}


# Later rounds begin at the first event of each: what they had before was settled or withdrawn. A vote that came in a file was
# there when its task was made, whenever it was cast, and nobody here worked for it.
_TASK_EVENTS = pghistory.core.event_models(tracks_model=Task)[0]._meta.db_table
_HISTORY = f"""
    WITH happened AS (
        SELECT created_at AS at, -1 AS delta, 1 AS votes FROM annotation_vote
        WHERE question_id = %(question)s AND member_id <> ALL(%(raters)s)
        UNION ALL
        SELECT task.created_at, -1, 0 FROM annotation_vote AS vote JOIN annotation_task AS task ON task.id = vote.task_id
        WHERE vote.question_id = %(question)s AND vote.member_id = ANY(%(raters)s)
        UNION ALL
        SELECT created_at, -1, 1 FROM annotation_voidedvote WHERE question_id = %(question)s
        UNION ALL
        SELECT voided_at, 1, 0 FROM annotation_voidedvote WHERE question_id = %(question)s
        UNION ALL
        SELECT created_at, votes_required, 0 FROM annotation_task WHERE question_id = %(question)s
        UNION ALL
        SELECT settled_at, vote_count - votes_required, 0 FROM annotation_task
        WHERE question_id = %(question)s AND state IN ('disputed', 'adjudicated') AND vote_count < votes_required
        UNION ALL
        SELECT event.pgh_created_at, event.vote_count - event.votes_required, 0
        FROM {_TASK_EVENTS} AS event JOIN annotation_task AS task ON task.id = event.pgh_obj_id
        WHERE task.question_id = %(question)s AND event.state = 'retired'
        UNION ALL
        (SELECT DISTINCT ON (event.pgh_obj_id, event.round) event.pgh_created_at, event.votes_required::integer, 0
         FROM {_TASK_EVENTS} AS event JOIN annotation_task AS task ON task.id = event.pgh_obj_id
         WHERE task.question_id = %(question)s AND event.round > 1
         ORDER BY event.pgh_obj_id, event.round, event.pgh_id)
    )
    SELECT date_bin(%(span)s::interval, at, '2000-01-01 00:00+00') AS since, sum(delta)::bigint AS delta, sum(votes)::bigint AS votes
    FROM happened GROUP BY 1 ORDER BY 1
"""  # noqa: S608 - our own words


def _points(now: datetime, left: int, span: timedelta, deltas: dict[datetime, int], cast: dict[datetime, int]) -> list[Point]:
    """The line, oldest first; empty before there is a task. The last point is now.

    A fine one begins one span before the first vote, with what was there by then.
    """
    if not deltas:
        return []
    first, last = _floor(min(deltas), span), _floor(now, span)
    if span < HOUR and cast:
        first = max(first, min(cast) - span)
    steps = (last - first) // span + 1
    change, votes = np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    for since, delta in deltas.items():
        change[max(0, min(steps - 1, (since - first) // span))] += delta
    for since, count in cast.items():
        votes[min(steps - 1, (since - first) // span)] += count
    after = np.append(np.cumsum(change[::-1])[::-1][1:], 0)  # what happened later than each span
    return [Point(first + step * span, max(0, left - int(after[step])), int(votes[step])) for step in range(steps)]


def _floor(at: datetime, span: timedelta) -> datetime:
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return day + (at - day) // span * span


# ---------------------------------------------------------------- the future
def _forecast(question: Question, now: datetime, left: int, cast: dict[datetime, int]) -> Forecast:
    if not left:
        return _none("No vote is left to cast." if cast else "There is no task that waits for votes.")
    if not question.active:
        return _none("The question is not on offer, so nobody works on it.")
    if not cast:
        return _none("Nobody has voted yet.")
    if now - max(cast) - HOUR > QUIET:
        return _none("Nobody has voted in the last seven days.")
    return finish(now, left, _recent(now, cast))


def _recent(now: datetime, cast: dict[datetime, int]) -> Ints:
    """Votes in each whole hour before now, oldest first, from the first vote on, 14 days at most; hours are counted back from now.

    An hour of the clock is taken as a whole: the one that runs now stands for the 60 minutes that end now.
    """
    first = max(min(cast), _floor(now, HOUR) - BACK)
    hours = (_floor(now, HOUR) - first) // HOUR + 1
    votes = np.zeros(max(1, hours), np.int64)
    for hour, count in cast.items():
        if hour >= first:
            votes[(hour - first) // HOUR] += count
    return votes


def finish(now: datetime, left: int, hours: Ints) -> Forecast:
    """When `left` votes will be in, if the coming days are like the past ones.

    hours: votes in each past hour, oldest first, shape (n,), the hours without votes too. From three days on, whole days of 24
    hours ending now are drawn with replacement, so that nights and weekends come as they came; before that, single hours. Each
    of 1,000 futures first draws its own past (what the pace is) and from that its days (how they fall): Efron's bootstrap, twice.
    The estimate is the median of their ends, the interval lies between their 2.5th and 97.5th percentiles. Undefined under 20
    votes or 3 hours with votes.

    >>> from datetime import UTC
    >>> steady = np.full(96, 10)
    >>> finish(datetime(2026, 1, 1, tzinfo=UTC), 240, steady).at.isoformat()
    '2026-01-02T00:00:00+00:00'
    """
    total, busy = int(hours.sum()), int((hours > 0).sum())
    if total < LEAST_VOTES or busy < LEAST_HOURS:
        return Forecast(None, None, None, _too_little(now, hours), total, len(hours))
    days = len(hours) // 24
    blocks = hours[-24 * days :].reshape(days, 24) if days >= LEAST_DAYS else hours.reshape(-1, 1)
    by = "days" if days >= LEAST_DAYS else "hours"
    ends = _ends(left, blocks)
    at = [_later(now, end) for end in np.percentile(ends, (50, 2.5, 97.5), method="higher")]
    if at[0] is None:
        return Forecast(None, None, None, "More than a year, at the pace so far.", total, len(hours), by)
    return Forecast(at[0], at[1], at[2], "", total, len(hours), by)


def _too_little(now: datetime, hours: Ints) -> str:
    """What there is to go by, what it takes, and from when on there can be a forecast."""
    total, busy = int(hours.sum()), int((hours > 0).sum())
    so_far = f"Too little to go by: {total:,} votes in {busy} {'hour' if busy == 1 else 'hours'}. It takes {LEAST_VOTES} in {LEAST_HOURS}"
    more = LEAST_HOURS - busy - int(hours[-1] == 0)  # the hour that runs now may still be one of them
    if more <= 0:
        return f"{so_far}."
    return f"{so_far}: from {_floor(now, HOUR) + more * HOUR:%H:%M} UTC on, if people go on."


def _ends(left: int, blocks: Ints) -> npt.NDArray[np.float64]:
    """Hours until `left` votes are in, of each future, shape (DRAWS,); infinite beyond a year. blocks: (number, hours of each)."""
    generator = np.random.default_rng(SEED)
    number, length = blocks.shape
    sums = blocks.sum(axis=1)
    past = generator.integers(number, size=(DRAWS, number))
    ends = np.full(DRAWS, np.inf)
    going, done = np.arange(DRAWS), np.zeros(DRAWS, np.int64)
    for step in range(FARTHEST * 24 // length):
        drawn = past[going, generator.integers(number, size=len(going))]
        reached = done[going] + sums[drawn] >= left
        if reached.any():
            who, block = going[reached], drawn[reached]
            ends[who] = step * length + _within(left - done[who], blocks[block])
        done[going] += sums[drawn]
        going = going[~reached]
        if not len(going):
            break
    return ends


def _within(wanted: Ints, blocks: Ints) -> npt.NDArray[np.float64]:
    """Hours into each block until so many votes are in, evenly within an hour. wanted: (k,), at least 1; blocks: (k, hours)."""
    sums = np.cumsum(blocks, axis=1)
    hour = (sums >= wanted[:, None]).argmax(axis=1)
    rows = np.arange(len(blocks))
    votes = blocks[rows, hour]
    before = sums[rows, hour] - votes
    within: npt.NDArray[np.float64] = hour + (wanted - before) / votes
    return within


def _later(now: datetime, hours: float) -> datetime | None:
    return now + timedelta(hours=float(hours)) if np.isfinite(hours) else None


def _none(reason: str) -> Forecast:
    return Forecast(None, None, None, reason)


# ---------------------------------------------------------------- people
def _at_work(question: Question) -> list[AtWork]:
    found = sql.rows(_AT_WORK, question=question.pk, since=AT_WORK)
    return [AtWork(row["number"], row["votes"], row["last"]) for row in found]


# One short range of the index vote_recent for each person. Votes only: what a person abstains from is theirs.
_AT_WORK = """
    SELECT member.number, recent.votes, recent.last
    FROM annotation_progress AS progress
    JOIN annotation_membership AS member ON member.id = progress.member_id AND member.active
    JOIN LATERAL (
        SELECT count(*) AS votes, max(created_at) AS last FROM annotation_vote AS vote
        WHERE vote.member_id = progress.member_id AND vote.question_id = %(question)s AND vote.created_at > now() - interval '1 hour'
    ) AS recent ON recent.last > now() - %(since)s::interval
    WHERE progress.question_id = %(question)s ORDER BY recent.last DESC, member.number
"""


def _held_up(question: Question) -> tuple[dict[str, int], int]:
    """How many of those who label each reason keeps from working now; and how many none keeps."""
    stops = [gate.stop_of(member, question) for member in steering.voters(question)]
    reasons = Counter(stop.code for stop in stops if stop is not None)
    return dict(sorted(reasons.items())), stops.count(None)
