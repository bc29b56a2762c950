"""Pictures of communities over time show what the track holds."""

from dataclasses import replace
from itertools import pairwise

import mpltern  # noqa: F401  registers the projection
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from plot.reading import centres, heights, hexes, mean_by_hand, overlapping, texts, titles
from plot.subjects import CLASSES, LABELS, TRACKS, moving_track, random_track

import crowdgraph as cg
from crowdgraph.errors import NotAnnotatedError, ParameterError, UnknownIdError
from crowdgraph.plot._panels import snapshot_names
from crowdgraph.plot._style import GREY, HUES, INK, colours, ink_on

DRAW = {
    "community_means_over_time": cg.plot.community_means_over_time,
    "participation": lambda track, **options: cg.plot.participation(track, track.ids[:1], **options),
    "community_ternary_over_time": cg.plot.community_ternary_over_time,
    "flow": cg.plot.flow,
    "modularity": cg.plot.modularity,
}


tracks = pytest.mark.parametrize("track", TRACKS.values(), ids=TRACKS)


@pytest.mark.slow
@tracks
def test_means_stand_in_rows_and_columns(track, tmp_path):
    axes = cg.plot.community_means_over_time(track)
    n_drawn = min(track.n_communities_ever, 12)
    assert isinstance(axes, tuple)
    grid = np.array(axes).reshape(len(track), n_drawn)
    for (snapshot, k), ax in np.ndenumerate(grid):
        size = (track.assignment[snapshot] == k).sum()
        assert ax.axison == (size > 0)
        if not size:
            assert not ax.patches
            continue
        np.testing.assert_allclose(heights(ax), mean_by_hand(track, snapshot, k).ravel())
        assert set(hexes(patch.get_facecolor() for patch in ax.patches)) == {colours(range(40))[k]}
        assert [text.get_text() for text in ax.get_xticklabels()] == [str(label) for label in LABELS] * 2
        assert ax.get_xlabel() == f"{size} volunteer{'s' * int(size > 1)}"
    for row, name in zip(grid, snapshot_names(track), strict=True):
        assert texts(row[0])[-1] == name
        # The scale stands once, at the first panel with bars.
        scales = [ax for ax in row if ax.get_ylabel()]
        assert scales == [ax for ax in row if ax.axison][:1]
    axes[0].figure.savefig(tmp_path / "means.png")


def test_columns_say_how_a_community_behaves_when_seen_last():
    def snapshot(*rows, lived=(0, 1)):
        shares = np.eye(2)[list(lived)]
        ids = [f"v{k}" for k in lived]
        confusion = cg.ConfusionSnapshot(
            ids=ids, concentration=[[row] * 2 for row in rows], classes=CLASSES, labels=LABELS
        )
        return cg.Communities(ids=ids, participation=shares, modularity=0, method="by hand", confusion=confusion)

    guess, minus, three = [1, 1, 1], [98, 1, 1], [1, 1, 98]
    track = cg.CommunityTrack(
        ids=["v0", "v1"],
        times=[1, 2, 3],
        counts=[1, 2, 3],
        snapshots=[snapshot(guess, lived=[0]), snapshot(minus, three), snapshot(three, lived=[0])],
        clock=cg.Clock("number"),
        method="by hand",
    )
    axes = cg.plot.community_means_over_time(track)
    assert titles(axes) == ["0: says 3 to nearly everything", "1: says 3 to nearly everything", "", "", "", ""]
    early = cg.plot.community_means_over_time(
        replace(track, snapshots=track.snapshots[:2], times=[1, 2], counts=[1, 2])
    )
    assert titles(early)[0] == "0: says -1 to nearly everything"
    # The panel of the second community is blank at first, and its title is there.
    assert [ax.axison for ax in axes] == [True, False, True, True, True, False]
    assert axes[0].figure.get_suptitle() == "Means of the communities over time"


def test_means_of_chosen_communities():
    track = moving_track(1, 300, 40)
    axes = cg.plot.community_means_over_time(track, numbers=[30, 2])
    assert [title.split(":")[0] for title in titles(axes)[:2]] == ["30", "2"]
    assert hexes(ax.patches[0].get_facecolor() for ax in axes[:2]) == [colours(range(40))[30], HUES[2]]
    assert axes[0].figure.get_suptitle().endswith("2 of 40 communities drawn")
    many = cg.plot.community_means_over_time(track, numbers=range(14))
    assert len(many) == 14
    assert cg.plot.community_means_over_time(track)[0].figure.get_suptitle().endswith("12 of 40 communities drawn")


