"""Assortativity: whether linked volunteers are alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdgraph.core._arrays import Array, is_null, object_array
from crowdgraph.core._parameters import check_bool, is_number
from crowdgraph.core.result import missing_ids
from crowdgraph.errors import AlignmentError, ParameterError, check_choice
from crowdgraph.messages import quote, with_article

if TYPE_CHECKING:
    from crowdgraph.core.network import VolunteerNetwork

__all__ = ["assortativity"]


def assortativity(network: VolunteerNetwork, attribute: Any, *, nominal: bool | None, weighted: bool) -> float:
    """Return the assortativity of a network by an attribute; see `VolunteerNetwork.assortativity`."""
    from crowdgraph.core.communities import Communities

    check_bool("weighted", weighted)
    if nominal is not None:
        check_bool("nominal", nominal)
    left, right, weights = network.pairs()
    if isinstance(attribute, Communities):
        values = attribute.on(network).assignment
        inside = (values[left] >= 0) & (values[right] >= 0)
        left, right, weights = left[inside], right[inside], weights[inside]
        nominal = True if nominal is None else nominal
    else:
        values = _values(network, attribute)
    shares = weights if weighted else np.ones(len(weights))
    numeric = _is_numeric(values)
    if nominal is False and not numeric:
        raise ParameterError(f"nominal=False needs a number for everybody; got {quote(values.tolist(), most=3)}.")
    if numeric and not nominal:
        return _numeric(values.astype(np.float64), left, right, shares)
    return _nominal(values, left, right, shares)


def _values(network: VolunteerNetwork, attribute: Any) -> Array:
    """Return the attribute of each volunteer, in order of ids."""
    if isinstance(attribute, str):
        check_choice("attribute", attribute, ("degree", "strength"))
        return network.degree if attribute == "degree" else network.strength
    if not isinstance(attribute, Mapping) and hasattr(attribute, "to_dict"):
        attribute = attribute.to_dict()  # a pandas Series, whose index has the ids
    if isinstance(attribute, Mapping):
        values = _by_id(network, attribute)
    elif isinstance(attribute, Iterable):
        values = object_array(attribute.tolist() if isinstance(attribute, np.ndarray) else attribute)
    else:
        raise ParameterError(
            f"attribute={attribute!r} must be values by id, values in order of ids, Communities, 'degree' or "
            f"'strength'; got {with_article(type(attribute))}."
        )
    if len(values) != len(network):
        raise ParameterError(
            f"attribute has {len(values):,} values; expected one for each of {len(network):,} volunteers."
        )
    _check_values(network, values)
    return values


def _by_id(network: VolunteerNetwork, attribute: Mapping[Hashable, Any]) -> Array:
    ids = network.ids.tolist()
    lacking = [volunteer for volunteer in ids if volunteer not in attribute]
    strangers = missing_ids(list(attribute), network.table) if lacking else []
    if lacking:
        also = f", and names strangers ({quote(strangers, most=3)})" if strangers else ""
        raise AlignmentError(
            f"The attribute lacks {len(lacking):,} of the network's volunteers ({quote(lacking, most=3)}){also}.",
            hint="Name all, or take network.subnetwork([...]) of those who have a value.",
        )
    return object_array(attribute[volunteer] for volunteer in ids)


def _check_values(network: VolunteerNetwork, values: Array) -> None:
    without = [volunteer for volunteer, value in zip(network, values.tolist(), strict=True) if is_null(value)]
    if without:
        raise ParameterError(
            f"{len(without):,} volunteers have no value ({quote(without, most=3)}).",
            hint="Take network.subnetwork([...]) of those who have one.",
        )
    if not all(isinstance(value, Hashable) for value in values.tolist()):
        raise ParameterError("The values of an attribute must be numbers, text or other plain values.")


def _is_numeric(values: Array) -> bool:
    return values.dtype != object or all(map(is_number, values.tolist()))


def _nominal(values: Array, left: Array, right: Array, shares: Array) -> float:
    """Return the coefficient of Newman (2003) for categories; NaN without links, or if all ends are alike."""
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(value, len(numbers)) for value in values.tolist()], dtype=np.int64)
    total = shares.sum()
    if not total:
        return float("nan")
    ends = np.bincount(np.concatenate([codes[left], codes[right]]), weights=np.tile(shares, 2)) / (2 * total)
    by_chance = float(ends @ ends)
    alike = float(shares[codes[left] == codes[right]].sum() / total)
    return float("nan") if np.count_nonzero(ends) < 2 else (alike - by_chance) / (1 - by_chance)


def _numeric(values: Array, left: Array, right: Array, shares: Array) -> float:
    """Return Pearson's correlation of the two ends of links; NaN without links, or if all ends are alike."""
    ends = np.concatenate([values[left], values[right]])
    if len(ends) == 0 or ends.min() == ends.max():
        return float("nan")
    mean = np.average(ends, weights=np.tile(shares, 2))
    variance = np.average((ends - mean) ** 2, weights=np.tile(shares, 2))
    covariance = np.average((values[left] - mean) * (values[right] - mean), weights=shares)
    return float(covariance / variance)
