"""A comparison counted by hand: tests/curation/settled.py has the eight items."""

import math

import pytest

from annotation.errors import Invalid, Missing
from annotation.models import Item, TaskState
from curation import comparing
from curation.models import Comparison, Sample, SampleItem
from tests.cast import Cast, make_items, make_question
from tests.curation.settled import make_scorer, make_story, settle


@pytest.fixture
def question(cast: Cast):  # type: ignore[no-untyped-def]
    return make_question(cast.project, choices="yes no unsure")


@pytest.fixture
def comparison(cast: Cast, question) -> Comparison:  # type: ignore[no-untyped-def]
    _, scorer = make_story(cast, question)
    return comparing.create(
        cast.bob, name="Judge", positive=question.choices.get(value="yes"), scorer=scorer, score_name="toxicity"
    )  # fmt: skip


def test_the_matrix_by_hand(comparison: Comparison) -> None:
    found = comparing.result(comparison)
    d = found.decisions
    assert (d.tp, d.fn, d.fp, d.tn) == (2, 1, 1, 1)
    assert d.precision.value == pytest.approx(2 / 3)
    assert found.unsure == (1, 0)
    assert [(code, number) for code, _, number in found.left_out] == [("open", 1), ("unscored", 1)]
    assert found.sources == {"Unanimous": 6, "Adjudicated": 1}
    assert (found.total, found.items, found.groups) == (8, 5, 5)
    assert not found.weighted


