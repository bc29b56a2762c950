"""Communities over time: nothing leaks from the future, numbers are kept, and what is missing is said."""

import datetime as dt
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from builders import communities_of, crowd
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.communities.base import Detection, Detector
from crowdgraph.dynamics._separation import Separation
from crowdgraph.dynamics.matching import community_profiles, match
from crowdgraph.dynamics.over_time import SnapshotFits, over_time
from crowdgraph.errors import AlignmentError, NotAnnotatedError
from crowdgraph.models.base import Model
from crowdgraph.networks import pi_similarity, task_cooccurrence

QUICK = {
    "network": partial(task_cooccurrence, min_responses=5),
    "detector": cg.Leiden(),
    "model": cg.IBCC(),
    "restarts": 1,
    "seed": 0,
}


@pytest.fixture(scope="module")
def graph():
    return crowd(
        n_volunteers=40, n_items=200, n_responses=1_600, n_communities=2, mixing=0.05, drift="step", seed=3
    ).graph


@pytest.fixture(scope="module")
def track(graph):
    """Communities of shared items after half of the responses and after all."""
    return over_time(graph, counts=[800, 1_600], **QUICK)


def check_same(first, second):
    assert_array_equal(first.ids, second.ids)
    width = min(len(first), len(second))
    assert_array_equal(first.participation[:, :width], second.participation[:, :width])
    assert not first.participation[:, width:].any()
    assert not second.participation[:, width:].any()


@pytest.mark.filterwarnings("ignore:.*repeat a volunteer and item")
@pytest.mark.parametrize(
    ("network", "model"),
    [
        (pi_similarity, cg.IBCC()),
        (pi_similarity, cg.DynIBCC()),
        (partial(task_cooccurrence, min_responses=5), cg.IBCC()),
    ],
    ids=["IBCC", "DynIBCC", "shared items"],
)
def test_nothing_changes_when_the_future_does(graph, network, model):
    count, rng = 800, np.random.default_rng(0)
    table = graph.responses.table
    volunteer, label = np.array(table.volunteer), np.array(table.label)
    volunteer[count:] = rng.permutation(volunteer[count:])
    label[count:] = 1 - label[count:]
    other = graph.replace(responses=replace(table, volunteer=volunteer, label=label))
    options = {**QUICK, "network": network, "model": model, "detector": cg.BayesianNMF(restarts=1, nulls=0)}
    known, changed = (over_time(one, counts=[400, count, 1_600], **options) for one in (graph, other))
    for index in (0, 1):
        check_same(known[index], changed[index])
    with pytest.raises(AssertionError):
        check_same(known[2], changed[2])


def test_more_snapshots_later_change_nothing_before(graph):
    short, long = (over_time(graph, counts=counts, **QUICK) for counts in ([400, 800], [400, 800, 1_200, 1_600]))
    for before, after in zip(short, long, strict=False):
        check_same(before, after)
    assert_array_equal(long.counts, [400, 800, 1_200, 1_600])
    assert_array_equal(long.times, graph.responses.time[long.counts - 1])
    again = over_time(graph, counts=[400, 800], **QUICK)
    for first, second in zip(short, again, strict=True):
        check_same(first, second)


def test_times_are_moments_before_which_responses_count(graph):
    moments = [graph.responses.time[500], graph.responses.time[1_000]]
    by_time = over_time(graph, times=moments, **QUICK)
    assert_array_equal(by_time.counts, [len(graph.before(moment).responses) for moment in moments])
    for first, second in zip(by_time, over_time(graph, counts=by_time.counts.tolist(), **QUICK), strict=True):
        check_same(first, second)


def test_hindsight_reads_one_fit_at_the_times(graph):
    model = cg.DynIBCC(confusion_prior=(4, 1))
    options = {**QUICK, "network": pi_similarity, "model": model, "detector": cg.BayesianNMF(restarts=1, nulls=0)}
    track = over_time(graph, counts=[500, 1_600], hindsight=True, **options)
    fit = model.fit(graph)
    for snapshot, count in zip(track, track.counts, strict=True):
        then = fit.confusion.at(graph.responses.time[count - 1])
        codes = then.table.codes(snapshot.ids)
        assert_allclose(snapshot.confusion.concentration, then.concentration[codes])
    assert track.params["sweeps"] == (fit.n_iter, 0)
    known_then = over_time(graph, counts=[500, 1_600], **options)
    assert not np.allclose(known_then[0].confusion.concentration, track[0].confusion.concentration)
    # A model without change says the same of all times.
    static = over_time(graph, counts=[500, 1_600], hindsight=True, **{**options, "model": cg.IBCC()})
    codes = static[1].table.codes(static[0].ids)
    assert_allclose(static[0].confusion.mean, static[1].confusion.mean[codes])