def test_means_on_own_axes():
    track = TRACKS["usual"]
    grid = Figure().subplots(4, 2)
    assert cg.plot.community_means_over_time(track, axes=grid) == tuple(grid.ravel())
    assert grid[0, 0].figure.get_suptitle() == ""
    assert titles(grid[0])[0].startswith("0: ")
    for n_axes in (3, 9, 24):
        with pytest.raises(ParameterError, match=rf"axes= has {n_axes} axes; each of 4 snapshots needs a row"):
            cg.plot.community_means_over_time(track, axes=Figure().subplots(1, n_axes))
    with pytest.raises(ParameterError, match="axes= has 4 axes"):
        cg.plot.community_means_over_time(track, axes=Figure().subplots(1, 4), numbers=[0, 1])


@pytest.mark.parametrize(("classes", "labels"), [("ab", "ab"), ("a", "xyz"), (CLASSES, ("short", "very long label"))])
def test_means_of_any_classes_and_labels_do_not_cover_each_other(classes, labels):
    track = moving_track(3, 30, 4, classes=classes, labels=labels)
    axes = cg.plot.community_means_over_time(track)
    figure = axes[0].figure
    drawn_texts = [text for ax in axes for text in (*ax.texts, ax.xaxis.label, ax._left_title)]
    drawn_texts += [text for ax in axes if ax.axison for text in ax.get_xticklabels()]
    assert not overlapping(figure, [*drawn_texts, figure._suptitle])
    assert all(
        figure.bbox.padded(1).contains(*corner) for text in drawn_texts for corner in text.get_window_extent().corners()
    )


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([0, 7], "numbers= names 7; the communities are numbered 0 to 4"),
        ([-1], "numbers= names -1"),
        ([0.5], r"numbers= names 0\.5"),
        ([], "There are no numbers"),
        ("01", "numbers='01' must be several values"),
    ],
)
def test_means_of_unknown_communities(numbers, message):
    with pytest.raises(ParameterError, match=message):
        cg.plot.community_means_over_time(TRACKS["usual"], numbers=numbers)


@tracks
def test_bars_are_participations(track, tmp_path):
    volunteers = track.ids[[0, -1]] if len(track.ids) > 1 else track.ids
    volunteers = [one for one in volunteers if track.of(one).any()]
    axes = cg.plot.participation(track, volunteers)
    assert titles(axes) == volunteers
    for ax, volunteer in zip(axes, volunteers, strict=True):
        expected = track.of(volunteer)
        inhabited = expected.any(axis=1)
        assert ax.get_ylim() == (0, 1)
        # Community by community; the bars of a snapshot stand around it in order.
        drawn = heights(ax).reshape(track.n_communities_ever, inhabited.sum()).T
        np.testing.assert_array_equal(drawn, expected[inhabited])
        positions = centres(ax).reshape(track.n_communities_ever, inhabited.sum()).T
        np.testing.assert_allclose(positions.mean(axis=1), np.flatnonzero(inhabited), atol=1e-9)
        assert (np.diff(positions.ravel()) > 0).all()
        hues = hexes(patch.get_facecolor() for patch in ax.patches)
        assert hues == [hue for hue in colours(range(track.n_communities_ever)) for _ in range(inhabited.sum())]
        missing = [text for text in ax.texts if text.get_text() in ("not yet", "none")]
        assert [text.get_position()[0] for text in missing] == np.flatnonzero(~inhabited).tolist()
        assert all(text.get_color() == GREY for text in missing)
    legends = axes[0].figure.legends
    if track.n_communities_ever <= 12:
        assert [text.get_text() for text in legends[0].get_texts()] == [str(k) for k in range(track.n_communities_ever)]
    else:
        assert not legends
    axes[0].figure.savefig(tmp_path / "participation.png")


def test_who_has_no_community_yet_or_any_more():
    track = random_track([[-1, 0], [1, 0], [-1, 0], [0, 1], [-1, 0]])
    ax, other = cg.plot.participation(track, ["v0", "v1"])
    assert texts(ax) == ["not yet", "none", "none"]
    assert texts(other) == []


def test_many_communities_are_numbered_on_their_bars():
    track = TRACKS["forty"]
    (ax,) = cg.plot.participation(track, ["v0"])
    drawn = track.of("v0")
    assert len(ax.texts) >= len(track)
    for text in ax.texts:
        snapshot = round(text.xy[0])
        assert text.xy[1] == drawn[snapshot, int(text.get_text())]
    highest = {(round(text.xy[0]), int(text.get_text())) for text in ax.texts}
    assert {(snapshot, int(row.argmax())) for snapshot, row in enumerate(drawn)} <= highest
    assert not overlapping(ax.figure, ax.texts)


