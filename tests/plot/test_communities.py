"""Pictures of communities show what the communities hold."""

from collections import Counter
from dataclasses import replace

import mpltern  # noqa: F401  registers the projection
import numpy as np
import pytest
from builders import communities_of
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from plot.reading import heights, hexes, legend
from plot.subjects import CLASSES, LABELS, random_communities, random_snapshot

import crowdgraph as cg
from crowdgraph.errors import AlignmentError, NotAnnotatedError, ParameterError
from crowdgraph.plot._style import HUES, PALE, SHARES, colours

NONE = communities_of(np.zeros((2, 0)), method="leiden")


@pytest.mark.parametrize(("classes", "labels"), [(CLASSES, LABELS), ("ab", "ab"), ("a", "xyz"), ("abcd", "abcdefg")])
def test_prototypes_are_the_most_central_volunteers(classes, labels, tmp_path):
    snapshot, groups = random_snapshot(30, classes, labels), random_communities(30, 3)
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
    snapshot, groups = random_snapshot(30), random_communities(30, 3)
    axes = cg.plot.prototypes(groups, snapshot, mean=True)
    for k, ax in enumerate(axes):
        weights = groups.participation[:, k]
        expected = sum(weight * matrix for weight, matrix in zip(weights, snapshot.mean, strict=True)) / weights.sum()
        np.testing.assert_allclose(heights(ax), expected.ravel())
        assert not ax.collections
    assert axes[0].figure.get_suptitle() == "Means of the communities"


def test_prototypes_say_the_behaviour():
    snapshot = replace(random_snapshot(2), concentration=[[[98.0, 1, 1]] * 2, [[1.0, 1, 98]] * 2])
    titles = [ax.get_title(loc="left") for ax in cg.plot.prototypes(communities_of([0, 1]), snapshot)]
    assert [" ".join(title.split()) for title in titles] == [
        "0: 1 volunteer says -1 to nearly everything",
        "1: 1 volunteer says 3 to nearly everything",
    ]


def test_prototypes_take_every_kind_of_confusion():
    snapshot, groups = random_snapshot(6), random_communities(6, 2)
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


@pytest.mark.slow
def test_prototypes_of_many_communities_say_how_many_are_left_out(tmp_path):
    snapshot, groups = random_snapshot(200), random_communities(200, 20)
    axes = cg.plot.prototypes(groups, snapshot)
    assert len(axes) == 12
    figure = axes[0].figure
    assert figure.get_suptitle() == "Most central volunteers of the communities, 12 of 20 communities drawn"
    assert len(figure.axes) == 12
    figure.savefig(tmp_path / "prototypes.png")
    axes_of_two = cg.plot.prototypes(groups, snapshot, numbers=[17, 2])
    assert [ax.get_title(loc="left").split(":")[0] for ax in axes_of_two] == ["17", "2"]
    assert hexes([ax.patches[0].get_facecolor() for ax in axes_of_two]) == [colours(range(20))[17], HUES[2]]


def test_prototypes_on_own_axes():
    snapshot, groups = random_snapshot(20), random_communities(20, 4)
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
        axes = cg.plot.prototypes(groups, random_snapshot(2), mean=mean)
        assert np.isnan(heights(axes[1])).all()
        assert axes[1].get_title(loc="left") == "1: 0 volunteers"
        axes[0].figure.savefig(tmp_path / "prototypes.png")
    axes = cg.plot.community_ternary(groups, random_snapshot(2))
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
        cg.plot.prototypes(random_communities(9, 3), random_snapshot(9), **options)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(2, 40), st.integers(1, 30), st.integers(0, 99))
def test_the_matrix_is_sorted(n_volunteers, n_communities, seed):
    groups = random_communities(n_volunteers, n_communities, seed=seed)
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
    ax = cg.plot.participation_matrix(random_communities(50, 10))
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
    assert cg.plot.participation_matrix(random_communities(3, 1), ax=(own := Figure().subplots())) is own
    assert own.get_title(loc="left") == "Participation of 3 volunteers in 1 community"
    ax.figure.savefig(tmp_path / "matrix.png")


def test_many_rows_can_be_drawn(tmp_path):
    ax = cg.plot.participation_matrix(random_communities(20_000, 60))
    ax.figure.savefig(tmp_path / "matrix.png")
    # No two texts cover each other.
    for texts in (ax.get_xticklabels(), ax.get_yticklabels()):
        boxes = [text.get_window_extent() for text in texts]
        assert len(boxes) > 10
        assert not any(one.overlaps(other) for one, other in zip(boxes[1:], boxes[:-1], strict=True))


def test_relevance_of_kept_and_other_communities(tmp_path):
    groups = random_communities(9, 3, relevance=[3.0, 2.0, 1.0, 0.2, 0.1])
    ax = cg.plot.relevance(groups)
    assert heights(ax).tolist() == [3.0, 2.0, 1.0, 0.2, 0.1]
    assert hexes(patch.get_facecolor() for patch in ax.patches) == [*HUES[:3], PALE, PALE]
    assert [patch.get_x() + patch.get_width() / 2 for patch in ax.patches] == pytest.approx(range(5))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("community", "relevance")
    assert ax.get_title(loc="left") == "3 communities of 5 that were tried"
    assert legend(ax) == ["not needed"]
    ax.figure.savefig(tmp_path / "relevance.png")
    ax = Figure().subplots()
    assert cg.plot.relevance(random_communities(9, 1, relevance=[2.0]), ax=ax) is ax
    assert ax.get_title(loc="left") == "1 community of 1 that were tried"
    assert ax.get_legend() is None
    none = cg.plot.relevance(replace(NONE, relevance=[0.1, 0.1]))
    assert hexes(patch.get_facecolor() for patch in none.patches) == [PALE, PALE]


def test_relevance_must_be_known():
    with pytest.raises(ParameterError, match=r"'by hand' have no relevance.*BayesianNMF\(\)\.detect\(network\)"):
        cg.plot.relevance(random_communities(9, 3))


@pytest.mark.parametrize("draw", [cg.plot.prototypes, cg.plot.community_ternary])
def test_confusion_that_does_not_fit_is_refused(draw):
    with pytest.raises(AlignmentError, match=r"lack 2 of the communities' volunteers \('v3', 'v4'\)\. Take a fit"):
        draw(random_communities(5, 2), random_snapshot(3))
    with pytest.raises(ParameterError, match=r"'by hand' were not found by comparing confusion matrices.*give a fit"):
        draw(random_communities(5, 2))
    with pytest.raises(ParameterError, match="from a fit, its confusion, or its confusion at a time; got a dict"):
        draw(random_communities(5, 2), {})
    # Confusion of further volunteers does no harm.
    draw(random_communities(5, 2), random_snapshot(8))


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