def test_without_a_model_there_is_no_behaviour(graph):
    track = over_time(graph, counts=[800, 1_600], **{**QUICK, "model": None})
    assert track.n_communities.tolist() == [2, 2]
    with pytest.raises(NotAnnotatedError, match="without confusion matrices"):
        track.mean_confusion(0)


def test_means_are_those_of_the_snapshots(track):
    for k in range(track.n_communities_ever):
        means = track.mean_confusion(k)
        assert means.shape == (2, 2, 2)
        for index, snapshot in enumerate(track):
            assert_allclose(means[index], snapshot.mean_confusion(by_responses=True)[k])
            assert_allclose(means[index].sum(axis=1), 1)


@dataclass(frozen=True, kw_only=True)
class Scripted(Detector):
    """Finds what is written: for each number of volunteers the community of each, in order of their names."""

    name: ClassVar[str] = "scripted"
    script: tuple[str, ...] = ()

    def _detect(self, network, *, seed, progress):
        line = next(line for line in self.script if len(line.replace(" ", "")) == len(network))
        order = np.argsort(network.ids.astype(str))
        shares = np.zeros((len(network), 10))
        shares[order, [int(one) for one in line.replace(" ", "")]] = 1
        return Detection(shares[:, shares.any(axis=0)])


def everybody(n):
    """A graph in which one volunteer after another answers the same two items."""
    rows = [(f"v{k:02d}", item, "x", k) for k in range(n) for item in "ab"]
    columns = dict(zip(("volunteer", "item", "label", "time"), zip(*rows, strict=True), strict=True))
    return cg.CrowdGraph.from_responses(columns, classes=["x", "y"], labels=["x", "y"])


def follow(*script):
    counts = [2 * len(line) for line in script]
    network = partial(task_cooccurrence, min_responses=1)
    return over_time(
        everybody(max(map(len, script))),
        counts=counts,
        network=network,
        model=None,
        detector=Scripted(script=script),
        restarts=2,
    )


def test_communities_keep_their_numbers():
    track = follow("000011", "11110000", "0000111122222", "00001111222223")
    # The larger one comes first in its snapshot; that does not change who is who.
    assert track.assignment[0][:6].tolist() == [0, 0, 0, 0, 1, 1]
    assert track.assignment[1][:8].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert track.assignment[2][:13].tolist() == [0] * 4 + [1] * 4 + [2] * 5
    assert track.assignment[3][13] == 3
    assert track.n_communities.tolist() == [2, 2, 3, 4]
    assert track.sizes.tolist() == [[4, 2, 0, 0], [4, 4, 0, 0], [4, 4, 5, 0], [4, 4, 5, 1]]
    known = track.sizes > 0
    assert (track.confidence[known] == 1).all()
    assert np.isnan(track.confidence[~known]).all()
    assert track.events_to_frame()[["event", "community"]].values.tolist() == [
        ["born", 0],
        ["born", 1],
        ["grew", 1],
        ["born", 2],
        ["born", 3],
    ]
    assert "4 snapshots with 2, 2, 3, 4 communities" in repr(track)


def test_a_community_that_was_lost_gets_its_number_back():
    track = follow("0000000011111111", "00000000000000000", "000000001111111100")
    assert track.assignment[2][:18].tolist() == [0] * 8 + [1] * 8 + [0, 0]
    # Everybody is linked with everybody alike, so that the network has no evidence of a merger.
    assert [event.event for event in track.events] == ["born", "born", "grew", "no longer seen", "shrank", "returned"]


def test_snapshots_with_too_few_volunteers_say_why(graph):
    track = over_time(
        graph, counts=[0, 3, 30, 1_600], **{**QUICK, "network": partial(task_cooccurrence, min_responses=8)}
    )
    assert track.n_communities.tolist() == [0, 0, 0, 2]
    assert np.isnan(track.modularity[:3]).all()
    assert track.modularity[3] > 0.2
    assert track.reasons[0] == "there are no answers yet"
    assert "No volunteer has 8 answers or more" in track.reasons[1]
    assert track.reasons[3] == ""
    assert track.of(graph.volunteers.ids[0]).shape == (4, 2)
    alone = over_time(
        everybody(3), counts=[2, 6], **{**QUICK, "network": partial(task_cooccurrence, min_responses=1), "model": None}
    )
    assert alone.reasons == ("no two of 1 volunteers are linked", "")


