"""Triangles show the mean behaviour of communities, at one time and over time."""

from dataclasses import replace

import mpltern  # noqa: F401  registers the projection
import numpy as np
import pytest
from builders import communities_of
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from plot.reading import hexes, legend, mean_by_hand, overlapping, shares, titles
from plot.subjects import CLASSES, TRACKS, moving_track, random_communities, random_snapshot, random_track

import crowdgraph as cg
from crowdgraph.errors import ParameterError
from crowdgraph.plot._style import HUES, colours


def test_a_triangle_for_each_class_has_a_dot_for_each_community(tmp_path):
    classes = ("a", "b", "c", "d")
    snapshot, groups = random_snapshot(60, classes), random_communities(60, 5)
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
    near = random_snapshot(3)
    apart = replace(near, concentration=np.stack([98 * row + 1 for row in np.eye(3)])[:, None, :].repeat(2, axis=1))
    groups = communities_of([0, 1, 2])
    assert {text.get_text() for text in cg.plot.community_ternary(groups, apart)[0].texts} == {"0", "1", "2"}
    same = replace(near, concentration=np.ones((3, 2, 3)))
    # Only the dot on top has a number; those of the others would stand on it.
    assert [text.get_text() for text in cg.plot.community_ternary(groups, same)[0].texts] == ["2"]


def test_many_communities_have_smaller_dots_and_a_scale():
    groups = communities_of(np.repeat(np.arange(20), np.arange(25, 5, -1)))
    ax = cg.plot.community_ternary(groups, random_snapshot(len(groups.ids)))[-1]
    assert legend(ax) == ["25 volunteers", "6 volunteers"]
    handles = ax.get_legend().legend_handles
    sizes = ax.collections[0].get_sizes()
    np.testing.assert_allclose([handle.get_markersize() ** 2 for handle in handles], [sizes.max(), sizes.min()])
    few = cg.plot.community_ternary(communities_of([0, 0, 1]), random_snapshot(3))[0].collections[0].get_sizes()
    assert sizes.max() < few.max()


def test_a_part_of_a_triangle_holds_the_same_dots():
    snapshot = replace(random_snapshot(4), concentration=20 + np.random.default_rng(0).uniform(size=(4, 2, 3)))
    groups = communities_of([0, 1, 2, 3])
    full, part = (cg.plot.community_ternary(groups, snapshot, zoom=zoom)[0] for zoom in (False, True))
    np.testing.assert_allclose(full.collections[0].get_offsets(), part.collections[0].get_offsets())
    lows = np.array([part.get_tlim()[0], part.get_llim()[0], part.get_rlim()[0]])
    means = snapshot.mean[:, 0]
    assert (lows > 0.25).all()
    assert (lows < means.min(axis=0)).all()
    assert part.get_title(loc="left") == "when it is not supernova, magnified 10 times"
    assert len(part.texts) > len(full.texts)
    with pytest.raises(ParameterError, match="zoom=2 must be True or False"):
        cg.plot.community_ternary(groups, snapshot, zoom=2)


def test_triangles_on_own_axes():
    groups, snapshot = random_communities(9, 2), random_snapshot(9)
    own_axes = Figure().subplots(1, 2, subplot_kw={"projection": "ternary"})
    assert cg.plot.community_ternary(groups, snapshot, axes=own_axes) == tuple(own_axes)
    with pytest.raises(ParameterError, match="axes= has 1 axes; 2 are needed, one for each class"):
        cg.plot.community_ternary(groups, snapshot, axes=own_axes[:1])
    with pytest.raises(ParameterError, match=r"drawn in triangles; got Axes\. Make axes with"):
        cg.plot.community_ternary(groups, snapshot, axes=Figure().subplots(1, 2))


@pytest.mark.parametrize("labels", ["ab", "abcd"])
def test_triangles_are_for_three_labels(labels):
    with pytest.raises(ParameterError, match=rf"have {len(labels)} \('a', 'b'.*plot\.prototypes"):
        cg.plot.community_ternary(random_communities(5, 2), random_snapshot(5, labels=labels))


# Over time


