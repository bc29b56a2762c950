"""crowd-kit's interface: its names, its types, its rules; our models inside."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import crowdgraph as cg
from crowdgraph.compat.crowdkit import (
    IBCC,
    DawidSkene,
    DynIBCC,
    GoldMajorityVote,
    MajorityVote,
    ModelAggregator,
    OneCoinDawidSkene,
    Wawa,
)
from crowdgraph.errors import ColumnError, ConvergenceWarning, InputError, MissingValueError, ParameterError

AGGREGATORS = [
    MajorityVote(),
    Wawa(),
    DawidSkene(),
    OneCoinDawidSkene(n_iter=500),
    IBCC(),
    DynIBCC(noise_scale=0.5),
    ModelAggregator(cg.Cautious()),
]
ITERATIVE = AGGREGATORS[2:]


@pytest.fixture(scope="module")
def crowd():
    return cg.simulate.crowd(n_volunteers=20, n_items=60, n_responses=600, gold=0, seed=3)


@pytest.fixture(scope="module")
def answers(crowd):
    table = crowd.graph.to_pandas()
    return pd.DataFrame({"task": table["item"], "worker": table["volunteer"], "label": table["label"]})


def table_of(rows):
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.NoTimesWarning")
@pytest.mark.parametrize("aggregator", AGGREGATORS, ids=lambda one: type(one).__name__)
def test_names_and_types(aggregator, answers, crowd):
    probas = aggregator.fit_predict_proba(answers)
    labels = aggregator.fit_predict(answers)
    assert labels is aggregator.labels_
    assert (labels.name, labels.index.name) == ("agg_label", "task")
    assert (probas.index.name, probas.columns.name, list(probas.columns)) == ("task", "label", list(crowd.graph.labels))
    assert probas.index.dtype == answers["task"].dtype == labels.index.dtype
    assert labels.dtype == answers["label"].dtype
    np.testing.assert_allclose(probas.sum(axis=1), 1)
    assert (probas.idxmax(axis=1) == labels).all()
    assert set(labels.index) == set(answers["task"])
    truth = pd.Series([crowd.graph.classes[c] for c in crowd.truth.classes], index=crowd.graph.items.ids)
    assert (labels == truth.loc[labels.index]).mean() > 0.85
    assert (aggregator.skills_.name, aggregator.skills_.index.name) == ("skill", "worker")
    assert set(aggregator.skills_.index) == set(answers["worker"])
    if aggregator in ITERATIVE:
        assert (aggregator.priors_.name, aggregator.priors_.index.name) == ("prior", "label")
        assert list(aggregator.errors_.index.names) == ["worker", "label"]
        np.testing.assert_allclose(aggregator.errors_.groupby("worker").sum(), 1)


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.NoTimesWarning")
@pytest.mark.parametrize("aggregator", AGGREGATORS, ids=lambda one: type(one).__name__)
def test_as_scikit_learn_has_it(aggregator, answers):
    copied = clone(aggregator)
    assert copied is not aggregator
    assert repr(copied) == repr(aggregator)
    assert not hasattr(copied, "labels_")
    with pytest.raises(AttributeError, match=r"has no 'labels_'; call fit\(data\) first"):
        _ = copied.labels_
    with pytest.raises(AttributeError, match="no attribute 'predictions'"):
        _ = copied.predictions
    assert copied.fit(answers) is copied


def test_settings():
    aggregator = DawidSkene(50, tol=1e-3)
    assert aggregator.get_params() == {"n_iter": 50, "tol": 1e-3, "initial_error_strategy": None}
    assert aggregator.set_params(n_iter=7) is aggregator
    assert aggregator.n_iter == 7
    with pytest.raises(ParameterError, match="DawidSkene has no setting 'max_iter'"):
        aggregator.set_params(max_iter=7)
    assert repr(aggregator) == "DawidSkene(n_iter=7, tol=0.001, initial_error_strategy=None)"


ANSWERS = table_of(
    [["b", "cleo", "yes"], ["b", "anna", "no"], ["a", "anna", "yes"], ["a", "bert", "yes"], ["a", "cleo", "no"],
     ["c", "bert", "no"], ["c", "cleo", "no"], ["c", "anna", "yes"], ["d", "anna", "yes"], ["d", "bert", "yes"]]
)  # fmt: skip


def em(table, n_iter, least=1e-10):
    """Dawid and Skene's iteration with dictionaries: the shares of votes, then both steps `n_iter` times."""
    tasks, workers = list(dict.fromkeys(table["task"])), list(dict.fromkeys(table["worker"]))
    labels = sorted(set(table["label"]))
    rows = list(table.itertuples(index=False))
    probs = {
        task: {label: np.mean([row.label == label for row in rows if row.task == task]) for label in labels}
        for task in tasks
    }
    for sweep in range(n_iter + 1):
        priors = {label: np.mean([probs[task][label] for task in tasks]) for label in labels}
        counts = {
            (who, said, true): least
            + sum(probs[row.task][true] for row in rows if (row.worker, row.label) == (who, said))
            for who in workers
            for said in labels
            for true in labels
        }
        errors = {
            (who, said, true): counts[who, said, true] / sum(counts[who, other, true] for other in labels)
            for who, said, true in counts
        }
        if sweep == n_iter:
            break
        for task in tasks:
            joint = {
                true: priors[true] * np.prod([errors[row.worker, row.label, true] for row in rows if row.task == task])
                for true in labels
            }
            probs[task] = {label: value / sum(joint.values()) for label, value in joint.items()}
    return probs, priors, errors


