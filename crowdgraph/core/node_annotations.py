"""What annotations say about single volunteers and items: the columns that their tables have besides attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from crowdgraph.core.response_annotations import fit_with_confusion
from crowdgraph.core.result import Columns
from crowdgraph.errors import NotAnnotatedError

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

Column = TypeVar("Column")

__all__ = ["distinct_names", "item_columns", "volunteer_columns"]


def volunteer_columns(graph: CrowdGraph) -> Columns:
    """Return the number of responses, the accuracy with its interval, and the communities of each volunteer.

    Each comes from the latest annotation that has it, and is left out if there is none, or if it is not known which
    labels are right.
    """
    columns = {"responses": graph.volunteers.n_responses}
    fit = fit_with_confusion(graph)
    if fit is not None and fit.knows_correct_labels:
        # Confusion is of the graph's volunteers, in their order.
        columns |= {name: column for name, column in fit.accuracy_columns().items() if name != "volunteer"}
    try:
        groups = graph.communities()
    except NotAnnotatedError:
        return columns
    members = groups.on(graph)
    columns["community"] = members.assignment
    return columns | {f"participation[{k}]": share for k, share in enumerate(members.participation.T)}


def item_columns(graph: CrowdGraph) -> Columns:
    """Return the number of responses of each item and, of the latest fit, its class and the probability of each."""
    columns: Columns = {"responses": graph.items.n_responses}
    try:
        fit = graph.fit()
    except NotAnnotatedError:
        return columns
    return {**columns, **{name: column for name, column in fit._columns().items() if name != "item"}}


def distinct_names(columns: Mapping[str, Column], taken: Iterable[str]) -> dict[str, Column]:
    """Return columns whose names are not taken: those that are get an underscore behind.

    Examples
    --------
    >>> list(distinct_names({"team": [1], "class": [2]}, ["team", "team_"]))
    ['team__', 'class']
    """
    names, taken = [], set(taken)
    for name in columns:
        while name in taken:
            name += "_"  # noqa: PLW2901 - until nothing else has it
        names.append(name)
        taken.add(name)
    return dict(zip(names, columns.values(), strict=True))
