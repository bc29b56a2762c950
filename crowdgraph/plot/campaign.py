"""How right campaigns become as responses come in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from matplotlib.axes import Axes

from crowdgraph.core.campaign import FIGURES, Campaign
from crowdgraph.core.columns import Array
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.plot.axes import check_kind, own_axes
from crowdgraph.plot.palette import colours

__all__ = ["campaign"]


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
    >>> led = cg.allocation.replay.simulate(crowd, cg.allocation.RandomPolicy(), budget=150, seed=0)
    >>> cg.plot.campaign(led).get_ylabel()
    'accuracy'
    """
    check_choice("score", score, tuple(name for name in FIGURES if name not in {"spent", "seconds"}))
    given = [campaigns] if isinstance(campaigns, Campaign) else list(campaigns)
    if not given:
        raise ParameterError(
            "There are no campaigns to draw; give some, such as [replay.simulate(crowd, policy, ...)]."
        )
    for one in given:
        check_kind(one, Campaign, "allocation.replay.simulate(crowd, policy, budget=...)")
    ax = own_axes(ax)
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
