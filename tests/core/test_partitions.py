"""Communities that are brought in from elsewhere, in every form, and what can be done with them."""

from types import SimpleNamespace

import igraph
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from builders import communities_of, crowd, mirrored, network_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.communities import Detection, Detector, agreement
from crowdgraph.errors import (
    AlignmentError,
    ColumnError,
    CrowdGraphWarning,
    IdError,
    InputError,
    NotAnnotatedError,
    ParameterError,
)

from_labels, from_memberships = cg.Communities.from_labels, cg.Communities.from_memberships
NETWORK = network_of(mirrored(np.ones((4, 4))), ids=list("abcd"), support=[4, 3, 2, 1])
LABELS = {"a": "x", "b": "y", "c": "y", "d": None}


def assert_same(back, groups):
    assert back.ids.tolist() == groups.ids.tolist()
    np.testing.assert_allclose(back.participation, groups.participation, atol=1e-12)


@st.composite
def partitions(draw):
    """A random network, and the community of each of its volunteers; -1 for none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_volunteers = draw(st.integers(2, 12))
    weights = mirrored(rng.random((n_volunteers, n_volunteers)) * (rng.random((n_volunteers, n_volunteers)) < 0.6))
    return network_of(weights), rng.integers(-1, draw(st.integers(1, 4)), n_volunteers)


# Every form gives the same communities


@settings(max_examples=40)
@given(partitions())
def test_every_form_of_a_partition_gives_the_same_communities(case):
    network, numbers = case
    ids = network.ids.tolist()
    groups = from_labels(dict(zip(ids, numbers.tolist(), strict=True)), network=network)
    assert [sorted(group) for group in groups.to_sets()] == [sorted(group) for group in groups]
    np.testing.assert_array_equal(groups.order, np.arange(len(groups)))
    graph = network.to_igraph()
    forms = [
        numbers,
        numbers.tolist(),
        pd.Series(numbers, index=ids)[::-1],
        groups.to_labels(),
        groups.to_frame(),
        groups.to_frame(kind="polars"),
        groups.to_frame(kind="arrow"),
    ]
    if (numbers >= 0).all():
        sets = groups.to_sets()
        forms += [
            sets,
            [frozenset(group) for group in sets],
            [list(group) for group in sets],
            SimpleNamespace(communities=[list(group) for group in sets]),
            igraph.VertexClustering(graph, groups.assignment.tolist()),
            igraph.VertexCover(graph, [[ids.index(one) for one in group] for group in sets]),
        ]
    for form in forms:
        assert_same(from_labels(form, network=network), groups)


@settings(max_examples=40)
@given(partitions())
def test_modularity_is_that_of_networkx(case):
    network, numbers = case
    groups = from_labels(np.abs(numbers), network=network)
    if network.n_edges:
        expected = nx.community.modularity(network.to_networkx(), groups.to_sets(), weight="weight")
        assert groups.modularity == pytest.approx(expected, abs=1e-12)
    assert groups.modularity == pytest.approx(groups.soft_modularity, abs=1e-12)
    assert groups.modularity == cg.communities.quality.modularity(network, groups)


@settings(max_examples=40)
@given(partitions(), st.integers(1, 4))
def test_memberships_come_back(case, k):
    network, numbers = case
    shares = np.random.default_rng(k).dirichlet(np.ones(k), len(network)) * (numbers >= 0)[:, None]
    assume((numbers >= 0).any())
    groups = from_memberships(shares, network=network)
    names = groups.params["names"]
    np.testing.assert_allclose(groups.participation, shares[:, names])
    as_dicts = {one: dict(enumerate(groups.of(one).tolist())) for one in groups.ids.tolist()}
    forms = [
        groups.participation,
        groups.participation.tolist(),
        as_dicts,
        groups.to_frame(),
        groups.to_frame(kind="polars"),
    ]
    forms.append({one: groups.of(one) for one in groups.ids.tolist()})
    for form in forms:
        assert_same(from_memberships(form, network=network), groups)
    expected = cg.communities.quality.soft_modularity(network, groups.participation)
    assert groups.soft_modularity == pytest.approx(expected, abs=1e-12)
    doubled = from_memberships(2 * groups.participation, network=network, normalise=True)
    assert_same(doubled, groups)


def test_names_are_kept_in_the_order_of_the_numbers():
    groups = from_labels(LABELS)
    assert groups.params["names"] == ("y", "x")
    assert groups.to_labels() == {"a": 1, "b": 0, "c": 0, "d": -1}
    assert groups.describe()["name"].tolist()[:2] == ["y", "x"]
    assert "name" not in from_labels([{"a"}, {"b", "c"}]).describe()
    named = from_labels([{"a"}, {"b", "c"}], names=["few", "many"], params={"by": "me"}, method="clinic")
    assert dict(named.params) == {"by": "me", "names": ("many", "few")}
    assert named.method == "clinic"
    assert repr(named) == "Communities(clinic: 2 of sizes 2, 1)"


def test_overlapping_sets_become_equal_shares():
    groups = from_labels([{"a", "b"}, {"b", "c", "d"}])
    assert groups.of("b").tolist() == [0.5, 0.5]
    assert groups.ids.tolist() == list("abcd")
    assert from_labels([{"b", 1, "a"}]).ids.tolist() == ["a", "b", 1]
    cover = igraph.VertexCover(NETWORK.to_igraph(), [[0, 1], [1, 2, 3]])
    assert_same(from_labels(cover), groups)


def test_support_and_confusion_come_from_the_network():
    graph = crowd(0.9, 0.6).graph
    network = cg.networks.pi_similarity(graph.annotate(cg.IBCC().fit(graph)))
    groups = from_labels(np.arange(len(network)) % 2, network=network)
    detected = cg.Leiden().detect(network, seed=0)
    assert groups.support is detected.support
    assert groups.confusion is detected.confusion
    assert np.isnan(from_labels(LABELS).modularity)


def test_what_is_left_out_is_said():
    with pytest.warns(CrowdGraphWarning, match=r"miss 2 volunteers of 4 in the network \('c', 'd'\)"):
        groups = from_labels({"a": 0, "b": 1}, network=NETWORK)
    assert groups.unassigned == ["c", "d"]
    with pytest.warns(CrowdGraphWarning, match=r"miss 1 volunteer of 2 in ids= \('z'\)"):
        assert from_labels({"a": 0}, ids=["z", "a"]).to_labels() == {"z": -1, "a": 0}
    with pytest.warns(CrowdGraphWarning, match=r"Left out 1 community without members \('none'\)"):
        groups = from_labels([{"a"}, set()], names=["one", "none"])
    assert groups.params["names"] == ("one",)
    with pytest.warns(CrowdGraphWarning, match=r"Left out 1 volunteer of the communities not in the network \('e'\)"):
        groups = from_labels([set("ab"), set("cde")], network=NETWORK, strangers="drop")
    assert groups.sizes.tolist() == [2, 2]


# Bad input

BAD_LABELS = [
    ({"a": 0, "e": 1}, {"network": NETWORK}, AlignmentError, r"not in the network \('e'\).*strangers='drop'"),
    ({1: 0}, {"ids": ["1"]}, AlignmentError, "1 is an int; there is '1', a str"),
    ("abc", {}, ParameterError, "labels= takes a mapping.*got a str"),
    (7, {}, ParameterError, "got an int"),
    ([0, 1], {}, ParameterError, r"does not say whose they are; pass ids="),
    ([0, 1], {"network": NETWORK}, AlignmentError, "for 2 volunteers, and 4 volunteers in the network"),
    (np.eye(4), {"network": NETWORK}, ParameterError, r"shape \(4, 4\).*from_memberships"),
    ({"a": ["x", "y"]}, {}, ParameterError, r"list\(groups.values\(\)\) with names=list\(groups\)"),
    ({"a": {"b", "c"}}, {}, ParameterError, "named by text or a number"),
    (LABELS, {"names": ["x", "y"]}, ParameterError, "here labels name them"),
    ([{"a"}, {"b"}], {"names": ["x"]}, ParameterError, "1 different names for 2 communities"),
    ([{"a"}, {"b"}], {"names": ["x", "x"]}, ParameterError, "1 different names for 2 communities"),
    ([["a", ["b"]]], {}, IdError, r"\['b'\] cannot be the id"),
    ([["a", None]], {}, IdError, "None cannot be the id"),
    (pd.Series([0, 1], index=["a", "a"]), {}, IdError, "twice"),
    (pd.DataFrame({"volunteer": ["a", "a"], "community": [0, 1]}), {}, IdError, r"several rows \('a'\)"),
    (
        pl.DataFrame({"volunteer": ["a"], "comunity": [0]}),
        {},
        ColumnError,
        "Did you mean 'comunity'",
    ),
    (LABELS, {"strangers": "ignore"}, ParameterError, "strangers='ignore' is not a choice"),
    (LABELS, {"ids": ["a", "a"]}, IdError, "repeat"),
    (igraph.VertexClustering(igraph.Graph(2), [0, 1]), {}, ParameterError, "does not say whose"),
]
BAD_MEMBERSHIPS = [
    (
        {"a": {"x": 0.5, "y": 0.2}},
        {},
        InputError,
        "do not sum to one: those of 'a' sum to 0.7.*normalise",
    ),
    ({"a": [0.5, 0.5], "b": [1.0]}, {}, InputError, "as many for each volunteer"),
    ({"a": {"x": -0.5, "y": 1.5}}, {}, InputError, "Some shares are negative: those of 'a'"),
    ({"a": {"x": np.nan}}, {}, InputError, "Some shares are not finite: those of 'a'"),
    ({"a": {"x": np.nan}}, {"normalise": True}, InputError, "not finite"),
    ({"a": {"x": "much"}}, {}, InputError, "must be numbers"),
    ({"a": 0.5}, {}, ParameterError, "as a mapping or a sequence; got 0.5"),
    ({"a": "x"}, {}, ParameterError, "as a mapping or a sequence; got 'x'"),
    ({"a": {"x": 1.0}, "e": {"x": 1.0}}, {"network": NETWORK}, AlignmentError, "not in the network"),
    ([[1.0]], {}, ParameterError, "does not say whose"),
    ([[1.0]], {"network": NETWORK}, AlignmentError, "memberships for 1 volunteers"),
    ([1.0, 1.0], {"ids": "ab"}, InputError, r"shape \(2,\)"),
    ([[1.0], [1.0]], {"ids": ["a", "a"]}, IdError, "several rows"),
    (pd.DataFrame({"x": [1.0]}, index=["a"]), {"network": NETWORK}, ColumnError, "no column 'volunteer'.*reset_index"),
    (pd.DataFrame({"volunteer": ["a"], "x": ["y"]}), {}, InputError, "must be numbers"),
    ([[1.0]], {"ids": "a", "normalise": "yes"}, ParameterError, "normalise='yes'"),
    ([[1.0]], {"ids": "a", "names": ["x", "y"]}, ParameterError, "2 different names for 1 communities"),
]


@pytest.mark.parametrize(("labels", "options", "error", "words"), BAD_LABELS)
def test_bad_labels(labels, options, error, words):
    with pytest.raises(error, match=words):
        from_labels(labels, **options)


@pytest.mark.filterwarnings("ignore:The communities miss")
@pytest.mark.parametrize(("memberships", "options", "error", "words"), BAD_MEMBERSHIPS)
def test_bad_memberships(memberships, options, error, words):
    with pytest.raises(error, match=words):
        from_memberships(memberships, **options)


# What can be done with them


@pytest.fixture(scope="module")
def annotated():
    simulated = crowd(0.95, 0.6, n_volunteers=24, n_items=150, n_responses=1_800)
    graph = simulated.graph.annotate(cg.IBCC().fit(simulated.graph))
    return graph.annotate(cg.networks.pi_similarity(graph))


@pytest.fixture(scope="module")
def brought_in(annotated):
    """Communities of most volunteers, without a network, as from a clinician's list."""
    volunteers = annotated.volunteers.ids.tolist()[:-1]
    return from_labels({one: "odd" if code % 2 else "even" for code, one in enumerate(volunteers)}, method="clinic")


