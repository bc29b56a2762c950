"""Changes of volunteers: who is reported, what is said of them, and that one test serves fits, tracks and histories."""

import datetime as dt
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

import crowdgraph as cg
from crowdgraph.core.changes import benjamini_hochberg, describe, holm, step_interval
from crowdgraph.errors import NotAnnotatedError
from crowdgraph.kernels.change import Alternatives

N, N_ITEMS = 120, 600
SHARES = {
    "steady": np.full(N, 0.8),
    "drops": np.where(np.arange(N) < 70, 0.95, 0.4),
    "learns": np.interp(np.arange(N), [0, N], [0.1, 1.0]),
    "expert": np.full(N, 0.97),
    "guesser": np.full(N, 0.5),
}


def answers_of(shares, *, seed=0, classes=("no", "yes"), only=None):
    """A table of the answers of volunteers who are right with given probabilities, answer by answer, and gold.

    With `only`, volunteers are right about items of other classes with probability 0.8 throughout.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(len(classes), size=N_ITEMS)
    rows = {"volunteer": [], "item": [], "label": [], "time": []}
    for name, right in shares.items():
        item = rng.permutation(N_ITEMS)[: len(right)]
        chance = right if only is None else np.where(truth[item] == only, right, 0.8)
        label = np.where(rng.random(len(right)) < chance, truth[item], (truth[item] + 1) % len(classes))
        rows["volunteer"] += [name] * len(right)
        rows["item"] += item.tolist()
        rows["label"] += [classes[code] for code in label]
        rows["time"] += (10 * np.arange(len(right))).tolist()
    return rows, {item: classes[code] for item, code in enumerate(truth.tolist())}


def graph_from(table, gold, **options):
    options = {"classes": ["no", "yes"], **options}
    answered = set(table["item"])
    gold = {item: name for item, name in gold.items() if item in answered}
    return cg.CrowdGraph.from_responses(table, gold=gold, **options)


@pytest.fixture(scope="module")
def fit():
    return cg.IBCC().fit(graph_from(*answers_of(SHARES)))


@pytest.fixture(scope="module")
def changes(fit):
    return fit.changes()


def test_those_who_changed_are_reported(changes):
    assert {change.volunteer for change in changes} == {"drops", "learns"}
    assert len(changes) == 2
    assert changes.n_tested == 5
    drop, learning = changes.of("drops"), changes.of("learns")
    assert (drop.kind, learning.kind) == ("sudden", "gradual")
    assert abs(drop.n_before - 70) < 10
    assert drop.low <= drop.time <= drop.high
    assert drop.time == 10 * drop.n_before
    assert drop.low <= 700 <= drop.high
    assert drop.before > 0.85
    assert drop.after < 0.55
    assert learning.before < 0.35
    assert learning.after > 0.75
    assert drop.n_answers == N
    assert drop.p_value <= drop.q_value <= 0.05
    assert changes.of("steady") is None
    assert changes[0] in list(changes)


def test_q_values_are_those_of_everybody(changes):
    np.testing.assert_allclose(changes.q_values, false_discovery_control(changes.p_values))
    flagged = {name for name, q in zip(changes.ids, changes.q_values, strict=True) if q <= 0.05}
    assert flagged == {change.volunteer for change in changes}


def test_it_reads_well(changes):
    first, *others = repr(changes).splitlines()
    assert first == "Changes: evidence for 2 changes among 5 tested volunteers (false-discovery rate 5%)"
    assert len(others) == 2
    assert "drops: sudden change after " in repr(changes)
    frame = changes.to_frame()
    assert frame["volunteer"].tolist() == [change.volunteer for change in changes]
    assert frame["time"].tolist() == [change.time for change in changes]
    assert frame["kind"].tolist() == [change.kind for change in changes]


def test_three_changes_are_listed_and_more_are_counted(changes):
    three, five = (
        replace(changes, changes=(changes[0],) * n, moments=np.repeat(changes.moments[:1], n, axis=0)) for n in (3, 5)
    )
    assert "more" not in repr(three)
    assert repr(five).endswith("and 2 more")


def test_nobody():
    changes = cg.IBCC().fit(graph_from(*answers_of({"steady": SHARES["steady"], "expert": SHARES["expert"]}))).changes()
    assert len(changes) == len(changes.to_frame()) == 0
    assert "evidence for 0 changes among 2 tested volunteers" in repr(changes)


def test_few_answers_are_not_tested_and_that_is_said(fit):
    changes = fit.changes(min_answers=N + 1)
    assert changes.n_tested == len(changes) == 0
    assert np.isnan(changes.p_values).all()
    assert f"not tested: 5 volunteers with fewer than {N + 1} answers" in repr(changes)
    assert changes.n_answers.tolist() == [N] * 5


def test_a_change_about_one_class_names_the_class():
    shares = dict.fromkeys("abcdef", SHARES["steady"]) | {"drops": np.repeat([0.97, 0.2], 120)}
    graph = graph_from(*answers_of(shares, only=1, classes=("no", "yes", "perhaps")), classes=["no", "yes", "perhaps"])
    change = cg.IBCC().fit(graph).changes().of("drops")
    assert change.classes == (change.true_class,) == ("yes",)
    assert change.before > 0.8
    assert change.after < 0.4
    told = f"answers, about items of class yes {change.before:.0%} right before, {change.after:.0%} after"
    assert str(change).endswith(told)


@pytest.mark.parametrize("code", range(3))
def test_the_clearest_class_is_named_even_if_no_p_value_is_small(code):
    """Of certain classes, one is answered wrongly from the middle on, and the next one nearly always rightly."""
    number = np.arange(60)
    is_late, classes = number >= 30, number % 3
    is_wrong = np.where(classes == code, is_late, (classes == (code + 1) % 3) & (~is_late | (number % 5 == 0)))
    label = (classes + is_wrong) % 3
    found = describe(np.eye(3)[classes], label, np.eye(3, dtype=bool), p_values=np.ones(4), level=0.05)
    assert (found.classes, found.lead, found.kind) == ([code], code, "sudden")
    assert (found.answers[0], found.before, found.after) == (29 + code, 1, 0)


def test_a_change_of_all_classes_says_so(changes):
    change = changes.of("drops")
    assert change.true_class is None
    assert set(change.classes) <= {"no", "yes"}
    assert change._replace(classes=()).about == "all classes"


def test_votes_say_which_labels_are_right():
    table, gold = answers_of(SHARES)
    table["label"] = [{"no": -1, "yes": [1, 3][row % 2]}[label] for row, label in enumerate(table["label"])]
    votes = {-1: "no", 1: "yes", 3: "yes"}
    named = cg.IBCC(votes=votes).fit(graph_from(table, gold)).changes()
    assert {change.volunteer for change in named} == {"drops", "learns"}
    correct = {"no": [-1], "yes": [1, 3]}
    by_hand = cg.MajorityVote(votes=votes).fit(graph_from(table, gold)).changes(correct=correct)
    assert [change.volunteer for change in by_hand] == [change.volunteer for change in named]


def test_tracks_and_histories_serve_the_same_test(fit, changes):
    moving = cg.DynIBCC().fit(fit.source.graph)
    for one in (fit, moving, cg.DynIBCC(inference="filtered").fit(fit.source.graph)):
        expected = one.changes()
        assert one.confusion.changes() is expected
        assert one.confusion.of("drops").changes() == (expected.of("drops"),)
        assert one.confusion.of("steady").changes() == ()
        assert one.confusion.changes_to_frame().equals(expected.to_frame())
        assert one.changes_to_frame(kind="arrow").num_rows == len(expected)
    # All items have gold here, so the model does not matter.
    assert [change.volunteer for change in moving.changes()] == [change.volunteer for change in changes]


def test_any_fit_can_be_tested(fit, changes):
    graph = fit.source.graph
    majority = cg.MajorityVote().fit(graph)
    assert majority.confusion is None or majority.confusion.source is not None
    assert majority.changes().to_frame().equals(changes.to_frame())
    loaded = replace(fit, source=None, confusion=None)
    with pytest.raises(NotAnnotatedError, match="Pass the graph"):
        loaded.changes()
    assert loaded.changes(graph).to_frame().equals(changes.to_frame())


def test_tracks_without_answers_say_what_to_do(fit, tmp_path):
    graph = fit.source.graph
    graph.annotate(fit).save(tmp_path / "x.crowd")
    loaded = cg.load(tmp_path / "x.crowd").fit()
    with pytest.raises(NotAnnotatedError, match=r"do not know the answers.*fit\.changes\(graph\)"):
        loaded.confusion.changes()
    with pytest.raises(NotAnnotatedError, match="do not know the answers"):
        loaded.confusion.of("drops").changes()
    assert len(loaded.changes(graph)) == 2


def test_changes_are_immutable_and_can_be_pickled(changes):
    again = pickle.loads(pickle.dumps(changes))  # noqa: S301 - our own
    assert again.to_frame().equals(changes.to_frame())
    with pytest.raises(AttributeError):
        again.min_answers = 3
    for array in (changes.p_values, again.q_values, again.moments):
        assert not array.flags.writeable


def test_gold_counts_as_certain(fit):
    """The class probabilities of a fit do not matter where gold is known."""
    blind = replace(fit, item_probs=np.full_like(fit.item_probs, 0.5))
    assert blind.changes().to_frame().equals(fit.changes().to_frame())


def test_the_order_and_the_names_of_volunteers_do_not_matter(fit, changes):
    names = {"steady": "z", "drops": "y", "learns": "x", "expert": "w", "guesser": "v"}
    table, gold = answers_of(SHARES)
    table["volunteer"] = [names[name] for name in table["volunteer"]]
    backwards = {name: column[::-1] for name, column in table.items()}
    renamed = cg.IBCC().fit(graph_from(backwards, gold)).changes()
    assert (
        renamed.p_values[np.argsort(renamed.ids)].tolist()
        == changes.p_values[np.argsort([names[name] for name in changes.ids])].tolist()
    )
    assert [change.volunteer for change in renamed] == [names[change.volunteer] for change in changes]


def test_reversed_time_mirrors_the_change(changes):
    table, gold = answers_of(SHARES)
    table["time"] = [10 * (N - 1) - time for time in table["time"]]
    mirrored = cg.IBCC().fit(graph_from(table, gold)).changes()
    assert dict(zip(mirrored.ids, mirrored.p_values, strict=True)) == dict(
        zip(changes.ids, changes.p_values, strict=True)
    )
    there, back = changes.of("drops"), mirrored.of("drops")
    assert back.n_before == N - there.n_before
    assert (back.before, back.after) == pytest.approx((there.after, there.before))


def test_without_times_the_order_of_rows_counts(changes):
    table, gold = answers_of(SHARES)
    del table["time"]
    ordered = cg.IBCC().fit(graph_from(table, gold)).changes()
    assert ordered.p_values[np.argsort(ordered.ids)].tolist() == changes.p_values[np.argsort(changes.ids)].tolist()
    assert type(ordered[0].time) is int


def test_times_are_shown_as_the_clock_shows_them():
    table, gold = answers_of(SHARES)
    table["time"] = [dt.datetime(2026, 3, 1, tzinfo=dt.UTC) + dt.timedelta(days=time / 10) for time in table["time"]]
    change = cg.IBCC().fit(graph_from(table, gold)).changes().of("drops")
    assert change.time - change.low >= dt.timedelta(0)
    assert change.time.tzinfo is not None
    assert change.time == dt.datetime(2026, 3, 1, tzinfo=dt.UTC) + dt.timedelta(days=change.n_before)


def test_unanswered_responses_do_not_count():
    table, gold = answers_of(SHARES)
    shown = {name: [*column, *column[:5]] for name, column in table.items()}
    shown["label"][-5:] = [None] * 5
    graph = graph_from(shown, gold, missing="keep")
    assert cg.IBCC().fit(graph).changes().n_answers.max() == N


@pytest.mark.parametrize("step", [0, 4, 8])
def test_a_step_can_be_anywhere(step):
    logs = np.where(np.arange(9) == step, 50.0, 0.0)[:, None]
    assert step_interval(Alternatives(steps=logs, ramps=logs), 0) == (step + 1,) * 3


def test_seeds():
    fit = cg.IBCC().fit(graph_from(*answers_of(SHARES, seed=2)))
    assert fit.changes(seed=1) is fit.changes(seed=1)
    assert (fit.changes(seed=1).p_values != fit.changes(seed=2).p_values).any()
    assert len(fit.changes(seed=None)) > 0
    assert len(fit.changes(seed=2**70)) > 0


p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30).map(np.array)


@given(p_values)
def test_benjamini_hochberg_is_scipys(p_values):
    np.testing.assert_allclose(benjamini_hochberg(p_values), false_discovery_control(p_values))


@given(p_values)
def test_holm_rejects_step_by_step(p_values):
    for level in (0.01, 0.05, 0.3):
        rejected = set()
        for code in np.argsort(p_values, kind="stable").tolist():
            # The product, not the quotient, so that both round alike.
            if p_values[code] * (len(p_values) - len(rejected)) > level:
                break
            rejected.add(code)
        assert set(np.flatnonzero(holm(p_values) <= level)) == rejected


def test_the_clearest_class_is_named_though_its_own_p_value_is_not_small_enough():
    """Those who get worse at one class and a little better at the other are described by the first."""
    n = 80
    truth, when = np.arange(n) % 2, np.arange(n) // 2
    right = np.where(truth == 1, when < 20, when % 5 < np.where(when < 20, 2, 3)).astype(int)
    label = np.where(right == 1, truth, 1 - truth)
    description = describe(
        np.eye(2)[truth], label, np.eye(2, dtype=bool), p_values=np.array([0.001, 1.0, 0.2]), level=0.05
    )
    assert description.classes == [1]
    assert (description.before, description.after) == (pytest.approx(1, abs=0.1), pytest.approx(0, abs=0.1))
