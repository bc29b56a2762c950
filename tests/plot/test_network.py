"""Pictures of networks show links, communities and who stands where."""

import random
import sys
from collections import Counter

import mpltern  # noqa: F401  registers the projection
import numpy as np
import pytest
from builders import communities_of, network_of
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from plot.reading import hexes, legend
from plot.subjects import planted_network, random_communities, random_weights
from scipy.sparse import csr_array

import crowdgraph as cg
from crowdgraph.errors import AlignmentError, ParameterError
from crowdgraph.plot._style import GREY, HUES, PALE, colours, mix_colours
from crowdgraph.plot.network import strongest_links


def strongest_by_hand(weights, neighbours):
    """The pairs that are among the strongest of one of their ends; weights differ."""
    wanted = set()
    for row, own in enumerate(weights):
        for column in sorted(range(len(own)), key=lambda other: -own[other])[:neighbours]:
            if own[column] > 0:
                wanted.add((min(row, column), max(row, column)))
    return wanted


@settings(max_examples=30)
@given(st.integers(1, 12), st.integers(1, 14), st.floats(0, 1), st.integers(0, 99), st.sampled_from([5, 2**24]))
def test_the_strongest_links_are_kept(n_volunteers, neighbours, density, seed, block):
    weights = random_weights(n_volunteers, density=density, seed=seed)
    expected = strongest_by_hand(weights, neighbours)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["crowdgraph.plot.network"], "WEIGHTS_PER_BLOCK", block)
        for form in (weights, csr_array(weights)):
            links = strongest_links(network_of(form), neighbours)
            assert set(zip(links.left.tolist(), links.right.tolist(), strict=True)) == expected
            assert len(links.left) == len(expected)
            np.testing.assert_array_equal(links.weight, weights[links.left, links.right])
            assert (np.diff(links.weight) <= 0).all()


def test_links_join_the_dots_of_their_volunteers(tmp_path):
    weights = random_weights(40)
    network = network_of(csr_array(weights))
    groups = communities_of(np.arange(40) % 3 - (np.arange(40) == 0))
    ax = cg.plot.network(network, groups, neighbours=2)
    lines, dots = ax.collections
    positions = np.asarray(dots.get_offsets())
    code = {tuple(position): k for k, position in enumerate(positions.round(9))}
    assert len(code) == 40
    pairs = [sorted(code[tuple(end)] for end in line.round(9)) for line in lines.get_segments()]
    assert {tuple(pair) for pair in pairs} == strongest_by_hand(weights, 2)
    # The weakest first, so that strong links lie above.
    assert (np.diff([weights[left, right] for left, right in pairs]) >= 0).all()
    group = groups.assignment
    expected = [HUES[group[left]] if group[left] == group[right] >= 0 else GREY for left, right in pairs]
    assert hexes(lines.get_colors()) == expected
    assert len(set(expected)) == 4
    assert ax.get_xlabel() == f"everybody's 2 strongest links: {len(pairs)} of {network.n_edges}"
    assert ax.get_title(loc="left") == "40 volunteers, 3 communities"
    assert legend(ax) == ["0: 13 volunteers", "1: 13 volunteers", "2: 13 volunteers", "none: 1 volunteer"]
    ax.figure.savefig(tmp_path / "network.png")


def test_dots_have_the_colours_of_their_communities():
    network, groups = network_of(random_weights(200)), random_communities(200, 9)
    ax = cg.plot.network(network, groups)
    _, dots = ax.collections
    np.testing.assert_allclose(
        dots.get_facecolors()[:-1, :3], mix_colours(colours(range(9)), groups.participation[:-1])
    )
    assert hexes(dots.get_facecolors()[-1:]) == [PALE]
    assert hexes(dots.get_edgecolors()[-1:]) == [GREY.upper()]
    one = communities_of(np.arange(200) % 9)
    drawn = cg.plot.network(network, one).collections[1].get_facecolors()
    assert hexes(drawn) == [colours(range(9))[k % 9] for k in range(200)]
    alone = cg.plot.network(network)
    assert set(hexes(alone.collections[1].get_facecolors())) == {HUES[0]}
    assert alone.get_legend() is None
    assert alone.get_title(loc="left") == "200 volunteers"