def numbers(ax):
    """Return the numbers on dots; other texts of a triangle name its row."""
    return [text for text in ax.texts if text.get_text().isdigit()]


def sizes_by_hand(track, snapshot):
    """Return the number of members of each community."""
    codes = track.assignment[snapshot]
    return np.bincount(codes[codes >= 0], minlength=track.n_communities_ever)


def lows(ax):
    """Return the least shares in the visible part of a triangle."""
    return np.array([ax.get_tlim()[0], ax.get_llim()[0], ax.get_rlim()[0]])


@pytest.fixture(scope="module", params=TRACKS.values(), ids=TRACKS)
def rows(request):
    """A track, and its triangles, of shape (snapshots, classes)."""
    return request.param, np.reshape(cg.plot.community_ternary_over_time(request.param), (-1, len(CLASSES)))


@pytest.fixture(scope="module", params=TRACKS.values(), ids=TRACKS)
def triangles(request):
    """A track, and the paths of its communities."""
    return request.param, cg.plot.community_ternary_over_time(request.param, paths=True)


def test_each_snapshot_has_a_row_of_triangles(rows):
    track, grid = rows
    assert len(grid) == len(track)
    hues = colours(range(track.n_communities_ever))
    ratios = []
    for (snapshot, row), ax in np.ndenumerate(grid):
        (dots,) = ax.collections
        sizes = sizes_by_hand(track, snapshot)
        order = [k for k in np.argsort(-sizes, kind="stable") if sizes[k]]
        assert len(dots.get_offsets()) == len(order)
        if not order:
            continue
        means = [mean_by_hand(track, snapshot, k)[row] for k in order]
        np.testing.assert_allclose(shares(ax, dots.get_offsets()), means, atol=1e-9)
        ratios.extend(dots.get_sizes() / sizes[order])
        # Filled if it has been there at all snapshots with communities so far, otherwise a ring in its colour.
        before = [sizes_by_hand(track, t) for t in range(snapshot + 1)]
        core = [all(past[k] for past in before if past.any()) for k in order]
        faces, edges = (
            hexes(color[:3] for color in colors) for colors in (dots.get_facecolors(), dots.get_edgecolors())
        )
        assert faces == [hues[k] if stayed else "#FFFFFF" for k, stayed in zip(order, core, strict=True)]
        assert edges == ["#FFFFFF" if stayed else hues[k] for k, stayed in zip(order, core, strict=True)]
        for text in numbers(ax):
            k = int(text.get_text())
            np.testing.assert_allclose(shares(ax, [text.xy])[0], mean_by_hand(track, snapshot, k)[row], atol=1e-9)
    # All areas of all snapshots have one scale.
    np.testing.assert_allclose(ratios, ratios[0])
    assert not overlapping(grid[0, 0].figure, [text for ax in grid.flat for text in ax.texts])


def test_rows_are_named(rows):
    track, grid = rows
    assert [ax.get_title() for ax in grid[0]] == [f"when it is {name}" for name in CLASSES]
    assert not any(ax.get_title() for ax in grid[1:].flat)
    grid[0, 0].figure.draw_without_rendering()
    for snapshot, ax in enumerate(grid[:, 0]):
        lines = ax.texts[0].get_text().splitlines()
        assert lines[0] == f"{track.counts[snapshot]:,} responses"
        n = np.count_nonzero(sizes_by_hand(track, snapshot))
        assert lines[-1] == ("1 community" if n == 1 else f"{n} communities")
        # The name of a row does not touch its triangle.
        box = ax.texts[0].get_window_extent()
        assert shares(ax, ax.transData.inverted().transform([(box.x1, box.y0)]))[0].min() < 0
        assert box.x0 >= 0


