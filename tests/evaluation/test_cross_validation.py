"""Cross validation hides what it says, scores what models said, and tells it plainly."""

import pickle
import warnings
from dataclasses import dataclass, replace
from math import log
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.errors import CollapsedFitWarning, GoldError, ParameterError, RepeatedAnswersWarning, ResultError
from crowdgraph.evaluation import cross_validate
from crowdgraph.evaluation.cross_validation import CrossValidation
from crowdgraph.evaluation.scores import nan_mean, nan_std
from crowdgraph.models import Model


@dataclass(frozen=True, kw_only=True)
class Said(Model):
    """States the probabilities that it was constructed with."""

    name: ClassVar[str] = "said"

    probs: np.ndarray

    def _fit(self, graph, *, seed, **_):
        return self._result(graph, seed=seed, item_probs=self.probs, class_probs=self.probs.mean(axis=0))


def graph_of(truth, *, classes=("no", "yes"), **options):
    """Every item answered once, rightly; gold for all."""
    names = [classes[code] for code in truth]
    items = list(range(len(truth)))
    columns = {"volunteer": ["anna"] * len(truth), "item": items, "label": names}
    gold = dict(zip(items, names, strict=True))
    return cg.CrowdGraph.from_responses(columns, **{"gold": gold, "classes": classes, "labels": classes, **options})


def said_of(truth, *, n_classes=2, seed=0):
    """Made-up probabilities that lean towards the truth."""
    rng = np.random.default_rng(seed)
    return Said(probs=0.3 * np.eye(n_classes)[truth] + 0.7 * rng.dirichlet(np.ones(n_classes), size=len(truth)))


TRUTH = np.array([0, 1, 1, 0, 1, 0, 0, 1, 0, 0])


@pytest.fixture(scope="module")
def result():
    return cross_validate(graph_of(TRUTH), {"left": said_of(TRUTH), "right": said_of(TRUTH, seed=1)}, folds=3)


# What is hidden


def test_hidden_gold_is_hidden():
    """A model sees every response and, of the gold, all but one fold; soft gold is always there."""
    seen = []

    class Spy(Said):
        def _fit(self, graph, *, seed, **options):
            seen.append((graph, seed))
            return super()._fit(graph, seed=seed, **options)

    soft = {8: {"no": 0.2, "yes": 0.8}}
    gold = {item: ("no", "yes")[code] for item, code in enumerate(TRUTH[:8])} | soft
    graph = graph_of(TRUTH, gold=gold).annotate(cg.MajorityVote().fit(graph_of(TRUTH)))
    result = cross_validate(graph, Spy(probs=said_of(TRUTH).probs), folds=4, seed=7)
    assert result.items.tolist() == list(range(8))
    assert len(seen) == 4
    for fold, (view, seed) in enumerate(seen):
        hidden = set(result.items[result.folds == fold].tolist())
        assert len(hidden) == 2
        assert dict(view.gold) == {item: label for item, label in gold.items() if item not in hidden}
        assert view.responses.label.tolist() == graph.responses.label.tolist()
        assert not view.annotations
        assert seed == 7
    assert dict(graph.gold) == gold


def test_probabilities_are_those_of_models_fitted_to_the_rest():
    graph = cg.simulate.crowd(n_volunteers=20, n_items=60, n_responses=400, gold=0.8, seed=3).graph
    result = cross_validate(graph, [cg.WeightedMajority(factor=0.5), cg.IBCC()], folds=3, seed=1)
    for fold in range(3):
        hidden = result.items[result.folds == fold].tolist()
        rest = graph.with_gold({item: label for item, label in graph.gold.items() if item not in hidden})
        for index, model in enumerate((cg.WeightedMajority(factor=0.5), cg.IBCC())):
            expected = model.fit(rest).item_probs[graph.items.codes(hidden)]
            np.testing.assert_array_equal(result.item_probs[index, result.folds == fold], expected)
    assert [graph.classes[code] for code in result.truth] == [graph.gold[item] for item in result.items.tolist()]


