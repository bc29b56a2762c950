"""Pictures of histories show what the histories hold."""

from dataclasses import replace

import mpltern  # noqa: F401  registers the projection
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from plot.reading import legend, line_shares, overlapping, texts

import crowdgraph as cg
from crowdgraph.errors import CrowdGraphError, ParameterError, UnknownIdError
from crowdgraph.plot._style import HUES, MAX_POINTS, colours, distinct_times, short_times, thin_steps

ORDER, NUMBER, DATES = cg.Clock("order"), cg.Clock("number"), cg.Clock("datetime", "Europe/Amsterdam")
STATIC = cg.ConfusionTrack.static(
    ids=["anna"], concentration=np.ones((1, 2, 3)), classes=("no", "yes"), labels=(-1, 1, 3)
)


def times_of(clock, length):
    if clock.kind == "datetime":
        return np.datetime64("2026-01-01T23:30", "us") + np.arange(length) * np.timedelta64(1, "D")
    return np.arange(length) * 2 if clock.kind == "order" else np.arange(length) / 2


def random_history(length, classes, labels, *, clock=NUMBER, seed=0):
    rng = np.random.default_rng(seed)
    return cg.ConfusionHistory(
        volunteer="anna",
        times=times_of(clock, length),
        concentration=rng.gamma(3.0, size=(length, len(classes), len(labels))) + 0.1,
        initial=np.ones((len(classes), len(labels))),
        classes=tuple(classes),
        labels=tuple(labels),
        clock=clock,
    )


def random_track(counts, *, clock=NUMBER, classes=("no", "yes"), labels=("no", "yes")):
    histories = [random_history(count, classes, labels, clock=clock, seed=k) for k, count in enumerate(counts)]
    return cg.ConfusionTrack(
        ids=[f"v{k}" for k in range(len(counts))],
        starts=np.concatenate([[0], np.cumsum(counts)]),
        times=np.concatenate([history.times for history in histories]),
        concentration=np.concatenate([history.concentration for history in histories]),
        initial=np.ones((len(classes), len(labels))),
        classes=classes,
        labels=labels,
        clock=clock,
    )


def band_at(collection, x):
    """Return the ends of a band at x."""
    corners = collection.get_paths()[0].vertices
    heights = corners[np.isclose(corners[:, 0], x), 1]
    return heights.min(), heights.max()