def test_legend_of_rows():
    track = random_track([[0, 0, 1, -1, -1], [0, 0, 1, 2, -1], [0, 0, 0, 2, 2]])
    ax = cg.plot.community_ternary_over_time(track)[1]
    assert legend(ax) == [
        *("there since the\nfirst snapshot", "came later", "3 volunteers", "1 volunteer"),
        *("community 0", "community 1", "community 2"),
    ]
    filled, ring, largest, smallest = ax.get_legend().legend_handles[:4]
    assert hexes([filled.get_markerfacecolor(), ring.get_markerfacecolor()]) == ["#888888", "#FFFFFF"]
    dots = [axes.collections[0] for axes in cg.plot.community_ternary_over_time(track)]
    areas = np.concatenate([each.get_sizes() for each in dots])
    assert [largest.get_markersize() ** 2, smallest.get_markersize() ** 2] == pytest.approx([areas.max(), areas.min()])
    still = cg.plot.community_ternary_over_time(TRACKS["one snapshot"])[-1]
    assert "came later" not in legend(still)
    many = cg.plot.community_ternary_over_time(TRACKS["forty"])[1].get_legend()
    assert len(many.get_texts()) <= 4
    many.figure.draw_without_rendering()
    assert many.get_window_extent().x1 <= many.figure.bbox.x1


def test_all_triangles_are_magnified_alike():
    track = random_track([[0, 1, 2, 3]] * 3)
    rng = np.random.default_rng(0)
    # The classes differ in where their communities lie, and in how far apart these are.
    middle, spread = np.array([[90.0, 5, 5], [30, 30, 40]]), np.array([[[1.0]], [[8.0]]]).reshape(2, 1)
    near = [
        replace(
            one,
            confusion=replace(one.confusion, concentration=middle + spread * rng.uniform(size=(4, 2, 3))),
            participation=np.eye(4),
        )
        for one in track
    ]
    track = replace(track, snapshots=near)
    grids = [np.reshape(cg.plot.community_ternary_over_time(track, zoom=zoom), (3, 2)) for zoom in (False, True)]
    for full, part in zip(*(grid.flat for grid in grids), strict=True):
        np.testing.assert_allclose(full.collections[0].get_offsets(), part.collections[0].get_offsets())
    parts = np.array([[lows(ax) for ax in row] for row in grids[1]])
    # Each class shows one part at all snapshots; both are of one size, and hold all dots.
    assert (parts == parts[0]).all()
    sides = 1 - parts[0].sum(axis=1)
    assert sides[0] == pytest.approx(sides[1])
    means = np.array([[mean_by_hand(track, t, k) for k in range(4)] for t in range(3)])
    assert (parts[0] < means.min(axis=(0, 1))).all()
    # The part is no larger than the wider class needs.
    needed = 1 - means.min(axis=(0, 1)).sum(axis=1).min()
    assert sides[0] <= 1.31 * needed
    titles_of_classes = [ax.get_title() for ax in grids[1][0]]
    assert titles_of_classes == [f"when it is {name}, magnified {1 / sides[0]:.2g} times" for name in CLASSES]
    both = cg.plot.community_ternary(track[0], zoom=True)
    assert lows(both[0]).sum() == pytest.approx(lows(both[1]).sum())
    assert lows(both[0]).sum() > 0.5
    with pytest.raises(ParameterError, match="zoom=1 must be True or False"):
        cg.plot.community_ternary_over_time(track, zoom=1)
    with pytest.raises(ParameterError, match="paths=1 must be True or False"):
        cg.plot.community_ternary_over_time(track, paths=1)


def test_paths_are_means(triangles, tmp_path):
    track, axes = triangles
    assert titles(axes) == [f"when it is {name}" for name in CLASSES]
    hues = colours(range(track.n_communities_ever))
    for row, ax in enumerate(axes):
        largest = None
        for snapshot, dots in enumerate(ax.collections):
            sizes = sizes_by_hand(track, snapshot)
            order = [k for k in np.argsort(-sizes, kind="stable") if sizes[k]]
            assert len(dots.get_offsets()) == len(order)
            if not order:
                continue
            assert hexes(color[:3] for color in dots.get_facecolors()) == [hues[k] for k in order]
            means = [mean_by_hand(track, snapshot, k)[row] for k in order]
            np.testing.assert_allclose(shares(ax, dots.get_offsets()), means, atol=1e-9)
            # All areas of all snapshots have one scale.
            ratios = dots.get_sizes() / sizes[order]
            largest = ratios[0] if largest is None else largest
            np.testing.assert_allclose(ratios, largest)
        opacity = [dots.get_alpha() for dots in ax.collections]
        assert (np.diff(opacity) > 0).all()
        assert opacity[-1] > 0.9
    axes[0].figure.savefig(tmp_path / "ternary.png")


