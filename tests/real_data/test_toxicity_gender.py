"""13,080 votes of 545 people on 120 comments, one a row, with what is known of the people."""

from pathlib import Path
from typing import Any

import pytest
from django.db.models import Count, Q

from annotation.models import Membership, Project, Vote
from curation.importing.mapping import Mapping
from curation.importing.votes import Votes
from tests import cast as make
from tests.real_data.votes import bring, close, disputed, figures, labels, three

KNOWN = ("race", "age", "gender", "politic")
VOTES = Votes(
    question="toxic", form="long", columns=("answer",), rater="workerId", attributes=KNOWN, make="toxicity", policy="majority",
    choices={"1": "yes", "-1": "no"},
)  # fmt: skip


@pytest.fixture
def project(db: None, data: Path) -> Project:
    """The comments are there; the votes come in a file of their own."""
    made = make.make_project("gender")
    bring(made, data / "toxicity_gender" / "comments.csv", Mapping(text="text", external_id="id"))
    return made


def on_comments(*votes: Votes) -> Mapping:
    return Mapping(external_id="comment", votes=votes, existing=True)


def test_votes_of_545_people_settle_120_comments_as_the_facts_say(project: Project, data: Path, facts: dict[str, Any]) -> None:
    said = facts["toxicity_gender"]
    path = data / "toxicity_gender" / "pilot_annotations.csv"
    done = bring(project, path, on_comments(VOTES))
    (one,) = done.votes
    assert (done.rows, done.created, done.unchanged, done.bad) == (said["rows"], 0, said["comments"], 0)
    assert (one["votes"], one["tasks"], one["raters"], one["repeats"]) == (said["rows"], said["comments"], said["raters"], 0)
    majority = said["majority"]
    assert labels(project, "toxic") == {"yes": majority["strict_majority"]["toxic"], "no": majority["strict_majority"]["not"]}
    assert disputed(project, "toxic") == majority["strict_majority"]["no_majority"] == majority["plurality_ties"]
    found, agreement = figures(project, "toxic"), said["agreement"]
    assert close(found.alpha, agreement["alpha_nominal"])
    assert close(found.pairwise, agreement["pairwise_observed_agreement"])
    assert close(found.unanimous, majority["unanimous_share"])
    assert close(found.fleiss, agreement["fleiss"]["kappa"])
    assert (found.fleiss_votes, found.fleiss_left_out) == (agreement["fleiss"]["raters_per_item"], agreement["fleiss"]["items_left_out"])

    again = bring(project, path, on_comments(VOTES))
    assert (again.votes[0]["votes"], again.votes[0]["taken"], again.votes[0]["raters"]) == (0, said["rows"], 0)
    assert Vote.objects.count() == said["rows"]


def test_what_is_known_of_the_people_is_kept_and_splits_their_votes(project: Project, data: Path, facts: dict[str, Any]) -> None:
    said = facts["toxicity_gender"]
    done = bring(project, data / "toxicity_gender" / "pilot_annotations.csv", on_comments(VOTES))
    assert done.notes == []
    first = Membership.objects.get(project=project, rater="CpRmgBdw")
    assert first.attributes == {"race": "White", "age": "36", "gender": "Female", "politic": "Democrat"}
    for attribute in ("gender", "politic"):
        groups = Vote.objects.values_list(f"member__attributes__{attribute}").annotate(
            n=Count("pk"), k=Count("pk", filter=Q(choice__value="yes"))
        )
        rates = said[f"vote_rate_by_{attribute}"]
        assert {group: {"n": n, "k": k} for group, n, k in groups} == {
            group: {"n": rate["n"], "k": rate["k"]} for group, rate in rates.items()
        }


def test_three_votes_and_an_adjudicator_are_needed_as_often_as_computed(project: Project, data: Path, facts: dict[str, Any]) -> None:
    said = facts["toxicity_gender"]["rule_3plus1"]
    done = bring(project, data / "toxicity_gender" / "pilot_annotations.csv", on_comments(three(VOTES, "toxic")))
    assert done.votes[0]["states"] == {"agreed": said["unanimous"], "disputed": said["to_adjudication"]}
    assert labels(project, "toxic") == {"yes": said["unanimous_labels"]["toxic"], "no": said["unanimous_labels"]["not"]}
    assert done.votes[0]["surplus"] == facts["toxicity_gender"]["rows"] - 3 * 120