def test_a_triangle_has_a_line_for_each_class(tmp_path):
    history = random_history(13, ("no", "yes"), (-1, 1, 3))
    ax = cg.plot.confusion_history(history)
    lines = {line.get_label(): line for line in ax.lines}
    for row, name in enumerate(("when it is no", "when it is yes")):
        np.testing.assert_allclose(line_shares(lines[name]), history.mean[:, row], atol=1e-9)
        assert to_hex(lines[name].get_color()).upper() == HUES[row]
    stars = [line for line in ax.lines if line.get_marker() == "*"]
    for row, line in enumerate(stars[:2]):
        np.testing.assert_allclose(line_shares(line), history.mean[[2, 4, 6, 8, 10], row], atol=1e-9)
    rings = [line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata())]
    assert [line.get_markerfacecolor() == "white" for line in rings] == [True, False, True, False]
    for index, line in enumerate(rings):
        np.testing.assert_allclose(line_shares(line)[0], history.mean[-(index % 2), index // 2], atol=1e-9)
    assert texts(ax) == ["3", "5", "7", "9", "11"]
    joins = [line for line in ax.lines if to_hex(line.get_color()) == "#888888"]
    np.testing.assert_allclose(line_shares(joins[0]), history.mean[2], atol=1e-9)
    assert [ax.get_tlabel(), ax.get_llabel(), ax.get_rlabel()] == ["says -1", "says 1", "says 3"]
    assert legend(ax) == [
        *("when it is no", "when it is yes", "first response: 1", "last response: 13"),
        "numbers: own responses\nso far",
    ]
    assert ax.get_title(loc="left") == "Volunteer anna, 13 responses"
    assert not any(line.get_clip_on() for line in ax.lines if len(line.get_xdata()))
    ax.figure.savefig(tmp_path / "triangle.png")


@pytest.mark.parametrize("clock", [ORDER, NUMBER, DATES, cg.Clock("datetime")])
@pytest.mark.parametrize("length", [1, 5])
def test_every_history_can_be_drawn(clock, length, tmp_path):
    for labels in ("abc", "ab"):
        ax = cg.plot.confusion_history(random_history(length, "ab", labels, clock=clock))
        ax.figure.savefig(tmp_path / "picture.png")
        assert ax.get_title(loc="left").split(", ")[1] == ("1 response" if length == 1 else "5 responses")
    cg.plot.skill_over_time(random_track([length, 1], clock=clock)).figure.savefig(tmp_path / "skill.png")


@pytest.mark.parametrize(("classes", "labels"), [("a", "a"), ("a", "abc"), ("abcdef", "abcdef"), ("abcd", "xyz")])
def test_any_number_of_classes_can_be_drawn(classes, labels, tmp_path):
    for length in (2, 3):
        cg.plot.confusion_history(random_history(length, classes, labels)).figure.savefig(tmp_path / "picture.png")


def test_stars_show_what_the_history_is_drawn_against():
    history = random_history(13, ("no", "yes"), (-1, 1, 3))
    history = replace(history, observations=np.arange(1, 14) * 1000)
    for against in (None, "observations"):
        ax = cg.plot.confusion_history(history, against=against)
        assert texts(ax) == ["3,000", "5,000", "7,000", "9,000", "11,000"]
        assert legend(ax)[2:4] == ["first response: 1,000", "last response: 13,000"]
        assert " ".join(legend(ax)[4].split()) == "numbers: responses of the whole crowd so far"
    ax = cg.plot.confusion_history(history, against="time")
    assert texts(ax) == ["1.00", "2.00", "3.00", "4.00", "5.00"]
    assert legend(ax)[2:] == ["first response: 0.00", "last response: 6.00"]
    assert texts(cg.plot.confusion_history(history, against="responses")) == ["3", "5", "7", "9", "11"]


def test_the_crowd_must_be_known_to_count_its_responses():
    for labels in ("abc", "ab"):
        history = random_history(6, "ab", labels)
        with pytest.raises(ParameterError, match=r"against='observations' needs .* of 'anna'.*fit\.confusion\.of"):
            cg.plot.confusion_history(history, against="observations")
    ax = cg.plot.confusion_history(replace(history, observations=[3, 4, 4, 8, 9, 30]), against="observations")
    assert ax.lines[0].get_xdata().tolist() == [3, 4, 4, 8, 9, 30]
    assert ax.get_xlabel() == "responses of the whole crowd so far"


def test_equal_texts_are_written_once():
    history = random_history(13, ("no", "yes"), "abc", clock=DATES)
    same = replace(history, observations=[*range(3, 8), *[20] * 8])
    ax = cg.plot.confusion_history(same)
    assert texts(ax) == ["5", "7", "20"]
    # The text stands at the first of the moments, and all moments have stars.
    assert len(next(line for line in ax.lines if line.get_marker() == "*").get_xdata()) == 5
    hours = np.datetime64("2026-03-06T08:30", "us") + np.arange(13) * np.timedelta64(7, "h")
    ax = cg.plot.confusion_history(replace(history, times=hours), against="time")
    assert texts(ax) == ["03-06 23:30", "03-07 13:30", "03-08 03:30", "03-08 17:30", "03-09 07:30"]


# What a volunteer's two rows do: five shares of the second and third label for each.
STORIES = {
    "steady": ([(0.03, 0.02)] * 2, [(0.04, 0.05), (0.05, 0.04)]),
    "drifting": ([(0.1, 0.1), (0.3, 0.15)], [(0.25, 0.5), (0.4, 0.15)]),
    "visiting": ([(0.05, 0.05), (0.3, 0.6), (0.05, 0.05)], [(0.1, 0.85), (0.8, 0.1), (0.1, 0.85)]),
    "stepping": ([(0.01, 0.01), (0.01, 0.01), (0.01, 0.95), (0.01, 0.95)], [(0.02, 0.95)] * 4),
}


def story(rows, *, length=400, seed=0):
    """The history of a volunteer whose rows follow a path, with some noise."""
    rng = np.random.default_rng(seed)
    means = []
    for row in rows:
        path = np.array([(1 - second - third, second, third) for second, third in row])
        at = np.linspace(0, len(path) - 1, length)
        means.append(np.stack([np.interp(at, range(len(path)), column) for column in path.T], axis=1))
    mean = np.stack(means, axis=1) * np.exp(rng.normal(0, 0.01, (length, 2, 3)).cumsum(axis=0))
    crowd = np.cumsum(rng.integers(1, 120, length))
    history = random_history(length, ("not supernova", "supernova"), (-1, 1, 3), clock=DATES)
    return replace(history, concentration=100 * mean, observations=crowd)


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize("options", [{}, {"zoom": False}, {"zoom": True, "against": "time"}, {"markers": 8}])
@pytest.mark.parametrize("own", [False, True])
def test_texts_of_moments_cover_nothing(name, options, own):
    ax = Figure(figsize=(8, 5.5)).add_subplot(projection="ternary") if own else None
    ax = cg.plot.confusion_history(story(STORIES[name], seed=0), ax=ax, **options)
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == options.get("markers", 5)
    corners = [axis.label.get_window_extent() for axis in (ax.taxis, ax.laxis, ax.raxis)]
    legend_box = ax.get_legend().get_window_extent()
    assert not any(box.overlaps(other) for box in boxes for other in [*corners, legend_box])
    assert not overlapping(ax.figure, ax.texts)
    # The legend is seen in full, and does not cover the lines.
    assert legend_box.x1 <= ax.figure.bbox.x1
    points = ax.transData.transform(np.concatenate([line.get_xydata() for line in ax.lines]))
    assert not any(legend_box.contains(*point) for point in points)


def test_texts_of_moments_do_not_cover_each_other(tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(2):
        walk = rng.normal(0, 0.03, (800, 2, 3)).cumsum(axis=0)
        walk[:, 0, 0] += 1.5
        history = replace(random_history(800, ("no", "yes"), "abc", clock=DATES), concentration=np.exp(walk))
        ax = cg.plot.confusion_history(history, markers=6, against="time")
        ax.figure.savefig(tmp_path / "triangle.png")
        boxes = [text.get_window_extent() for text in ax.texts]
        assert len(boxes) == 6
        assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_a_small_history_is_magnified():
    steady, drifting = story(STORIES["steady"]), story(STORIES["drifting"])
    part = cg.plot.confusion_history(steady)
    lows = np.array([part.get_tlim()[0], part.get_llim()[0], part.get_rlim()[0]])
    assert (lows < steady.mean.min(axis=(0, 1))).all() or lows.min() == 0
    factor = 1 / (1 - lows.sum())
    assert factor > 3
    assert part.get_title(loc="left") == f"Volunteer anna, 400 responses, magnified {factor:.2g} times"
    lines = {line.get_label(): line for line in part.lines}
    np.testing.assert_allclose(line_shares(lines["when it is supernova"]), steady.mean[:, 1], atol=1e-9)
    # Texts are tied to stars, and lie within the visible part.
    ties = [line_shares(line) for line in part.lines if len(line.get_xdata()) == 2][5:]
    stars = steady.mean[np.linspace(0, 399, 7).round().astype(int)[1:-1]]
    for tie, moment in zip(ties, stars, strict=True):
        assert np.abs(moment - tie[0]).max(axis=1).min() < 1e-9
        assert (tie[1] > lows).all()
    assert cg.plot.confusion_history(drifting).get_title(loc="left") == "Volunteer anna, 400 responses"
    assert cg.plot.confusion_history(steady, zoom=False).get_tlim() == (0, 1)
    asked = cg.plot.confusion_history(drifting, zoom=True)
    assert asked.get_tlim()[0] > 0
    assert ", magnified 1." in asked.get_title(loc="left")
    everywhere = story(([(0.001, 0.001), (0.998, 0.001)], [(0.001, 0.998)] * 2))
    assert "magnified" not in cg.plot.confusion_history(everywhere, zoom=True).get_title(loc="left")


def test_long_lines_are_thinned_and_keep_their_ends():
    history = random_history(30_000, ("no", "yes"), (-1, 1, 3))
    ax = cg.plot.confusion_history(history)
    line = ax.lines[5]
    assert line.get_label() == "when it is no"
    drawn = line_shares(line)
    assert len(drawn) == MAX_POINTS
    np.testing.assert_allclose(drawn[[0, -1]], history.mean[[0, -1], 0], atol=1e-9)
    steps = thin_steps(30_000)
    assert (steps[0], steps[-1]) == (0, 29_999)
    assert set(np.diff(steps)) == {15, 16}
    ax = cg.plot.confusion_history(history, labels=[3])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), history.mean[steps, 0, 2])
    ax = cg.plot.skill_over_time(random_track([5000]), against="responses")
    assert len(ax.lines[0].get_xdata()) == MAX_POINTS
    assert ax.lines[0].get_xdata()[[0, -1]].tolist() == [1, 5000]


def test_lines_over_time_have_bands():
    history = random_history(9, ("no", "yes"), ("no", "yes"))
    ax = cg.plot.confusion_history(history, level=0.8)
    low, high = history.interval(0.8)
    for row, (line, band, style) in enumerate(zip(ax.lines, ax.collections, ("-", "--"), strict=True)):
        np.testing.assert_array_equal(line.get_xdata(), history.times)
        np.testing.assert_array_equal(line.get_ydata(), history.mean[:, row, 1])
        assert line.get_drawstyle() == "steps-post"
        assert line.get_linestyle() == style
        assert to_hex(line.get_color()).upper() == HUES[row]
        assert band_at(band, 0.0) == pytest.approx((low[0, row, 1], high[0, row, 1]))
    assert legend(ax) == ["says yes when it is no", "says yes when it is yes"]
    assert ax.get_ylabel() == "probability of the label"


def test_lines_over_own_responses():
    history = random_history(9, ("no", "yes"), ("no", "yes"))
    ax = cg.plot.confusion_history(history, against="responses")
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.arange(1, 10))
    assert ax.get_xlabel() == "own responses so far"
    with pytest.raises(ParameterError, match="against='steps' is not a choice"):
        cg.plot.confusion_history(history, against="steps")