def test_participation_on_own_axes():
    track = TRACKS["usual"]
    pair = Figure().subplots(1, 2)
    assert cg.plot.participation(track, ["v0", "v1"], axes=pair) == tuple(pair)
    assert [text.get_text() for text in pair[1].get_legend().get_texts()] == ["0", "1", "2", "3", "4"]
    with pytest.raises(ParameterError, match="axes= has 2 axes; 1 volunteer need one each"):
        cg.plot.participation(track, ["v0"], axes=pair)
    assert len(cg.plot.participation(track, track.ids[:7])) == 7
    assert len(cg.plot.participation(track, iter(["v0", "v0"]))) == 2


def test_names_of_snapshots_have_room():
    track = moving_track(12, 20, 2)
    for ax in (cg.plot.flow(track), *cg.plot.participation(track, ["v0"])):
        assert not overlapping(ax.figure, ax.get_xticklabels())
        assert ax.get_xticklabels()[0].get_text() == snapshot_names(track)[0]
    narrow = Figure(figsize=(4, 3), layout="constrained").subplots()
    cg.plot.flow(track, ax=narrow)
    assert not overlapping(narrow.figure, narrow.get_xticklabels())
    assert len(narrow.get_xticks()) < 12


@pytest.mark.parametrize(
    ("volunteers", "error", "message"),
    [
        ("v0", ParameterError, r"volunteers='v0' must be several ids, such as volunteers=\['v0'\]"),
        (3, ParameterError, "volunteers=3 must be several ids"),
        ([], ParameterError, r"volunteers= names nobody; name some, such as track\.ids\[:4\]"),
        (["v0", "w1"], UnknownIdError, "There is no volunteer 'w1' in this track of 3 volunteers; see track.ids"),
        (["v00"], UnknownIdError, "Did you mean 'v0'"),
        ([["v0"]], UnknownIdError, r"There is no volunteer \['v0'\]"),
        (
            ["v0", "v2"],
            ParameterError,
            "1 volunteer named in volunteers= had no community at any snapshot: 'v2'.",
        ),
    ],
)
def test_volunteers_who_cannot_be_drawn(volunteers, error, message):
    with pytest.raises(error, match=message):
        cg.plot.participation(random_track([[0, 1, -1], [0, 1, -1]]), volunteers)


def columns(ax):
    """The boxes of the communities and those of newcomers: position, bottom, height and patch."""
    boxes = [
        (round(patch.get_x() + patch.get_width() / 2, 6), patch.get_y(), patch.get_height(), patch)
        for patch in ax.patches
    ]
    own = [box for box in boxes if box[3].get_alpha() is None]
    new = [box for box in boxes if box[3].get_alpha() is not None]
    return own, new


def ribbons(ax):
    """For each pair of columns: colour, lower and upper end on the left, and on the right."""
    return [
        [
            (hue, path.vertices[[0, 7], 1], path.vertices[[3, 4], 1], path.vertices[[0, 3], 0])
            for hue, path in zip(hexes(color[:3] for color in bands.get_facecolors()), bands.get_paths(), strict=True)
        ]
        for bands in ax.collections
    ]


def check_flow(track, ax):
    own, new = columns(ax)
    hues = colours(range(track.n_communities_ever))
    inhabited = [snapshot for snapshot, row in enumerate(track.assignment) if (row >= 0).any()]
    stretch = {}
    for snapshot, bottom, height, patch in own:
        k = hues.index(to_hex(patch.get_facecolor()).upper())
        stretch[snapshot, k] = bottom, bottom + height
        # In the order of numbers, each upon the last.
        assert bottom == (track.assignment[int(snapshot)] < k).sum() - (track.assignment[int(snapshot)] < 0).sum()
        assert height == (track.assignment[int(snapshot)] == k).sum() > 0
    assert len(stretch) == len(own) == np.count_nonzero(track.sizes)
    fresh = {(snapshot, bottom): height for snapshot, bottom, height, _ in new}
    drawn = ribbons(ax)
    assert len(drawn) == len(inhabited) - 1
    for bands, (before, after) in zip(drawn, pairwise(inhabited), strict=True):
        went = {}
        pairs = list(zip(track.assignment[before], track.assignment[after], strict=True))
        for source, target in pairs:
            if source >= 0 and target >= 0:
                went[source, target] = went.get((source, target), 0) + 1
        ends = {0: {}, 1: {}}
        for hue, left, right, (start, end) in bands:
            source = hues.index(hue)
            (target,) = [
                k for k in range(track.n_communities_ever) if (after, k) in stretch and inside(right, stretch[after, k])
            ]
            assert inside(left, stretch[before, source])
            assert np.diff(left) == np.diff(right) == went.pop((source, target))
            assert (before, after) == (round(start), round(end))
            ends[0].setdefault(source, []).append((target, *left))
            ends[1].setdefault(target, []).append((source, *right))
        assert not went
        # Ribbons of a community stand upon each other in the order of the other side, up to the community's top.
        for snapshot, side in zip((before, after), ends.values(), strict=True):
            for k, ribbon_ends in side.items():
                ordered = sorted(ribbon_ends)
                assert ordered[-1][2] == stretch[snapshot, k][1]
                assert all(one[2] == other[1] for one, other in pairwise(ordered))
        # What no ribbon reaches are newcomers.
        for k in range(track.n_communities_ever):
            newcomers = sum(source < 0 and target == k for source, target in pairs)
            if newcomers:
                assert fresh.pop((after, stretch[after, k][0])) == newcomers
    assert not fresh