@pytest.mark.slow
@given(st.lists(st.integers(0, 12), min_size=2, max_size=4).filter(lambda sizes: sum(map(bool, sizes)) > 1), st.data())
def test_folds_have_even_shares_of_every_class(sizes, data):
    truth = np.repeat(np.arange(len(sizes)), sizes)
    n_folds = data.draw(st.integers(2, len(truth)))
    classes = tuple("abcd"[: len(sizes)])
    graph = graph_of(truth, classes=classes)
    result = cross_validate(graph, said_of(truth, n_classes=len(sizes)), folds=n_folds)
    table = np.zeros((n_folds, len(sizes)), dtype=int)
    np.add.at(table, (result.folds, result.truth), 1)
    assert result.n_folds == n_folds
    assert table.sum(axis=0).tolist() == sizes
    assert np.ptp(table, axis=0).max() <= 1
    assert np.ptp(table.sum(axis=1)) <= 1


def test_the_seed_decides_the_folds():
    graph, model = graph_of(TRUTH), said_of(TRUTH)
    folds = [cross_validate(graph, model, seed=seed).folds.tolist() for seed in (0, 0, 1)]
    assert folds[0] == folds[1] != folds[2]


# What is scored


def test_scores_by_hand(result):
    for index in range(2):
        for fold in range(3):
            here = result.folds == fold
            probs, truth = result.item_probs[index, here], result.truth[here]
            rows = list(zip(probs.tolist(), truth.tolist(), strict=True))
            said = [row[code] for row, code in rows]
            brier = [sum((value - (k == code)) ** 2 for k, value in enumerate(row)) for row, code in rows]
            got = {score: values[index, fold] for score, values in result.scores.items()}
            assert got["accuracy"] == pytest.approx(np.mean([row[code] == max(row) for row, code in rows]))
            assert got["log_loss"] == pytest.approx(-sum(map(log, said)) / len(said))
            assert got["brier"] == pytest.approx(sum(brier) / len(brier))
            yes, no = [[row[1] for row, code in rows if code == k] for k in (1, 0)]
            assert got["auc(yes)"] == pytest.approx(np.mean([[one > other for other in no] for one in yes]))
            assert got["auc"] == pytest.approx((got["auc(no)"] + got["auc(yes)"]) / 2)
    assert (result.scores["seconds"] > 0).all()


def test_calibration_errors_by_hand():
    """One bin: the mean probability of the most probable class against the share that is right."""
    probs = np.array([[0.8, 0.2], [0.4, 0.6], [0.7, 0.3], [0.9, 0.1]])
    truth = np.array([0, 1, 1, 0])
    result = cross_validate(graph_of(truth), Said(probs=probs), folds=2, n_bins=1)
    right = probs.argmax(axis=1) == truth
    gaps = [
        abs(probs.max(axis=1)[result.folds == fold].mean() - right[result.folds == fold].mean()) for fold in range(2)
    ]
    np.testing.assert_allclose(result.scores["calibration_error"][0], gaps)
    curve = result.reliability("said")
    assert (curve.stated.round(12).tolist(), curve.observed.tolist(), curve.n_items.tolist()) == ([0.75], [0.75], [4])
    assert curve.calibration_error == pytest.approx(np.mean(gaps))


def test_a_model_that_knows_is_perfect_and_one_that_errs_for_certain_is_not():
    right = Said(probs=np.eye(2)[TRUTH])
    wrong = Said(probs=np.eye(2)[1 - TRUTH])
    result = cross_validate(graph_of(TRUTH), {"right": right, "wrong": wrong}, folds=2)
    expected = {
        "auc": [1, 0],
        "auc(yes)": [1, 0],
        "accuracy": [1, 0],
        "log_loss": [0, 36.04365338911715],
        "brier": [0, 2],
        "calibration_error": [0, 1],
    }
    for score, values in expected.items():
        np.testing.assert_allclose(result.mean(score), values, atol=1e-12)
        np.testing.assert_allclose(result.spread(score), 0, atol=1e-12)


def test_rare_classes_are_averaged_over_folds_that_have_them():
    """One item of `b` and none of `c`: an AUC of `b` in one fold, of `c` in none."""
    truth = np.array([0, 0, 0, 1, 0, 3, 3, 3, 0])
    result = cross_validate(graph_of(truth, classes=tuple("abcd")), said_of(truth, n_classes=4), folds=3)
    n_defined = {name: int((~np.isnan(result.scores[f"auc({name})"])).sum()) for name in "abcd"}
    assert n_defined == {"a": 3, "b": 1, "c": 0, "d": 3}
    assert result.mean("auc(b)")[0] == np.nanmax(result.scores["auc(b)"])
    assert np.isnan([result.spread("auc(b)")[0], result.mean("auc(c)")[0], result.spread("auc(c)")[0]]).all()
    by_class = np.array([result.scores[f"auc({name})"][0] for name in "abcd"])
    np.testing.assert_allclose(result.scores["auc"][0], np.nanmean(by_class, axis=0))
    assert result.roc("said", positive="b").auc == result.mean("auc(b)")[0]
    assert np.isnan(result.roc("said", positive="b").spread).all()
    with pytest.raises(ParameterError, match="No fold holds both items of 'c' and others"):
        result.roc("said", positive="c")