@pytest.mark.parametrize(
    ("classes", "labels", "selection", "expected"),
    [
        ("abcd", "abcd", None, ["a|a", "b|b", "c|c", "d|d"]),
        ("ab", "dcba", None, ["a|a", "b|b"]),
        ("xy", "abcd", None, ["a|x", "b|x", "c|x", "d|x", "a|y", "b|y", "c|y", "d|y"]),
        ("xy", "abcd", ["c"], ["c|x", "c|y"]),
        ("xy", "ab", ["b", "a"], ["b|x", "a|x", "b|y", "a|y"]),
        ("xy", "abc", ["b"], ["b|x", "b|y"]),
    ],
)
def test_which_labels_are_drawn(classes, labels, selection, expected):
    history = random_history(6, classes, labels)
    ax = cg.plot.confusion_history(history, labels=selection)
    assert legend(ax) == [f"says {pair[0]} when it is {pair[2]}" for pair in expected]
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == len(expected)
    for line, pair in zip(ax.lines, expected, strict=True):
        row, column = classes.index(pair[2]), labels.index(pair[0])
        np.testing.assert_array_equal(line.get_ydata(), history.mean[:, row, column])


@pytest.mark.parametrize(
    ("clock", "times", "texts"),
    [
        (ORDER, [5, 12_000], ["5", "12,000"]),
        (NUMBER, [2009, 2026], ["2009", "2026"]),
        (NUMBER, [0.125, 250.0], ["0", "250"]),
        (NUMBER, [0.125, 0.375], ["0.125", "0.375"]),
        (NUMBER, [0.125], ["0.125"]),
        (DATES, ["2026-06-30T23:00", "2026-07-31T00:00"], ["2026-07-01", "2026-07-31"]),
        (DATES, ["2026-06-30T23:00", "2026-07-01T23:15"], ["07-01 01:00", "07-02 01:15"]),
        (cg.Clock("datetime"), ["2026-06-30T23:00", "2026-07-31T00:00"], ["2026-06-30", "2026-07-31"]),
    ],
)
def test_short_times(clock, times, texts):
    for unit in ("s", "ns") if clock.kind == "datetime" else (None,):
        column = np.array(times, dtype=None if unit is None else f"datetime64[{unit}]")
        assert short_times(clock, column) == texts
    assert short_times(clock, column[:0]) == []