def test_paths_join_the_dots_of_a_community(triangles):
    track, axes = triangles
    for row, ax in enumerate(axes):
        for k, line in enumerate(ax.lines):
            lived = np.flatnonzero(track.sizes[:, k])
            assert to_hex(line.get_color()).upper() == colours(range(track.n_communities_ever))[k]
            means = [mean_by_hand(track, snapshot, k)[row] for snapshot in lived]
            drawn = shares(ax, line.get_xydata()) if len(lived) else []
            np.testing.assert_allclose(drawn, means, atol=1e-9)
        for text in ax.texts:
            k = int(text.get_text())
            last = np.flatnonzero(track.sizes[:, k])[-1]
            np.testing.assert_allclose(shares(ax, [text.xy])[0], mean_by_hand(track, last, k)[row], atol=1e-9)
        assert len({text.get_text() for text in ax.texts}) == len(ax.texts)
    assert not overlapping(axes[0].figure, [text for ax in axes for text in ax.texts])


def test_legend_of_paths():
    track = TRACKS["usual"]
    ax = cg.plot.community_ternary_over_time(track, paths=True)[-1]
    listed = [text.get_text() for text in ax.get_legend().get_texts()]
    sizes = track.sizes[-1]
    assert listed == [
        *(f"{k}: {size} volunteer{'s' * int(size != 1)}" for k, size in enumerate(sizes)),
        "first snapshot:\n1,000 responses\n2010-04-09",
        "last snapshot:\n4,000 responses\n2010-07-08",
    ]
    once = cg.plot.community_ternary_over_time(TRACKS["one snapshot"], paths=True)[-1].get_legend().get_texts()
    assert [text.get_text() for text in once][3:] == ["last snapshot:\n1,000 responses\n2010-04-09"]
    many = cg.plot.community_ternary_over_time(TRACKS["forty"], paths=True)[-1].get_legend()
    assert len(many.get_texts()) == 4
    box, figure = many.get_window_extent(), many.figure.bbox
    assert box.x1 <= figure.x1


def test_the_size_in_a_legend_is_the_last_that_is_known():
    track = random_track([[0, 0, 1], [0, 1, 1], [1, 1, 1]])
    listed = cg.plot.community_ternary_over_time(track, paths=True)[-1].get_legend().get_texts()
    assert [text.get_text() for text in listed][:2] == ["0: 1 volunteer", "1: 3 volunteers"]


@pytest.mark.parametrize(("paths", "n_rows"), [(False, 4), (True, 1)])
def test_triangles_over_time_on_own_axes(paths, n_rows):
    track = TRACKS["usual"]
    own_axes = Figure().subplots(n_rows, 2, subplot_kw={"projection": "ternary"}, squeeze=False)
    assert cg.plot.community_ternary_over_time(track, axes=own_axes, paths=paths) == tuple(own_axes.flat)
    each = "each class" if paths else "each snapshot and class"
    with pytest.raises(ParameterError, match=rf"axes= has 1 axes; {2 * n_rows} are needed, one for {each}\."):
        cg.plot.community_ternary_over_time(track, axes=own_axes[0, :1], paths=paths)
    with pytest.raises(ParameterError, match=rf"in triangles; got Axes\. Make axes with plt\.subplots\({n_rows}, 2,"):
        cg.plot.community_ternary_over_time(track, axes=Figure().subplots(n_rows, 2), paths=paths)


@pytest.mark.parametrize("labels", ["ab", "abcd"])
def test_triangles_over_time_are_for_three_labels(labels):
    with pytest.raises(ParameterError, match=rf"have {len(labels)} \('a', 'b'.*plot\.community_means_over_time\(track"):
        cg.plot.community_ternary_over_time(moving_track(2, 9, 2, labels=labels))
