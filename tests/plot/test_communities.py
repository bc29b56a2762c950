"""Pictures of communities show what the communities hold."""

import random
import sys
from collections import Counter
from dataclasses import replace

import mpltern  # noqa: F401  registers the projection
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from plot.reading import heights, hexes, legend, shares
from scipy.sparse import csr_array

import crowdgraph as cg
from crowdgraph.errors import AlignmentError, NotAnnotatedError, ParameterError
from crowdgraph.plot._panels import non_overlapping
from crowdgraph.plot._style import GREY, HUES, INK, PALE, SHARES, colours, ink_on, mix_colours
from crowdgraph.plot.network import strongest_links

CLASSES, LABELS = ("not supernova", "supernova"), (-1, 1, 3)
NONE = cg.Communities(ids="ab", participation=np.zeros((2, 0)), modularity=0.0, method="leiden")


def snapshot_of(n_volunteers, classes=CLASSES, labels=LABELS, seed=0):
    rng = np.random.default_rng(seed)
    return cg.ConfusionSnapshot(
        ids=[f"v{k}" for k in range(n_volunteers)],
        concentration=rng.gamma(1.0, size=(n_volunteers, len(classes), len(labels))) + 0.1,
        classes=tuple(classes),
        labels=tuple(labels),
    )


def soft(n_volunteers, n_communities, *, seed=0, **options):
    """Soft communities, the last volunteer unassigned."""
    shares = np.random.default_rng(seed).dirichlet(np.full(n_communities, 0.4), size=n_volunteers)
    shares[-1] = 0
    ids = [f"v{k}" for k in range(n_volunteers)]
    return cg.Communities(ids=ids, participation=shares, modularity=0.1, method="by hand", **options)


def hard(assignment, **options):
    assignment = np.asarray(assignment)
    shares = np.eye(assignment.max() + 1)[assignment] * (assignment >= 0)[:, None]
    ids = [f"v{k}" for k in range(len(assignment))]
    return cg.Communities(ids=ids, participation=shares, modularity=0.1, method="by hand", **options)


def network_of(weights, **options):
    ids = [f"v{k}" for k in range(weights.shape[0])]
    return cg.VolunteerNetwork(ids=ids, weights=weights, method="by hand", **options)


def random_weights(n_volunteers, *, density=0.3, seed=0):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.uniform(0.1, 1, (n_volunteers, n_volunteers)), 1)
    upper *= rng.uniform(size=upper.shape) < density
    return upper + upper.T


def planted(n_groups, size):
    """Strong links inside groups, weak ones between them."""
    group = np.repeat(np.arange(n_groups), size)
    weights = np.where(group[:, None] == group, 1.0, 0.01) * (random_weights(len(group), density=1.0) > 0)
    return network_of(csr_array(weights)), hard(group)


# Colours.


def test_many_colours_differ():
    assert len(set(colours(range(64)))) == 64
    assert colours(range(17))[16] == "#00446B"  # 0.6 of #0072B2


def test_colours_mix_as_lights():
    drawn = mix_colours(["#FF0000", "#0000FF"], np.array([[1, 0], [0, 1], [0.5, 0.5], [0, 0]]))
    np.testing.assert_allclose(drawn[:2], [[1, 0, 0], [0, 0, 1]], atol=1e-12)
    # Half the light of a channel is sRGB 188 of 255.
    np.testing.assert_allclose(drawn[2] * 255, [187.5, 0, 187.5], atol=0.1)
    assert drawn[3].tolist() == [0, 0, 0]
    for hue in colours(range(40)):
        assert hexes(mix_colours([hue], np.ones((1, 1)))) == [hue]


def test_text_can_be_read_on_every_colour():
    def light(colour):
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    def contrast(one, other):
        low, high = sorted([light(one), light(other)])
        return (high + 0.05) / (low + 0.05)

    assert (ink_on("#FFFFFF"), ink_on("#000000")) == (INK, "#FFFFFF")
    assert all(contrast(ink_on(hue), hue) >= 3 for hue in colours(range(32)))