def inside(part, full):
    return full[0] <= part[0] < part[1] <= full[1]


@tracks
def test_ribbons_lead_from_community_to_community(track, tmp_path):
    ax = cg.plot.flow(track)
    check_flow(track, ax)
    n_volunteers = int((track.assignment >= 0).any(axis=0).sum())
    who = f"{n_volunteers} volunteer{'s' * (n_volunteers > 1)}"
    assert titles([ax]) == [
        f"Flow of {who} between {track.n_communities_ever} communit{'y' if track.n_communities_ever == 1 else 'ies'}"
    ]
    assert [text.get_text() for text in ax.get_xticklabels()] == snapshot_names(track)
    assert ax.get_xticks().tolist() == list(range(len(track)))
    assert not overlapping(ax.figure, ax.texts)
    ax.figure.savefig(tmp_path / "flow.png")


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(1, 5), st.integers(1, 12), st.integers(1, 4), st.integers(0, 999))
def test_every_flow_can_be_drawn(n_snapshots, n_volunteers, n_communities, seed):
    assignment = np.random.default_rng(seed).integers(-1, n_communities, (n_snapshots, n_volunteers))
    assignment[-1, 0] = 0
    track = random_track(assignment, width=n_communities, confused=False)
    check_flow(track, cg.plot.flow(track))


def test_texts_of_a_flow():
    track = random_track([[0] * 6 + [1] * 4 + [-1] * 5, [0] * 3 + [1] * 7 + [1] * 4 + [2]])
    ax = cg.plot.flow(track)
    assert texts(ax) == ["0", "1", "0", "1", "4 new", "2", "1 new"]
    for text in ax.texts:
        if text.get_text() in "0 1" and text.get_position()[0] in (0, 1):
            assert text.get_color() == ink_on(HUES[int(text.get_text())])
    # Everybody in community 2 is new: its number is on the pale stretch.
    assert ax.texts[5].get_color() == INK
    assert ax.texts[5].get_position() == (1, 14.5)
    # The number of community 1 is above its newcomers.
    assert ax.texts[3].get_position() == (1, (3 + 4 + 14) / 2)
    assert ax.get_xlabel() == "paler: new since the snapshot before"
    assert cg.plot.flow(random_track([[0, 1], [1, 1]])).get_xlabel() == ""


def test_small_communities_of_a_flow_have_no_number():
    track = random_track([[0] * 500 + [1]] * 2)
    assert texts(cg.plot.flow(track)) == ["0", "0"]
    own = Figure(figsize=(0.8, 6)).subplots()
    assert cg.plot.flow(track, ax=own) is own
    assert texts(own) == []


def test_narrow_ribbons_lie_upon_wide_ones():
    track = TRACKS["usual"]
    for bands in ribbons(cg.plot.flow(track)):
        widths = [np.diff(left)[0] for _, left, _, _ in bands]
        assert widths == sorted(widths, reverse=True)


def test_nobody_stays():
    track = random_track([[0, 0, -1], [-1, -1, 1]])
    ax = cg.plot.flow(track)
    assert ribbons(ax) == [[]]
    assert [box[:3] for box in columns(ax)[1]] == [(1, 0, 1)]


