"""Whether stated probabilities can be taken at their word."""

from __future__ import annotations

from matplotlib.axes import Axes

from crowdgraph.core.evaluation import CrossValidation
from crowdgraph.plot.axes import check_kind, own_axes
from crowdgraph.plot.palette import INK, colours

__all__ = ["reliability"]

# The area of the halo of a bin that holds every item, in square points.
LARGEST = 600.0
# Lines are bold only between bins that hold as many items as this.
FEW = 10


def reliability(result: CrossValidation, *, ax: Axes | None = None) -> Axes:
    """Draw how often each model's most probable class is the true one, against the probability stated for it.

    A calibrated model lies on the diagonal, an overconfident one below it. The areas of the halos tell how many of the
    items, those of all folds, had such a probability; lines to bins of fewer than ten items are thin. ECE is the
    expected calibration error, the mean over folds.

    Parameters
    ----------
    result
        A cross validation.
    ax
        Where to draw; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> from crowdgraph.evaluation import cross_validate
    >>> ax = cg.plot.reliability(cross_validate(cg.simulate.crowd(seed=0).graph, cg.MajorityVote()))
    >>> ax.get_ylabel()
    'share of items whose class it is'
    """
    check_kind(result, CrossValidation, "cross_validate(graph, models)")
    ax = own_axes(ax, width=5.5, height=5.5)
    ax.plot([0, 1], [0, 1], linestyle=":", color=INK, linewidth=1)
    for model, colour in zip(result.models, colours(result.models), strict=True):
        curve = result.reliability(model)
        name = f"{model}, ECE {curve.calibration_error:.3f}"
        ax.plot(curve.stated, curve.observed, color=colour, linewidth=0.6, alpha=0.5, marker="o", markersize=3)
        # A bin of few items says little, and the line through it should not catch the eye.
        full = curve.n_items >= FEW
        ax.plot(curve.stated[full], curve.observed[full], color=colour, linewidth=1.8, label=name)
        areas = LARGEST * curve.n_items / len(result.items)
        ax.scatter(curve.stated, curve.observed, s=areas, color=colour, alpha=0.3, linewidth=0, clip_on=False)
    ax.set(xlabel="stated probability of the most probable class", ylabel="share of items whose class it is")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    ax.set_aspect("equal")
    ax.legend(loc="best", frameon=False, title="halo area: number of items", alignment="left")
    ax.set_title(f"Reliability on {len(result.items):,} gold items", loc="left")
    return ax
