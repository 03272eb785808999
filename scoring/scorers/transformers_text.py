"""Text classification by a transformers model, from a local folder or a hub revision. Safetensors only, never remote code."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scoring.scorers.base import SCORE_NAME, Config, Identity, Kind, Machine, Prepared, Result, Setting, Unusable, file_hash

COMMIT = re.compile(r"[0-9a-f]{40}")
MOVING = ("main", "master", "head")
LEFT_OUT = "-"
MOST_LABELS = 10_000
# All that loading reads; a README or a training log in the folder is no part of the model.
LIGHT_FILES = ("*.json", "*.txt", "*.model", "*.jinja")
WEIGHTS = "*.safetensors"
# These count positions from the padding token's number on, so that two of their position embeddings are never used.
OFFSET_POSITIONS = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "longformer", "data2vec-text")


class TransformersText(Kind):
    name = "transformers_text"
    title = "Transformers text classification"
    description = "Any text classifier in the transformers format: a folder on this machine, or a model of the hub at a pinned revision."
    limits = "What the model was trained on and where it fails is said on its own model card. Longer texts are cut at the maximum length."
    settings = (
        Setting("folder", "Folder", "Where the model lies: config.json, tokenizer, *.safetensors.", "folder", changes_scores=False),
        Setting("model", "Or a model of the hub", "Such as organisation/model.", changes_scores=False),
        Setting("revision", "Its revision", "A commit hash or a tag. A branch such as main moves, and is refused.", changes_scores=False),
        Setting(
            "labels",
            "Labels",
            "One line for each label of the model: label = score name, such as toxic = toxicity. Write label = - to leave one out.",
            "mapping",
            default={},
        ),
        Setting(
            "head",
            "Scores from",
            "Softmax: exactly one label is right. Sigmoid: each label for itself.",
            "choice",
            default="auto",
            choices=(("auto", "What the model says"), ("softmax", "Softmax"), ("sigmoid", "Sigmoid")),
        ),
        Setting(
            "max_length", "Maximum length", "Tokens; the rest of a longer text is not read.", "number", default=512, least=8, most=100_000
        ),
        Setting("batch_size", "Batch size", "Texts at a time.", "number", default=32, least=1, most=4096, changes_scores=False),
    )

    def identify(self, config: Config, machine: Machine) -> Identity:
        folder, config, weights = self._find(config, machine, LIGHT_FILES)
        model = _read_json(folder / "config.json")
        _refuse_remote_code(folder, model)
        if config["folder"]:
            _check_weights(folder)
            weights = [f"{path.name} {file_hash(path)}" for path in _files(folder)]
        try:
            names = _score_names(model, config["labels"])
            _head(model, config["head"])
            _check_length(model, config["max_length"])
        except (TypeError, ValueError, AttributeError) as error:
            message = f"config.json is not as transformers writes it: {error}."
            raise Unusable(f"{folder}: {message}", folder=message) from error
        return Identity(self.fingerprint(config, weights), names, config)

    def prepare(self, config: Config, machine: Machine) -> Prepared:
        folder, config, _weights = self._find(config, machine, (*LIGHT_FILES, WEIGHTS))
        model = _read_json(folder / "config.json")
        _refuse_remote_code(folder, model)
        _check_weights(folder)
        return _Classifier(folder, model, config, machine.device)

    def _find(self, config: Config, machine: Machine, patterns: Sequence[str]) -> tuple[Path, Config, list[str]]:
        """The folder on this machine, the configuration with its revision resolved to a commit, and what names hub weights."""
        if bool(config["folder"]) == bool(config["model"]):
            raise Unusable(
                "Name a folder, or a model of the hub: one of the two.", folder="Name a folder, or a model of the hub: one of the two."
            )
        if config["folder"]:
            folder = Path(config["folder"])
            if not (folder / "config.json").is_file():
                what = "has no config.json" if folder.is_dir() else "is not a folder on this machine"
                raise Unusable(f"{folder} {what}. Name the folder that save_pretrained wrote.", folder=f"It {what}.")
            return folder, config, []
        if not config["revision"] or config["revision"].lower() in MOVING:
            message = "Pin the revision: a commit hash (40 hex digits) or a tag. A branch moves, and its scores with it."
            raise Unusable(message, revision=message)
        folder = _download(config["model"], config["revision"], machine.hub, patterns)
        commit = folder.name
        return folder, config | {"revision": commit}, [f"{config['model']} {commit}"]


def _download(model: str, revision: str, hub: Path | None, patterns: Sequence[str]) -> Path:
    """The model's files at `revision`, from the hub or, when they are here already, from the cache. The folder is named by the commit."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        folder = Path(snapshot_download(model, revision=revision, cache_dir=hub, allow_patterns=list(patterns)))
    except HFValidationError as error:
        raise Unusable(
            f"{model} is not the name of a hub model: organisation/model.", model="Not of the form organisation/model."
        ) from error
    except RevisionNotFoundError as error:
        raise Unusable(f"{model} has no revision {revision}.", revision="The model has no such revision.") from error
    except GatedRepoError as error:
        raise Unusable(
            f"{model} asks for a licence to be accepted first. Accept it, then set HF_TOKEN.", model="Needs an accepted licence."
        ) from error
    except RepositoryNotFoundError as error:
        raise Unusable(f"The hub has no model {model}, or it is private.", model="The hub has no such model.") from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        message = f"{model} at {revision} is not on this machine, and the hub cannot be reached. Name a folder, or try again later."
        raise Unusable(message, model=message) from error
    if not COMMIT.fullmatch(folder.name):
        raise Unusable(f"The hub did not say which commit {revision} is. Give the commit hash.", revision="Give the commit hash.")
    if not (folder / "config.json").is_file():
        raise Unusable(f"{model} has no config.json: it is not a transformers model.", model="Not a transformers model.")
    return folder