def test_texts_that_cover_earlier_ones_are_left_out():
    spots = np.array([[0.0, 0.0], [5.0, 5.0], [14.0, 0.0], [0.0, 10.5]])
    assert non_overlapping(spots, ["0", "1", "2", "3"], size=10) == [0, 2, 3]
    assert non_overlapping(spots, ["0", "1", "2222", "3"], size=10) == [0, 3]


# Prototypes.


@pytest.mark.parametrize(("classes", "labels"), [(CLASSES, LABELS), ("ab", "ab"), ("a", "xyz"), ("abcd", "abcdefg")])
def test_prototypes_are_the_most_central_volunteers(classes, labels, tmp_path):
    snapshot, groups = snapshot_of(30, classes, labels), soft(30, 3)
    axes = cg.plot.prototypes(groups, snapshot, level=0.5)
    assert isinstance(axes, tuple)
    assert len(axes) == 3
    for k, ax in enumerate(axes):
        central = f"v{groups.participation[:, k].argmax()}"
        matrix = snapshot.of(central)
        np.testing.assert_array_equal(heights(ax), matrix.mean.ravel())
        low, high = matrix.interval(0.5)
        ends = np.array([segment[:, 1] for segment in ax.collections[0].get_segments()])
        np.testing.assert_allclose(ends, np.column_stack([low.ravel(), high.ravel()]))
        positions = [patch.get_x() + patch.get_width() / 2 for patch in ax.patches]
        np.testing.assert_allclose([segment[0, 0] for segment in ax.collections[0].get_segments()], positions)
        assert set(hexes(patch.get_facecolor() for patch in ax.patches)) == {HUES[k]}
        assert [text.get_text() for text in ax.get_xticklabels()] == [str(label) for label in labels] * len(classes)
        assert [text.get_text() for text in ax.texts] == [str(name) for name in classes]
        assert ax.get_title(loc="left").startswith(f"{k}: {(groups.assignment == k).sum()} volunteers\n")
    axes[0].figure.savefig(tmp_path / "prototypes.png")
    titles = axes[0].figure.get_suptitle()
    assert titles == "Most central volunteers of the communities"


def test_prototypes_can_be_means():
    snapshot, groups = snapshot_of(30), soft(30, 3)
    axes = cg.plot.prototypes(groups, snapshot, mean=True)
    for k, ax in enumerate(axes):
        weights = groups.participation[:, k]
        expected = sum(weight * matrix for weight, matrix in zip(weights, snapshot.mean, strict=True)) / weights.sum()
        np.testing.assert_allclose(heights(ax), expected.ravel())
        assert not ax.collections
    assert axes[0].figure.get_suptitle() == "Means of the communities"


def test_prototypes_say_the_behaviour():
    snapshot = replace(snapshot_of(2), concentration=[[[98.0, 1, 1]] * 2, [[1.0, 1, 98]] * 2])
    titles = [ax.get_title(loc="left") for ax in cg.plot.prototypes(hard([0, 1]), snapshot)]
    assert [" ".join(title.split()) for title in titles] == [
        "0: 1 volunteer says -1 to nearly everything",
        "1: 1 volunteer says 3 to nearly everything",
    ]


def test_prototypes_take_every_kind_of_confusion():
    snapshot, groups = snapshot_of(6), soft(6, 2)
    shape = {"classes": snapshot.classes, "labels": snapshot.labels}
    track = cg.ConfusionTrack.static(ids=snapshot.ids, concentration=snapshot.concentration, **shape)
    fit = cg.ModelFit(
        model="mine",
        items=["x"],
        classes=CLASSES,
        item_probs=[[0.5, 0.5]],
        class_probs=[0.5, 0.5],
        confusion=track,
    )
    expected = heights(cg.plot.prototypes(groups, snapshot)[1])
    for confusion in (track, fit):
        np.testing.assert_array_equal(heights(cg.plot.prototypes(groups, confusion)[1]), expected)
    own = replace(groups, confusion=snapshot)
    np.testing.assert_array_equal(heights(cg.plot.prototypes(own)[1]), expected)
    np.testing.assert_allclose(
        cg.plot.community_ternary(own)[0].collections[0].get_offsets(),
        cg.plot.community_ternary(groups, fit)[0].collections[0].get_offsets(),
    )
    with pytest.raises(NotAnnotatedError, match="'mine' has no confusion matrices"):
        cg.plot.prototypes(groups, replace(fit, confusion=None))


