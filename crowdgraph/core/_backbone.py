"""Which links of a network are more than chance explains; see `VolunteerNetwork.backbone`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_number
from crowdgraph.core._sparse import lock_csr, locked_csr
from crowdgraph.core.changes import benjamini_hochberg
from crowdgraph.errors import ParameterError, ResultError, check_choice
from crowdgraph.messages import quote

if TYPE_CHECKING:
    from crowdgraph.core.network import VolunteerNetwork

BackboneMethod = Literal["configuration", "hypergeometric", "disparity"]


def backbone(network: VolunteerNetwork, *, level: float, method: BackboneMethod) -> VolunteerNetwork:
    """Return the network of those links that are more than chance explains; see `VolunteerNetwork.backbone`."""
    check_level("level", level)
    check_choice("method", method, get_args(BackboneMethod))
    if method == "disparity":
        model, p_values = None, _disparity(network, level)
    else:
        _check_model(network, method)
        model = network.model.validated(network.ids, level=level, method=method)  # type: ignore[union-attr]
        p_values = model.p_values()
    return replace(
        network,
        weights=_masked(network.weights, p_values),
        params={**network.params, "backbone": {"level": level, "method": method}},
        p_values=p_values,
        model=model,
    )


def check_level(name: str, level: Any) -> None:
    """Raise unless a false-discovery rate is a number above 0 and below 1."""
    check_number(
        name, level, valid=lambda value: 0 < value < 1, expected="be a number above 0 and below 1, such as 0.01"
    )


def _check_model(network: VolunteerNetwork, method: str) -> None:
    """Raise unless the network's model can test links by a method."""
    known = () if network.model is None else network.model.link_tests
    if method not in known:
        possible = (*known, "disparity")
        raise ParameterError(
            f"method={method!r} counts the items that two volunteers have in common, which the network "
            f"{network.method!r} does not know; possible here: {quote(possible)}. Networks that "
            "networks.task_cooccurrence builds know them; files do not keep that."
        )


def _disparity(network: VolunteerNetwork, level: float) -> Any:
    """Return the p-values of links that are heavy for one of their ends."""
    from crowdgraph.kernels.link_tests import disparity_p_values

    left, right, weights = network.pairs()
    tested = disparity_p_values(weights, left, right, len(network))
    return significant_links(left, right, tested, len(network), level=level, n_tests=len(tested))


def significant_links(
    left: Array, right: Array, p_values: Array, n_volunteers: int, *, level: float, n_tests: int
) -> Any:
    """Return adjusted p-values of the pairs where they are at most `level`, as a sparse symmetric array."""
    from scipy.sparse import csr_array

    adjusted = benjamini_hochberg(p_values, n_tests=n_tests)
    keep = adjusted <= level
    rows, columns, values = left[keep], right[keep], adjusted[keep]
    ends = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    return csr_array((np.concatenate([values, values]), ends), shape=(n_volunteers, n_volunteers))


def _masked(weights: Any, links: Any) -> Any:
    """Return the weights of some links, as a sparse array."""
    from scipy.sparse import csr_array

    return csr_array(links.astype(bool).multiply(csr_array(weights)))


def checked_p_values(p_values: Any, weights: Any) -> Any:
    """Return read-only p-values of the links; what is said of pairs without a link is left out."""
    from scipy.sparse import csr_array, issparse

    sparse = p_values if issparse(p_values) else csr_array(np.atleast_2d(np.asarray(p_values, dtype=np.float64)))
    if sparse.shape != weights.shape:
        raise ResultError(f"p_values have shape {sparse.shape}; expected that of the weights, {weights.shape}.")
    matrix = locked_csr("p_values", sparse, shape=weights.shape)
    if not ((matrix.data >= 0) & (matrix.data <= 1)).all():
        raise ResultError("p_values must be numbers above 0 and at most 1.")
    if (matrix != matrix.T).nnz:
        raise ResultError("p_values must be symmetric.")
    linked = csr_array(weights) > 0
    of_links = csr_array(matrix.multiply(linked))
    of_links.eliminate_zeros()
    if of_links.nnz < linked.nnz:
        raise ResultError(
            f"p_values lack {linked.nnz - of_links.nnz:,} of {linked.nnz:,} links; every link needs one above 0."
        )
    of_links.sum_duplicates()
    lock_csr(of_links)
    return of_links
