"""Draws from the posterior in ArviZ: named dimensions, ids as coordinates."""

import sys

import arviz_base
import numpy as np
import pytest
from arviz_stats.base import array_stats
from builders import crowd

import crowdgraph as cg
from crowdgraph.core.fit import PosteriorDraws
from crowdgraph.errors import MissingPackageError, NotAnnotatedError, ParameterError, ResultError
from crowdgraph.models.gibbs_ibcc import check_draws_memory


@pytest.fixture(scope="module")
def answered():
    return crowd(n_volunteers=6, n_items=15, n_responses=60, gold=0.2).graph


@pytest.fixture(scope="module")
def wider(answered):
    """With one volunteer and one item without answers, which are not drawn from, or from the prior."""
    return cg.CrowdGraph.from_responses(
        answered.to_arrow(),
        gold=dict(answered.gold),
        volunteers={"volunteer": ["nobody", *answered.volunteers.ids.tolist()]},
        items={"item": ["nothing", *answered.items.ids.tolist()]},
    )


@pytest.fixture(scope="module")
def fit(wider):
    return cg.GibbsIBCC(stop_change=0.05, keep_draws=100_000).fit(wider, seed=0)


def test_draws_have_named_dimensions_and_ids_as_coordinates(answered, wider, fit):
    posterior = fit.to_arviz()["posterior"]
    n_drawn = fit.n_iter
    assert posterior["class_probs"].dims == ("chain", "draw", "class")
    assert posterior["item_class"].dims == ("chain", "draw", "item")
    assert posterior["confusion"].dims == ("chain", "draw", "volunteer", "class", "response_label")
    assert dict(posterior.sizes) == {
        "chain": 4,
        "draw": n_drawn,
        "class": 2,
        "item": 16,
        "volunteer": 6,
        "response_label": 2,
    }
    assert posterior["volunteer"].values.tolist() == answered.volunteers.ids.tolist()
    assert posterior["item"].values.tolist() == wider.items.ids.tolist()
    assert tuple(posterior["class"].values) == answered.classes
    assert tuple(posterior["response_label"].values) == answered.labels
    assert fit.to_arviz()["sample_stats"]["lp"].dims == ("chain", "draw")


def test_means_are_those_of_the_fit(fit):
    posterior = fit.to_arviz()["posterior"]
    assert np.allclose(posterior["class_probs"].mean(["chain", "draw"]), fit.class_probs)
    confusion = posterior["confusion"]
    assert np.allclose(confusion.sum("response_label"), 1, atol=1e-5)
    # The fit's are means of what is expected given the classes; these are means of draws, and vary by that much more.
    for name in ("confusion", "item_class"):
        spread = posterior[name].std(["chain", "draw"]).values
        size = array_stats.ess(posterior[name].values, chain_axis=0, draw_axis=1)
        mean = posterior[name].mean(["chain", "draw"]).values
        expected = fit.confusion.latest().mean[1:] if name == "confusion" else fit.item_probs[:, 1]
        moving = spread > 0
        assert moving.any()
        assert (np.abs(mean - expected)[moving] < 5 * (spread / np.sqrt(size))[moving]).all()
        assert np.allclose(mean[~moving], expected[~moving])


def test_confusion_stays_with_its_volunteer(answered):
    """With gold for everything each volunteer's Dirichlet is known exactly: their draws have its mean and spread."""
    gold = dict(zip(answered.items.ids.tolist(), np.resize(np.array(answered.classes), 15).tolist(), strict=True))
    graph = answered.with_gold(gold)
    prior = {"confusion_prior": (4, 1)}
    fit = cg.GibbsIBCC(keep_draws=500, stop_change=1.0, max_draws=500, r_hat=2.0, **prior).fit(graph, seed=1)
    exact = cg.IBCC(**prior).fit(graph).confusion.latest()
    draws = fit.to_arviz()["posterior"]["confusion"].stack(sample=("chain", "draw"))
    total = exact.concentration.sum(axis=2, keepdims=True)
    variance = exact.mean * (1 - exact.mean) / (total + 1)
    n_draws = draws.sizes["sample"]
    assert (np.abs(draws.mean("sample").values - exact.mean) < 5 * np.sqrt(variance / n_draws) + 1e-6).all()
    assert np.allclose(draws.var("sample").values, variance, rtol=0.5)


def test_arviz_works_out_what_the_fit_tells(fit):
    posterior = fit.to_arviz()["posterior"]
    r_hat = {
        name: array_stats.rhat(posterior[name].values, chain_axis=0, draw_axis=1)
        for name in ("class_probs", "confusion")
    }
    assert r_hat["class_probs"].max() == pytest.approx(fit.diagnostics["r_hat"]["class_probs"])
    assert r_hat["confusion"].shape == (6, 2, 2)
    assert r_hat["confusion"].max() < 1.05


