"""What is found at the price of which false alarms."""

from __future__ import annotations

from collections.abc import Hashable

from matplotlib.axes import Axes

from crowdgraph.core.evaluation import CrossValidation
from crowdgraph.plot.axes import check_kind, own_axes
from crowdgraph.plot.palette import INK, colours

__all__ = ["roc"]


def roc(result: CrossValidation, *, positive: Hashable | None = None, ax: Axes | None = None) -> Axes:
    """Draw each model's ROC curve, averaged over folds, with a band of one standard deviation.

    The diagonal is what guessing achieves.

    Parameters
    ----------
    result
        A cross validation.
    positive
        The class that is to be found. If left out: the last of two classes; of more, the mean over the classes.
    ax
        Where to draw; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> from crowdgraph.evaluation import cross_validate
    >>> ax = cg.plot.roc(cross_validate(cg.simulate.crowd(seed=0).graph, cg.MajorityVote()))
    >>> ax.get_xlabel()
    'false positive rate'
    """
    check_kind(result, CrossValidation, "cross_validate(graph, models)")
    curves = {model: result.roc(model, positive=positive) for model in result.models}
    ax = own_axes(ax, width=5.5, height=5.5)
    ax.plot([0, 1], [0, 1], linestyle=":", color=INK, linewidth=1)
    for (model, curve), colour in zip(curves.items(), colours(result.models), strict=True):
        rate, found = curve.false_positive_rate, curve.true_positive_rate
        ax.plot(rate, found, color=colour, linewidth=2, label=f"{model}, AUC {curve.auc:.3f}")
        lower, upper = (found - curve.spread).clip(0, 1), (found + curve.spread).clip(0, 1)
        ax.fill_between(rate, lower, upper, color=colour, alpha=0.15, linewidth=0)
    ax.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    ax.set_aspect("equal")
    ax.legend(loc="lower right", frameon=False)
    found_class = next(iter(curves.values())).positive
    what = "ROC, mean over classes" if found_class is None else f"ROC of class {found_class}"
    ax.set_title(f"{what}, {result.n_folds} folds", loc="left")
    return ax
