"""What pictures of communities share: what they show, where, how communities are named, bars and triangles."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import ceil
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from crowdgraph.core._arrays import Array, value_tuple
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.errors import AlignmentError, NotAnnotatedError, ParameterError, quote
from crowdgraph.plot._style import GREY, INK, check_kind, colours, counted, ink_on, short_times
from crowdgraph.plot.confusion import CORNERS

# More communities than these are not listed one by one.
MOST_LISTED = 12
# How wide and high a digit is, relative to the size of the text.
DIGIT = np.array([0.65, 1.0])
# The size of small texts, in points, how wide a letter of them is, and how high a line.
SMALL, LETTER, LINE = 8, 4.8, 10.0
# The width of a bar with its share of the gaps, in inches.
BAR = 0.24
# The area of the dot of the largest community, in square points; from so many communities on it is smaller.
LARGEST, MANY = 500.0, 8
# The side of a triangle, the room below and above it, that for a letter at its corners, and for the legend, in inches.
SIDE, BELOW, ABOVE, CORNER_LETTER, LEGEND = 4.2, 0.5, 0.75, 0.085, 1.3
# How many triangles stand side by side.
MOST_IN_ROW = 3


def check_communities(communities: object, *, least: int = 1) -> None:
    """Raise unless these are communities, and not too few to be drawn."""
    check_kind(communities, Communities, "BayesianNMF().detect(network)")
    if isinstance(communities, Communities) and len(communities) < least:
        raise ParameterError(
            f"There are no communities to draw: {communities.method!r} found none, as happens where nobody has a "
            "neighbour in the network."
        )


def check_track(track: object) -> None:
    """Raise unless these are communities over time, at one time at least."""
    check_kind(track, CommunityTrack, "dynamics.over_time(graph, counts=[...])")
    if isinstance(track, CommunityTrack) and not track.n_communities.any():
        why = "; ".join(dict.fromkeys(reason for reason in track.reasons or () if reason))
        raise ParameterError(
            f"There are no communities to draw: {track.method!r} found none at any of "
            f"{counted(len(track), 'snapshot')}{f' ({why})' if why else ''}. Follow them at larger counts of responses."
        )


def confusion_over_time(track: CommunityTrack) -> tuple[Array, ConfusionSnapshot]:
    """The mean confusion of all communities, of shape (T, K, J, L), and a snapshot that names its rows and columns."""
    means = np.stack([track.mean_confusion(k) for k in range(track.n_communities_ever)], axis=1)
    return means, next(one.confusion for one in track.snapshots if one.confusion is not None)


def chosen_communities(n_communities: int, numbers: Iterable[int] | None, *, most: int = MOST_LISTED) -> list[int]:
    """The numbers of the communities that are drawn: those given, or the first, not more than `most`."""
    if numbers is None:
        return list(range(min(n_communities, most)))
    chosen = list(value_tuple(numbers, what="numbers"))
    wrong = [k for k in chosen if not isinstance(k, int | np.integer) or not 0 <= k < n_communities]
    if wrong:
        raise ParameterError(f"numbers= names {quote(wrong)}; the communities are numbered 0 to {n_communities - 1}.")
    return chosen  # type: ignore[return-value]


def confusion_of(
    communities: Communities, fit: ModelFit | ConfusionTrack | ConfusionSnapshot | None
) -> ConfusionSnapshot:
    """The confusion matrices of the communities' volunteers: those given, or those the communities were found by."""
    found: object = communities.confusion if fit is None else fit
    if found is None:
        raise ParameterError(
            f"The communities {communities.method!r} were not found by comparing confusion matrices. Say which to "
            "draw: give a fit, such as IBCC().fit(graph), as second argument."
        )
    if isinstance(found, ModelFit):
        if found.confusion is None:
            raise NotAnnotatedError(f"The model {found.model!r} has no confusion matrices to draw; use IBCC.")
        found = found.confusion
    if isinstance(found, ConfusionTrack):
        found = found.latest()
    if not isinstance(found, ConfusionSnapshot):
        raise ParameterError(
            f"Confusion matrices are taken from a fit, its confusion, or its confusion at a time; got a "
            f"{type(found).__name__}."
        )
    strangers = [volunteer for volunteer in communities.ids.tolist() if volunteer not in found.table]
    if strangers:
        raise AlignmentError(
            f"The confusion matrices lack {len(strangers):,} of the communities' volunteers, such as "
            f"{strangers[0]!r}. Take a fit of the graph in which the communities were found."
        )
    return found