def test_another_threshold_needs_no_query_once_the_page_is_open(comparison: Comparison, django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    comparing.result(comparison)
    with django_assert_num_queries(0):
        d = comparing.result(comparison, 0.75, fresh=False).decisions
    assert (d.tp, d.fn, d.fp, d.tn) == (2, 1, 0, 2)


def test_the_page_itself_is_always_of_this_moment(cast: Cast, comparison: Comparison) -> None:
    comparing.result(comparison)
    [item] = make_items(cast.project, 1, start=100)
    settle(cast, comparison.question, [item], ["yyy"])
    comparison.scorer.scores.create(item=item, name="toxicity", value=0.99)
    assert comparing.result(comparison).decisions.tp == 3


def test_every_cell_lists_its_items_worst_first_and_no_text_unless_asked(comparison: Comparison) -> None:
    def ids(cell: str) -> list[str]:
        rows, count = comparing.cell_items(comparison, cell)
        assert count == len(rows)
        assert all(row.text is None for row in rows)
        return [row.external_id for row in rows]

    assert ids("true_positive") == ["t0", "t1"]
    assert ids("false_negative") == ["t2"]
    assert ids("false_positive") == ["t3"]
    assert ids("true_negative") == ["t4"]
    assert ids("unsure_positive") == ["t5"]
    assert ids("unsure_negative") == []
    assert ids("unscored") == ["t6"]
    assert ids("unlabelled") == ["t7"]
    rows, _ = comparing.cell_items(comparison, "false_negative", contents=True)
    assert rows[0].text == "A mild text, number 2."
    assert (rows[0].label, rows[0].source, rows[0].score) == ("Yes", "Unanimous", 0.2)
    with pytest.raises(Missing):
        comparing.cell_items(comparison, "no_such_cell")


def test_the_cells_of_a_threshold_and_its_counts_are_the_same(comparison: Comparison) -> None:
    for threshold in (0.0, 0.2, 0.65, 0.9, 1.0):
        d = comparing.result(comparison, threshold).decisions
        counts = [comparing.cell_items(comparison, f"{a}_{b}", threshold)[1] for a in ("true", "false") for b in ("positive", "negative")]
        assert counts == [d.tp, d.tn, d.fp, d.fn]


def test_quarantined_and_retired_are_left_out_and_counted(comparison: Comparison) -> None:
    Item.objects.filter(external_id="t0").update(quarantined=True)
    retired = comparison.question.tasks.get(item__external_id="t1")
    retired.state = TaskState.RETIRED
    retired.save()
    found = comparing.result(comparison)
    assert found.decisions.tp == 0
    assert {code: number for code, _, number in found.left_out} == {"quarantined": 1, "open": 1, "retired": 1, "unscored": 1}
    assert comparing.cell_items(comparison, "true_positive")[1] == 0


def test_another_version_of_the_scorer_and_another_score_never_mix_in(cast: Cast, comparison: Comparison) -> None:
    items = list(Item.objects.filter(project=cast.project))
    make_scorer(cast, dict.fromkeys(items, 0.0), version=2)
    for item in items[:3]:
        comparison.scorer.scores.create(item=item, name="insult", value=0.0)
    assert comparing.result(comparison).decisions.tp == 2


def test_a_superseded_label_does_not_count(comparison: Comparison) -> None:
    truth = comparison.question.truths.get(item__external_id="t0")
    truth.superseded_at = truth.created_at
    truth.save()
    truth.pk, truth.superseded_at, truth.choice = None, None, comparison.question.choices.get(value="no")
    truth.save()
    d = comparing.result(comparison).decisions
    assert (d.tp, d.fp) == (1, 2)


def sample_of(cast: Cast, probabilities: dict[str, float]) -> Sample:
    sample = Sample.objects.create(project=cast.project, name="drawn", seed=1, size=len(probabilities), population=20)
    for external_id, probability in probabilities.items():
        item, _ = Item.objects.get_or_create(
            project=cast.project, external_id=external_id, defaults={"kind": "text", "text": "More.", "content_hash": b"x" * 32}
        )
        SampleItem.objects.create(sample=sample, item=item, probability=probability)
    return sample


def test_a_sample_with_unequal_probabilities_is_weighted_and_says_so(cast: Cast, comparison: Comparison) -> None:
    comparison.sample = sample_of(cast, {"t0": 1.0, "t3": 0.25, "new": 0.5})
    found = comparing.result(comparison)
    # One hit that stands for itself, one false alarm that stands for four.
    assert found.weighted
    assert found.decisions.precision.value == pytest.approx(1 / 5)
    assert (found.decisions.tp, found.decisions.fp) == (1, 1)
    assert [(code, number) for code, _, number in found.left_out] == [("none", 1)]
    assert comparing.cell_items(comparison, "unlabelled")[1] == 1


def test_a_sample_with_equal_probabilities_is_plain(cast: Cast, comparison: Comparison) -> None:
    comparison.sample = sample_of(cast, {"t0": 0.25, "t3": 0.25})
    found = comparing.result(comparison)
    assert not found.weighted
    assert found.decisions.precision.value == 0.5


def test_a_seed_and_its_derivatives_are_one_group(comparison: Comparison) -> None:
    seed = Item.objects.get(external_id="t0")
    Item.objects.filter(external_id__in=["t1", "t2"]).update(origin=seed)
    assert comparing.result(comparison).groups == 3


def test_figures_by_a_metadata_key(comparison: Comparison) -> None:
    for external_id, recipe in {"t0": "swap", "t1": "swap", "t2": "typo", "t3": "swap"}.items():
        Item.objects.filter(external_id=external_id).update(metadata={"recipe": recipe, "other": 1})
    parts, more = comparing.by_metadata(comparison, "recipe")
    assert [(part.value, part.items, part.decisions.tp, part.decisions.fp, part.decisions.fn) for part in parts] == [
        ("swap", 3, 2, 1, 0), ("typo", 1, 0, 0, 1), (None, 1, 0, 0, 0),
    ]  # fmt: skip
    assert more == 0
    assert comparing.metadata_keys(comparison) == ["other", "recipe"]


def test_without_labels_every_figure_says_why(cast: Cast, question) -> None:  # type: ignore[no-untyped-def]
    scorer = make_scorer(cast, {})
    comparison = comparing.create(cast.bob, name="Empty", positive=question.choices.get(value="yes"), scorer=scorer, score_name="toxicity")
    found = comparing.result(comparison)
    assert found.decisions.precision.value is None
    assert found.decisions.precision.reason
    assert found.curve is None
    assert comparing.by_metadata(comparison, "recipe") == ([], 0)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"score_name": "nonsense"}, "score_name"),
        ({"threshold": math.nan}, "threshold"),
        ({"positive": "unsure"}, "positive"),
        ({}, "name"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_field(comparison: Comparison, cast: Cast, change: dict[str, object], field: str) -> None:
    fields = {"name": "Judge", "positive": "yes", "scorer": comparison.scorer, "score_name": "toxicity"} | change
    fields["positive"] = comparison.question.choices.get(value=fields["positive"])
    with pytest.raises(Invalid) as refusal:
        comparing.create(cast.bob, **fields)
    assert list(refusal.value.fields) == [field]


def test_another_projects_scorer_is_refused(cast: Cast, comparison: Comparison) -> None:
    positive = make_question(cast.mallory.project).choices.get(value="yes")
    with pytest.raises(Invalid):
        comparing.create(cast.bob, name="Mixed", positive=positive, scorer=comparison.scorer, score_name="toxicity")
    with pytest.raises(Missing):
        comparing.find(cast.mallory.project, comparison.pk)