def test_few_volunteers_are_pies():
    network = network_of(random_weights(4, density=1.0))
    shares = [[0.25, 0.75, 0], [0, 0, 1], [0.2, 0.3, 0.5], [0.995, 0.005, 0]]
    groups = cg.Communities(ids=network.ids, participation=shares, modularity=0, method="by hand")
    ax = cg.plot.network(network, groups)
    _, dots, pies = ax.collections
    positions, areas = np.asarray(dots.get_offsets()), dots.get_sizes()
    assert hexes(pies.get_facecolors()) == [HUES[0], HUES[1], HUES[0], HUES[1], HUES[2]]
    np.testing.assert_array_equal(pies.get_offsets(), positions[[0, 0, 2, 2, 2]])
    np.testing.assert_array_equal(pies.get_sizes(), areas[[0, 0, 2, 2, 2]])
    pieces = [path.to_polygons()[0] for path in pies.get_paths()]

    def area(corners):
        x, y = corners.T
        return abs((x * np.roll(y, 1) - y * np.roll(x, 1)).sum()) / 2

    np.testing.assert_allclose([area(piece) / (np.pi / 4) for piece in pieces], [0.25, 0.75, 0.2, 0.3, 0.5], atol=0.01)
    # The first quarter goes from the top to the right.
    assert pieces[0].min() > -1e-9
    many = random_communities(200, 3)
    assert len(cg.plot.network(network_of(random_weights(200)), many).collections) == 2


def test_dots_grow_with_support_or_strength():
    weights = random_weights(30)
    by_strength = cg.plot.network(network_of(weights)).collections[1].get_sizes()
    assert np.argsort(by_strength).tolist() == np.argsort(weights.sum(axis=1)).tolist()
    support = np.arange(30.0)[::-1] ** 2
    by_support = cg.plot.network(network_of(weights, support=support)).collections[1].get_sizes()
    np.testing.assert_allclose(np.diff(by_support), by_support[1] - by_support[0])
    assert by_support[0] > by_support[-1] > 0


def test_many_communities_are_numbered_in_their_middle():
    network, groups = planted_network(20, 10)
    ax = cg.plot.network(network, groups)
    assert ax.get_legend() is None
    positions = np.asarray(ax.collections[1].get_offsets())
    assert len(ax.texts) >= 15
    for text in ax.texts:
        members = groups.assignment == int(text.get_text())
        np.testing.assert_allclose(text.get_position(), np.median(positions[members], axis=0))
    heap = np.zeros((200, 2)) + np.arange(200)[:, None] * [1e-3, 0]
    heap[-1] = 100
    assert [text.get_text() for text in cg.plot.network(network, groups, layout=heap).texts] == ["0"]


@pytest.mark.parametrize("layout", ["force", "spectral"])
def test_members_stand_together(layout):
    network, groups = planted_network(3, 20)
    positions = np.asarray(cg.plot.network(network, groups, layout=layout).collections[1].get_offsets())
    apart = np.linalg.norm(positions[:, None] - positions, axis=2)
    nearest = np.argsort(apart, axis=1)[:, 1:6]
    same = groups.assignment[nearest] == groups.assignment[:, None]
    assert same.mean() > 0.9


def test_a_dense_network_keeps_its_shape():
    # Volunteers along a line, everybody linked: who is far apart there is far apart in the picture.
    line = np.linspace(0, 1, 1200)
    apart = np.abs(line[:, None] - line)
    network = network_of(np.exp(-3 * apart) - np.eye(1200))
    assert network.density == 1

    def likeness(layout):
        positions = np.asarray(cg.plot.network(network, layout=layout).collections[1].get_offsets())
        drawn = np.linalg.norm(positions[:, None] - positions, axis=2)
        return np.corrcoef(drawn.ravel(), apart.ravel())[0, 1]

    assert likeness("auto") > 0.7
    assert likeness("force") < 0.5


def test_a_seed_gives_the_same_places():
    network = network_of(random_weights(30))
    state = random.getstate()
    drawn = [np.asarray(cg.plot.network(network, seed=seed).collections[1].get_offsets()) for seed in (0, 0, 1)]
    assert random.getstate() == state
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert np.abs(drawn[0] - drawn[2]).max() > 0.1
    cg.plot.network(network, seed=None)


def test_places_can_be_given():
    network = network_of(random_weights(30))
    positions = np.random.default_rng(0).normal(size=(30, 2))
    ax = Figure().subplots()
    assert cg.plot.network(network, layout=positions.tolist(), ax=ax) is ax
    np.testing.assert_array_equal(ax.collections[1].get_offsets(), positions)
    for wrong in (positions[:-1], positions[:, :1], positions * np.nan, positions.astype(str)):
        with pytest.raises(ParameterError, match=r"The positions of 30 volunteers .* of shape \(30, 2\); got an array"):
            cg.plot.network(network, layout=wrong)


def test_volunteers_without_links_stand_below(tmp_path):
    weights = np.zeros((60, 60))
    weights[:10, :10] = random_weights(10, density=1.0)
    ax = cg.plot.network(network_of(weights))
    positions = np.asarray(ax.collections[1].get_offsets())
    assert positions[10:, 1].max() < positions[:10, 1].min()
    assert len(np.unique(positions.round(6), axis=0)) == 60
    assert ax.get_xlabel() == "45 links"
    for n_volunteers in (1, 2, 7):
        lonely = network_of(np.zeros((n_volunteers, n_volunteers)))
        ax = cg.plot.network(lonely, cg.Leiden().detect(lonely))
        assert len(np.unique(np.asarray(ax.collections[1].get_offsets()).round(6), axis=0)) == n_volunteers
        assert ax.get_xlabel() == "0 links"
        assert "0 communities" in ax.get_title(loc="left")
        assert legend(ax) == [f"none: {n_volunteers} volunteer{'s' * (n_volunteers > 1)}"]
        ax.figure.savefig(tmp_path / "network.png")


