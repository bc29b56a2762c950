"""How well models and policies do: ROC curves, calibration, and campaigns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from matplotlib.axes import Axes

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import quantity
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.plot._style import INK, check_kind, colours, ensure_axes, is_kind, plain_text

if TYPE_CHECKING:
    from crowdgraph.allocation.campaign import Campaign
    from crowdgraph.evaluation.cross_validation import CrossValidation

__all__ = ["campaign", "reliability", "roc"]

CampaignScore = Literal["accuracy", "log_loss", "calibration", "cost", "n_retired", "retired_error"]
# The area of the halo of a bin that holds every item, in square points.
MAX_HALO_AREA = 600.0
# Lines are bold only between bins that hold at least this many items.
MIN_BOLD_ITEMS = 10


@plain_text
def roc(result: CrossValidation, *, positive: Hashable | None = None, ax: Axes | None = None) -> Axes:
    """Plot the ROC curve of each model, averaged over folds, with a band of one standard deviation.

    The diagonal is what guessing achieves.

    Parameters
    ----------
    result
        A cross validation.
    positive
        The class to detect. If left out: the last of two classes; of more, the mean over the classes.
    ax
        The axes to draw on; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> from crowdgraph.evaluation import cross_validate
    >>> ax = cg.plot.roc(cross_validate(cg.simulate.crowd(seed=0).graph, cg.MajorityVote()))
    >>> ax.get_xlabel()
    'false positive rate'
    """
    check_kind(result, "CrossValidation", "cross_validate(graph, models)")
    curves = {model: result.roc(model, positive=positive) for model in result.models}
    ax = _square_with_diagonal(ax)
    for (model, curve), colour in zip(curves.items(), colours(result.models), strict=True):
        x, y = curve.false_positive_rate, curve.true_positive_rate
        ax.plot(x, y, color=colour, linewidth=2, label=f"{model}, AUC {curve.auc:.3f}")
        lower, upper = (y - curve.spread).clip(0, 1), (y + curve.spread).clip(0, 1)
        ax.fill_between(x, lower, upper, color=colour, alpha=0.15, linewidth=0)
    ax.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    ax.set_aspect("equal")
    ax.legend(loc="lower right", frameon=False)
    positive_class = next(iter(curves.values())).positive
    title = "ROC, mean over classes" if positive_class is None else f"ROC of class {positive_class}"
    ax.set_title(f"{title}, {quantity(result.n_folds, 'fold')}", loc="left")
    return ax


@plain_text
def reliability(result: CrossValidation, *, ax: Axes | None = None) -> Axes:
    """Plot how often each model's most probable class is the true one, against the probability stated for it.

    A calibrated model lies on the diagonal, an overconfident one below it. The area of a halo is proportional to the
    number of items, of all folds, that had such a probability; lines to bins of fewer than ten items are thin. ECE is
    the expected calibration error, averaged over folds.

    Parameters
    ----------
    result
        A cross validation.
    ax
        The axes to draw on; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> from crowdgraph.evaluation import cross_validate
    >>> ax = cg.plot.reliability(cross_validate(cg.simulate.crowd(seed=0).graph, cg.MajorityVote()))
    >>> ax.get_ylabel()
    'share of items whose class it is'
    """
    check_kind(result, "CrossValidation", "cross_validate(graph, models)")
    ax = _square_with_diagonal(ax)
    for model, colour in zip(result.models, colours(result.models), strict=True):
        curve = result.reliability(model)
        name = f"{model}, ECE {curve.calibration_error:.3f}"
        ax.plot(curve.stated, curve.observed, color=colour, linewidth=0.6, alpha=0.5, marker="o", markersize=3)
        # A bin of few items says little, so the line through it should not catch the eye.
        bold = curve.n_items >= MIN_BOLD_ITEMS
        ax.plot(curve.stated[bold], curve.observed[bold], color=colour, linewidth=1.8, label=name)
        areas = MAX_HALO_AREA * curve.n_items / len(result.items)
        ax.scatter(curve.stated, curve.observed, s=areas, color=colour, alpha=0.3, linewidth=0, clip_on=False)
    ax.set(xlabel="stated probability of the most probable class", ylabel="share of items whose class it is")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    ax.set_aspect("equal")
    ax.legend(loc="best", frameon=False, title="halo area: number of items", alignment="left")
    ax.set_title(f"Reliability on {quantity(len(result.items), 'gold item')}", loc="left")
    return ax


def _square_with_diagonal(ax: Axes | None) -> Axes:
    """Return axes with a dotted diagonal."""
    ax = ensure_axes(ax, width=5.5, height=5.5)
    ax.plot([0, 1], [0, 1], linestyle=":", color=INK, linewidth=1)
    return ax


@plain_text
def campaign(
    campaigns: Campaign | Iterable[Campaign], *, score: CampaignScore = "accuracy", ax: Axes | None = None
) -> Axes:
    """Plot a score of campaigns against the responses they spent, with one line per policy.

    Campaigns of the same policy with different seeds are drawn as the line of their mean, with a band from the lowest
    to the highest.

    Parameters
    ----------
    campaigns
        One or several.
    score
        ``"accuracy"``, ``"log_loss"``, ``"calibration"``, ``"cost"``, ``"n_retired"`` or ``"retired_error"``.
    ax
        The axes to draw on; a new figure if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> crowd = cg.simulate.crowd(n_volunteers=10, n_items=50, n_responses=300, seed=0)
    >>> result = cg.allocation.simulate_campaign(crowd, cg.allocation.RandomPolicy(), budget=150, seed=0)
    >>> cg.plot.campaign(result).get_ylabel()
    'accuracy'
    """
    check_choice("score", score, get_args(CampaignScore))
    results: list[Campaign] = [campaigns] if is_kind(campaigns, "Campaign") else list(campaigns)  # type: ignore[arg-type, list-item]
    if not results:
        raise ParameterError(
            "There are no campaigns to draw; give some, such as [allocation.simulate_campaign(crowd, policy, ...)]."
        )
    for result in results:
        check_kind(result, "Campaign", "allocation.simulate_campaign(crowd, policy, budget=...)")
    ax = ensure_axes(ax)
    policies = list(dict.fromkeys(result.policy for result in results))
    for policy, colour in zip(policies, colours(policies), strict=True):
        spent, curves = _curves([result for result in results if result.policy == policy], score)
        ax.plot(spent, curves.mean(axis=0), color=colour, linewidth=1.8, label=policy)
        if len(curves) > 1:
            ax.fill_between(spent, curves.min(axis=0), curves.max(axis=0), color=colour, alpha=0.15, linewidth=0)
    ax.set_xlabel("responses")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_ylabel(score.replace("_", " "))
    ax.set_title("Campaigns", loc="left")
    ax.legend(frameon=False)
    return ax


def _curves(campaigns: list[Campaign], score: str) -> tuple[Array, Array]:
    """Return all numbers of responses at which one of the campaigns was scored, and the score of each of them there.

    Between two scorings the earlier one holds.
    """
    spent = np.unique(np.concatenate([one.spent for one in campaigns]))
    low, high = max(one.spent[0] for one in campaigns), min(one.spent[-1] for one in campaigns)
    spent = spent[(spent >= low) & (spent <= high)]
    latest = [np.searchsorted(one.spent, spent, side="right") - 1 for one in campaigns]
    return spent, np.array([getattr(one, score)[index] for one, index in zip(campaigns, latest, strict=True)])
