"""Names that are no TeX, times at the ends of the calendar and in hours that come twice are drawn as they are."""

import datetime as dt
from io import BytesIO
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from matplotlib.text import Text

import crowdgraph as cg
from crowdgraph.errors import ParameterError
from crowdgraph.plot._style import plain_text

BERLIN = ZoneInfo("Europe/Berlin")
# Half past two came twice in this night: the clock was put back an hour at three.
TWICE = [dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=fold) for fold in (0, 1)]
NO_TEX = ("!@#$%^&*$", "$$$", "$_$", "$10^$", "$0-$10")


def crowd(times, labels=("u", "v"), name="v{}"):
    rows = range(24)
    columns = {
        "volunteer": [name.format(row % 4) for row in rows],
        "item": [f"i{row % 5}" for row in rows],
        "label": [labels[row % len(labels)] for row in rows],
        "time": [times[row * len(times) // 24] for row in rows],
    }
    return cg.CrowdGraph.from_responses(columns, labels=labels)


def render(ax):
    """Draw a figure as it is saved, and return the texts on it that are not empty."""
    ax.figure.savefig(BytesIO(), dpi=20)
    return {text.get_text() for text in ax.figure.findobj(Text) if text.get_text()}


def history(graph):
    rows = graph.responses.by_volunteer
    track = cg.ConfusionTrack(
        ids=graph.volunteers.ids,
        starts=rows.starts,
        times=graph.responses.time[rows.order],
        concentration=np.ones((len(rows.order), 2, 2)),
        initial=np.ones((2, 2)),
        classes=graph.classes,
        labels=graph.labels,
        clock=graph.responses.clock,
    )
    return track.of(graph.volunteers.ids[0])


def test_names_that_are_no_tex_are_written_as_they_are():
    texts = render(cg.plot.responses_over_time(crowd([1, 2], labels=NO_TEX)))
    assert set(NO_TEX) <= texts
    for first, second in pairwise(NO_TEX):
        texts = render(
            cg.plot.confusion_history(history(crowd([1, 2], labels=(first, second))), labels=(first, second))
        )
        assert all(any(f"says {label} " in text for text in texts) for label in (first, second))


@pytest.mark.parametrize("name", cg.plot.__all__)
def test_every_plot_is_decorated_to_write_names_as_they_are(name):
    plot = getattr(cg.plot, name)
    assert plot.__code__ is plain_text(lambda: None).__code__


@pytest.mark.parametrize(
    "times",
    [
        TWICE,
        [dt.datetime(1, 1, 1), dt.datetime(1, 1, 1, 5)],
        [dt.datetime(1, 1, 1), dt.datetime(1, 3, 1)],
        [dt.datetime(1, 1, 2, tzinfo=BERLIN), dt.datetime(1, 1, 4, tzinfo=BERLIN)],
        [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)],
        [dt.datetime(9999, 12, 30), dt.datetime(9999, 12, 31, 23)],
        [-1e300, 1e300],
        [0.0, 5e-324],
    ],
    ids=str,
)
def test_times_of_any_kind_have_axes_with_few_ticks(times):
    graph = crowd(times)
    for ax in (cg.plot.responses_over_time(graph), cg.plot.confusion_history(history(graph), against="time")):
        ax.figure.savefig(BytesIO(), dpi=20)
        assert len(ax.get_xticks()) < 50


def test_the_hour_that_comes_twice_is_drawn_in_utc():
    ax = cg.plot.responses_over_time(crowd(TWICE))
    assert {"00:30", "01:30", "UTC, since the clocks of Europe/Berlin change"} <= render(ax)
    in_summer = [dt.datetime(2024, 7, 1, hour, tzinfo=BERLIN) for hour in (2, 3)]
    assert {"02:00", "03:00", "Europe/Berlin"} <= render(cg.plot.responses_over_time(crowd(in_summer)))


@pytest.mark.parametrize(
    ("times", "reason"),
    [([1e308, 1.5e308], "numbers up to"), ([np.datetime64("-2000-01-01"), np.datetime64("2000-01-01")], "years 1 and")],
)
def test_times_that_no_axis_has_are_refused(times, reason):
    graph = crowd(times)
    with pytest.raises(ParameterError, match=reason):
        cg.plot.responses_over_time(graph)
    with pytest.raises(ParameterError, match=reason):
        cg.plot.confusion_history(history(graph), against="time")
