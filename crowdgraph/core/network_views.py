"""A network of volunteers as network analysts know it: views of its nodes and of its edges."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal, overload

from crowdgraph.core.result import Columns, Tabular
from crowdgraph.errors import ParameterError

if TYPE_CHECKING:
    from crowdgraph.core.network import VolunteerNetwork

__all__ = ["NetworkEdges", "NetworkNodes"]


class NetworkNodes(Tabular):
    """The volunteers of a network, with `len`, ``in`` and iteration over ids.

    ``network.nodes(data=True)`` gives pairs of an id and a dict with `degree`, `strength` and, where it is known,
    `support`; `to_frame` has the same columns.

    Examples
    --------
    >>> from crowdgraph import VolunteerNetwork
    >>> network = VolunteerNetwork(ids=["anna", "bert"], weights=[[0, 2], [2, 0]], method="by hand")
    >>> list(network.nodes(data=True))
    [('anna', {'degree': 1, 'strength': 2.0}), ('bert', {'degree': 1, 'strength': 2.0})]
    """

    def __init__(self, network: VolunteerNetwork) -> None:
        self._network = network

    def __len__(self) -> int:
        return len(self._network)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._network)

    def __contains__(self, volunteer: object) -> bool:
        return volunteer in self._network

    @overload
    def __call__(self, *, data: Literal[False] = False) -> NetworkNodes: ...

    @overload
    def __call__(self, *, data: Literal[True]) -> Iterator[tuple[Any, dict[str, Any]]]: ...

    def __call__(self, *, data: bool = False) -> NetworkNodes | Iterator[tuple[Any, dict[str, Any]]]:
        """Return the nodes themselves or, with data, an iterator over pairs of id and attributes."""
        return self._with_attributes() if data else self

    def _with_attributes(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        columns = self._attributes()
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return ((name, dict(zip(columns, row, strict=True))) for name, row in zip(self, rows, strict=True))

    def _attributes(self) -> dict[str, Any]:
        network = self._network
        columns = {"degree": network.degree, "strength": network.strength}
        return columns if network.support is None else {**columns, "support": network.support}

    def _columns(self) -> Columns:
        return {"volunteer": self._network.ids, **self._attributes()}

    def __repr__(self) -> str:
        return f"Nodes: {len(self):,} volunteers"


class NetworkEdges(Tabular):
    """The linked pairs of a network, each once, with `len`, ``in`` and iteration over pairs of ids.

    ``network.edges(data=True)`` gives both ids and a dict with the `weight` and, of validated links, the `p_value`;
    ``network.edges(data="weight")`` both ids and the weight. `to_frame` has the same as columns.

    Examples
    --------
    >>> from crowdgraph import VolunteerNetwork
    >>> network = VolunteerNetwork(ids=["anna", "bert"], weights=[[0, 2], [2, 0]], method="by hand")
    >>> list(network.edges(data=True))
    [('anna', 'bert', {'weight': 2.0})]
    """

    def __init__(self, network: VolunteerNetwork) -> None:
        self._network = network

    def __len__(self) -> int:
        return self._network.n_edges

    def __contains__(self, pair: object) -> bool:
        return isinstance(pair, tuple) and len(pair) == 2 and self._network.has_edge(*pair)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return ((left, right) for left, right, _ in self._triples())

    @overload
    def __call__(self, *, data: Literal[False] = False) -> NetworkEdges: ...

    @overload
    def __call__(self, *, data: Literal[True]) -> Iterator[tuple[Any, Any, dict[str, float]]]: ...

    @overload
    def __call__(self, *, data: Literal["weight"]) -> Iterator[tuple[Any, Any, float]]: ...

    def __call__(self, *, data: bool | Literal["weight"] = False) -> NetworkEdges | Iterator[tuple[Any, Any, Any]]:
        """Return the edges themselves or, with data, an iterator over triples of two ids and the data."""
        if data is False:
            return self
        if data is True:
            return self._with_attributes()
        if data != "weight":
            raise ParameterError(f"data={data!r}: the edges of a network have a 'weight', or all data with data=True.")
        return self._triples()

    def _with_attributes(self) -> Iterator[tuple[Any, Any, dict[str, float]]]:
        attributes = self._network.pair_attributes()
        rows = zip(*(column.tolist() for column in attributes.values()), strict=True) if attributes else repeat(())
        for (left, right, weight), values in zip(self._triples(), rows, strict=False):
            yield left, right, {"weight": weight, **dict(zip(attributes, values, strict=True))}

    def _triples(self) -> Iterator[tuple[Hashable, Hashable, float]]:
        left, right, weights = self._network.pairs()
        ids = self._network.ids
        return zip(ids[left].tolist(), ids[right].tolist(), weights.tolist(), strict=True)

    def _columns(self) -> Columns:
        return self._network._columns()

    def __repr__(self) -> str:
        return f"Edges: {len(self):,} linked pairs"