def test_nothing_happens_where_there_are_no_responses(graph):
    late = over_time(graph, times=["2030-01-01", "2031-01-01"], **QUICK)
    assert late.counts.tolist() == [1_600, 1_600]
    assert late.stability[1] == 1
    assert late.params["sweeps"][1] == 0
    assert late[0] is not late[1]
    check_same(late[0], late[1])


def test_members_who_never_answered_have_no_behaviour():
    """Where nobody of a community answered, its mean confusion is not a number; members alone tell who is who."""
    groups = communities_of(
        [0, 1],
        ids=["a", "b"],
        support=[0, 5],
        confusion=cg.ConfusionSnapshot(
            ids=["a", "b"], concentration=[[[1, 1]], [[9, 1]]], classes=["x"], labels=[0, 1]
        ),
    )
    first, second = community_profiles(groups, groups.table)
    assert first.confusion is None
    assert second.confusion is not None
    assert match([first, second], [second, first]).previous.tolist() == [1, 0]


def test_a_track_is_an_annotation_that_is_saved_and_loaded(graph, track, tmp_path):
    network = task_cooccurrence(graph)
    assert graph.annotate(network).annotate(track).network() is network
    with pytest.raises(AlignmentError, match="another graph"):
        everybody(4).annotate(track)
    graph.annotate(track).save(tmp_path / "crowd")
    loaded = cg.load(tmp_path / "crowd").community_track()
    assert_array_equal(loaded.participation, track.participation)
    assert_array_equal(loaded.confidence, track.confidence)
    assert loaded.reasons == track.reasons
    assert loaded.events_to_frame().equals(track.events_to_frame())


def test_tracks_become_tables_of_any_kind(track):
    for kind in ("pandas", "polars", "arrow"):
        frame = track.to_frame(kind=kind)
        assert frame.shape[1] == 5
        assert len(frame) == track.n_communities_ever * np.count_nonzero(track.assignment >= 0)
        assert len(track.moves_to_frame(kind=kind)) == len(track.moves())
    lines = track.events_to_frame(kind="text").splitlines()
    assert len(lines) == 1 + len(track.events)
    assert lines[0].split()[:3] == ["time", "count", "event"]


class Modes:
    """A model whose fits are as good as is written: from the prior, and from an earlier fit."""

    name = "modes"
    _fit_better = Model._fit_better

    def __init__(self, fit, cold, warm):
        self.cold, self.warm = (replace(fit, bound=np.array([value])) for value in (cold, warm))

    def fit(self, graph, *, seed):
        return self.cold

    def _refit(self, graph, *, start, seed):
        return self.warm


@pytest.mark.parametrize(
    ("cold", "warm", "compare", "better"), [(1, 2, True, "warm"), (2, 1, True, "cold"), (2, 1, False, "warm")]
)
def test_the_better_of_two_fits_is_taken(graph, cold, warm, compare, better):
    model = Modes(cg.IBCC().fit(graph), cold, warm)
    fits = SnapshotFits(graph, model, hindsight=False, compare_starts=compare)
    rng = np.random.default_rng(0)
    assert fits.fit(graph, rng) is model.cold
    assert fits.fit(graph, rng) is getattr(model, better)
    assert fits.n_sweeps == [model.cold.n_iter, model.cold.n_iter * (1 + compare)]


@pytest.mark.parametrize("model", [cg.IBCC(tol=1e-9), cg.DynIBCC(confusion_prior=(4, 1), tol=1e-9)])
def test_warm_fits_in_the_same_mode_are_the_same(model):
    graph = crowd(n_volunteers=60, n_items=300, n_responses=6_000, gold=0.2).graph
    early = model.fit(graph.first(3_000))
    warm, cold = model._refit(graph, start=early), model.fit(graph)
    assert_allclose(warm.item_probs, cold.item_probs, atol=1e-6)
    assert warm.converged
    assert cold.converged


@pytest.mark.parametrize(
    "model",
    [
        cg.IBCC(compare_starts=False),
        cg.IBCC(restarts=1),
        cg.DynIBCC(),
        cg.Calibrated(),
        cg.DynIBCC(update_classes=False),
    ],
)
def test_the_better_fit_is_that_of_two_fits_to_the_end(model):
    """Only the better of two starts is followed to the end, and ends where it would have ended alone."""
    graph = crowd(n_volunteers=60, n_items=300, n_responses=6_000, gold=0.2).graph
    early = model.fit(graph.first(3_000), seed=0)
    better, n_sweeps = model._fit_better(graph, start=early, seed=0)
    two, n_sweeps_of_two = Model._fit_better(model, graph, start=early, seed=0)
    assert_allclose(better.item_probs, two.item_probs, atol=1e-3)
    assert n_sweeps <= n_sweeps_of_two
    assert better.params == getattr(model, "model", model).settings()
    assert better.source.model == model
    assert better.converged