def test_unconnected_parts_do_not_fly_apart():
    group = np.repeat(np.arange(6), 10)
    network = network_of(random_weights(60, density=0.8) * (group[:, None] == group))
    positions = np.asarray(cg.plot.network(network).collections[1].get_offsets())
    middles = np.array([positions[group == k].mean(axis=0) for k in range(6)])
    reach = np.array([np.linalg.norm(positions[group == k] - middles[k], axis=1).max() for k in range(6)])
    gaps = np.linalg.norm(middles[:, None] - middles, axis=2) / (reach[:, None] + reach)
    gaps[np.eye(6, dtype=bool)] = np.inf
    # The closest two nearly touch, and none overlap.
    assert 1 < gaps.min() < 1.5


def test_not_too_many_links_are_drawn(monkeypatch):
    # The function of the same name hides the module.
    monkeypatch.setattr(sys.modules["crowdgraph.plot.network"], "MAX_LINKS", 25)
    weights = random_weights(30)
    network = network_of(weights)
    ax = cg.plot.network(network)
    assert ax.get_xlabel() == f"the strongest links: 25 of {network.n_edges}"
    positions = [tuple(position) for position in np.asarray(ax.collections[1].get_offsets())]
    drawn = [weights[tuple(positions.index(tuple(end)) for end in line)] for line in ax.collections[0].get_segments()]
    assert sorted(drawn) == sorted(weights[np.triu_indices(30)])[-25:]


@settings(max_examples=25)
@given(
    st.integers(1, 9),
    st.floats(0, 1),
    st.integers(0, 99),
    st.sampled_from(["auto", "force", "spectral"]),
    st.sampled_from(["any", "equal", "tiny", "huge", "both"]),
)
def test_every_network_can_be_drawn(n_volunteers, density, seed, layout, kind):
    weights = random_weights(n_volunteers, density=density, seed=seed)
    scale = {"any": 1.0, "equal": 1.0, "tiny": 1e-300, "huge": 1e300, "both": 1e-300}[kind]
    weights = (weights > 0) * scale if kind == "equal" else weights * scale
    if kind == "both":
        weights = np.where(weights > weights.max() / 2, 1e300, weights)
    ax = cg.plot.network(network_of(weights), random_communities(n_volunteers, 3, seed=seed), layout=layout)
    positions = np.asarray(ax.collections[1].get_offsets())
    assert positions.shape == (n_volunteers, 2)
    assert np.isfinite(positions).all()
    assert len(np.unique(positions.round(9), axis=0)) == n_volunteers


def test_networks_and_communities_must_fit():
    network = network_of(random_weights(10))
    with pytest.raises(AlignmentError, match=r"communities lack 3 of the network's volunteers \('v7', 'v8', 'v9'\)"):
        cg.plot.network(network, random_communities(7, 2))
    # Communities of further volunteers are fine; those in the picture are counted.
    ax = cg.plot.network(network, communities_of(np.arange(25) % 2))
    assert legend(ax) == ["0: 5 volunteers", "1: 5 volunteers"]
    # The order of volunteers may differ.
    groups = communities_of([0] * 3 + [1] * 7)
    turned = cg.Communities(
        ids=groups.ids[::-1], participation=groups.participation[::-1], modularity=0, method="by hand"
    )
    drawn = [cg.plot.network(network, part).collections[1].get_facecolors() for part in (groups, turned)]
    np.testing.assert_array_equal(*drawn)
    assert Counter(hexes(drawn[0])) == {HUES[0]: 3, HUES[1]: 7}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "drl"}, "layout='drl' is not a choice; use one of 'auto', 'force', 'spectral'"),
        ({"neighbours": 0}, "neighbours=0 must be a whole number from 1 up"),
        ({"neighbours": 2.5}, r"neighbours=2\.5 must be a whole number"),
        ({"seed": -1}, "seed=-1 must be a whole number"),
        ({"communities": {}}, "This picture shows a Communities; got a dict"),
    ],
)
def test_networks_are_not_drawn_with_bad_options(options, message):
    ax = Figure().subplots()
    with pytest.raises(ParameterError, match=message):
        cg.plot.network(network_of(random_weights(5)), ax=ax, **options)
    assert not ax.collections


def test_an_empty_network_is_refused():
    with pytest.raises(ParameterError, match="The network 'by hand' has no volunteers"):
        cg.plot.network(network_of(np.zeros((0, 0))))
