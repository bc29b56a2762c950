"""``crowdgraph evaluate``: the measures of cross-validation, as a table and for machines."""

import json

import pytest
from cli.commands import run

import crowdgraph as cg


@pytest.fixture(scope="module")
def options(crowd):
    models = ("--model", "majority_vote", "--model", "ibcc", "--model", "cautious")
    return (crowd / "responses.csv", "--gold", crowd / "gold.csv", "--folds", 2, *models)


def test_a_table_names_the_measures_and_the_best_model(options):
    result = run("evaluate", *options)
    assert result.exit_code == 0
    assert "accuracy ↑" in result.stdout
    assert "log_loss ↓" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("Most often right: ")


def test_numbers_are_those_of_cross_validation(options, crowd):
    printed = json.loads(run("evaluate", *options, "--json").stdout)
    assert list(printed["models"]) == ["majority_vote", "ibcc", "cautious"]
    graph = cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv")
    expected = cg.evaluation.cross_validate(graph, [cg.MajorityVote(), cg.IBCC(), cg.Cautious()], folds=2)
    assert printed["models"]["ibcc"]["accuracy"]["mean"] == pytest.approx(expected.mean("accuracy")[1])
    losses = expected.mean("log_loss")
    best, second = losses.argsort()[:2]
    ahead = losses[second] - losses[best]
    assert printed["best"]["log_loss"]["model"] == expected.models[best]
    assert printed["best"]["log_loss"]["ahead"] == pytest.approx(ahead)
    spread = expected.spread("log_loss")[[best, second]].max()
    assert printed["best"]["log_loss"]["beyond_spread"] == (ahead > spread)


def test_a_single_model_is_ahead_of_none(crowd):
    source = (crowd / "responses.csv", "--gold", crowd / "gold.csv")
    result = run("evaluate", *source, "--folds", 2, "--model", "majority_vote", "--json")
    assert list(json.loads(result.stdout)["best"]["log_loss"]) == ["model", "mean"]


def test_votes_ibcc_and_calibrated_are_compared_by_default(crowd):
    command = ("evaluate", crowd / "responses.csv", "--gold", crowd / "gold.csv", "--folds", 2, "--json")
    scores = json.loads(run(*command).stdout)["models"]
    assert list(scores) == ["majority_vote", "ibcc", "calibrated"]
    # The prior is for those that have one.
    noted = run(*command, "--prior", "40,1")
    assert "--prior is not for majority_vote." in noted.stderr
    with_prior = json.loads(noted.stdout)["models"]
    for score in ("accuracy", "log_loss"):
        assert with_prior["majority_vote"][score] == scores["majority_vote"][score]
    for model in ("ibcc", "calibrated"):
        assert with_prior[model]["log_loss"] != scores[model]["log_loss"]
    same = json.loads(run(*command, "--prior", "crowd").stdout)["models"]
    assert same["ibcc"]["log_loss"] == scores["ibcc"]["log_loss"]
