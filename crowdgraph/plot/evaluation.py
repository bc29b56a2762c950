"""How right campaigns become as responses come in."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Literal

import numpy as np
from matplotlib.axes import Axes

from crowdgraph.allocation.campaign import CAMPAIGN_COLUMNS, Campaign
from crowdgraph.core._arrays import Array
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.evaluation.cross_validation import CrossValidation
from crowdgraph.plot._style import INK, check_kind, colours, new_or_given_axes

__all__ = ["campaign", "reliability", "roc"]


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
    ax = new_or_given_axes(ax, width=5.5, height=5.5)
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
    ax = new_or_given_axes(ax, width=5.5, height=5.5)
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


def campaign(
    campaigns: Campaign | Iterable[Campaign],
    *,
    score: Literal["accuracy", "log_loss"] = "accuracy",
    ax: Axes | None = None,
) -> Axes:
    """Draw how right campaigns are against the responses they spent: a line for each policy.

    Campaigns of the same policy, with other seeds, make a band from the lowest to the highest, and a line of their
    mean.

    Parameters
    ----------
    campaigns
        One or several.
    score
        ``"accuracy"``, ``"log_loss"``, ``"calibration"``, ``"cost"``, ``"n_retired"`` or ``"retired_error"``.
    ax
        Where to draw; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> crowd = cg.simulate.crowd(n_volunteers=10, n_items=50, n_responses=300, seed=0)
    >>> led = cg.allocation.simulate_campaign(crowd, cg.allocation.RandomPolicy(), budget=150, seed=0)
    >>> cg.plot.campaign(led).get_ylabel()
    'accuracy'
    """
    check_choice("score", score, tuple(name for name in CAMPAIGN_COLUMNS if name not in {"spent", "seconds"}))
    given = [campaigns] if isinstance(campaigns, Campaign) else list(campaigns)
    if not given:
        raise ParameterError(
            "There are no campaigns to draw; give some, such as [allocation.simulate_campaign(crowd, policy, ...)]."
        )
    for one in given:
        check_kind(one, Campaign, "allocation.simulate_campaign(crowd, policy, budget=...)")
    ax = new_or_given_axes(ax)
    names = list(dict.fromkeys(one.policy for one in given))
    for name, colour in zip(names, colours(names), strict=True):
        spent, curves = _together([one for one in given if one.policy == name], score)
        ax.plot(spent, curves.mean(axis=0), color=colour, linewidth=1.8, label=name)
        if len(curves) > 1:
            ax.fill_between(spent, curves.min(axis=0), curves.max(axis=0), color=colour, alpha=0.15, linewidth=0)
    ax.set_xlabel("responses")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_ylabel(score.replace("_", " "))
    ax.set_title("Campaigns", loc="left")
    ax.legend(frameon=False)
    return ax


def _together(campaigns: list[Campaign], score: str) -> tuple[Array, Array]:
    """All numbers of responses at which one of the campaigns was looked at, and what each of them scored there.

    Between two looks what was known at the first stands.
    """
    spent = np.unique(np.concatenate([one.spent for one in campaigns]))
    low, high = max(one.spent[0] for one in campaigns), min(one.spent[-1] for one in campaigns)
    spent = spent[(spent >= low) & (spent <= high)]
    places = [np.searchsorted(one.spent, spent, side="right") - 1 for one in campaigns]
    return spent, np.array([getattr(one, score)[place] for one, place in zip(campaigns, places, strict=True)])