def as_axes_list(axes: Sequence[Axes] | Any) -> list[Any]:
    """The axes of a sequence or array of them, such as ``plt.subplots`` returns."""
    listed = list(np.ravel(np.asarray(axes, dtype=object)))
    strange = [part for part in listed if not isinstance(part, Axes)]
    if strange or not listed:
        got = type(strange[0]).__name__ if strange else "none"
        raise ParameterError(f"axes= takes matplotlib axes, one for each panel; got {got}.")
    return listed


def community_name(number: int, size: int) -> str:
    """What a community is called in a picture: ``3: 120 volunteers``."""
    return f"{number}: {counted(int(size), 'volunteer')}"


def snapshot_names(track: CommunityTrack) -> list[str]:
    """What snapshots are called: ``3,000 responses``, the time below it, and whether there are no communities."""
    names = [counted(count, "response") for count in track.counts.tolist()]
    if track.clock.kind != "order":
        word = "time " if track.clock.kind == "number" else ""
        times = short_times(track.clock, track.times)
        names = [f"{name}\n{word}{time}" for name, time in zip(names, times, strict=True)]
    empty = track.n_communities == 0
    return [f"{name}\nno communities" if none else name for name, none in zip(names, empty, strict=True)]


def longest_line(texts: Sequence[str]) -> int:
    """How many letters the longest line of some texts has."""
    return max(len(line) for text in texts for line in text.splitlines())


def name_snapshots(ax: Axes, track: CommunityTrack) -> None:
    """Names below the snapshots, which stand at 0, 1, 2 and so on; some of them where there is no room for all."""
    names = snapshot_names(track)
    ax.set_xlim(-0.5, len(names) - 0.5)
    step = ceil((longest_line(names) + 1) * LETTER / (width_in_inches(ax) * 72 / len(names)))
    ax.set_xticks(range(0, len(names), step), names[::step], fontsize=SMALL)
    ax.tick_params(axis="x", length=0)


def counted_communities(number: int) -> str:
    """``1 community``, ``32 communities``."""
    return f"{number:,} communit{'y' if number == 1 else 'ies'}"


def non_overlapping(spots: Array, texts: Sequence[str], *, points: float) -> list[int]:
    """The places of the texts that cover none of those before them; spots are in points, of shape (K, 2)."""
    sizes = [DIGIT * [len(text), 1] * points for text in texts]
    kept: list[int] = []
    for place, (spot, size) in enumerate(zip(spots, sizes, strict=True)):
        if not any((np.abs(spot - spots[other]) < (size + sizes[other]) / 2).all() for other in kept):
            kept.append(place)
    return kept


def width_in_inches(ax: Axes) -> float:
    """How wide the axes are, before the layout."""
    return float(ax.bbox.width / ax.figure.dpi)


def confusion_bars(ax: Axes, matrix: Array, *, colour: str, ends: Array | None = None) -> None:
    """One bar for each label of each class, and lines for the uncertainty where its ends are given."""
    places = _places(*matrix.shape)
    ax.bar(places.ravel(), matrix.ravel(), width=0.86, color=colour)
    if ends is not None:
        ax.vlines(places.ravel(), ends[0].ravel(), ends[1].ravel(), color=INK, linewidth=1)