@pytest.mark.parametrize("n_iter", [0, 1, 2, 4])
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.ConvergenceWarning")
def test_dawid_skene_sweep_by_sweep(n_iter):
    fitted = DawidSkene(n_iter, tol=0).fit(ANSWERS)
    probs, priors, errors = em(ANSWERS, n_iter)
    np.testing.assert_allclose(fitted.probas_, pd.DataFrame(probs).T[["no", "yes"]], atol=1e-8)
    assert fitted.priors_.to_dict() == pytest.approx(priors, abs=1e-8)
    for (who, said, true), value in errors.items():
        assert fitted.errors_.loc[(who, said), true] == pytest.approx(value, abs=1e-7)
    skills = {who: sum(priors[name] * errors[who, name, name] for name in priors) for who in ("anna", "bert", "cleo")}
    assert fitted.skills_.to_dict() == pytest.approx(skills, abs=1e-7)
    assert list(fitted.probas_.index) == ["b", "a", "c", "d"]
    assert list(fitted.errors_.index[:3]) == [("cleo", "no"), ("cleo", "yes"), ("anna", "no")]


def test_our_models_are_inside(answers, crowd):
    fitted = IBCC().fit(answers)
    expected = cg.IBCC().fit(crowd.graph)
    np.testing.assert_allclose(fitted.probas_.loc[expected.items], expected.item_probs, atol=1e-4)
    assert fitted.fit_.model == "ibcc"
    assert fitted.fit_.calibrated().dependence.source == "assumed"
    assert ModelAggregator(cg.MajorityVote()).fit(answers).fit_.model == "majority_vote"
    assert not hasattr(ModelAggregator(cg.MajorityVote()).fit(answers), "errors_")


