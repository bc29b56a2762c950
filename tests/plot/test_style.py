"""Colours differ, mix as lights and can be read; texts do not cover each other; snapshots have names."""

from dataclasses import replace

import mpltern  # noqa: F401  registers the projection
import numpy as np
from matplotlib.colors import to_rgb
from plot.reading import hexes
from plot.subjects import TRACKS

from crowdgraph.plot._panels import non_overlapping, snapshot_names
from crowdgraph.plot._style import HUES, INK, colours, ink_on, mix_colours


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


def test_further_colours_are_paler():
    assert colours(range(8)) == list(HUES)
    assert len(set(colours(range(30)))) == 30
    assert colours(range(9))[8] == "#66AAD1"


def test_snapshots_are_called_by_responses_and_time():
    assert snapshot_names(TRACKS["empty"]) == [
        "1,000 responses\n2010-04-09",
        "2,000 responses\n2010-05-09\nno communities",
        "3,000 responses\n2010-06-08",
        "4,000 responses\n2010-07-08",
    ]
    assert snapshot_names(TRACKS["one volunteer"])[0] == "1,000 responses\n2010-04-09"
    assert snapshot_names(TRACKS["empty first"])[1] == "2,000 responses\ntime 1"
    assert snapshot_names(TRACKS["one community"]) == ["1,000 responses", "2,000 responses", "3,000 responses"]
    one = replace(TRACKS["one snapshot"], counts=[1])
    assert snapshot_names(one) == ["1 response\n2010-04-09"]
