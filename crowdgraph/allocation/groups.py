"""The communities that count when tasks are given out."""

from __future__ import annotations

from crowdgraph.core.communities import Communities
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import NotAnnotatedError, ParameterError

__all__ = ["found_communities"]


def found_communities(graph: CrowdGraph, communities: Communities | str | None, *, network: str) -> Communities:
    """The communities given, carried under a name, or carried last; `network` says in which network they are found."""
    try:
        found = graph.communities(communities) if communities is None or isinstance(communities, str) else communities
    except NotAnnotatedError as error:
        raise NotAnnotatedError(
            f"{error} Find some: graph = graph.annotate(BayesianNMF().detect(networks.{network}(graph)))."
        ) from error
    if not isinstance(found, Communities):
        raise ParameterError(f"communities= takes Communities or the name of some; got a {type(found).__name__}.")
    found.check_fits(graph)
    return found