def test_graphs_carry_and_save_them(annotated, brought_in, tmp_path):
    graph = annotated.annotate(brought_in)
    graph.save(tmp_path / "graph.crowd")
    back = cg.load(tmp_path / "graph.crowd").communities("clinic")
    assert_same(back, brought_in)
    assert back.params["names"] == ("even", "odd")
    assert np.isnan(back.modularity)
    assert "modularity" not in back._repr_html_()
    with pytest.raises(AlignmentError, match="this one lacks 1 of its volunteers"):
        annotated.annotate(from_labels({"nobody": 0}))


def test_they_are_described_and_compared(annotated, brought_in):
    rows = brought_in.describe(annotated.fit().confusion.latest())
    assert rows["name"].tolist() == ["even", "odd"]
    assert rows["volunteers"].tolist() == [12, 11]
    assert rows["behaviour"].notna().all()
    assert agreement(brought_in, brought_in.to_sets()).ari == 1
    assert agreement(brought_in.to_labels(), brought_in).nmi == 1
    network = annotated.network()
    detected = cg.Leiden().detect(network, seed=0)
    assert agreement(detected, igraph.VertexClustering(network.to_igraph(), detected.assignment.tolist())).ari == 1


def test_they_are_plotted(annotated, brought_in):
    network = annotated.network().subnetwork(brought_in.ids)
    snapshot = annotated.fit().confusion.latest()
    axes = [
        cg.plot.network(network, communities=brought_in, seed=0),
        cg.plot.participation_matrix(brought_in),
        cg.plot.prototypes(brought_in, snapshot),
    ]
    assert all(ax is not None for ax in axes)
    plt.close("all")