def name_bars(ax: Axes, snapshot: ConfusionSnapshot) -> None:
    """Labels below the bars, classes above them."""
    n_classes, n_labels = len(snapshot.classes), len(snapshot.labels)
    places = _places(n_classes, n_labels)
    room = width_in_inches(ax) * 72 / (n_classes * (n_labels + 1))
    names = [str(label) for label in snapshot.labels] * n_classes
    upright = max(map(len, names)) * LETTER > room
    ax.set_xticks(places.ravel(), names, rotation=90 if upright else 0, fontsize=min(SMALL, room))
    ax.tick_params(axis="x", length=0)
    texts = [fill(str(name), max(8, int(room * (n_labels + 1) / LETTER))) for name in snapshot.classes]
    for row, text in zip(places, texts, strict=True):
        ax.text(row.mean(), 1.04, text, ha="center", va="bottom", fontsize=SMALL, color=INK)
        ax.plot([row[0] - 0.43, row[-1] + 0.43], [1.02, 1.02], color=GREY, linewidth=1)
    # As much room above the bars as the lines of text need, but not more than for the bars.
    lines = max(text.count("\n") + 1 for text in texts) * LINE / (ax.bbox.height / ax.figure.dpi * 72)
    ax.set(ylim=(0, max(1.2, 1.04 / (1 - min(lines, 0.5)))), yticks=[0, 0.5, 1], xlim=(-0.9, places[-1, -1] + 0.9))


def _places(n_classes: int, n_labels: int) -> Array:
    """Where the bars stand, of shape (J, L): those of a class side by side, a gap between classes."""
    return np.arange(n_classes)[:, None] * (n_labels + 1) + np.arange(n_labels)


def check_three_labels(confusion: ConfusionSnapshot, *, instead: str) -> None:
    """Raise unless the confusion matrices can be drawn in triangles."""
    if len(confusion.labels) != 3:
        raise ParameterError(
            f"A triangle shows three labels; these confusion matrices have {len(confusion.labels)} "
            f"({quote(confusion.labels)}). Draw them with {instead}."
        )


def triangles(confusion: ConfusionSnapshot, *, side: float = SIDE) -> list[Any]:
    """Triangles of a new figure, with room for the names at the corners, which a layout does not see."""
    import mpltern  # noqa: F401  registers the projection

    n_columns = min(len(confusion.classes), MOST_IN_ROW)
    n_rows = ceil(len(confusion.classes) / n_columns)
    beside = 0.2 + CORNER_LETTER * max(len(_corner(label)) for label in confusion.labels)
    tall = side * CORNERS[0, 1]
    panel_width, panel_height = side + 2 * beside, tall + BELOW + ABOVE
    width, height = panel_width * n_columns + LEGEND, panel_height * n_rows
    figure = Figure(figsize=(width, height))
    panels = []
    for place in range(len(confusion.classes)):
        row, column = divmod(place, n_columns)
        x, y = column * panel_width + beside, (n_rows - 1 - row) * panel_height + BELOW
        panels.append(figure.add_axes((x / width, y / height, side / width, tall / height), projection="ternary"))
    return panels


def given_triangles(axes: Sequence[Axes], classes: Sequence[Hashable]) -> list[Any]:
    """The given axes if they are a triangle for each class."""
    from mpltern.ternary import TernaryAxes

    panels = as_axes_list(axes)
    if len(panels) != len(classes):
        raise ParameterError(f"axes= has {len(panels)} axes; {len(classes)} are needed, one for each class.")
    strange = [panel for panel in panels if not isinstance(panel, TernaryAxes)]
    if strange:
        raise ParameterError(
            f"Communities of three labels are drawn in triangles; got {type(strange[0]).__name__}. Make axes with "
            'plt.subplots(1, 2, subplot_kw={"projection": "ternary"}) after `import mpltern`, or leave axes= out.'
        )
    return panels


def magnify(ternary: Any, means: Array) -> None:
    """Show the smallest part of a triangle that holds all dots, with some room around them."""
    low = means.min(axis=0, initial=1)
    room = max(0.15 * (1 - low.sum()), 0.01)
    ternary.set_ternary_min(*np.maximum(low - room, 0))