def test_prototypes_of_many_communities_say_how_many_are_left_out(tmp_path):
    snapshot, groups = snapshot_of(200), soft(200, 20)
    axes = cg.plot.prototypes(groups, snapshot)
    assert len(axes) == 12
    figure = axes[0].figure
    assert figure.get_suptitle() == "Most central volunteers of the communities, 12 of 20 communities drawn"
    assert len(figure.axes) == 12
    figure.savefig(tmp_path / "prototypes.png")
    axes_of_two = cg.plot.prototypes(groups, snapshot, numbers=[17, 2])
    assert [ax.get_title(loc="left").split(":")[0] for ax in axes_of_two] == ["17", "2"]
    assert hexes([ax.patches[0].get_facecolor() for ax in axes_of_two]) == [colours(range(20))[17], HUES[2]]


def test_prototypes_on_given_axes():
    snapshot, groups = snapshot_of(20), soft(20, 4)
    grid = Figure().subplots(2, 2)
    assert cg.plot.prototypes(groups, snapshot, axes=grid) == tuple(grid.ravel())
    assert grid[0, 0].figure.get_suptitle() == ""
    pair = list(Figure().subplots(1, 2))
    assert cg.plot.prototypes(groups, snapshot, axes=pair) == tuple(pair)
    assert [ax.get_title(loc="left")[0] for ax in pair] == ["0", "1"]
    with pytest.raises(ParameterError, match="axes= has 2 axes; 3 communities are drawn"):
        cg.plot.prototypes(groups, snapshot, axes=pair, numbers=[0, 1, 2])
    with pytest.raises(ParameterError, match="axes= has 6 axes; 4 communities are drawn"):
        cg.plot.prototypes(groups, snapshot, axes=Figure().subplots(2, 3))
    for wrong, got in (([], "none"), ([3], "int"), ("ax", "str")):
        with pytest.raises(ParameterError, match=f"axes= takes matplotlib axes, one for each panel; got {got}"):
            cg.plot.prototypes(groups, snapshot, axes=wrong)


def test_a_community_of_nobody_has_no_bars(tmp_path):
    groups = cg.Communities(ids=["v0", "v1"], participation=[[1, 0], [1, 0]], modularity=0, method="by hand")
    for mean in (True, False):
        axes = cg.plot.prototypes(groups, snapshot_of(2), mean=mean)
        assert np.isnan(heights(axes[1])).all()
        assert axes[1].get_title(loc="left") == "1: 0 volunteers"
        axes[0].figure.savefig(tmp_path / "prototypes.png")
    axes = cg.plot.community_ternary(groups, snapshot_of(2))
    assert len(axes[0].collections[0].get_offsets()) == 1
    axes[0].figure.savefig(tmp_path / "ternary.png")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"numbers": [0, 7]}, "numbers= names 7; the communities are numbered 0 to 2"),
        ({"numbers": [-1]}, "numbers= names -1"),
        ({"numbers": [0.5]}, r"numbers= names 0\.5"),
        ({"numbers": []}, "There are no numbers"),
        ({"mean": 1}, "mean=1 must be True or False"),
        ({"level": 1.0}, "level=1.0 must lie between 0 and 1"),
    ],
)
def test_prototypes_are_not_drawn_with_bad_options(options, message):
    with pytest.raises(ParameterError, match=message):
        cg.plot.prototypes(soft(9, 3), snapshot_of(9), **options)


# Ternary.