@pytest.mark.parametrize(
    ("clock", "times", "texts"),
    [
        (DATES, ["2026-01-30T09:00", "2026-02-10T10:00", "2026-02-10T11:00"],
         ["01-30 10:00", "02-10 11:00", "02-10 12:00"]),
        (DATES, ["2025-01-30T09:00", "2026-02-10T10:00:01", "2026-02-10T10:00:02"],
         ["2025-01-30 10:00:00", "2026-02-10 11:00:01", "2026-02-10 11:00:02"]),
        (DATES, ["2026-02-10T10:00:01", "2026-02-10T10:00:01.5"],
         ["2026-02-10 11:00:01+01:00", "2026-02-10 11:00:01.500000+01:00"]),
        (DATES, ["2026-02-10T10:00", "2026-02-10T10:00", "2026-03-10T10:00"],
         ["2026-02-10", "2026-02-10", "2026-03-10"]),
        (NUMBER, [0.0, 0.001, 100.0], ["0.000", "0.001", "100.000"]),
        (NUMBER, [0.0, 1e-9, 100.0], ["0.0", "1e-09", "100.0"]),
        (ORDER, [5, 12_000], ["5", "12,000"]),
    ],
)  # fmt: skip
def test_distinct_times_differ(clock, times, texts):
    column = np.array(times, dtype="datetime64[ns]" if clock.kind == "datetime" else None)
    assert distinct_times(clock, column) == texts