def test_policies_use_them(annotated, brought_in):
    policy = cg.allocation.CommunitiesFirst(communities=brought_in)
    assert len(policy.assign(annotated, budget=10, seed=0)) == 10


def test_the_report_shows_them(annotated, brought_in, tmp_path):
    path = tmp_path / "report.html"
    cg.report.write(annotated.annotate(brought_in), path)
    page = path.read_text()
    assert "clinic" in page
    assert '"modularity": null' in page or '"modularity":null' in page
    assert '"even"' in page


class LabelPropagation(Detector):
    name = "label propagation"

    def _detect(self, network, *, seed, progress):
        groups = nx.community.asyn_lpa_communities(network.to_networkx(), weight="weight", seed=seed)
        return Detection(from_labels(groups, network=network).participation)


def test_any_algorithm_is_a_detector_in_four_lines_and_is_followed_over_time():
    graph = crowd(n_volunteers=40, n_items=400, n_responses=3_000, n_communities=2, mixing=0.02).graph
    track = cg.dynamics.over_time(
        graph, counts=[1_500, 3_000], network=cg.networks.task_cooccurrence, detector=LabelPropagation(), seed=0
    )
    assert track.snapshots[-1].method == "label propagation"
    assert cg.plot.flow(track).patches
    plt.close("all")
    cg.testing.check_detector(LabelPropagation())


def test_brought_in_communities_make_a_track():
    early = from_labels({"a": "x", "b": "x", "c": "y"})
    late = from_labels({"a": "x", "b": "x", "c": "y", "d": None}, ids="abcd")
    track = cg.CommunityTrack(
        ids="abcd", times=[1, 2], counts=[3, 5], snapshots=[early, late], clock=cg.Clock("number"), method="clinic"
    )
    assert cg.plot.flow(track).patches
    with pytest.raises(NotAnnotatedError, match="brought in without a network; pass network="):
        cg.plot.modularity(track)
    plt.close("all")


def test_the_builder_of_tests_and_the_entrance_agree():
    assert_same(from_labels([0, 0, 1], ids=["v0", "v1", "v2"]), communities_of([0, 0, 1]))


def test_a_community_has_a_name_that_can_be_looked_up():
    with pytest.raises(ParameterError, match="named by text or a number; got a bytearray"):
        cg.Communities.from_labels({"a": bytearray(b"x"), "b": 1})