def test_dynamic_errors_are_the_last_ones():
    """A worker who becomes bad: the times of the table say when, whatever the order of its rows."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 80)
    rows = [(task, who, truth[task], task) for task in range(80) for who in "abcd"]
    rows += [(task, "turncoat", truth[task] if task < 40 else 1 - truth[task], task) for task in range(80)]
    table = pd.DataFrame(rows, columns=["task", "worker", "label", "time"]).sample(frac=1, random_state=0)
    changing = DynIBCC(noise_scale=1.0).fit(table)
    assert changing.skills_["turncoat"] < 0.4
    assert changing.fit_.confusion.of("turncoat").at(20).accuracy() > 0.6
    assert 0.4 < IBCC().fit(table).skills_["turncoat"] < 0.6


def test_known_labels(answers, crowd):
    some = pd.Series(dict.fromkeys(crowd.graph.items.ids[:5].tolist(), "no"))
    for aggregator in (DawidSkene(), IBCC()):
        assert (aggregator.fit_predict(answers, some)[some.index] == "no").all()
        np.testing.assert_array_equal(aggregator.probas_.loc[some.index, "no"], 1)
    unseen = DawidSkene(n_iter=0).fit(ANSWERS, pd.Series({"a": "maybe"}))
    assert list(unseen.probas_.columns) == ["no", "yes", "maybe"]
    assert unseen.labels_["a"] == "maybe"


def errors_of(rows):
    table = pd.DataFrame(rows, columns=["worker", "label", "no", "yes"])
    return table.set_index(["worker", "label"])


def test_initial_errors():
    who = ["anna", "bert", "cleo"]
    liar = errors_of([[w, said, *counts] for w in who for said, counts in (("no", (0, 99)), ("yes", (99, 0)))])
    usual = DawidSkene().fit(ANSWERS)
    assert (
        DawidSkene(initial_error_strategy="addition").fit(ANSWERS, initial_error=0 * liar).labels_ == usual.labels_
    ).all()
    lied = DawidSkene(initial_error_strategy="addition").fit(ANSWERS, initial_error=liar)
    assert (lied.labels_["d"], usual.labels_["d"]) == ("no", "yes")
    assert (DawidSkene(initial_error_strategy="addition").fit_predict(ANSWERS, initial_error=liar[:2]) != "").all()
    again = DawidSkene(initial_error_strategy="assign").fit(ANSWERS, initial_error=usual.errors_)
    np.testing.assert_allclose(again.probas_, usual.probas_, atol=1e-4)
    assert (DawidSkene().fit(ANSWERS, initial_error=liar).labels_ == usual.labels_).all()


def test_bad_initial_errors():
    complete = DawidSkene().fit(ANSWERS).errors_
    assigned = DawidSkene(initial_error_strategy="assign")
    for table, message in (
        (complete[:4], "initial_error= lacks 1 workers, or labels that they gave"),
        (complete / 2, r"should be 1.0 for each true label; one is 0\.5"),
        (complete.reset_index(), r"its index is \(worker, label\)"),
        (complete[["no"]], "got a table without 'yes'"),
        ([[1]], "got a list"),
        (-complete, "must hold finite numbers of at least 0"),
    ):
        with pytest.raises(InputError, match=message):
            assigned.fit(ANSWERS, initial_error=table)
    with pytest.raises(ParameterError, match="Did you mean 'assign'"):
        DawidSkene(initial_error_strategy="assing").fit(ANSWERS, initial_error=complete)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("uvw"), st.booleans()), min_size=1, max_size=15))
def test_votes_are_counted(rows):
    table = table_of(rows)
    fitted = MajorityVote().fit(table)
    for task in fitted.probas_.index:
        said = [label for name, _, label in rows if name == task]
        for label in fitted.probas_.columns:
            assert fitted.probas_.loc[task, label] == pytest.approx(said.count(label) / len(said))
    assert list(fitted.probas_.index) == sorted({task for task, _, _ in rows})
    for who in fitted.skills_.index:
        said = [label == fitted.labels_[task] for task, name, label in rows if name == who]
        assert fitted.skills_[who] == pytest.approx(np.mean(said))


def test_weighted_votes_by_hand():
    skills = pd.Series({"anna": 0.5, "bert": 0.25, "cleo": 2.0})
    fitted = MajorityVote().fit(ANSWERS, skills)
    assert fitted.probas_["yes"].to_dict() == pytest.approx({"a": 0.75 / 2.75, "b": 0.8, "c": 0.5 / 2.75, "d": 1.0})
    agreement = MajorityVote().fit(ANSWERS).skills_  # of b, a tie, "no" comes first
    assert agreement.to_dict() == pytest.approx({"anna": 3 / 4, "bert": 1.0, "cleo": 1 / 3})
    wawa = Wawa().fit(ANSWERS)
    assert wawa.skills_.to_dict() == agreement.to_dict()
    assert wawa.predict_proba(ANSWERS).loc["b", "no"] == pytest.approx(0.75 / (0.75 + 1 / 3))
    gold = pd.Series(["yes", "no", "yes"], index=["a", "c", "c"])  # of c, both are right
    known = GoldMajorityVote().fit(ANSWERS, gold)
    assert known.skills_.to_dict() == pytest.approx({"anna": 1.0, "bert": 1.0, "cleo": 0.5})
    assert known.predict(ANSWERS)["b"] == "no"
    with pytest.raises(ParameterError, match="give true_labels="):
        GoldMajorityVote().fit(ANSWERS)


def test_workers_without_a_skill():
    some = pd.Series({"anna": 1.0, "bert": 1.0})
    with pytest.raises(InputError, match=r"skills= lacks 'cleo'\. Add them"):
        MajorityVote().fit(ANSWERS, some)
    assert MajorityVote(on_missing_skill="ignore").fit(ANSWERS, some).labels_["b"] == "no"
    assert "cleo" not in MajorityVote(on_missing_skill="ignore").fit(ANSWERS, some).skills_.index
    with pytest.raises(InputError, match="nothing is known about 'd'"):
        MajorityVote(on_missing_skill="ignore").fit(ANSWERS, pd.Series({"cleo": 1.0}))
    assert MajorityVote(9.0, "value").fit(ANSWERS, some).labels_["b"] == "yes"
    for aggregator, skills, message in (
        (MajorityVote(on_missing_skill="value"), some, "default_skill=None must be a number"),
        (MajorityVote(), pd.Series({"anna": -1.0}), "finite numbers of at least 0; got .*-1.0.* for 'anna'"),
        (MajorityVote(on_missing_skill="drop"), some, "on_missing_skill"),
    ):
        with pytest.raises(ParameterError, match=message):
            aggregator.fit(ANSWERS, skills)
    with pytest.raises(InputError, match="skills= takes a pandas series by worker; got a dict"):
        MajorityVote().fit(ANSWERS, {"anna": 1.0})


@pytest.mark.parametrize("aggregator", AGGREGATORS, ids=lambda one: type(one).__name__)
def test_little_or_bad_input(aggregator):
    aggregator = clone(aggregator)
    empty = aggregator.fit_predict(table_of([]))
    assert (len(empty), empty.name, aggregator.probas_.shape) == (0, "agg_label", (0, 0))
    alone = aggregator
    assert alone.fit_predict(table_of([["a", "anna", 7], ["b", "bert", 7]])).to_dict() == {"a": 7, "b": 7}
    assert alone.probas_.to_numpy().tolist() == [[1.0], [1.0]]
    assert alone.skills_.to_dict() == {"anna": 1.0, "bert": 1.0}
    for error in (ColumnError, KeyError):
        with pytest.raises(error, match="The table has no column 'worker'; it has 'task', 'label'"):
            aggregator.fit(ANSWERS[["task", "label"]])
    with pytest.raises(MissingValueError, match=r"1 rows lack .* \(rows 2 \(counted from 0\)\).* data.dropna"):
        aggregator.fit(ANSWERS.assign(label=ANSWERS["label"].where(ANSWERS.index != 2)))
    with pytest.raises(InputError, match=r"takes a pandas table with the columns .*; got a list"):
        aggregator.fit([["a", "anna", "yes"]])


def test_bad_settings():
    for aggregator, message in (
        (DawidSkene(n_iter=-1), "n_iter=-1 must be a whole number from 0 up"),
        (IBCC(n_iter=1), "n_iter=1 must be a whole number from 2 up"),
        (OneCoinDawidSkene(tol=-0.5), "tol=-0.5 must be a finite number of at least 0"),
        (ModelAggregator("ibcc"), "model= takes a model, such as cg.IBCC"),
    ):
        with pytest.raises(ParameterError, match=message):
            aggregator.fit(ANSWERS)
    for true_labels, message in (
        ({"a": "yes"}, "true_labels= takes a pandas series by task; got a dict"),
        (pd.Series(["yes", "no"], index=["a", "a"]), "several entries for the task 'a'"),
    ):
        with pytest.raises(InputError, match=message):
            IBCC().fit(ANSWERS, true_labels)
    for aggregator in (DawidSkene(n_iter=2, tol=0), OneCoinDawidSkene(n_iter=2, tol=0)):
        with pytest.warns(ConvergenceWarning, match="did not converge in 2 iterations"):
            aggregator.fit(ANSWERS)


def test_types_of_columns_stay():
    table = table_of([[2**40, "anna", True], [2**40, "bert", False], [7, "anna", True]])
    fitted = MajorityVote().fit(table.astype({"worker": "category"}))
    assert (fitted.labels_.dtype, fitted.labels_.index.dtype) == (np.dtype(bool), np.dtype("int64"))
    categories = table_of([["a", "anna", "x"], ["a", "bert", "y"]]).astype({"label": "category"})
    assert isinstance(MajorityVote().fit(categories).probas_.columns, pd.CategoricalIndex)