def test_a_triangle_for_each_class_has_a_dot_for_each_community(tmp_path):
    classes = ("a", "b", "c", "d")
    snapshot, groups = snapshot_of(60, classes), soft(60, 5)
    axes = cg.plot.community_ternary(groups, snapshot)
    assert [ax.get_title(loc="left") for ax in axes] == [f"when it is {name}" for name in classes]
    order = np.argsort(-groups.sizes, kind="stable")
    for row, ax in enumerate(axes):
        dots = ax.collections[0]
        np.testing.assert_allclose(
            shares(ax, dots.get_offsets()), groups.mean_confusion(snapshot)[order, row], atol=1e-9
        )
        ratios = dots.get_sizes() / groups.sizes[order]
        np.testing.assert_allclose(ratios, ratios[0])
        assert hexes(dots.get_facecolors()) == [HUES[k] for k in order]
        assert [ax.get_tlabel(), ax.get_llabel(), ax.get_rlabel()] == ["says -1", "says 1", "says 3"]
        for text in ax.texts:
            drawn = np.linalg.norm(dots.get_offsets() - text.xy, axis=1)
            assert text.get_text() == str(order[drawn.argmin()])
            assert drawn.min() < 1e-9
    # All are listed, beside the last triangle of the first row.
    assert legend(axes[2]) == [f"{k}: {size} volunteers" for k, size in enumerate(groups.sizes)]
    assert axes[0].get_legend() is None
    axes[0].figure.savefig(tmp_path / "ternary.png")


def test_crowded_dots_are_not_numbered():
    near = snapshot_of(3)
    apart = replace(near, concentration=np.stack([98 * row + 1 for row in np.eye(3)])[:, None, :].repeat(2, axis=1))
    groups = hard([0, 1, 2])
    assert {text.get_text() for text in cg.plot.community_ternary(groups, apart)[0].texts} == {"0", "1", "2"}
    same = replace(near, concentration=np.ones((3, 2, 3)))
    # The number would stand on the dots of the others.
    assert len(cg.plot.community_ternary(groups, same)[0].texts) == 0


def test_many_communities_have_smaller_dots_and_a_scale():
    groups = hard(np.repeat(np.arange(20), np.arange(25, 5, -1)))
    ax = cg.plot.community_ternary(groups, snapshot_of(len(groups.ids)))[-1]
    assert legend(ax) == ["25 volunteers", "6 volunteers"]
    handles = ax.get_legend().legend_handles
    sizes = ax.collections[0].get_sizes()
    np.testing.assert_allclose([handle.get_markersize() ** 2 for handle in handles], [sizes.max(), sizes.min()])
    few = cg.plot.community_ternary(hard([0, 0, 1]), snapshot_of(3))[0].collections[0].get_sizes()
    assert sizes.max() < few.max()


def test_a_part_of_a_triangle_holds_the_same_dots():
    snapshot = replace(snapshot_of(4), concentration=20 + np.random.default_rng(0).uniform(size=(4, 2, 3)))
    groups = hard([0, 1, 2, 3])
    full, part = (cg.plot.community_ternary(groups, snapshot, zoom=zoom)[0] for zoom in (False, True))
    np.testing.assert_allclose(full.collections[0].get_offsets(), part.collections[0].get_offsets())
    lows = np.array([part.get_tlim()[0], part.get_llim()[0], part.get_rlim()[0]])
    means = snapshot.mean[:, 0]
    assert (lows > 0.25).all()
    assert (lows < means.min(axis=0)).all()
    assert part.get_title(loc="left") == "when it is not supernova, magnified"
    assert len(part.texts) > len(full.texts)
    with pytest.raises(ParameterError, match="zoom=2 must be True or False"):
        cg.plot.community_ternary(groups, snapshot, zoom=2)


def test_triangles_on_given_axes():
    groups, snapshot = soft(9, 2), snapshot_of(9)
    given_axes = Figure().subplots(1, 2, subplot_kw={"projection": "ternary"})
    assert cg.plot.community_ternary(groups, snapshot, axes=given_axes) == tuple(given_axes)
    with pytest.raises(ParameterError, match="axes= has 1 axes; 2 are needed, one for each class"):
        cg.plot.community_ternary(groups, snapshot, axes=given_axes[:1])
    with pytest.raises(ParameterError, match=r"drawn in triangles; got Axes\. Make axes with"):
        cg.plot.community_ternary(groups, snapshot, axes=Figure().subplots(1, 2))


