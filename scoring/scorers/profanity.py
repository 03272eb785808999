"""The embedded default: a linear text model that ships in the package alt-profanity-check (MIT). No download, no GPU."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from scoring.scorers.base import Config, Identity, Kind, Machine, Prepared, Result, Unusable, file_hash


class Profanity(Kind):
    name = "profanity"
    title = "Profanity words (built in)"
    description = "A linear model over words, from the package alt-profanity-check. Works at once, on any machine."
    limits = (
        "It learned from words, not from meaning: it takes names of groups (such as religions and orientations) for bad words, "
        "so harmless texts about them score high; it misses toxicity without bad words, and texts in other languages than English."
    )
    chunk_size = 2048

    def identify(self, config: Config, machine: Machine) -> Identity:  # noqa: ARG002 - the same on every machine
        found = find_spec("profanity_check")
        try:
            packages = [f"{package} {version(package)}" for package in ("alt-profanity-check", "scikit-learn")]
        except PackageNotFoundError:
            found = None
        if found is None or not found.submodule_search_locations:
            raise Unusable("The package alt-profanity-check is not installed here. Install it with: pip install alt-profanity-check")
        data = Path(found.submodule_search_locations[0]) / "data"
        weights = [f"{path.name} {file_hash(path)}" for path in sorted(data.glob("*.joblib"))]
        return Identity(self.fingerprint(config, packages + weights), ("toxicity",), config)

    def prepare(self, config: Config, machine: Machine) -> Prepared:  # noqa: ARG002
        return _Words()


class _Words(Prepared):
    def __init__(self) -> None:
        from profanity_check import profanity_check as package

        # The package's own predict_prob goes through the answers row by row; this is the same in one step.
        self.words, self.model = package.vectorizer, package.model

    def score(self, texts: Sequence[str]) -> list[Result]:
        probabilities = self.model.predict_proba(self.words.transform(texts))[:, 1]
        return [{"toxicity": value} for value in probabilities.tolist()]


KIND = Profanity()
