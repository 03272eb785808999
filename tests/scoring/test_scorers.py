"""The kinds of scorers: what they refuse, and that a kind is one file."""

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest
from django.conf import settings

import scoring.scorers
from annotation.errors import Invalid
from scoring import runs
from scoring.models import Scorer
from scoring.scorers import kinds
from scoring.scorers.base import Machine, Unusable
from tests.cast import Cast
from tests.scoring.models_on_disk import edit_config, write_model

LABELS = {"harmless": "-", "toxic": "toxicity"}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
ONE_FILE = """
from scoring.scorers.base import Identity, Kind, Prepared

class Length(Kind):
    name, title, description, limits = "length", "Length", "Long texts score high.", "It reads nothing."
    def identify(self, config, machine):
        return Identity(self.fingerprint(config, []), ("length",), config)
    def prepare(self, config, machine):
        return Prepared_()

class Prepared_(Prepared):
    def score(self, texts):
        return [{"length": min(len(text) / 100, 1.0)} for text in texts]

KIND = Length()
"""


@pytest.fixture
def one_more_file(tmp_path: Path) -> Iterator[None]:
    (tmp_path / "length.py").write_text(ONE_FILE)
    scoring.scorers.__path__.append(str(tmp_path))
    kinds.cache_clear()
    yield
    scoring.scorers.__path__.remove(str(tmp_path))
    kinds.cache_clear()


def identify(**config: object) -> scoring.scorers.base.Identity:
    kind = kinds()["transformers_text"]
    return kind.identify(kind.read({"labels": LABELS, "max_length": 64} | config), Machine())


def score(folder: Path, texts: list[str], **config: object) -> list[dict[str, float]]:
    kind = kinds()["transformers_text"]
    return kind.prepare(kind.read({"folder": str(folder), "labels": LABELS, "max_length": 64} | config), Machine()).score(texts)


def test_a_file_in_the_folder_is_a_kind(one_more_file: None, cast: Cast) -> None:
    assert set(kinds()) == {"length", "profanity", "transformers_text"}
    scorer, _new = runs.create_scorer(cast.project, "len", "length", {}, None)
    assert scorer.score_names == ["length"]


def test_the_web_process_never_imports_heavy_libraries() -> None:
    code = (
        "import sys, config.wsgi; from django.urls import get_resolver; get_resolver().url_patterns; import config.api_urls\n"
        "from scoring.scorers import kinds; assert len(kinds()) >= 2\n"
        "print(sorted({'torch', 'transformers', 'sklearn', 'tokenizers', 'profanity_check', 'scipy'} & set(sys.modules)))"
    )
    env = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings", "ASSAY_DATA": str(settings.DATA)}
    found = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=120, check=False
    )
    assert found.returncode == 0, found.stderr[-2000:]
    assert not {"torch", "transformers", "sklearn", "tokenizers", "profanity_check"} & set(
        json.loads(found.stdout.strip().replace("'", '"'))
    )


def test_the_default_scorer_tells_insults_from_courtesy_and_says_what_it_cannot_do() -> None:
    kind = kinds()["profanity"]
    kind_words, insult = kind.prepare({}, Machine()).score(["Thank you for the tea.", "You damn idiot."])
    assert kind_words["toxicity"] < 0.2
    assert insult["toxicity"] > 0.9
    assert "takes names of groups" in kind.limits


# ---------------------------------------------------------------- versions
def test_the_same_again_is_the_same_version_and_a_change_is_the_next(cast: Cast, model: Path) -> None:
    def add(**config: object) -> tuple[int, bool]:
        given = {"folder": str(model), "labels": LABELS, "max_length": 64} | config
        scorer, new = runs.create_scorer(cast.project, "tiny", "transformers_text", given, cast.bob.user, any_folder=True)
        return scorer.version, new

    assert add() == (1, True)
    assert add() == (1, False)
    assert add(labels="harmless = -\ntoxic = toxicity") == (1, False)
    assert add(batch_size="8") == (1, False)  # faster or slower, the scores are the same
    assert Scorer.objects.get().config["batch_size"] == 8
    assert add(max_length=32) == (2, True)
    assert add(head="sigmoid") == (3, True)
    assert add() == (1, False)
    elsewhere = model.parent / "moved"
    shutil.copytree(model, elsewhere)
    assert add(folder=str(elsewhere)) == (1, False)


def test_another_training_of_the_same_architecture_is_another_version(cast: Cast, model: Path) -> None:
    before = identify(folder=str(model)).fingerprint
    weights = model / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert identify(folder=str(model)).fingerprint != before


