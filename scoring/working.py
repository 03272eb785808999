"""What a worker does with a run: load the scorer once, score chunk after chunk, and give each bad item its own reason."""

import contextlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import structlog
from django.db import close_old_connections, connection

from scoring import runs
from scoring.models import Scorer
from scoring.runs import Claimed
from scoring.scorers.base import Failed, Kind, Machine, Prepared, Result, Unusable

log = structlog.get_logger("assay.scoring")
BEAT = 3.0  # seconds between signs of life; five of them fit into runs.SILENCE
SLICE = 10.0  # seconds on one run before another one has its turn
LOADED = 2  # scorers kept in memory by a process


@dataclass
class _Loaded:
    prepared: Prepared
    kind: Kind
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class Bench:
    """One worker process: its name, its device, what it has loaded, what it is doing now. Shared by its threads."""

    name: str
    machine: Machine
    stopping: threading.Event = field(default_factory=threading.Event)
    doing: dict[int, str] = field(default_factory=dict)
    _loaded: "OrderedDict[str, _Loaded]" = field(default_factory=OrderedDict)
    _loading: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def at(self, work: str) -> Iterator[None]:
        """While inside, the workers' panel says that this thread does `work`."""
        thread = threading.get_ident()
        self.doing[thread] = work
        try:
            yield
        finally:
            self.doing.pop(thread, None)

    def loaded(self, scorer: Scorer) -> _Loaded:
        """The scorer in memory, loaded when it is not there yet. Unusable when it is not what this version was."""
        with self._loading:
            if scorer.fingerprint not in self._loaded:
                while len(self._loaded) >= LOADED:
                    self._loaded.popitem(last=False)
                self._loaded[scorer.fingerprint] = self._load(scorer)
            self._loaded.move_to_end(scorer.fingerprint)
            return self._loaded[scorer.fingerprint]

    def _load(self, scorer: Scorer) -> _Loaded:
        kind = runs.kind_of(scorer.kind)
        config = kind.read(scorer.config)
        if kind.identify(config, self.machine).fingerprint != scorer.fingerprint:
            raise Unusable(f"The weights, settings or code of {scorer} have changed. Add the scorer again: that makes the next version.")
        return _Loaded(kind.prepare(config, self.machine), kind)


def work_on(run_id: int, bench: Bench, *, seconds: float = SLICE, each: Callable[[Claimed], None] | None = None) -> bool:
    """Score chunks of this run until none is left to take, the run stops, or `seconds` have passed; True in the last case.

    Silent workers' chunks of the same queue are taken over on the way. `each` is called after every chunk.
    """
    until = time.monotonic() + seconds
    while not bench.stopping.is_set():
        if (claimed := runs.claim_chunk(run_id, bench.name)) is None:
            return False
        with bench.at(f"run {claimed.run_id}, chunk {claimed.number:,}"):
            _work(claimed, bench)
        if each:
            each(claimed)
        if time.monotonic() >= until:
            return True
    return True


def _work(claimed: Claimed, bench: Bench) -> None:
    with _heartbeat(claimed):
        try:
            scores, failures = _score(claimed, bench)
        except Unusable as error:
            log.warning("run failed", run=claimed.run_id, reason=error.message)
            runs.fail(claimed, error.message)
            return
        except BaseException:
            # Whatever it was (the database gone, a shutdown), the chunk is not to blame; silence frees it if this fails too.
            with contextlib.suppress(Exception):
                runs.release(claimed)
            raise
        if not runs.store(claimed, scores, failures):
            log.info("scores not taken", run=claimed.run_id, chunk=claimed.number, worker=bench.name)


@contextlib.contextmanager
def _heartbeat(claimed: Claimed) -> Iterator[None]:
    """A thread that says every few seconds that this claimant lives; a short chunk ends before the first time."""
    over = threading.Event()

    def keep_saying() -> None:
        while not over.wait(BEAT):
            try:
                if not runs.beat(claimed):
                    break
            except Exception as error:  # noqa: BLE001 - the database may be gone for a moment; the next beat tries again
                log.warning("heartbeat failed", chunk=claimed.chunk_id, reason=type(error).__name__)
                close_old_connections()
        connection.close()

    thread = threading.Thread(target=keep_saying, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _score(claimed: Claimed, bench: Bench) -> tuple[dict[int, dict[str, float]], dict[int, str]]:
    """Scores and failures by item id; Unusable when the scorer cannot be loaded or fails on everything."""
    scorer = Scorer.objects.get(pk=claimed.scorer_id)
    try:
        loaded = bench.loaded(scorer)
    except Unusable:
        raise
    except Exception as error:
        log.exception("scorer not loaded", scorer=scorer.pk)
        raise Unusable(f"{scorer} could not be loaded: {type(error).__name__}: {error}"[:1000]) from error
    texts = runs.texts_of(claimed.item_ids)
    failures = {item: "The item was quarantined or is gone." for item in claimed.item_ids if item not in texts}
    failures |= {item: "The text is empty." for item, text in texts.items() if not text.strip()}
    fit = [item for item in claimed.item_ids if item not in failures]
    with loaded.lock:
        results = score_each(loaded.prepared, [texts[item] for item in fit]) if fit else []
    scores: dict[int, dict[str, float]] = {}
    for item, result in zip(fit, results, strict=True):
        reason = _reason(result, scorer, loaded.kind)
        if reason is None and isinstance(result, dict):
            scores[item] = result
        else:
            failures[item] = reason or ""
    return scores, failures


def score_each(prepared: Prepared, texts: Sequence[str]) -> list[Result]:
    """The batch's results; when the batch fails as a whole, those of its halves, so that one bad item fails alone.

    Unusable when every one of several fails in that way: then it is not the items.
    """
    errors: list[str] = []
    results = _in_halves(prepared, texts, errors)
    if len(texts) > 1 and len(errors) == len(texts):
        raise Unusable(f"The scorer failed on every item of a chunk: {errors[0]}")
    return results


def _in_halves(prepared: Prepared, texts: Sequence[str], errors: list[str]) -> list[Result]:
    try:
        return prepared.score(texts)
    except Exception as error:  # noqa: BLE001 - whatever a model does to one item must not end the run
        if len(texts) > 1:
            middle = len(texts) // 2
            return [*_in_halves(prepared, texts[:middle], errors), *_in_halves(prepared, texts[middle:], errors)]
        reason = f"The scorer failed on it: {type(error).__name__}: {error}"[:300]
        errors.append(reason)
        return [Failed(reason)]


def _reason(result: Result, scorer: Scorer, kind: Kind) -> str | None:
    """Why a result is no set of scores; None when it is one."""
    if isinstance(result, Failed):
        return result.reason
    if set(result) != set(scorer.score_names):
        return f"The scorer gave {', '.join(result) or 'nothing'} instead of {', '.join(scorer.score_names)}."
    low, high = kind.bounds
    for name, value in result.items():
        if not math.isfinite(value):
            return f"{name} is not a finite number."
        if not low <= value <= high:
            return f"{name} is {value:g}, outside {low:g} to {high:g}."
    return None
