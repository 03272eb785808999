"""A scorer that takes its time, so that a worker can be stopped in the middle of a chunk."""

import time
from collections.abc import Sequence

from scoring.scorers.base import Config, Identity, Kind, Machine, Prepared, Result

SECONDS = 0.05  # a text


class Slow(Kind):
    name, title, description, limits = "slow", "Slow", "Waits, then says 0.5.", "For tests."
    chunk_size = 10

    def identify(self, config: Config, machine: Machine) -> Identity:
        return Identity(self.fingerprint(config, []), ("toxicity",), config)

    def prepare(self, config: Config, machine: Machine) -> Prepared:
        return _Waiting()


class _Waiting(Prepared):
    def score(self, texts: Sequence[str]) -> list[Result]:
        time.sleep(SECONDS * len(texts))
        return [{"toxicity": 0.5} for _ in texts]


KIND = Slow()