def test_pages_and_api_take_models_only_from_the_model_folders(cast: Cast, model: Path, settings: object) -> None:
    given = {"folder": str(model), "labels": LABELS, "max_length": 64}
    with pytest.raises(Invalid, match="Model folders must lie under"):
        runs.create_scorer(cast.project, "tiny", "transformers_text", given, cast.bob.user)
    with pytest.raises(Invalid, match="Model folders must lie under"):
        runs.create_scorer(
            cast.project, "tiny", "transformers_text", given | {"folder": f"{settings.MODEL_FOLDERS[0]}/../x"}, cast.bob.user
        )
    settings.MODEL_FOLDERS = [str(model.parent)]
    assert runs.create_scorer(cast.project, "tiny", "transformers_text", given, cast.bob.user)[1]


# ---------------------------------------------------------------- refusals, each one clear error before any item
def test_a_wrong_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="nowhere is not a folder on this machine"):
        identify(folder=str(tmp_path / "nowhere"))
    with pytest.raises(Unusable, match=r"has no config\.json"):
        identify(folder=str(tmp_path))
    with pytest.raises(Unusable, match="one of the two"):
        identify()


def test_missing_cut_off_and_pickled_weights_are_refused(model: Path) -> None:
    weights = model / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-10])
    with pytest.raises(Unusable, match="cut off"):
        identify(folder=str(model))
    weights.write_bytes(b"no weights at all")
    with pytest.raises(Unusable, match="is not a safetensors file"):
        identify(folder=str(model))
    weights.unlink()
    with pytest.raises(Unusable, match=r"model\.safetensors is missing\. Copy the whole model"):
        identify(folder=str(model))
    (model / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(Unusable, match="Only pickled weights are there"):
        identify(folder=str(model))


def test_a_missing_shard_is_named(model: Path) -> None:
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}))
    with pytest.raises(Unusable, match=r"model-2\.safetensors is missing"):
        identify(folder=str(model))


