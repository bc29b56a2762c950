"""Networks over time as small multiples: one layout, colours by number, and who is absent."""

import numpy as np
import pytest
from builders import communities_of, network_of, track_of
from matplotlib.figure import Figure
from plot.reading import hexes

import crowdgraph as cg
from crowdgraph.errors import AlignmentError, ParameterError
from crowdgraph.plot._style import HUES, PALE


def networks(present, counts=None):
    """Networks in which everybody present is linked with everybody else."""
    counts = 1_000 * np.arange(1, len(present) + 1) if counts is None else counts
    snapshots = [network_of(1.0 - np.eye(len(codes)), ids=[f"v{code}" for code in codes]) for codes in present]
    ids = [f"v{code}" for code in range(max(max(codes, default=0) for codes in present) + 1)]
    return cg.NetworkTrack(
        ids=ids, times=counts, counts=counts, snapshots=snapshots, clock=cg.Clock("number"), method="m"
    )


def dots(ax):
    """The positions of those who are there, and of those who are absent."""
    there = [one for one in ax.collections if one.get_zorder() == 2]
    (absent,) = (one for one in ax.collections if one.get_zorder() == 0)
    return (np.asarray(there[0].get_offsets()) if there else np.zeros((0, 2))), np.asarray(absent.get_offsets())


def test_everybody_stays_in_place_and_the_absent_are_faint():
    axes = cg.plot.network_over_time(networks([[0, 1], [0, 1, 2], [0, 2, 3]]))
    early, middle, late = (dots(ax) for ax in axes)
    np.testing.assert_array_equal(early[0], middle[0][:2])
    np.testing.assert_array_equal(middle[0][[0, 2]], late[0][:2])
    np.testing.assert_array_equal(late[1], middle[0][1:2])
    assert len(early[1]) == 2
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in axes}) == 1
    assert axes[1].get_title(loc="left") == "2,000 responses\ntime 2000\n3 volunteers"


def test_communities_keep_their_colours():
    track = track_of([[0, 0, -1], [1, 1, 0]])
    axes = cg.plot.network_over_time(networks([[0, 1, 2], [0, 1, 2], [0, 1, 2]], [500, 1_500, 2_000]), track)
    faces = [hexes(next(one for one in ax.collections if one.get_zorder() == 2).get_facecolors()) for ax in axes]
    # Before the first snapshot of the track nobody has a community; then each panel has that of the last one.
    assert faces[0] == [PALE] * 3
    assert faces[1] == [HUES[0], HUES[0], PALE]
    assert faces[2] == [HUES[1], HUES[1], HUES[0]]
    (legend,) = axes[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1", "none"]


def test_communities_that_do_not_change():
    axes = cg.plot.network_over_time(networks([[0], [0, 1]]), communities_of([0, 1]))
    (legend,) = axes[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1"]


def test_at_most_twelve_panels_with_the_first_and_the_last():
    axes = cg.plot.network_over_time(networks([[0, 1]] * 30))
    assert len(axes) == 12
    assert axes[0].get_title(loc="left").startswith("1,000 responses")
    assert axes[-1].get_title(loc="left").startswith("30,000 responses")


def test_empty_snapshots_and_own_axes(tmp_path):
    figure = Figure()
    panels = figure.subplots(1, 2)
    axes = cg.plot.network_over_time(networks([[], [0, 1]]), communities_of([0, 1]), axes=panels)
    assert axes == tuple(panels)
    assert len(dots(axes[0])[0]) == 0
    figure.savefig(tmp_path / "x.png")


@pytest.mark.parametrize(
    ("subject", "options", "error", "words"),
    [
        (3, {}, ParameterError, "This picture shows a NetworkTrack; got an int"),
        (networks([[]]), {}, ParameterError, "have no volunteers"),
        (networks([[0, 1]]), {"columns": 0}, ParameterError, "columns=0 must be"),
        (networks([[0, 1]]), {"neighbours": 0}, ParameterError, "neighbours=0 must be"),
        (networks([[0, 1]]), {"communities": 3}, ParameterError, "communities= takes a CommunityTrack or Communities"),
        (
            networks([[0, 1]]),
            {"communities": communities_of([0])},
            AlignmentError,
            "lack 1 of the networks'",
        ),
        (
            networks([[0, 1]]),
            {"axes": list(Figure().subplots(1, 2))},
            ParameterError,
            "to draw; got 2 axes",
        ),
        (networks([[0, 1]]), {"layout": "round"}, ParameterError, "layout='round'"),
    ],
)
def test_bad_input(subject, options, error, words):
    with pytest.raises(error) as caught:
        cg.plot.network_over_time(subject, **options)
    assert words in str(caught.value)