@tracks
@pytest.mark.parametrize("against", ["responses", "time"])
def test_modularity_is_a_line(track, against, tmp_path):
    ax = cg.plot.modularity(track, against=against)
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xdata(), track.counts if against == "responses" else track.times)
    lived = (track.assignment >= 0).any(axis=1)
    expected = [one.modularity if any_ else np.nan for one, any_ in zip(track, lived, strict=True)]
    np.testing.assert_array_equal(line.get_ydata(), expected)
    numbers = [str(len(set(row[row >= 0]))) for row in track.assignment]
    inhabited = [number for number, any_ in zip(numbers, lived, strict=True) if any_]
    assert texts(ax) == [*inhabited, *["none"] * (~lived).sum()]
    for text, snapshot in zip(ax.texts, [*np.flatnonzero(lived), *np.flatnonzero(~lived)], strict=True):
        assert text.xy[0] == pytest.approx(ax.convert_xunits(line.get_xdata())[snapshot])
    assert ax.get_ylabel() == "modularity"
    assert not overlapping(ax.figure, ax.texts)
    ax.figure.savefig(tmp_path / "modularity.png")


def test_what_modularity_is_drawn_against():
    track = TRACKS["one community"]
    assert cg.plot.modularity(track).get_xlabel() == "responses so far"
    assert cg.plot.modularity(TRACKS["empty first"], against="time").get_xlabel() == "time"
    own = Figure().subplots()
    assert cg.plot.modularity(track, ax=own) is own
    with pytest.raises(ParameterError, match="against='day' is not a choice; use one of 'responses', 'time'"):
        cg.plot.modularity(track, against="day")


def test_numbers_stand_below_valleys():
    values = [0.3, 0.1, 0.3, 0.2]
    track = random_track([[0, 1]] * 4)
    snapshots = [replace(one, modularity=value) for one, value in zip(track, values, strict=True)]
    ax = cg.plot.modularity(replace(track, snapshots=snapshots))
    assert [np.sign(text.xyann[1]) for text in ax.texts] == [1, -1, 1, -1]


def test_crowded_numbers_are_left_out():
    track = moving_track(30, 5, 2)
    track = replace(track, counts=[*range(1, 30), 100_000])
    ax = cg.plot.modularity(track)
    assert 1 < len(ax.texts) < 30
    assert not overlapping(ax.figure, ax.texts)


def test_a_community_has_one_colour_in_all_pictures():
    track = TRACKS["usual"]
    k = 3
    hues = {
        to_hex(cg.plot.community_means_over_time(track, numbers=[k])[0].patches[0].get_facecolor()),
        to_hex(cg.plot.participation(track, ["v0"])[0].patches[len(track) * k].get_facecolor()),
        to_hex(cg.plot.community_ternary_over_time(track, paths=True)[0].lines[k].get_color()),
        to_hex(columns(cg.plot.flow(track))[0][k][3].get_facecolor()),
    }
    assert hues == {to_hex(to_rgb(HUES[k]))}


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_only_tracks_can_be_drawn(draw):
    class Other:
        ids = ("v0",)

    for wrong in (Other(), TRACKS["usual"][0]):
        with pytest.raises(
            ParameterError, match=r"shows a CommunityTrack; got an? \w+\. Make one with dynamics\.over_tim"
        ):
            draw(wrong)


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_tracks_without_communities_cannot_be_drawn(draw):
    none = random_track([[-1, -1]] * 3)
    with pytest.raises(
        ParameterError, match=r"'pi communities' found none at any of 3 snapshots\. Follow them at larg"
    ):
        draw(none)
    reasons = ["there are no answers yet", "nobody has a neighbour", "nobody has a neighbour"]
    with pytest.raises(ParameterError, match=r"3 snapshots \(there are no answers yet; nobody has a neighbour\)\."):
        draw(replace(none, reasons=reasons))
    no_snapshots = replace(none, times=none.times[:0], counts=[], snapshots=[])
    with pytest.raises(ParameterError, match="found none at any of 0 snapshots"):
        draw(no_snapshots)


@pytest.mark.parametrize("name", ["community_means_over_time", "community_ternary_over_time"])
def test_means_need_confusion(name):
    with pytest.raises(NotAnnotatedError, match="tracked without confusion matrices"):
        DRAW[name](moving_track(3, 9, 2, confused=False))


@pytest.mark.parametrize("name", ["community_means_over_time", "community_ternary_over_time"])
def test_snapshots_without_confusion_are_left_out(name):
    track = moving_track(2, 9, 2)
    track = replace(track, snapshots=[replace(track[0], confusion=None), track[1]])
    axes = DRAW[name](track)
    if name == "community_means_over_time":
        assert [ax.axison for ax in axes] == [False, False, True, True]
    else:
        assert [len(ax.collections[0].get_offsets()) for ax in axes] == [0, 0, 2, 2]