def test_weights_without_a_classification_head_are_refused_instead_of_filled_with_random_numbers(model: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(model / "model.safetensors")
    save_file(
        {name: tensor for name, tensor in tensors.items() if not name.startswith("classifier")},
        model / "model.safetensors",
        {"format": "pt"},
    )
    with pytest.raises(Unusable, match=r"lack classifier\.bias, classifier\.weight"):
        score(model, ["a mild text"])


def test_a_model_that_is_no_classifier_is_refused(model: Path) -> None:
    edit_config(model, architectures=["DistilBertForMaskedLM"])
    with pytest.raises(Unusable, match="no classification head"):
        identify(folder=str(model))


@pytest.mark.parametrize(
    "odd",
    [
        {"architectures": [1]}, {"id2label": None, "num_labels": "many"}, {"id2label": None, "num_labels": 10**12},
        {"model_type": "roberta", "pad_token_id": [1]},
    ],
)  # fmt: skip
def test_a_config_that_nothing_sane_wrote_is_refused_in_words(model: Path, odd: dict[str, object]) -> None:
    edit_config(model, **odd)
    with pytest.raises(Unusable, match=r"config\.json"):
        identify(folder=str(model), labels=LABELS)


def test_weights_outside_the_folder_are_not_looked_at(model: Path) -> None:
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../other/model.safetensors"}}))
    with pytest.raises(Unusable, match="outside the folder"):
        identify(folder=str(model), labels=LABELS)


def test_every_label_must_go_somewhere_and_every_name_come_from_a_label(model: Path) -> None:
    for labels, message in [
        ({}, "Nothing says what harmless, toxic is to be called here"),
        ({"toxic": "toxicity"}, "Nothing says what harmless is to be called here"),
        (LABELS | {"rude": "rudeness"}, r"has no label rude\. The model's labels are: harmless, toxic"),
        ({"harmless": "toxicity", "toxic": "toxicity"}, "Two labels have the same score name"),
        ({"harmless": "-", "toxic": "-"}, "Every label is left out"),
        ({"harmless": "-", "toxic": "Very Toxic"}, "small letters"),
    ]:
        with pytest.raises(Unusable, match=message) as refused:
            identify(folder=str(model), labels=labels)
        assert set(refused.value.fields) == {"labels"}


def test_code_in_a_model_folder_is_never_run(model: Path) -> None:
    (model / "modeling.py").write_text("raise SystemExit('run')")
    edit_config(model, auto_map={"AutoModelForSequenceClassification": "modeling.Own"})
    with pytest.raises(Unusable, match="run code of its own"):
        identify(folder=str(model))
    with pytest.raises(Unusable, match="run code of its own"):
        score(model, ["a"])


def test_more_tokens_than_the_model_has_positions_are_refused(model: Path) -> None:
    with pytest.raises(Unusable, match="at most 128 tokens"):
        identify(folder=str(model), max_length=512)


def test_settings_that_do_not_parse_are_named() -> None:
    with pytest.raises(Unusable) as refused:
        kinds()["transformers_text"].read({"labels": "toxic", "max_length": "many", "head": "hydra", "colour": "red"})
    assert set(refused.value.fields) == {"labels", "max_length", "head", "colour"}


# ---------------------------------------------------------------- the hub
@pytest.fixture
def hub(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub cache that holds assay/tiny with the tag v1; nothing goes out."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    kept = tmp_path / "hub" / "models--assay--tiny"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "v1").write_text(COMMIT)
    shutil.copytree(model, kept / "snapshots" / COMMIT)
    return tmp_path / "hub"


def test_a_tag_of_the_hub_is_pinned_to_its_commit(hub: Path) -> None:
    kind = kinds()["transformers_text"]
    given = kind.read({"model": "assay/tiny", "revision": "v1", "labels": LABELS, "max_length": 64})
    identity = kind.identify(given, Machine(hub=hub))
    assert identity.config["revision"] == COMMIT
    assert kind.identify(identity.config, Machine(hub=hub)).fingerprint == identity.fingerprint
    assert set(kind.prepare(identity.config, Machine(hub=hub)).score(["a mild text"])[0]) == {"toxicity"}


@pytest.mark.parametrize("revision", ["", "main", "master"])
def test_an_unpinned_revision_is_refused(hub: Path, revision: str) -> None:
    kind = kinds()["transformers_text"]
    with pytest.raises(Unusable, match="Pin the revision") as refused:
        kind.identify(kind.read({"model": "assay/tiny", "revision": revision, "labels": LABELS}), Machine(hub=hub))
    assert set(refused.value.fields) == {"revision"}


def test_a_hub_that_cannot_be_reached_is_one_clear_error(hub: Path) -> None:
    kind = kinds()["transformers_text"]
    with pytest.raises(Unusable, match="the hub cannot be reached"):
        kind.identify(kind.read({"model": "assay/other", "revision": "v1", "labels": LABELS}), Machine(hub=hub))
    with pytest.raises(Unusable, match="not the name of a hub model"):
        kind.identify(kind.read({"model": "a/b/c", "revision": "v1", "labels": LABELS}), Machine(hub=hub))


# ---------------------------------------------------------------- scores
def test_softmax_scores_add_up_to_one_and_sigmoid_scores_stand_alone(tmp_path: Path) -> None:
    both = {"harmless": "fine", "toxic": "toxicity"}
    texts = ["a mild text", "nice day."]
    one_right = write_model(tmp_path / "one")
    each_alone = write_model(tmp_path / "each", problem="multi_label_classification")
    for row in score(one_right, texts, labels=both):
        assert math.isclose(sum(row.values()), 1, abs_tol=1e-6)
    # Same seed, same weights: softmax of two logits is the sigmoid of their difference.
    for soft, alone in zip(score(one_right, texts, labels=both), score(each_alone, texts, labels=both), strict=True):
        logits = {name: math.log(value / (1 - value)) for name, value in alone.items()}
        assert 1 / (1 + math.exp(logits["fine"] - logits["toxicity"])) == pytest.approx(soft["toxicity"], abs=1e-5)
    assert score(one_right, texts, labels=both, head="sigmoid") == score(each_alone, texts, labels=both)


def test_a_regression_is_no_probability(model: Path) -> None:
    edit_config(model, problem_type="regression")
    with pytest.raises(Unusable, match="is a regression"):
        identify(folder=str(model))
    assert identify(folder=str(model), head="sigmoid").score_names == ("toxicity",)


def test_texts_of_any_length_come_back_in_the_order_asked(model: Path) -> None:
    texts = ["nice day", "a mild text " * 200, "the weather is fine", "dog", "tea. " * 30]
    together = score(model, texts, batch_size=2)
    for text, row in zip(texts, together, strict=True):
        assert row["toxicity"] == pytest.approx(score(model, [text])[0]["toxicity"], abs=1e-5)
