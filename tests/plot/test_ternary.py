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
    # The number would stand on the dots of the others.
    assert len(cg.plot.community_ternary(groups, same)[0].texts) == 0


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
    assert part.get_title(loc="left") == "when it is not supernova, magnified"
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


@pytest.fixture(scope="module", params=TRACKS.values(), ids=TRACKS)
def triangles(request):
    """A track, and its communities over time drawn in triangles."""
    return request.param, cg.plot.community_ternary_over_time(request.param)


def test_dots_are_means(triangles, tmp_path):
    track, axes = triangles
    assert titles(axes) == [f"when it is {name}" for name in CLASSES]
    hues = colours(range(track.n_communities_ever))
    for row, ax in enumerate(axes):
        largest = None
        for snapshot, dots in enumerate(ax.collections):
            sizes = np.bincount(
                track.assignment[snapshot][track.assignment[snapshot] >= 0], minlength=track.n_communities_ever
            )
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


def test_legend_of_triangles():
    track = TRACKS["usual"]
    ax = cg.plot.community_ternary_over_time(track)[-1]
    listed = [text.get_text() for text in ax.get_legend().get_texts()]
    sizes = track.sizes[-1]
    assert listed == [
        *(f"{k}: {size} volunteer{'s' * int(size != 1)}" for k, size in enumerate(sizes)),
        "first snapshot:\n1,000 responses\n2010-04-09",
        "last snapshot:\n4,000 responses\n2010-07-08",
    ]
    once = cg.plot.community_ternary_over_time(TRACKS["one snapshot"])[-1].get_legend().get_texts()
    assert [text.get_text() for text in once][3:] == ["last snapshot:\n1,000 responses\n2010-04-09"]
    many = cg.plot.community_ternary_over_time(TRACKS["forty"])[-1].get_legend()
    assert len(many.get_texts()) == 4
    box, figure = many.get_window_extent(), many.figure.bbox
    assert box.x1 <= figure.x1


def test_the_size_in_a_legend_is_the_last_that_is_known():
    track = random_track([[0, 0, 1], [0, 1, 1], [1, 1, 1]])
    listed = cg.plot.community_ternary_over_time(track)[-1].get_legend().get_texts()
    assert [text.get_text() for text in listed][:2] == ["0: 1 volunteer", "1: 3 volunteers"]


def test_a_part_of_a_triangle_over_time():
    concentration = 20 + np.random.default_rng(0).uniform(size=(4, 2, 3))
    track = random_track([[0, 1, 2, 3]] * 2)
    near = [
        replace(one, confusion=replace(one.confusion, concentration=concentration), participation=np.eye(4))
        for one in track
    ]
    track = replace(track, snapshots=near)
    full, part = (cg.plot.community_ternary_over_time(track, zoom=zoom)[0] for zoom in (False, True))
    np.testing.assert_allclose(full.collections[0].get_offsets(), part.collections[0].get_offsets())
    assert part.get_tlim()[0] > 0.25
    assert titles([part]) == ["when it is not supernova, magnified"]
    with pytest.raises(ParameterError, match="zoom=1 must be True or False"):
        cg.plot.community_ternary_over_time(track, zoom=1)


def test_triangles_over_time_on_own_axes():
    track = TRACKS["usual"]
    own_axes = Figure().subplots(1, 2, subplot_kw={"projection": "ternary"})
    assert cg.plot.community_ternary_over_time(track, axes=own_axes) == tuple(own_axes)
    with pytest.raises(ParameterError, match="axes= has 1 axes; 2 are needed, one for each class"):
        cg.plot.community_ternary_over_time(track, axes=own_axes[:1])
    with pytest.raises(ParameterError, match=r"drawn in triangles; got Axes\. Make axes with"):
        cg.plot.community_ternary_over_time(track, axes=Figure().subplots(1, 2))


@pytest.mark.parametrize("labels", ["ab", "abcd"])
def test_triangles_over_time_are_for_three_labels(labels):
    with pytest.raises(ParameterError, match=rf"have {len(labels)} \('a', 'b'.*plot\.community_means_over_time\(track"):
        cg.plot.community_ternary_over_time(moving_track(2, 9, 2, labels=labels))
