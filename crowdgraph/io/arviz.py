"""Draws from the posterior for ArviZ."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from crowdgraph.core.columns import Array, object_array, to_list
from crowdgraph.core.fit import ModelFit
from crowdgraph.errors import NotAnnotatedError
from crowdgraph.io.columns import required

__all__ = ["fit_to_arviz"]

# Not "label": ArviZ gives that name to a dimension of its own when it makes tables.
LABEL = "response_label"
DIMS = {"class_probs": ["class"], "item_class": ["item"], "confusion": ["volunteer", "class", LABEL]}


def fit_to_arviz(fit: ModelFit) -> Any:
    """The draws of a fit as a tree of xarray datasets; see `ModelFit.to_arviz`."""
    draws = fit.draws
    if draws is None:
        raise NotAnnotatedError(f"The model {fit.model!r} draws nothing from the posterior; fit GibbsIBCC().")
    posterior = {"class_probs": draws.class_probs, "item_class": draws.item_classes}
    if len(draws.volunteers):
        posterior["confusion"] = draws.confusion
    return required("arviz_base").from_dict(
        {"posterior": posterior, "sample_stats": {"lp": draws.log_joint}},
        dims={name: DIMS[name] for name in posterior},
        coords={
            "draw": np.arange(draws.first, draws.first + len(draws)),
            "class": _coordinate(draws.classes),
            LABEL: _coordinate(draws.labels),
            "item": _coordinate(to_list(draws.items)),
            "volunteer": _coordinate(to_list(draws.volunteers)),
        },
    )


def _coordinate(values: Iterable[Hashable]) -> Array:
    """Numbers and text as they are; anything else as text, since xarray would take tuples for several levels."""
    return object_array(value if isinstance(value, str | int | float) else str(value) for value in values)