def test_arviz_makes_tables_of_draws(fit):
    """Its tables have a dimension of their own, whose name ours must not have."""
    table = arviz_base.dataset_to_dataframe(fit.to_arviz()["posterior"].dataset)
    assert table.shape == (4 * fit.n_iter, 2 + 16 + 6 * 2 * 2)
    assert "confusion[volunteer-0, no, yes]" in table.columns


def test_the_last_draws_are_stored(wider, fit):
    few = cg.GibbsIBCC(stop_change=0.05, keep_draws=130).fit(wider, seed=0)
    assert few.n_iter == fit.n_iter
    assert few.n_iter > 130
    for name in ("class_probs", "log_joint", "item_classes", "confusion"):
        assert np.array_equal(getattr(few.draws, name), getattr(fit.draws, name)[:, -130:])
    assert few.to_arviz()["posterior"]["draw"].values[[0, -1]].tolist() == [few.n_iter - 130, few.n_iter - 1]
    assert repr(few.draws) == "PosteriorDraws(4 chains of 130 draws: classes of 16 items, confusion of 6 volunteers)"


def test_storing_draws_changes_nothing_else(wider, fit):
    plain = cg.GibbsIBCC(stop_change=0.05).fit(wider, seed=0)
    assert np.array_equal(plain.item_probs, fit.item_probs)
    posterior = plain.to_arviz()["posterior"]
    assert set(posterior.data_vars) == {"class_probs", "item_class"}
    watched = plain.diagnostics["watched_items"].tolist()
    assert posterior["item"].values.tolist() == watched
    assert np.array_equal(posterior["item_class"], plain.diagnostics["draws"]["item_classes"])


def test_draws_are_saved(tmp_path, wider, fit):
    wider.annotate(fit).save(tmp_path / "x.crowd")
    loaded = cg.load(tmp_path / "x.crowd").fit()
    assert loaded.to_arviz()["posterior"].equals(fit.to_arviz()["posterior"])


def test_ids_of_any_kind_become_coordinates():
    graph = cg.CrowdGraph.from_responses(
        {
            "volunteer": [("a", 1), ("a", 2)] * 3,
            "item": [1, 1, 2, 2, 3, 3],
            "label": [True, True, False, False, True, False],
        }
    )
    with pytest.warns(cg.errors.ConvergenceWarning):
        fit = cg.GibbsIBCC(keep_draws=20, max_draws=20).fit(graph, seed=0)
    posterior = fit.to_arviz()["posterior"]
    assert posterior["volunteer"].values.tolist() == ["('a', 1)", "('a', 2)"]
    assert posterior["item"].values.tolist() == [1, 2, 3]
    assert posterior["class"].values.tolist() == [False, True]


def test_models_without_draws_and_missing_packages_are_named(answered, fit, monkeypatch):
    with pytest.raises(NotAnnotatedError, match=r"'majority_vote' draws nothing.*GibbsIBCC"):
        cg.MajorityVote().fit(answered).to_arviz()
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    with pytest.raises(MissingPackageError, match="pip install arviz-base"):
        fit.to_arviz()


def test_the_memory_of_draws_is_bounded(answered):
    with pytest.raises(ParameterError, match="keep_draws=-1"):
        cg.GibbsIBCC(keep_draws=-1)
    with pytest.raises(ParameterError, match=r"keep_draws=100000000 of 4 chains would take .* Use keep_draws=\d+ or"):
        cg.GibbsIBCC(keep_draws=10**8).fit(answered, seed=0)
    # Four chains of two bytes for each of a thousand items and four for each of 10 x 2 x 3 entries.
    most = 10**9 // (4 * (2 * 1000 + 4 * 60))
    check_draws_memory(most, 4, 1000, (10, 2, 3))
    with pytest.raises(ParameterError, match=f"Use keep_draws={most} or less"):
        check_draws_memory(most + 1, 4, 1000, (10, 2, 3))


DRAWS = {
    "classes": ("a", "b"),
    "labels": ("x", "y", "z"),
    "class_probs": np.full((1, 4, 2), 0.5),
    "log_joint": np.zeros((1, 4)),
    "items": ["i"],
    "item_classes": np.zeros((1, 4, 1), dtype=int),
    "volunteers": ["v"],
    "confusion": np.full((1, 4, 1, 2, 3), 1 / 3),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class_probs": np.zeros((1, 3, 2))}, r"class_probs has shape \(1, 3, 2\); expected \(1, 4, 2\)"),
        ({"confusion": np.zeros((1, 4, 1, 3, 2))}, r"confusion has shape .*; expected \(1, 4, 1, 2, 3\)"),
        ({"items": ["i", "j"]}, r"item_classes has shape .*; expected \(1, 4, 2\)"),
        ({"log_joint": np.zeros(4)}, "for chains and draws"),
    ],
)
def test_draws_that_do_not_fit_together_are_refused(changes, message):
    assert len(PosteriorDraws(**DRAWS)) == 4
    with pytest.raises(ResultError, match=message):
        PosteriorDraws(**{**DRAWS, **changes})