def test_a_better_fit_from_the_prior_is_taken():
    """A fit with the classes turned round is a poor start."""
    graph = crowd(gold=0, seed=2).graph
    cold = cg.IBCC().fit(graph)
    turned = replace(cold, item_probs=cold.item_probs[:, ::-1], class_probs=cold.class_probs[::-1])
    better, _ = cg.IBCC()._fit_better(graph, start=turned)
    assert better.diagnostics["start"] == "prior"
    assert_allclose(better.bound[-1], cold.bound[-1], rtol=1e-6)


# Evidence near the limit


def two_blocks(inside, between, n=20):
    """A network of two groups of `n` volunteers each."""
    block = np.kron(np.eye(2), np.full((n, n), inside - between)) + between
    np.fill_diagonal(block, 0)
    return cg.VolunteerNetwork(ids=[f"v{k:02d}" for k in range(2 * n)], weights=block, method="blocks")


def separation(network, n=20):
    return Separation.of(network, (network.ids[:n], network.ids[n:]), np.random.default_rng(0))


def test_groups_are_apart_where_links_inside_weigh_more():
    apart, together = separation(two_blocks(0.9, 0.3)), separation(two_blocks(0.5, 0.5))
    assert apart.p_value == 1 / 200
    assert together.p_value == 1
    assert_allclose(together.contrast, 0, atol=1e-12)
    assert apart.is_gone_in(together)
    assert not apart.is_gone_in(apart)
    assert not together.is_gone_in(apart)
    # Weaker, but as clear: they are still apart.
    assert not apart.is_gone_in(separation(two_blocks(0.6, 0.5)))


def test_small_groups_are_not_judged():
    tiny = separation(two_blocks(0.9, 0.1, n=7), n=7)
    assert np.isnan(tiny.p_value)
    assert not separation(two_blocks(0.9, 0.3)).is_gone_in(tiny)


@dataclass(frozen=True, kw_only=True)
class Doubtful(Detector):
    """Sees two halves, but has evidence only where the number of volunteers is in `sure`."""

    name: ClassVar[str] = "doubtful"
    sure: tuple[int, ...] = ()
    shuffled: bool = False

    def _detect(self, network, *, seed, progress):
        order = np.argsort(network.ids.astype(str))
        halves = np.zeros((len(network), 2))
        code = np.arange(len(network)) % 2
        if self.shuffled and len(network) not in self.sure:
            code = np.random.default_rng(0).permutation(code)
        halves[order, code] = 1
        structured = len(network) in self.sure
        evidence = cg.Evidence(agreement=0.9, modularity=0.2, null_modularity=[0.19] * 3, structured=structured)
        return Detection(halves if structured else np.ones((len(network), 1)), evidence=evidence, candidate=halves)


def doubtful_track(**settings):
    return over_time(
        everybody(30),
        counts=[40, 50, 60],
        network=partial(task_cooccurrence, min_responses=1),
        model=None,
        detector=Doubtful(**settings),
        restarts=0,
    )


def test_communities_that_persist_are_not_erased():
    track = doubtful_track(sure=(20, 30))
    assert track.n_communities.tolist() == [2, 2, 2]
    assert [one.evidence.persists for one in track] == [False, True, False]
    assert {event.event for event in track.events} <= {"born", "grew"}


def test_other_communities_do_not_persist():
    track = doubtful_track(sure=(20, 30), shuffled=True)
    assert track.n_communities.tolist() == [2, 1, 2]
    assert {event.event for event in track.events} == {"born", "no longer seen", "first seen"}


def test_communities_persist_only_after_evidence():
    assert doubtful_track(sure=(30,)).n_communities.tolist() == [1, 1, 2]


def test_snapshots_can_be_taken_at_regular_times(graph):
    options = {**QUICK, "model": None}
    regular = over_time(graph, every="40D", **options)
    views = list(graph.snapshots(every="40D"))
    assert regular.counts.tolist() == [len(view.responses) for view in views]
    by_hand = over_time(graph, counts=regular.counts.tolist(), **options)
    assert_array_equal(regular.assignment, by_hand.assignment)
    assert len(regular.params["moments"]) == len(views)
    assert regular.params["moments"][0] - graph.responses[0].time == dt.timedelta(days=40)