def test_skill_is_the_accuracy(tmp_path):
    track = random_track([3, 9, 0, 4, 4, 2, 1])
    ax = cg.plot.skill_over_time(track)
    drawn = ["v1", "v3", "v4", "v0", "v5"]
    assert legend(ax) == [f"{name}, {len(track.of(name))} responses" for name in drawn]
    for name, line, band, hue in zip(drawn, ax.lines, ax.collections, HUES[:5], strict=True):
        history = track.of(name)
        np.testing.assert_array_equal(line.get_xdata(), history.times)
        np.testing.assert_array_equal(line.get_ydata(), history.accuracy())
        low, high = history.accuracy_interval(0.9)
        assert band_at(band, history.times[0]) == pytest.approx((low[0], high[0]))
        assert to_hex(line.get_color()).upper() == hue
        assert line.get_drawstyle() == "steps-post"
    assert ax.get_title(loc="left") == "Skill of 5 volunteers"
    assert ax.get_xlabel() == "time"
    ax.figure.savefig(tmp_path / "skill.png")


def test_skill_of_chosen_volunteers_against_their_responses():
    track = random_track([3, 9, 1], classes=("no", "yes"), labels=("no", "yes", "perhaps"))
    options = {"class_probs": [0.9, 0.1], "correct": {"no": "no", "yes": ["yes", "perhaps"]}}
    ax = cg.plot.skill_over_time(track, volunteers=["v2", "v0"], against="responses", level=0.5, **options)
    assert ax.get_xlabel() == "own responses so far"
    assert legend(ax) == ["v2, 1 response", "v0, 3 responses"]
    point, line = ax.lines
    history = track.of("v0")
    assert line.get_xdata().tolist() == [1, 2, 3]
    np.testing.assert_array_equal(line.get_ydata(), history.accuracy([0.9, 0.1], correct=options["correct"]))
    low, high = history.accuracy_interval(0.5, **options)
    assert band_at(ax.collections[1], 1) == pytest.approx((low[0], high[0]))
    # One response is a point with a bar.
    assert (point.get_marker(), point.get_xdata().tolist()) == ("o", [1])
    (bar,) = ax.collections[0].get_segments()
    low, high = track.of("v2").accuracy_interval(0.5, **options)
    assert bar[:, 1] == pytest.approx([low[0], high[0]])