@pytest.mark.parametrize("labels", ["ab", "abcd"])
def test_triangles_are_for_three_labels(labels):
    with pytest.raises(ParameterError, match=rf"have {len(labels)} \('a', 'b'.*plot\.prototypes"):
        cg.plot.community_ternary(soft(5, 2), snapshot_of(5, labels=labels))


@pytest.mark.parametrize("draw", [cg.plot.prototypes, cg.plot.community_ternary])
def test_confusion_that_does_not_fit_is_refused(draw):
    with pytest.raises(AlignmentError, match=r"lack 2 of the communities' volunteers \('v3', 'v4'\)\. Take a fit"):
        draw(soft(5, 2), snapshot_of(3))
    with pytest.raises(ParameterError, match=r"'by hand' were not found by comparing confusion matrices.*give a fit"):
        draw(soft(5, 2))
    with pytest.raises(ParameterError, match="from a fit, its confusion, or its confusion at a time; got a dict"):
        draw(soft(5, 2), {})
    # Confusion of further volunteers does no harm.
    draw(soft(5, 2), snapshot_of(8))


# Networks.


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
    groups = hard(np.arange(40) % 3 - (np.arange(40) == 0))
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
    network, groups = network_of(random_weights(200)), soft(200, 9)
    ax = cg.plot.network(network, groups)
    _, dots = ax.collections
    np.testing.assert_allclose(
        dots.get_facecolors()[:-1, :3], mix_colours(colours(range(9)), groups.participation[:-1])
    )
    assert hexes(dots.get_facecolors()[-1:]) == [PALE]
    assert hexes(dots.get_edgecolors()[-1:]) == [GREY.upper()]
    one = hard(np.arange(200) % 9)
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
    many = soft(200, 3)
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
    network, groups = planted(20, 10)
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
    network, groups = planted(3, 20)
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
    ax = cg.plot.network(network_of(weights), soft(n_volunteers, 3, seed=seed), layout=layout)
    positions = np.asarray(ax.collections[1].get_offsets())
    assert positions.shape == (n_volunteers, 2)
    assert np.isfinite(positions).all()
    assert len(np.unique(positions.round(9), axis=0)) == n_volunteers


def test_networks_and_communities_must_fit():
    network = network_of(random_weights(10))
    with pytest.raises(AlignmentError, match=r"communities lack 3 of the network's volunteers \('v7', 'v8', 'v9'\)"):
        cg.plot.network(network, soft(7, 2))
    # Communities of further volunteers are fine; those in the picture are counted.
    ax = cg.plot.network(network, hard(np.arange(25) % 2))
    assert legend(ax) == ["0: 5 volunteers", "1: 5 volunteers"]
    # The order of volunteers may differ.
    groups = hard([0] * 3 + [1] * 7)
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


# Participation and relevance.


@settings(max_examples=20)
@given(st.integers(2, 40), st.integers(1, 30), st.integers(0, 99))
def test_the_matrix_is_sorted(n_volunteers, n_communities, seed):
    groups = soft(n_volunteers, n_communities, seed=seed)
    ax = cg.plot.participation_matrix(groups)
    drawn = np.asarray(ax.images[0].get_array())
    assert Counter(map(tuple, drawn)) == Counter(map(tuple, groups.participation))
    best = [row.argmax() if row.any() else n_communities for row in drawn]
    assert best == sorted(best)
    for k in range(n_communities):
        inside = drawn[np.array(best) == k, k]
        assert (np.diff(inside) <= 0).all()
    ends = np.cumsum(np.bincount(best, minlength=n_communities + 1))
    lines = {line[0, 1] for line in ax.collections[0].get_segments()}
    assert lines == {end - 0.5 for end in ends if 0 < end < n_volunteers}
    sizes = {**{str(k): size for k, size in enumerate(groups.sizes)}, "none": 1}
    for text in ax.get_yticklabels():
        name, size = text.get_text().split(": ")
        assert int(size) == sizes[name] > 0
        spot = text.get_position()[1]
        assert best[round(spot + 1e-9)] == (n_communities if name == "none" else int(name))


