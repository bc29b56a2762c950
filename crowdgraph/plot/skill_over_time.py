"""How good volunteers were when."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from crowdgraph.core.confusion import ConfusionHistory, ConfusionTrack, Correct
from crowdgraph.errors import ParameterError, check_choice, quote
from crowdgraph.plot.axes import check_kind, own_axes
from crowdgraph.plot.over_time import band, counted, horizontal_axis, legend, thinned, thinned_steps
from crowdgraph.plot.palette import colours

__all__ = ["skill_over_time"]

# How many volunteers are drawn if none are named.
BUSIEST = 5


def skill_over_time(
    track: ConfusionTrack,
    *,
    volunteers: Iterable[Hashable] | None = None,
    against: Literal["time", "responses"] = "time",
    class_probs: ArrayLike | None = None,
    correct: Correct | None = None,
    level: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of right labels that is expected of volunteers after each of their responses, with bands.

    Parameters
    ----------
    track
        The confusion of all volunteers over time, ``fit.confusion`` of a model that changes.
    volunteers
        Whom to draw; the five with the most responses if left out.
    against
        ``"time"``, or ``"responses"`` for the number of own responses so far, which shows how volunteers learn.
    class_probs
        How often each class occurs, of shape (J,); equally often if left out.
    correct
        For each class, the label (or labels) that count as right; needed only where a class is not itself a label.
    level
        How probable it is that the share lies in the band.
    ax
        Where to draw; a new figure if left out.

    Examples
    --------
    >>> import numpy as np
    >>> import crowdgraph as cg
    >>> right = np.array([5.0, 6, 7, 8, 5, 4, 3])
    >>> row = np.column_stack([right, 10 - right])
    >>> track = cg.ConfusionTrack(
    ...     ids=["anna", "bert"], starts=[0, 4, 7], times=[1, 2, 3, 5, 2, 4, 6], initial=np.full((2, 2), 5.0),
    ...     concentration=np.stack([row, row[:, ::-1]], axis=1), classes=("no", "yes"), labels=("no", "yes"),
    ...     clock=cg.Clock("number"))
    >>> ax = cg.plot.skill_over_time(track, against="responses")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['anna, 4 responses', 'bert, 3 responses']
    """
    check_kind(track, ConfusionTrack, "fit.confusion, of a fit of DynIBCC")
    check_choice("against", against, ("time", "responses"))
    histories = _chosen(track, volunteers)
    drawn = [thinned(history) for history in histories]
    shares = [history.accuracy(class_probs, correct=correct) for history in drawn]
    ends = [history.accuracy_interval(level, class_probs=class_probs, correct=correct) for history in drawn]
    beside = ax is None
    ax = own_axes(ax, width=8.0)
    for place, colour in enumerate(colours(histories)):
        n_steps = len(histories[place])
        x = drawn[place].times if against == "time" else thinned_steps(n_steps) + 1
        name = f"{histories[place].volunteer}, {counted(n_steps, 'response')}"
        band(ax, x, shares[place], ends[place], colour=colour, name=name)
    horizontal_axis(ax, track.clock, against)
    ax.set(ylabel="expected share of right labels", ylim=(-0.02, 1.02))
    ax.margins(x=0.02)
    legend(ax, beside=beside)
    ax.set_title(f"Skill of {counted(len(histories), 'volunteer')}", loc="left")
    return ax


def _chosen(track: ConfusionTrack, volunteers: Iterable[Hashable] | None) -> list[ConfusionHistory]:
    """The histories of the volunteers that were named, or of the busiest."""
    if not len(track.times):
        raise ParameterError(
            f"This {track.inference} track of {counted(len(track), 'volunteer')} has no steps, so there is no history "
            "to draw; fit a model that changes, such as DynIBCC, and take fit.confusion."
        )
    if volunteers is None:
        n_steps = np.diff(track.starts)
        busiest = np.argsort(-n_steps, kind="stable")[:BUSIEST]
        return [track.of(track.ids[code]) for code in busiest[n_steps[busiest] > 0]]
    if isinstance(volunteers, str | bytes) or not isinstance(volunteers, Iterable):
        raise ParameterError(f"volunteers={volunteers!r} must be several ids, such as volunteers=[{volunteers!r}].")
    histories = [track.of(volunteer) for volunteer in volunteers]
    if not histories:
        raise ParameterError("volunteers= names nobody; name some, or leave it out for the busiest.")
    silent = [history.volunteer for history in histories if not len(history)]
    if silent:
        raise ParameterError(
            f"{counted(len(silent), 'volunteer')} of those named without responses, and so without a history: "
            f"{quote(silent)}. Leave them out of volunteers=."
        )
    return histories