def _read_json(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Unusable(f"{path} cannot be read as JSON: {error}.", folder=f"{path.name} cannot be read as JSON.") from error
    if not isinstance(read, dict):
        raise Unusable(f"{path} is not a JSON object.", folder=f"{path.name} is not a JSON object.")
    return read


def _refuse_remote_code(folder: Path, model: Mapping[str, Any]) -> None:
    tokenizer = folder / "tokenizer_config.json"
    if "auto_map" in model or (tokenizer.is_file() and "auto_map" in _read_json(tokenizer)):
        message = "The model wants to run code of its own (auto_map), which Assay never does. Use a model of a standard architecture."
        raise Unusable(message, folder=message)


def _files(folder: Path) -> list[Path]:
    return sorted(path for pattern in (*LIGHT_FILES, WEIGHTS) for path in folder.glob(pattern) if path.is_file())


def _check_weights(folder: Path) -> None:
    """All the safetensors files that the folder names are there and whole (a cut-off file is shorter than its header says)."""
    index = folder / "model.safetensors.index.json"
    try:
        names = sorted(set(_read_json(index)["weight_map"].values())) if index.is_file() else ["model.safetensors"]
        if any(Path(name).name != name for name in names):
            message = f"{index.name} names weights outside the folder."
            raise Unusable(f"{folder}: {message}", folder=message)
    except (KeyError, AttributeError, TypeError):
        raise Unusable(f"{index} names no weights.", folder=f"{index.name} names no weights.") from None
    for name in names:
        path = folder / name
        if not path.is_file():
            pickled = any(folder.glob("*.bin")) or any(folder.glob("*.pt"))
            why = " Only pickled weights are there; save them as safetensors first." if pickled else " Copy the whole model."
            raise Unusable(f"{path} is missing.{why}", folder=f"{name} is missing.{why}")
        if not _is_whole(path):
            raise Unusable(
                f"{path} is cut off or is not a safetensors file. Copy it again.", folder=f"{name} is cut off or no safetensors file."
            )


def _is_whole(path: Path) -> bool:
    """Format: 8 bytes with the header's length, the header as JSON with each tensor's place, then the tensors."""
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 0 < length <= min(size - 8, 100_000_000):
                return False
            tensors = json.loads(file.read(length))
        end: int = max((entry["data_offsets"][1] for name, entry in tensors.items() if name != "__metadata__"), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return False
    return end > 0 and size == 8 + length + end


def _labels(model: Mapping[str, Any]) -> list[str]:
    """The model's own names of its outputs, in their order."""
    named = model.get("id2label")
    if isinstance(named, dict) and named:
        try:
            return [str(named[key]) for key in sorted(named, key=int)]
        except ValueError:
            raise Unusable(
                "config.json numbers its labels (id2label) by something other than numbers.", folder="id2label is wrong."
            ) from None
    count = int(model.get("num_labels", 2))
    if not 0 < count <= MOST_LABELS:
        raise Unusable(f"config.json says that the model has {count:,} labels.", folder="num_labels is wrong.")
    return [f"LABEL_{number}" for number in range(count)]


def _score_names(model: Mapping[str, Any], mapping: Mapping[str, str]) -> tuple[str, ...]:
    labels = _labels(model)
    has = f"The model's labels are: {', '.join(labels)}."
    heads = model.get("architectures") or []
    if heads and not any(head.endswith("ForSequenceClassification") for head in heads):
        message = f"This is a {', '.join(heads)}, not a text classifier: it has no classification head."
        raise Unusable(message, folder=message)
    problems = []
    if unknown := [label for label in mapping if label not in labels]:
        problems.append(f"The model has no label {', '.join(unknown)}.")
    if nowhere := [label for label in labels if label not in mapping]:
        problems.append(f"Nothing says what {', '.join(nowhere)} is to be called here; write a score name, or - to leave it out.")
    names = [mapping[label] for label in labels if mapping.get(label, LEFT_OUT) != LEFT_OUT]
    if bad := [name for name in names if not SCORE_NAME.fullmatch(name)]:
        problems.append(f"{', '.join(bad)}: a score name has small letters, digits, - and _ only.")
    if len(set(names)) < len(names):
        problems.append("Two labels have the same score name.")
    if not names and not problems:
        problems.append("Every label is left out.")
    if problems:
        message = " ".join([*problems, has])
        raise Unusable(message, labels=message)
    return tuple(names)


def _head(model: Mapping[str, Any], chosen: str) -> str:
    """ "softmax" or "sigmoid": as chosen, else as the model's problem_type says, else by its number of labels."""
    if chosen != "auto":
        return chosen
    by_problem = {"multi_label_classification": "sigmoid", "single_label_classification": "softmax"}
    problem = model.get("problem_type")
    if problem == "regression":
        message = "The model is a regression: its numbers are no probabilities. Choose Sigmoid if its output is a logit."
        raise Unusable(message, head=message)
    return by_problem.get(str(problem), "sigmoid" if len(_labels(model)) == 1 else "softmax")


def _positions(model: Mapping[str, Any]) -> int | None:
    positions = model.get("max_position_embeddings")
    if not isinstance(positions, int) or positions <= 0:
        return None
    return positions - int(model.get("pad_token_id") or 0) - 1 if model.get("model_type") in OFFSET_POSITIONS else positions


def _check_length(model: Mapping[str, Any], wanted: int) -> None:
    positions = _positions(model)
    if positions is not None and wanted > positions:
        message = f"The model reads at most {positions:,} tokens."
        raise Unusable(f"Maximum length: {message}", max_length=message)


class _Classifier(Prepared):
    """The model and its tokenizer in memory, half precision on a GPU."""

    def __init__(self, folder: Path, model: Mapping[str, Any], config: Config, device: str) -> None:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
        from transformers.utils import logging

        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            loaded, report = AutoModelForSequenceClassification.from_pretrained(
                folder,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                output_loading_info=True,
                dtype=torch.float16 if device == "cuda" else torch.float32,
            )
        except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
            raise Unusable(f"The model in {folder} cannot be loaded: {error}") from error
        # transformers fills what the file lacks with random numbers and goes on; scores from those would be noise.
        if lacking := sorted(report["missing_keys"]) + sorted(str(key) for key in report["mismatched_keys"]):
            more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
            raise Unusable(f"The weights in {folder} lack {', '.join(lacking[:3])}{more}. Use a model that was trained as a classifier.")
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
            loaded.config.pad_token_id = self.tokenizer.pad_token_id
        self.torch, self.device = torch, device
        self.model = loaded.to(device).eval()
        self.batch_size = config["batch_size"] if self.tokenizer.pad_token is not None else 1
        self.max_length = config["max_length"]
        self.sigmoid = _head(model, config["head"]) == "sigmoid"
        self.columns = [
            (number, config["labels"][label]) for number, label in enumerate(_labels(model)) if config["labels"][label] != LEFT_OUT
        ]

    def score(self, texts: Sequence[str]) -> list[Result]:
        """Texts of like length go through together, so that little is spent on padding; the answers come in the order asked."""
        encoded = self.tokenizer(list(texts), truncation=True, max_length=self.max_length)
        tokens = [{name: encoded[name][number] for name in encoded} for number in range(len(texts))]
        order = sorted(range(len(texts)), key=lambda number: len(tokens[number]["input_ids"]), reverse=True)
        results: list[Result] = [{}] * len(texts)
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            for number, row in zip(batch, self._probabilities([tokens[number] for number in batch]), strict=True):
                results[number] = {name: row[column] for column, name in self.columns}
        return results

    def _probabilities(self, tokens: list[dict[str, list[int]]]) -> list[list[float]]:
        padded = self.tokenizer.pad(tokens, padding=len(tokens) > 1, return_tensors="pt").to(self.device)
        with self.torch.inference_mode():
            logits = self.model(**padded).logits.float()
            found: list[list[float]] = (logits.sigmoid() if self.sigmoid else logits.softmax(dim=-1)).tolist()
        return found


KIND = TransformersText()