def test_the_matrix_has_colours_and_a_scale(tmp_path):
    ax = cg.plot.participation_matrix(soft(50, 10))
    image = ax.images[0]
    assert image.get_clim() == (0, 1)
    assert image.get_cmap() == SHARES
    squares = ax.collections[1]
    assert hexes(squares.get_facecolors()) == colours(range(10))
    assert squares.get_offsets()[:, 0].tolist() == list(range(10))
    assert [text.get_text() for text in ax.get_xticklabels()] == [str(k) for k in range(10)]
    assert ax.get_title(loc="left") == "Participation of 50 volunteers in 10 communities"
    assert [other.get_ylabel() for other in ax.figure.axes] == [
        "volunteers assigned to each community",
        "participation",
    ]
    assert cg.plot.participation_matrix(soft(3, 1), ax=(own := Figure().subplots())) is own
    assert own.get_title(loc="left") == "Participation of 3 volunteers in 1 community"
    ax.figure.savefig(tmp_path / "matrix.png")


def test_many_rows_can_be_drawn(tmp_path):
    ax = cg.plot.participation_matrix(soft(20_000, 60))
    ax.figure.savefig(tmp_path / "matrix.png")
    # No two texts cover each other.
    for texts in (ax.get_xticklabels(), ax.get_yticklabels()):
        boxes = [text.get_window_extent() for text in texts]
        assert len(boxes) > 10
        assert not any(one.overlaps(other) for one, other in zip(boxes[1:], boxes[:-1], strict=True))


def test_relevance_of_kept_and_other_communities(tmp_path):
    groups = soft(9, 3, relevance=[3.0, 2.0, 1.0, 0.2, 0.1])
    ax = cg.plot.relevance(groups)
    assert heights(ax).tolist() == [3.0, 2.0, 1.0, 0.2, 0.1]
    assert hexes(patch.get_facecolor() for patch in ax.patches) == [*HUES[:3], PALE, PALE]
    assert [patch.get_x() + patch.get_width() / 2 for patch in ax.patches] == pytest.approx(range(5))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("community", "relevance")
    assert ax.get_title(loc="left") == "3 communities of 5 that were tried"
    assert legend(ax) == ["not needed"]
    ax.figure.savefig(tmp_path / "relevance.png")
    ax = Figure().subplots()
    assert cg.plot.relevance(soft(9, 1, relevance=[2.0]), ax=ax) is ax
    assert ax.get_title(loc="left") == "1 community of 1 that were tried"
    assert ax.get_legend() is None
    none = cg.plot.relevance(replace(NONE, relevance=[0.1, 0.1]))
    assert hexes(patch.get_facecolor() for patch in none.patches) == [PALE, PALE]


def test_relevance_must_be_known():
    with pytest.raises(ParameterError, match=r"'by hand' have no relevance.*BayesianNMF\(\)\.detect\(network\)"):
        cg.plot.relevance(soft(9, 3))


# What cannot be drawn.


@pytest.mark.parametrize(
    "draw",
    [
        cg.plot.prototypes,
        cg.plot.community_ternary,
        cg.plot.network,
        cg.plot.participation_matrix,
        cg.plot.relevance,
    ],
)
def test_something_else_cannot_be_drawn(draw):
    with pytest.raises(ParameterError, match=r"This picture shows a .*; got a dict\. Make one with"):
        draw({})


@pytest.mark.parametrize("draw", [cg.plot.prototypes, cg.plot.community_ternary, cg.plot.participation_matrix])
def test_no_communities_cannot_be_drawn(draw):
    with pytest.raises(ParameterError, match="There are no communities to draw: 'leiden' found none"):
        draw(NONE)


def test_no_volunteers_cannot_be_drawn():
    nobody = cg.Communities(ids=[], participation=np.zeros((0, 2)), modularity=0, method="by hand")
    with pytest.raises(ParameterError, match="'by hand' have no volunteers"):
        cg.plot.participation_matrix(nobody)