def test_leaving_one_out_has_no_areas():
    result = cross_validate(graph_of(TRUTH), said_of(TRUTH), folds=len(TRUTH))
    assert np.isnan(result.mean("auc")[0])
    assert 0 < result.mean("accuracy")[0] <= 1
    with pytest.raises(ParameterError, match=r"no ROC curve\. Use fewer folds"):
        result.roc("said")


def test_single_precision_is_precise_enough():
    probs = np.random.default_rng(0).dirichlet(np.ones(3), size=60).astype(np.float32)
    truth = np.arange(60) % 3
    result = cross_validate(graph_of(truth, classes=tuple("abc")), Said(probs=probs))
    loss = -np.log(probs[np.arange(60), truth].astype(float)).mean()
    assert result.mean("log_loss")[0] == pytest.approx(loss, rel=1e-6)


def test_items_that_nobody_answered_are_scored_and_told():
    columns = {"volunteer": ["anna"] * 3, "item": ["x", "y", "z"], "label": ["no", "yes", None]}
    graph = cg.CrowdGraph.from_responses(
        columns,
        items={"item": ["u", "x", "y", "z"]},
        gold={"u": "no", "x": "no", "y": "yes", "z": "yes"},
        missing="keep",
    )
    result = cross_validate(graph, cg.MajorityVote(), folds=2)
    assert result.items.tolist() == ["u", "x", "y", "z"]
    assert result.n_unanswered == 2
    assert result.item_probs[0].tolist() == [[0.5, 0.5], [1, 0], [0, 1], [0.5, 0.5]]
    assert repr(result).startswith("CrossValidation: 2 folds of 4 gold items (2 of them unanswered)\n")


# Tables and text


def test_means_and_spreads_skip_what_is_not_defined():
    values = np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, np.nan], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(nan_mean(values, axis=1), [2, 5, np.nan])
    np.testing.assert_allclose(nan_std(values, axis=1), [np.sqrt(2), np.nan, np.nan])


def test_means_and_spreads_of_scores(result):
    for score, values in result.scores.items():
        np.testing.assert_allclose(result.mean(score), values.mean(axis=1))
        np.testing.assert_allclose(result.spread(score), values.std(axis=1, ddof=1))
    with pytest.raises(ParameterError, match=r"score='acuracy' is not a choice.*Did you mean 'accuracy'"):
        result.mean("acuracy")


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_tables(result, kind):
    frame = result.to_frame(kind=kind)
    columns = frame.column_names if kind == "arrow" else list(frame.columns)
    scores = ["auc", "auc(no)", "auc(yes)", "accuracy", "log_loss", "brier", "calibration_error", "seconds"]
    assert columns == ["model", *(name for score in scores for name in (score, f"spread of {score}"))]
    assert np.asarray(frame["model"]).tolist() == ["left", "right"]
    for score in scores:
        np.testing.assert_array_equal(np.asarray(frame[score]), result.mean(score))
        np.testing.assert_array_equal(np.asarray(frame[f"spread of {score}"]), result.spread(score))


def test_a_result_prints_as_a_table(result):
    values = {score: np.array([[0.25, 0.5, 0.75], [12.0, 12.0, np.nan]]) for score in result.scores}
    text = repr(replace(result, scores=values, models=("left", "a longer name")))
    assert text == (
        "CrossValidation: 3 folds of 10 gold items\n"
        "  mean ± standard deviation over folds\n"
        "  classes: no 6, yes 4\n"
        "  model           auc              accuracy         log_loss         brier            calibration_error   "
        "seconds\n"
        "  left            0.500 ± 0.250    0.500 ± 0.250    0.500 ± 0.250    0.500 ± 0.250    0.500 ± 0.250       "
        "0.500 ± 0.250\n"
        "  a longer name   12.000 ± 0.000   12.000 ± 0.000   12.000 ± 0.000   12.000 ± 0.000   12.000 ± 0.000      "
        "12.000 ± 0.000"
    )