def test_skill_against_the_responses_of_the_crowd():
    track = random_track([3, 9, 1])
    ax = cg.plot.skill_over_time(track, volunteers=["v0"], against="observations")
    assert ax.lines[0].get_xdata().tolist() == [3, 5, 7]
    assert ax.get_xlabel() == "responses of the whole crowd so far"


def test_many_volunteers_are_told_apart():
    track = random_track([4] * 11)
    ax = cg.plot.skill_over_time(track, volunteers=track.ids, ax=Figure().subplots())
    assert [to_hex(line.get_color()).upper() for line in ax.lines] == colours(range(11))
    box = ax.get_legend().get_bbox_to_anchor().transformed(ax.transAxes.inverted())
    assert box.x0 == pytest.approx(1)


def test_own_axes_are_used():
    ax = Figure().subplots()
    assert cg.plot.confusion_history(random_history(4, "ab", "ab"), ax=ax) is ax
    assert cg.plot.skill_over_time(random_track([4]), ax=ax) is ax
    ternary = Figure().add_subplot(projection="ternary")
    history = random_history(4, "ab", "abc")
    assert cg.plot.confusion_history(history, ax=ternary) is ternary
    assert cg.plot.confusion_history(history, labels=["c"], ax=ax) is ax
    with pytest.raises(ParameterError, match=r'in a triangle; got Axes\. Make axes .*projection="ternary"'):
        cg.plot.confusion_history(history, ax=ax)
    with pytest.raises(ParameterError, match="lines over time, which ternary axes cannot show"):
        cg.plot.confusion_history(random_history(4, "ab", "ab"), ax=ternary)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"markers": -1}, "markers=-1 must be a whole number"),
        ({"markers": 2.5}, "markers=2.5 must be a whole number"),
        ({"markers": True}, "markers=True must be a whole number"),
        ({"zoom": 2}, "zoom=2 must be True or False"),
        ({"against": "years"}, "against='years' is not a choice"),
        ({"labels": ["c", "x"]}, r"labels= names 'x'; choose from the labels 'a', 'b', 'c'"),
        ({"labels": []}, "There are no labels"),
        ({"labels": "c"}, "must be several values"),
        ({"labels": ["c"], "level": 1.5}, "level=1.5 must lie between 0 and 1"),
    ],
)
def test_histories_are_not_drawn_with_bad_options(options, message):
    with pytest.raises(ParameterError, match=message):
        cg.plot.confusion_history(random_history(4, "ab", "abc"), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"volunteers": []}, "names nobody"),
        ({"volunteers": "v0"}, r"must be several ids, such as volunteers=\['v0'\]"),
        (
            {"volunteers": ["v0", "v1", "v2"]},
            r"2 volunteers named .* gave no responses.*: 'v1', 'v2'. Leave",
        ),
        ({"against": "years"}, "against='years' is not a choice"),
        ({"level": 0}, "level=0 must lie between 0 and 1"),
        ({"class_probs": [0.5, 0.1]}, "sum to one"),
        ({"correct": {"no": "no"}}, "does not name the class 'yes'"),
    ],
)
def test_skill_is_not_drawn_with_bad_options(options, message):
    ax = Figure().subplots()
    with pytest.raises(CrowdGraphError, match=message):
        cg.plot.skill_over_time(random_track([3, 0, 0]), ax=ax, **options)
    assert not ax.lines
    with pytest.raises(UnknownIdError, match="v9"):
        cg.plot.skill_over_time(random_track([3]), volunteers=["v9"])


def test_what_has_no_history_cannot_be_drawn():
    with pytest.raises(ParameterError, match=r"confusion of 'anna' has no steps.*DynIBCC"):
        cg.plot.confusion_history(STATIC.of("anna"))
    with pytest.raises(ParameterError, match=r"This static track of 1 volunteer has no steps.*DynIBCC"):
        cg.plot.skill_over_time(STATIC)
    for draw in (cg.plot.confusion_history, cg.plot.skill_over_time):
        with pytest.raises(ParameterError, match=r"This picture shows a .*; got a dict\. Make one with"):
            draw({})