def name_corners(ternary: Any, labels: Sequence[Hashable]) -> None:
    """Corners, and a quiet grid."""
    for axis, label in zip((ternary.taxis, ternary.laxis, ternary.raxis), labels, strict=True):
        axis.set_label_text(_corner(label))
        axis.set_label_rotation_mode("horizontal")
        axis.set_major_locator(MaxNLocator(5, prune="both"))
    ternary.grid(color=GREY, alpha=0.25, linewidth=0.5)
    ternary.tick_params(colors=GREY, labelsize=7, length=2)


def _corner(label: Hashable) -> str:
    return f"says {label}"


def dot_areas(sizes: Array) -> Array:
    """The areas of dots of communities of these sizes, of shape (K,) or (T, K)."""
    return np.asarray(LARGEST * min(1, MANY / sizes.shape[-1]) * sizes / sizes.max(initial=1))


def number_dots(ternary: Any, numbers: Array, means: Array, areas: Array) -> None:
    """The numbers of dots, given in the order in which they are drawn, on them or above small ones, if there is room.

    Numbers cover neither each other nor later dots, for whose number they would be taken.
    """
    hues = np.array(colours(range(int(numbers.max(initial=-1)) + 1)))[numbers]
    seen = 1 - sum(low for low, _ in (ternary.get_tlim(), ternary.get_llim(), ternary.get_rlim()))
    side = min(ternary.bbox.width, ternary.bbox.height / CORNERS[0, 1]) / ternary.figure.dpi * 72 / seen
    texts = [str(number) for number in numbers]
    spots, diameters = means @ CORNERS * side, np.sqrt(areas)
    inside = diameters > 2 + SMALL * DIGIT[0] * np.array([len(text) for text in texts])
    shifts = np.where(inside, 0, diameters / 2 + 1 + SMALL / 2)
    middles = spots + np.column_stack([0 * shifts, shifts])
    corners = np.stack([ternary.transProjection.transform(corner) for corner in np.eye(3)])
    for place in non_overlapping(middles, texts, points=SMALL):
        later = slice(place + 1, None)
        if (np.linalg.norm(spots[later] - middles[place], axis=1) >= diameters[later] / 2 + SMALL * DIGIT[0] / 2).all():
            ternary.annotate(
                texts[place],
                means[place] @ corners,
                xytext=(0, shifts[place]),
                textcoords="offset points",
                ha="center",
                va="center_baseline",
                fontsize=SMALL,
                color=ink_on(hues[place]) if inside[place] else INK,
                path_effects=[] if inside[place] else [withStroke(linewidth=2, foreground="white")],
                zorder=4,
                annotation_clip=False,
            )


def legend_of_dots(
    ternary: Any, sizes: Array, areas: Array, *, beside: bool, further: Sequence[tuple[str, str]] = ()
) -> None:
    """The communities by name; of many, how large the largest and the smallest dots are.

    Further entries are the colour and the name of a dot.
    """
    dot = {"marker": "o", "linestyle": "none", "markeredgecolor": "white"}
    listed = len(sizes) <= MOST_LISTED
    diameters = np.sqrt(areas)
    chosen = (
        range(len(sizes)) if listed else sorted({int(sizes.argmax()), int(sizes.argmin())}, key=lambda k: -sizes[k])
    )
    entries = [
        (hue, 8.0, community_name(k, sizes[k])) if listed else (GREY, diameters[k], counted(int(sizes[k]), "volunteer"))
        for k, hue in zip(chosen, colours(chosen), strict=True)
    ]
    handles = [
        Line2D([], [], color=hue, markersize=size, label=text, **dot)  # type: ignore[arg-type]
        for hue, size, text in [*entries, *((hue, 8.0, text) for hue, text in further)]
    ]
    place = (1.0, 1.05) if beside else (0.78, 1.0)
    ternary.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=place,
        frameon=False,
        fontsize="small",
        title="community" if listed else "size of communities",
        alignment="left",
    )