def test_many_classes_are_told_shortly():
    truth = np.arange(24) % 12
    classes = tuple("abcdefghijkl")
    result = cross_validate(graph_of(truth, classes=classes), said_of(truth, n_classes=12), folds=2)
    assert "  classes: a 2, b 2, c 2, d 2, e 2, f 2, g 2, h 2 and 4 more\n" in repr(result)


def test_curves_are_averages_over_folds(result):
    rates = result.true_positive_rate
    assert rates.shape == (2, 3, 2, len(result.false_positive_rate))
    for index, model in enumerate(result.models):
        curve = result.roc(model)
        np.testing.assert_allclose(curve.true_positive_rate, rates[index, :, 1].mean(axis=0))
        np.testing.assert_allclose(curve.spread, rates[index, :, 1].std(axis=0, ddof=1))
        assert curve.auc == result.mean("auc(yes)")[index]
        other = result.roc(model, positive="no")
        np.testing.assert_allclose(other.true_positive_rate, rates[index, :, 0].mean(axis=0))
    with pytest.raises(ParameterError, match=r"positive='yess' is not a class.*Did you mean 'yes'"):
        result.roc("left", positive="yess")
    with pytest.raises(ParameterError, match=r"model='lft' is not a choice.*Did you mean 'left'"):
        result.roc("lft")


def test_curves_of_several_classes_are_averaged_over_classes():
    truth = np.arange(30) % 3
    result = cross_validate(graph_of(truth, classes=tuple("abc")), said_of(truth, n_classes=3), folds=3)
    curve = result.roc("said")
    np.testing.assert_allclose(curve.true_positive_rate, result.true_positive_rate[0].mean(axis=(0, 1)))
    assert curve.auc == result.mean("auc")[0]


def test_reliability_is_over_the_items_of_all_folds(result):
    for index, model in enumerate(result.models):
        curve = result.reliability(model)
        probs = result.item_probs[index]
        assert curve.n_items.sum() == len(result.items)
        assert (curve.n_items > 0).all()
        assert (curve.stated * curve.n_items).sum() == pytest.approx(probs.max(axis=1).sum())
        right = np.count_nonzero(probs.argmax(axis=1) == result.truth)
        assert (curve.observed * curve.n_items).sum() == pytest.approx(right)


def test_results_cannot_be_changed(result):
    for copy in (result, pickle.loads(pickle.dumps(result))):  # noqa: S301
        for array in (copy.item_probs, copy.truth, copy.folds, copy.stated, copy.n_items, *copy.scores.values()):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
    with pytest.raises(AttributeError):
        result.models = ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"truth": [0]}, r"truth has shape \(1,\); expected \(10,\)"),
        ({"truth": [2] * 10}, "truth runs from 2 to 2; expected 0 to 1"),
        ({"folds": [-1] * 10}, "folds runs from -1"),
        ({"models": ("one",)}, "item_probs has shape"),
        ({"scores": {"auc": [[0.5] * 3] * 2}}, "The scores are 'auc'; expected 'auc', 'auc.no.'"),
        ({"stated": [[0.5] * 3] * 2}, r"stated has shape \(2, 3\); expected \(2, 10\)"),
        ({"n_items": [[1] * 9] * 2}, "n_items must count the 10 items"),
        ({"false_positive_rate": [0.0, 1.0]}, "true_positive_rate has shape"),
    ],
)
def test_results_that_do_not_fit_together_are_refused(result, changes, message):
    with pytest.raises(ResultError, match=message):
        replace(result, **changes)


# Names, warnings and progress


def test_models_go_by_their_names():
    graph, model = graph_of(TRUTH), said_of(TRUTH)
    assert cross_validate(graph, model).models == ("said",)
    assert cross_validate(graph, (model, cg.MajorityVote())).models == ("said", "majority_vote")
    assert isinstance(cross_validate(graph, {"mine": model}), CrossValidation)
    with pytest.raises(ParameterError, match=r"Several models are called 'said'\. Name them with a mapping"):
        cross_validate(graph, [model, cg.MajorityVote(), model])


