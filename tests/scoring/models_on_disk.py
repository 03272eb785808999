"""Tiny classifiers with random weights, written to disk: no hub at test time."""

import json
from pathlib import Path

WORDS = [
    *("a", "mild", "text", "number", "nice", "day", "the", "weather", "is", "fine"),
    *("walk", "dog", "tea", "garden", "quiet", "rain", "bread", "letter"),
]


def write_model(
    folder: Path, *, labels: tuple[str, ...] = ("harmless", "toxic"), problem: str | None = None, layers: int = 1, wide: int = 16
) -> Path:
    """A DistilBERT text classifier, seeded, with a tokenizer that knows WORDS and single characters."""
    import torch
    from transformers import BertTokenizerFast, DistilBertConfig, DistilBertForSequenceClassification

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *"abcdefghijklmnopqrstuvwxyz0123456789.,"]
    words = folder / "vocab.txt"
    words.write_text("\n".join(dict.fromkeys([*vocabulary, *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789")])))
    tokenizer = BertTokenizerFast(vocab=str(words), model_max_length=128)
    torch.manual_seed(7)
    config = DistilBertConfig(
        vocab_size=len(words.read_text().splitlines()),
        n_layers=layers,
        n_heads=4,
        dim=wide,
        hidden_dim=2 * wide,
        max_position_embeddings=128,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        problem_type=problem,
    )
    model = DistilBertForSequenceClassification(config)
    torch.nn.init.normal_(model.classifier.weight, std=1.0)  # so that scores differ between texts
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def edit_config(folder: Path, **changes: object) -> None:
    """Overwrite entries of the model's config.json; None takes one away."""
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