def test_warnings_come_once_for_each_model():
    """Three kinds in each of five fits of two models, of which one says the same of all items."""

    class Loud(Said):
        def _fit(self, graph, **options):
            warnings.warn(f"{len(graph.gold)} left", RuntimeWarning, stacklevel=1)
            return super()._fit(graph, **options)

    truth = TRUTH[:-1]  # so that folds differ in size and the message with them
    columns = {"volunteer": ["anna"] * 10, "item": [*range(9), 0], "label": [*truth, 1]}
    graph = cg.CrowdGraph.from_responses(columns, gold=dict(enumerate(truth.tolist())))
    flat = Loud(probs=np.full((9, 2), 0.5))
    with pytest.warns() as caught:
        cross_validate(graph, {"flat": flat, "loud": Loud(probs=said_of(truth).probs)})
    kinds = [(warning.category, "'flat'" in str(warning.message)) for warning in caught]
    assert sorted(kinds, key=str) == sorted(
        [
            (RepeatedAnswersWarning, True),
            (RuntimeWarning, True),
            (CollapsedFitWarning, True),
            (RepeatedAnswersWarning, False),
            (RuntimeWarning, False),
        ],
        key=str,
    )
    messages = {str(warning.message) for warning in caught if warning.category is RuntimeWarning}
    assert messages == {f"7 left (In the cross validation of '{name}', 5 times.)" for name in ("flat", "loud")}
    repeated = next(warning for warning in caught if warning.category is RepeatedAnswersWarning)
    assert repeated.filename == __file__


def test_warnings_can_be_silenced_and_made_errors():
    graph, flat = graph_of(TRUTH), Said(probs=np.full((10, 2), 0.5))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Every item without gold")
        cross_validate(graph, flat)
    with pytest.raises(CollapsedFitWarning, match="Every item without gold"):
        cross_validate(graph, flat)


def test_errors_tell_the_model():
    graph = graph_of(TRUTH)
    wrong = {"good": cg.MajorityVote(), "bad": cg.MajorityVote(votes={"no": "perhaps", "yes": "yes"})}
    with pytest.raises(ParameterError, match="perhaps") as caught:
        cross_validate(graph, wrong)
    assert caught.value.__notes__ == ["This happened in the cross validation of the model 'bad'."]


def test_progress_is_shown_when_asked(capsys, every_line):
    cross_validate(graph_of(TRUTH), said_of(TRUTH))
    assert capsys.readouterr().err == ""
    cross_validate(graph_of(TRUTH), said_of(TRUTH), progress=True)
    assert "cross validation" in capsys.readouterr().err


# Bad input


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "There are no models to compare"),
        ({}, "There are no models to compare"),
        (cg.IBCC, r"got the class, so write IBCC\(\)"),
        ("ibcc", "got a str"),
        ([cg.MajorityVote(), None], "got a NoneType"),
        ({"one": "ibcc"}, "got a str"),
        ({1: cg.MajorityVote()}, "Names of models must be text; got 1"),
    ],
)
def test_what_is_no_model_is_refused(models, message):
    with pytest.raises(ParameterError, match=message):
        cross_validate(graph_of(TRUTH), models)


@pytest.mark.parametrize("folds", [1, 0, -3, 2.5, True, "5"])
def test_folds_are_a_whole_number_from_two_up(folds):
    with pytest.raises(ParameterError, match=r"folds=.* must be a whole number from 2 up"):
        cross_validate(graph_of(TRUTH), cg.MajorityVote(), folds=folds)


def test_other_bad_input():
    graph, model = graph_of(TRUTH), cg.MajorityVote()
    with pytest.raises(ParameterError, match="on a CrowdGraph; got a dict"):
        cross_validate({}, model)
    with pytest.raises(ParameterError, match="n_bins=0"):
        cross_validate(graph, model, n_bins=0)
    with pytest.raises(ParameterError, match=r"folds=11 is too many: only 10 items .* Use folds=10 or fewer"):
        cross_validate(graph, model, folds=11)
    with pytest.raises(GoldError, match=r"the graph has none\. Add some with graph\.with_gold"):
        cross_validate(graph.with_gold(None), model)
    with pytest.raises(GoldError, match="the graph has only probabilities, for 1 items"):
        cross_validate(graph.with_gold({0: {"no": 0.5, "yes": 0.5}}), model)
    with pytest.raises(GoldError, match=r"Gold covers the class 'yes' only \(4 items\)"):
        cross_validate(graph.with_gold(dict.fromkeys((1, 2, 4, 7), "yes")), model)
