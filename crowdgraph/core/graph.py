"""CrowdGraph, the graph of volunteers, items and responses that everything else reads and annotates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, wraps
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, TypeVar, get_args

import numpy as np

from crowdgraph.core._arrays import Array, FrozenMapping, Grouping, grouped, same_values, value_tuple
from crowdgraph.core._html import graph_html
from crowdgraph.core._other_names import AdvisesOnClassNames, AdvisesOnNames
from crowdgraph.core._parameters import as_list, check_instance, check_integer, is_integer
from crowdgraph.core._text import class_sentence, graph_text
from crowdgraph.core.answers import Answers
from crowdgraph.core.clock import Length, Moment, snapshot_counts
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph_views import GraphDegrees, GraphEdges, GraphNodes, NodeNames
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.nodes import Items, Responses, Volunteers
from crowdgraph.core.result import Result, Tabular, to_frame
from crowdgraph.core.soft_answers import is_label_column, label_probs_of
from crowdgraph.core.tables import NodeTable, ResponseTable
from crowdgraph.errors import (
    ColumnError,
    CrowdGraphWarning,
    GoldError,
    InputError,
    NotAnnotatedError,
    ParameterError,
    check_choice,
    warn,
)
from crowdgraph.messages import Hint, quote, suggestion, with_article

if TYPE_CHECKING:
    from crowdgraph.diagnosis.findings import Findings
    from crowdgraph.io.tensors import ResponseTensors

__all__ = ["CrowdGraph"]

# A column, columns that are named like their labels, or a mapping from labels to columns.
Probability = str | Sequence[str] | Mapping[Hashable, str]
Duplicates = Literal["all", "first", "last", "error"]
Missing = Literal["error", "drop", "keep"]
History = Literal["latest", "full"]
SaveFormat = Literal["file", "columns"]
TableName = Literal["responses", "volunteers", "items", "gold"]
ResultType = TypeVar("ResultType", bound=Result)
Arguments = ParamSpec("Arguments")

FIT_A_MODEL = Hint(
    "Fit a model with confusion matrices: graph = graph.annotate(cg.IBCC().fit(graph)), or cg.DynIBCC() where "
    "volunteers change.",
    cli="Use a model with confusion matrices: --model ibcc, or --model dynibcc where volunteers change.",
)
# How to make what a graph does not carry.
MAKE = {
    "confusion matrices": FIT_A_MODEL,
    "model's fit": Hint(
        "Fit a model first: graph = graph.annotate(cg.IBCC().fit(graph)).", cli="Name a model: --model ibcc."
    ),
    "network of volunteers": "Build one first: graph = graph.annotate(cg.networks.pi_similarity(graph)).",
    "communities": "Find some first: graph = graph.annotate(cg.BayesianNMF().detect(network)).",
    "communities over time": "Track some first: graph = graph.annotate(cg.dynamics.over_time(graph, counts=[...])).",
}


def _of_finished_tables(init: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Let a constructor of finished tables say what to call with a table of responses."""

    @wraps(init)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        first = args[1] if len(args) > 1 else kwargs.get("volunteers")
        if not isinstance(first, NodeTable):
            raise InputError(
                "CrowdGraph(...) takes finished tables of nodes and responses; got "
                f"{'nothing' if first is None else with_article(type(first))}.",
                hint="Build a graph from a table of responses with cg.CrowdGraph.from_responses(table).",
            )
        init(*args, **kwargs)

    return checked


class CrowdGraph(AdvisesOnNames, metaclass=AdvisesOnClassNames):
    """Who said what about which item and when: an immutable graph of volunteers, items and responses.

    Build one with `from_responses`, `crowdgraph.read_csv` or another reader; this constructor takes finished tables.

    Parameters
    ----------
    volunteers, items
        The nodes.
    responses
        The responses, sorted by time, with codes that point into the node tables and `labels`.
    classes, labels
        What items can be and what volunteers can say; the two may differ.
    gold
        The known classes; none are known if left out.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses({
    ...     "volunteer": ["anna", "bert", "anna"], "item": ["x", "x", "y"], "label": ["yes", "no", "no"],
    ...     "time": ["2026-03-01", "2026-03-02", "2026-03-05"]})
    >>> graph
    CrowdGraph: 2 volunteers, 2 items, 3 responses
      labels      no 67%, yes 33%
      classes     no, yes; no gold
      time        2026-03-01 00:00:00 to 2026-03-05 00:00:00
      activity    median 1.5 (most 2) a volunteer, median 1.5 (most 2) an item
    >>> len(graph.before("2026-03-02").responses)
    1
    """

    _volunteers: NodeTable
    _items: NodeTable
    _responses: ResponseTable
    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]
    gold: Gold
    annotations: Mapping[str, Result]

    @_of_finished_tables
    def __init__(
        self,
        volunteers: NodeTable,
        items: NodeTable,
        responses: ResponseTable,
        *,
        classes: Sequence[Hashable],
        labels: Sequence[Hashable],
        gold: Gold | None = None,
    ) -> None:
        class_names = value_tuple(classes, what="classes")
        label_names = value_tuple(labels, what="labels")
        for name, lowest, size in (
            ("volunteer", 0, len(volunteers)),
            ("item", 0, len(items)),
            ("label", -1, len(label_names)),
        ):
            codes = getattr(responses, name)
            if len(codes) and not lowest <= codes.min() <= codes.max() < size:
                raise ColumnError(
                    f"Codes in {name!r} run from {codes.min()} to {codes.max()}; expected {lowest} to {size - 1}."
                )
        if gold is not None and not (gold.classes == class_names and same_values(gold.items_table.ids, items.ids)):
            raise GoldError("The gold belongs to other items or classes than this graph's.")
        known = Gold.unknown(items, class_names) if gold is None else gold
        self._fill(volunteers, items, responses, class_names, label_names, known, {})

    def _fill(
        self,
        volunteers: NodeTable,
        items: NodeTable,
        responses: ResponseTable,
        classes: tuple[Hashable, ...],
        labels: tuple[Hashable, ...],
        gold: Gold,
        annotations: Mapping[str, Result],
    ) -> None:
        self.__dict__.update(
            _volunteers=volunteers,
            _items=items,
            _responses=responses,
            classes=classes,
            labels=labels,
            gold=gold,
            annotations=FrozenMapping(annotations),
        )

    def _replace(self, responses: ResponseTable, gold: Gold, annotations: Mapping[str, Result]) -> CrowdGraph:
        """Return a graph of the same nodes without checking again; tables are shared."""
        graph = object.__new__(CrowdGraph)
        graph._fill(self._volunteers, self._items, responses, gold.classes, self.labels, gold, annotations)
        return graph

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"A CrowdGraph is immutable, so {name!r} cannot be set; its methods return new graphs.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"A CrowdGraph is immutable, so {name!r} cannot be deleted.")

    def __repr__(self) -> str:
        return graph_text(self)

    def _repr_html_(self) -> str:
        return graph_html(self)

    # Parts

    @property
    def volunteers(self) -> Volunteers:
        """The volunteers; ``graph.volunteers["anna"]`` is one of them."""
        return Volunteers(self, self._volunteers)

    @property
    def items(self) -> Items:
        """The items; ``graph.items["x17"]`` is one of them."""
        return Items(self, self._items)

    @property
    def responses(self) -> Responses:
        """The responses, in order of time."""
        return Responses(self, self._responses)

    @cached_property
    def answers(self) -> Answers:
        """The responses that are answers; items that were shown but not answered are left out."""
        return Answers(self._responses, n_volunteers=len(self._volunteers), n_items=len(self._items))

    @cached_property
    def label_probs(self) -> Array | None:
        """The probability of each label in each response, of shape (R, L); None where all answers are certain.

        Soft answers are read with `probability` of `from_responses`. Certain answers have a one, responses without a
        label zeros. They are kept as attributes of the responses, such as ``probability[yes]``.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.CrowdGraph.from_responses(
        ...     {"volunteer": ["net", "anna"], "item": ["x", "x"], "label": ["yes", "no"], "sure": [0.8, None]},
        ...     probability="sure")
        >>> graph.label_probs
        array([[0.2, 0.8],
               [1. , 0. ]])
        """
        return label_probs_of(self._responses, self.labels)

    def certain(self) -> CrowdGraph:
        """Return the graph with the most probable label of each soft answer as a certain answer, without annotations.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.CrowdGraph.from_responses(
        ...     {"volunteer": ["net"], "item": ["x"], "yes": [0.8], "no": [0.2]}, probability=["no", "yes"])
        >>> graph.certain().label_probs is None
        True
        """
        table = self._responses
        attributes = {name: column for name, column in table.attributes.items() if not is_label_column(name)}
        responses = ResponseTable(table.volunteer, table.item, table.label, table.time, table.clock, attributes)
        return self._replace(responses, self.gold, {})

    # As a network

    @property
    def nodes(self) -> GraphNodes:
        """All nodes by name: ``graph.nodes["anna"]`` is a volunteer, ``graph.nodes["x17"]`` an item.

        A node's name is its id, or ``("volunteer", id)`` and ``("item", id)`` where a volunteer and an item share an
        id; such pairs are always understood.
        """
        return GraphNodes(self)

    @property
    def edges(self) -> GraphEdges:
        """The responses as edges: ``graph.edges(data=True)`` has label, time, confusion at that moment and surprise."""
        return GraphEdges(self)

    @property
    def degree(self) -> GraphDegrees:
        """The number of responses of each node: ``graph.degree["anna"]``, or all as ``dict(graph.degree)``."""
        return GraphDegrees(self)

    def neighbors(self, name: Hashable) -> list[Any]:
        """Return the names of a volunteer's items or of an item's volunteers, each once, in order of first response.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.CrowdGraph.from_responses({"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": [1, 3]})
        >>> graph.neighbors("x")
        ['anna', 'bert']
        """
        node = self.nodes[name]
        return self._names.of("item" if node.kind == "volunteer" else "volunteer", node._neighbor_codes())

    def has_edge(self, volunteer: Hashable, item: Hashable) -> bool:
        """Return whether a volunteer has a response to an item; False, too, if there is no such node.

        As edges have no direction, the item may come first.
        """
        names = self._names
        for one, other in ((volunteer, item), (item, volunteer)):
            codes = names.find_as("volunteer", one), names.find_as("item", other)
            if codes[0] is not None and codes[1] is not None:
                return self._have_response(codes[0], codes[1])
        return False

    def _have_response(self, volunteer: int, item: int) -> bool:
        rows, others = self._rows_by_volunteer.rows(volunteer), self._rows_by_item.rows(item)
        if len(rows) <= len(others):
            return bool((self._responses.item[rows] == item).any())
        return bool((self._responses.volunteer[others] == volunteer).any())

    @property
    def n_volunteers(self) -> int:
        """The number of volunteers."""
        return len(self._volunteers)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self._items)

    @property
    def n_responses(self) -> int:
        """The number of responses, with those that have no label."""
        return len(self._responses)

    def number_of_nodes(self) -> int:
        """Return the number of volunteers and items, which is also ``len(graph)``."""
        return len(self)

    def number_of_edges(self) -> int:
        """Return the number of responses."""
        return self.n_responses

    def __len__(self) -> int:
        return self.n_volunteers + self.n_items

    def __bool__(self) -> bool:
        # A graph without nodes is a graph, too: only `None` stands for no graph.
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    @cached_property
    def _names(self) -> NodeNames:
        return NodeNames(self._volunteers, self._items)

    # Build

    @classmethod
    def from_responses(
        cls,
        frame: Any,
        *,
        volunteer: str = "volunteer",
        item: str = "item",
        label: str = "label",
        time: str = "time",
        probability: Probability | None = None,
        log_probability: Probability | None = None,
        gold: Any = None,
        classes: Iterable[Hashable] | None = None,
        labels: Iterable[Hashable] | None = None,
        duplicates: Duplicates = "all",
        missing: Missing = "error",
        volunteers: Any = None,
        items: Any = None,
    ) -> CrowdGraph:
        """Build a graph from a table with one row for each response.

        Parameters
        ----------
        frame
            A pandas, polars or pyarrow table, a DuckDB relation or anything else that narwhals understands, or a dict
            of columns. Columns beyond the four named below become attributes of the responses.
        volunteer, item, label
            The names of the columns that say who answered which item with what. A table with crowd-kit's ``worker`` and
            ``task`` instead of ``volunteer`` and ``item`` is read as it is, unless other names are given.
        time
            The name of the column of times: integers, floats, datetimes with or without zone, or ISO strings. Without
            such a column, the order of the rows is the time. Rows are sorted by time; rows of equal time keep their
            order. Datetimes of several zones, and text with offsets, are converted to UTC.
        probability
            For soft answers, such as those of a classifier or an LLM: the column of the confidence in the label, whose
            rest the other labels share equally; or of all probabilities of an answer, as JSON or mappings such as
            ``{"yes": 0.9, "no": 0.1}``. Or the columns of the labels, each named like its label; or a mapping from
            labels to columns, where labels without one share the rest equally. The probabilities of an answer sum to
            one (within 0.005, and are scaled to it); where all are null, the answer is certain. With probabilities of
            the labels no column of labels is needed: the label is the most probable one. A table with columns such as
            ``probability[yes]``, as `to_pandas` writes them, needs no option.
        log_probability
            The same as logarithms, such as those of an LLM.
        gold
            The known classes: a mapping from item to class (or to a mapping from class to probability), a table with
            the columns `item` and `label` (named as in `frame`), a table with a column of probabilities for each class,
            or the path of a CSV or Parquet file with such a table.
        classes
            What items can be. If left out: the labels or, if gold names classes that are not labels, those of gold.
        labels
            What volunteers can say. If left out: the labels that occur, sorted.
        duplicates
            What to do where a volunteer answered an item more than once: keep ``"all"`` answers, the ``"first"`` or
            the ``"last"``, or raise an ``"error"``.
        missing
            What to do with a null id, label or time: raise an ``"error"``, ``"drop"`` the rows with a warning, or
            ``"keep"`` null labels as items that were shown but not answered.
        volunteers, items
            Tables with a column of ids (named as in `frame`) and columns of attributes; nodes named here belong to
            the graph even if they have no response.

        Returns
        -------
        CrowdGraph
            Volunteers and items are coded in the order of `volunteers` and `items`, then of their first response.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.CrowdGraph.from_responses(
        ...     {"user": ["anna", "bert"], "item": [17, 17], "label": [-1, 3]}, volunteer="user",
        ...     classes=["not supernova", "supernova"], gold={17: "supernova"})
        >>> graph.items[17].gold
        'supernova'
        """
        from crowdgraph.io.frames import graph_from_frame

        return graph_from_frame(
            frame,
            volunteer=volunteer,
            item=item,
            label=label,
            time=time,
            probability=probability,
            log_probability=log_probability,
            gold=gold,
            classes=classes,
            labels=labels,
            duplicates=duplicates,
            missing=missing,
            volunteers=volunteers,
            items=items,
        )

    @classmethod
    def from_networkx(cls, network: Any, *, gold: Any = None, duplicates: Duplicates = "all") -> CrowdGraph:
        """Build a graph from a networkx graph whose edges are responses.

        A graph from `to_networkx` comes back unchanged, annotations included. If it was edited, annotations that do not
        match its nodes any more are left out, with a warning that names them. A graph that networkx has read from a
        file of `to_graphml` comes back, too, except that networkx reads empty text as missing.

        Parameters
        ----------
        network
            Nodes need an attribute `kind` that is ``"volunteer"`` or ``"item"``, or networkx's `bipartite`, 0 for
            volunteers and 1 for items. Edges need `label` and may have `time`; in a directed graph they lead from
            volunteers to items. Items may have `gold`. All other attributes are preserved.
        gold, duplicates
            As in `from_responses`. With other gold than that of the nodes, annotations are left out.

        Examples
        --------
        >>> import crowdgraph as cg, networkx as nx
        >>> network = nx.Graph()
        >>> network.add_node("anna", bipartite=0)
        >>> network.add_node("x", bipartite=1, gold="yes")
        >>> network.add_edge("anna", "x", label="yes")
        >>> cg.CrowdGraph.from_networkx(network).responses[0]
        Response(volunteer='anna', item='x', label='yes', time=0, attributes={})
        """
        from crowdgraph.io.networkx import graph_from_networkx

        return graph_from_networkx(network, gold=gold, duplicates=duplicates)

    @classmethod
    def from_igraph(cls, graph: Any, *, gold: Any = None, duplicates: Duplicates = "all") -> CrowdGraph:
        """Build a graph from an igraph graph whose edges are responses.

        A graph from `to_igraph` comes back unchanged, annotations included; otherwise as `from_networkx`.

        Parameters
        ----------
        graph
            Vertices need an attribute `kind` that is ``"volunteer"`` or ``"item"``, or igraph's `type`, False for
            volunteers and True for items. Their ids are the attribute `id` or `name`, or their numbers. Edges need
            `label` and may have `time`.
        gold, duplicates
            As in `from_networkx`.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.simulate.crowd(seed=0).graph
        >>> cg.CrowdGraph.from_igraph(graph.to_igraph()).equals(graph)
        True
        """
        from crowdgraph.io.igraph import graph_from_igraph

        return graph_from_igraph(graph, gold=gold, duplicates=duplicates)

    def extend(
        self,
        more: Any,
        *,
        volunteer: str = "volunteer",
        item: str = "item",
        label: str = "label",
        time: str = "time",
        probability: Probability | None = None,
        log_probability: Probability | None = None,
        gold: Any = None,
        duplicates: Duplicates = "all",
        missing: Missing = "error",
        volunteers: Any = None,
        items: Any = None,
        new_labels: bool = False,
    ) -> CrowdGraph:
        """Return the graph with more responses, such as those of another day; this graph does not change.

        Volunteers and items keep their codes; new ones come after them, in order of their first response. Responses
        are sorted by time, after old ones of the same time; a `LateResponsesWarning` says how many are earlier than the
        last old one. Without times, the order of rows counts on. Annotations are left out, since they are about fewer
        responses: renew a fit with ``model.update(fit, graph)``.

        Parameters
        ----------
        more
            A table, in any form that `from_responses` takes, or another graph.
        volunteer, item, label, time, probability, log_probability, missing
            As in `from_responses`, for a table.
        gold
            Known classes of old and new items, as in `from_responses`; gold that contradicts the graph's is an error.
            Gold that named an item before anybody answered it was left out then: give it again.
        duplicates
            As in `from_responses`, for old and new responses together.
        volunteers, items
            As in `from_responses`, for a table. What they say about old nodes replaces what the graph says.
        new_labels
            Whether there may be labels that the graph does not have; they come after the others. Fits of fewer labels
            cannot be updated.

        Raises
        ------
        TimeError
            If the times are of another kind. Times of another zone are converted to the graph's; times with and
            without a zone cannot be compared.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.CrowdGraph.from_responses(
        ...     {"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": ["yes", "no"]})
        >>> graph = graph.extend({"volunteer": ["cleo", "anna"], "item": ["x", "y"], "label": ["yes", "yes"]})
        >>> list(graph.volunteers), list(graph.items), graph.n_responses
        (['anna', 'bert', 'cleo'], ['x', 'y'], 4)
        """
        from crowdgraph.io.extend import extend_graph

        return extend_graph(
            self,
            more,
            volunteer=volunteer,
            item=item,
            label=label,
            time=time,
            probability=probability,
            log_probability=log_probability,
            gold=gold,
            duplicates=duplicates,
            missing=missing,
            volunteers=volunteers,
            items=items,
            new_labels=new_labels,
        )

    # Views

    def before(self, moment: Moment) -> CrowdGraph:
        """Return what could be known before a moment: the graph with the responses of earlier times only.

        Nodes, codes and gold stay the same and columns share memory. Annotations are left out, since they may have seen
        the future. For what we now believe about a moment, use ``graph.confusion().at(moment)``.
        """
        return self._rows(0, self._count_until(moment))

    def first(self, n: int) -> CrowdGraph:
        """Return what could be known after the first `n` responses; otherwise as `before`."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 0 <= n <= len(self.responses):
            raise ParameterError(f"first({n!r}): expected a whole number from 0 to {len(self.responses):,}.")
        return self._rows(0, int(n))

    def window(self, start: Moment | None, stop: Moment | None) -> CrowdGraph:
        """Return the graph with the responses from `start` up to, but not including, `stop`.

        None leaves an end open. Otherwise as `before`.
        """
        first = 0 if start is None else self._count_until(start)
        end = len(self._responses) if stop is None else self._count_until(stop)
        if end < first:
            raise ParameterError(f"window({start!r}, {stop!r}): the start is later than the stop; swap them.")
        return self._rows(first, end)

    def snapshots(
        self,
        n: int | None = None,
        *,
        times: Iterable[Moment] | None = None,
        counts: Iterable[int] | None = None,
        every: Length | None = None,
    ) -> Iterator[CrowdGraph]:
        """Return an iterator over views of the past, which grow up to all responses; give one of the arguments.

        Parameters
        ----------
        n
            Views at `n` equal steps of the number of responses.
        times
            The views `before` each of these moments.
        counts
            The `first` so many responses, for each of these counts.
        every
            A view after each such length of time since the first response: a timedelta or text such as ``"30D"`` where
            times are datetimes (in weeks W, days D, hours h, minutes min or seconds s), a number otherwise.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.simulate.crowd(seed=0).graph
        >>> [len(view.responses) for view in graph.snapshots(counts=[1000, 2000])]
        [1000, 2000]
        >>> [view.n_responses for view in graph.snapshots(4)]
        [1250, 2500, 3750, 5000]
        """
        if sum(argument is not None for argument in (n, times, counts, every)) != 1:
            raise ParameterError(
                "snapshots() needs either a number of equal parts, times=[...], counts=[...] or every=...."
            )
        if n is not None:
            stops = self._equal_parts(n)
        elif every is not None:
            stops = snapshot_counts("every", every, self._responses.clock, self._responses.time)
        elif counts is not None:
            stops = [len(self.first(count).responses) for count in as_list(counts, "counts")]
        else:
            stops = [self._count_until(time) for time in as_list(times, "times")]
        if stops != sorted(stops):
            raise ParameterError("The times or counts of snapshots must increase; sort them.")
        return (self._rows(0, stop) for stop in stops)

    def _equal_parts(self, n: int) -> list[int]:
        if not is_integer(n) or n < 1:
            raise ParameterError(
                f"snapshots({n!r}): expected a whole number of parts from 1 up.",
                hint=f"For a length of time, write snapshots(every={n!r}).",
            )
        return [self.n_responses * part // n for part in range(1, n + 1)]

    def subgraph(
        self,
        nodes: Iterable[Hashable] | None = None,
        *,
        volunteers: Iterable[Hashable] | None = None,
        items: Iterable[Hashable] | None = None,
    ) -> CrowdGraph:
        """Return the graph of some volunteers, some items and the responses between them.

        `nodes` are names of both kinds, as of ``graph.nodes``. If only volunteers (or only items) are named, by
        `volunteers` (or `items`), the items (or volunteers) that still have a response remain. Nodes stay in order,
        with new codes; annotations are left out.
        """
        if nodes is not None:
            if volunteers is not None or items is not None:
                raise ParameterError("subgraph() takes either nodes of both kinds, or volunteers= and items=.")
            pairs = [self._names.find(name) for name in as_list(nodes, "nodes")]
            volunteers, items = (
                [table.ids[code] for kind, code in pairs if kind == table.kind]
                for table in (self._volunteers, self._items)
            )
        responses = self._responses
        is_selected = np.ones(len(responses), dtype=bool)
        node_masks = {}
        for kind, ids in (("volunteer", volunteers), ("item", items)):
            if ids is not None:
                table = self._table(kind)
                node_masks[kind] = np.zeros(len(table), dtype=bool)
                node_masks[kind][table.codes(ids)] = True
                is_selected &= node_masks[kind][getattr(responses, kind)]
        return self._induced(is_selected, node_masks)

    def select_experienced(self, *, min_per_class: int = 50, min_experienced: int = 10) -> CrowdGraph:
        """Return the subgraph that the paper studies: items that experienced volunteers have answered.

        Experienced volunteers have answered at least `min_per_class` different gold items of each class. The subgraph
        has the items that at least `min_experienced` of them answered, and all volunteers who answered those items.
        """
        check_integer("min_per_class", min_per_class, minimum=0)
        check_integer("min_experienced", min_experienced, minimum=0)
        if (np.bincount(self.gold.codes + 1, minlength=len(self.classes) + 1)[1:] == 0).any() and min_per_class:
            raise ParameterError(
                f"Experienced volunteers have answered gold items of every class, but here: {class_sentence(self)}.",
                hint=Hint(
                    "Add gold, or leave out classes that do not occur with graph.with_gold(graph.gold, classes=[...]).",
                    cli="Add gold, or leave out classes that do not occur with --class NAME.",
                ),
            )
        answers, n_classes, n_volunteers = self.answers.first, len(self.classes), len(self.volunteers)
        true_class = self.gold.codes[answers.item]
        on_gold = true_class >= 0
        pairs = answers.volunteer[on_gold].astype(np.int64) * n_classes + true_class[on_gold]
        examples = np.bincount(pairs, minlength=n_volunteers * n_classes).reshape(n_volunteers, n_classes)
        experienced = np.asarray((examples >= min_per_class).all(axis=1))
        is_selected = answers.where(experienced[answers.volunteer]).n_by_item >= min_experienced
        if not is_selected.any():
            raise ParameterError(
                f"No item was answered by {min_experienced} volunteers with {min_per_class} gold examples of each "
                f"class ({np.count_nonzero(experienced):,} volunteers have that many); lower one of the two."
            )
        return self._induced(is_selected[self._responses.item], {"item": is_selected})

    def replace(self, *, responses: ResponseTable | None = None, gold: Gold | None = None) -> CrowdGraph:
        """Return a graph of the same nodes with other responses or gold, and without annotations.

        Nodes, their codes and the labels stay, so the codes of other responses must be theirs. Without arguments, only
        the annotations are left out. `with_gold` takes gold in other forms.
        """
        return self._replace(
            self._responses if responses is None else responses, self.gold if gold is None else gold, {}
        )

    def with_gold(self, gold: Any, *, classes: Iterable[Hashable] | None = None) -> CrowdGraph:
        """Return the graph with other gold, in any form that `from_responses` takes, or with none for ``gold=None``.

        Annotations are left out, since they may have seen the old gold.
        """
        from crowdgraph.io._gold import read_gold

        names = None if self.classes == self.labels else self.classes
        if classes is not None:
            names = value_tuple(classes, what="classes")
        return self.replace(gold=read_gold(gold, items=self._items, labels=self.labels, classes=names))

    # Annotations

    def annotate(self, result: Result, *, name: str | None = None) -> CrowdGraph:
        """Return a new graph that also carries a result; this graph does not change.

        A result of the same name is replaced. Columns are shared, so this takes microseconds. A result for other
        volunteers, items, classes or labels raises an error.

        Parameters
        ----------
        result
            A `ModelFit`, `ConfusionTrack`, `VolunteerNetwork`, `Communities` or `CommunityTrack`.
        name
            The name under which the graph carries it; the result's own (its model or method) if left out.
        """
        if not isinstance(result, Result):
            raise ParameterError(
                "A graph is annotated with a result such as a ModelFit or Communities; got "
                f"{with_article(type(result))}."
            )
        result.check_matches(self)
        key = result.name if name is None else name
        if not isinstance(key, str):
            raise ParameterError(f"The name of an annotation is text; got {key!r}.")
        others = {other: value for other, value in self.annotations.items() if other != key}
        return self._replace(self._responses, self.gold, {**others, key: result})

    def fit(self, name: str | None = None) -> ModelFit:
        """Return the fit that the graph carries under a name, or the latest fit."""
        return self._annotation(name, ModelFit, "model's fit")

    def confusion(self, name: str | None = None) -> ConfusionTrack:
        """Return the volunteers' confusion over time, from the annotation of a name or the latest that has one."""
        for key, result in reversed(list(self.annotations.items())):
            track = result.confusion if isinstance(result, ModelFit) else result
            if name in (None, key) and isinstance(track, ConfusionTrack):
                return track
        raise self._not_annotated(name, "confusion matrices")

    def item_probs(self, name: str | None = None) -> Array:
        """Return the probability of each class for each item, of shape (N, J), from the fit of a name or the latest."""
        return self.fit(name).item_probs

    def network(self, name: str | None = None) -> VolunteerNetwork:
        """Return the network of volunteers that the graph carries under a name, or the latest one."""
        return self._annotation(name, VolunteerNetwork, "network of volunteers")

    def communities(self, name: str | None = None) -> Communities:
        """Return the communities that the graph carries under a name, or the latest ones."""
        return self._annotation(name, Communities, "communities")

    def community_track(self, name: str | None = None) -> CommunityTrack:
        """Return the communities over time that the graph carries under a name, or the latest ones."""
        return self._annotation(name, CommunityTrack, "communities over time")

    def resolve_fit(self, fit: ModelFit | str | None = None, *, needs: Literal["confusion"] | None = None) -> ModelFit:
        """Return the fit that an argument ``fit=`` means, made for this graph's nodes.

        Parameters
        ----------
        fit
            A fit, the name of one that the graph carries, or None for the latest.
        needs
            ``"confusion"`` where the fit must have confusion matrices.
        """
        try:
            resolved = self.fit(fit) if fit is None or isinstance(fit, str) else fit
        except NotAnnotatedError as error:
            raise NotAnnotatedError(error.args[0], hint=FIT_A_MODEL) from error
        check_instance("fit", resolved, ModelFit, expected="a fit or the name of one")
        resolved.check_nodes(self)
        if needs == "confusion" and resolved.confusion is None:
            raise NotAnnotatedError(f"The model {resolved.model!r} has no confusion matrices.", hint=FIT_A_MODEL)
        return resolved

    def resolve_communities(
        self, communities: Communities | str | None = None, *, network: str = "pi_similarity"
    ) -> Communities:
        """Return the communities that an argument ``communities=`` means, all of them of this graph's volunteers.

        Parameters
        ----------
        communities
            Communities, the name of some that the graph carries, or None for the latest.
        network
            The kind of network to detect some in, for the error where there are none.
        """
        try:
            resolved = (
                self.communities(communities) if communities is None or isinstance(communities, str) else communities
            )
        except NotAnnotatedError as error:
            raise NotAnnotatedError(
                error.args[0],
                hint=f"Find some: graph = graph.annotate(cg.BayesianNMF().detect(cg.networks.{network}(graph))).",
            ) from error
        check_instance("communities", resolved, Communities, expected="Communities or the name of some")
        resolved.check_matches(self)
        return resolved

    def _annotation(self, name: str | None, kind: type[ResultType], what: str) -> ResultType:
        for key, result in reversed(list(self.annotations.items())):
            if name in (None, key) and isinstance(result, kind):
                return result
        raise self._not_annotated(name, what)

    def _not_annotated(self, name: str | None, what: str) -> NotAnnotatedError:
        carried = tuple(self.annotations)
        if name is not None and name not in carried:
            return NotAnnotatedError(
                f"There is no annotation {name!r}; this graph carries {quote(carried) or 'none'}."
                f"{suggestion(name, carried)}"
            )
        where = f"The annotation {name!r} has no" if name is not None else "This graph carries no"
        return NotAnnotatedError(f"{where} {what}.", hint=MAKE[what])

    # Health

    def diagnose(self, *, progress: bool = False) -> Findings:
        """Examine the data and return findings: gaps, bots, repeats, rare labels, parts that cannot be compared, ...

        Each finding says what the problem is, with numbers, why it matters and what to do; the worst come first.
        Findings are hints to look at, and the checks are tuned to find nothing in sound data.

        Parameters
        ----------
        progress
            Whether to show a progress bar.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.simulate.crowd(gold=0, seed=0).graph
        >>> [finding.name for finding in graph.diagnose().at_least("note")]
        ['no gold']
        """
        from crowdgraph.diagnosis import diagnose

        return diagnose(self, progress=progress)

    # Export

    def to_networkx(self, *, at: Moment | None = None, history: History = "latest") -> Any:
        """Return a `networkx.MultiGraph`: nodes are ``("volunteer", id)`` and ``("item", id)``, edges are responses.

        What the latest annotations say becomes attributes. Volunteers have `confusion` (J, L), `participation` (K,) and
        `community` (-1 for none); items have `class_probs` and `gold`; responses have `label`, `time`, `position` and
        `surprise`, in nats, if the latest confusion is of a fit. An attribute of yours goes before an annotation of the
        same name, and a warning says so. `from_networkx` restores the graph with all annotations, which are the graph
        attribute ``crowdgraph``.

        Parameters
        ----------
        at
            What was known then: the responses up to and including that moment, and the annotations that provably saw no
            later one. These are fits of such responses (``fit.source`` says so, until it is saved), and the snapshots
            until then of a track without hindsight, of which the last gives participation and, if there is no such
            fit, confusion. Others are left out: a warning and ``network.graph["crowdgraph"]["left_out"]`` name them.
            Nodes and gold, which have no times, stay. Before the first response there are no edges; from the last
            response on, the graph is as without `at`.
        history
            ``"latest"``, or ``"full"`` for what there was over time, too. Volunteers then have `confusion_times` (T,)
            and `confusion_history` (T, J, L), after each of their responses (of a static model once, at the last
            response of all), and `participation_times` (S,), `participation_history` (S, K) and `community_history`
            (S,), at each snapshot of a track; responses have the `confusion` (J, L) under which they were given. Times
            are arrays as in ``graph.responses.time``.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.simulate.crowd(seed=0).graph
        >>> network = graph.annotate(cg.DynIBCC().fit(graph)).to_networkx(history="full")
        >>> network.nodes["volunteer", "volunteer-03"]["confusion_history"].shape
        (30, 2, 2)
        >>> cg.CrowdGraph.from_networkx(network).fit().model
        'dynibcc'
        """
        from crowdgraph.io.networkx import graph_to_networkx

        return graph_to_networkx(self, at=at, history=history)

    def to_igraph(self, *, at: Moment | None = None, history: History = "latest") -> Any:
        """Return an undirected `igraph.Graph` with vertex attributes `kind`, `type` (True for items) and `id`.

        Otherwise as `to_networkx`; `from_igraph` restores the graph.
        """
        from crowdgraph.io.igraph import graph_to_igraph

        return graph_to_igraph(self, at=at, history=history)

    def to_graphml(self, path: str | PathLike[str], *, at: Moment | None = None, history: History = "latest") -> None:
        """Write a GraphML file, which Gephi, Cytoscape and others show and `crowdgraph.read_graphml` reads back.

        Nodes are called ``volunteer:ID`` and ``item:ID``. Confusion, participation and probabilities become numbers
        such as ``confusion[yes,no]``; histories become JSON text. Annotations are there once more, as text that
        `crowdgraph.read_graphml` restores exactly.

        Parameters
        ----------
        path
            The file to write.
        at, history
            As in `to_networkx`.
        """
        from crowdgraph.io.graphml import write_graphml

        write_graphml(self, path, at=at, history=history)

    def to_gexf(self, path: str | PathLike[str], *, at: Moment | None = None) -> None:
        """Write a dynamic GEXF file, which Gephi's timeline plays and `crowdgraph.read_gexf` reads back.

        A volunteer or item is there from its first response to its last, and a response for the moment at which it was
        given: a window of Gephi's timeline that begins at the start shows all responses so far, one that moves along
        shows what goes on. Volunteers have their `skill` (the expected accuracy, with at most 50 changes each, where it
        is known which labels are right) and, if communities were tracked, their `community` over time. What does not
        change, or is known at the end only, are attributes as in `to_graphml`.

        Parameters
        ----------
        path
            The file. An existing file is replaced once the new one is complete.
        at
            Write what was known at this moment, as `to_networkx`.
        """
        from crowdgraph.io.gexf import write_gexf

        write_gexf(self, path, at=at)

    def to_pandas(self, *, table: TableName = "responses") -> Any:
        """Return a table of the graph as a pandas frame: ``"responses"``, ``"volunteers"``, ``"items"`` or ``"gold"``.

        `from_responses` reads the tables back.
        """
        return to_frame(self._table_view(table)._columns(), kind="pandas")

    def to_polars(self, *, table: TableName = "responses") -> Any:
        """Return a table of the graph as a polars frame; as `to_pandas`. Times with a fixed offset become UTC."""
        return to_frame(self._table_view(table)._columns(), kind="polars")

    def to_arrow(self, *, table: TableName = "responses") -> Any:
        """Return a table of the graph as a pyarrow table; as `to_pandas`."""
        return to_frame(self._table_view(table)._columns(), kind="arrow")

    def _table_view(self, name: TableName) -> Tabular:
        check_choice("table", name, get_args(TableName))
        view: Tabular = getattr(self, name)
        return view

    def to_torch(self, *, device: Any = None, dtype: Any = "float64") -> ResponseTensors:
        """Return copies of the responses and of gold as tensors, which `crowdgraph.tensors` takes.

        They are `volunteer`, `item` and `label` (int64 codes), `time`, `elapsed` and `gold`; ``.answers`` is the matrix
        of answers, ``.steps()`` the volunteers' steps for DynIBCC, and ``.to("cuda")`` moves all.

        Parameters
        ----------
        device
            Such as ``"cuda"``; the CPU if left out.
        dtype
            The precision of real numbers: ``"float64"``, ``"float32"`` or the torch type.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> tensors = cg.simulate.crowd(n_volunteers=20, n_items=60, n_responses=300, seed=0).graph.to_torch()
        >>> tensors
        ResponseTensors(300 responses of 20 volunteers about 60 items, 2 classes, 2 labels; float64, cpu)
        >>> tensors.answers
        AnswerMatrix(300 answers of 20 volunteers about 60 items, 2 labels, cpu)
        """
        from crowdgraph.io.tensors import graph_to_torch

        return graph_to_torch(self, device=device, dtype=dtype)

    def to_pyg(self, *, at: Moment | None = None, dtype: Any = "float32") -> Any:
        """Return a `torch_geometric.data.HeteroData`: volunteers and items, and an edge for each response.

        ``data["volunteer"]`` and ``data["item"]`` have `num_nodes`, the list `ids`, and `x`, their numeric attributes
        (NaN for null; `x_columns` names them), where they have some. Volunteers have the latest expected `confusion`
        (K, J, L), `participation` (K, C; zeros for those in no community) and `community` (-1 for none) where the
        graph is annotated with them; items have `class_probs` (N, J), `gold` (N, J; NaN where nothing is known),
        `gold_mask` and `y`, the code of the known class (-1 for none).

        ``data["volunteer", "answers", "item"]`` has `edge_index` (2, R), `label` (codes; -1 for an item that was shown
        but not answered), `time` (float64; datetimes as seconds since 1970) and, where responses have numeric
        attributes, `edge_attr` and `edge_attr_columns`. ``data.classes`` and ``data.labels`` say what the codes mean.
        `torch_geometric.transforms.ToUndirected` adds edges in the other direction. It needs the package
        torch-geometric.

        Parameters
        ----------
        at
            What was known then, as in `to_networkx`.
        dtype
            The precision of real numbers other than times; layers of PyTorch expect ``"float32"``.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.simulate.crowd(n_volunteers=20, n_items=60, n_responses=300, seed=0).graph
        >>> data = graph.annotate(cg.IBCC().fit(graph)).to_pyg()
        >>> data.edge_types
        [('volunteer', 'answers', 'item')]
        >>> data["volunteer"].confusion.shape
        torch.Size([20, 2, 2])
        """
        from crowdgraph.io.pyg import graph_to_pyg

        return graph_to_pyg(self, at=at, dtype=dtype)

    def save(self, path: str | PathLike[str], *, format: SaveFormat = "file") -> None:  # noqa: A002 - as users say
        """Write the graph so that `crowdgraph.load` reads it.

        Either is written atomically: after a crash, there is what was there before.

        Parameters
        ----------
        path
            The file or, for columns, the directory to write, which must be new.
        format
            ``"file"``: one file with all annotations. ``"columns"``: a directory of columns, sorted by time, by item
            and by volunteer, which are mapped into memory and not read: for crowds larger than memory, and for
            `crowdgraph.distributed`. It holds no annotations; a warning names those that are left out.
        """
        check_choice("format", format, get_args(SaveFormat))
        if format == "columns":
            from crowdgraph.io.columns import save_store

            save_store(self, path)
            if self.annotations:
                warn(
                    f"A directory of columns holds no annotations, so it is without {quote(self.annotations)}.",
                    CrowdGraphWarning,
                    hint="Keep them in a file: graph.save('NAME.crowd').",
                )
        else:
            from crowdgraph.io.store import save

            save(self, path)

    def equals(self, other: CrowdGraph) -> bool:
        """Return whether both graphs have the same nodes, responses, classes, labels and gold, whatever annotations."""
        return (
            isinstance(other, CrowdGraph)
            and same_values(self.classes, other.classes)
            and same_values(self.labels, other.labels)
            and self._volunteers.equals(other._volunteers)
            and self._items.equals(other._items)
            and self._responses.equals(other._responses)
            and self.gold.equals(other.gold)
        )

    # Rows

    def _table(self, kind: str) -> NodeTable:
        return self._volunteers if kind == "volunteer" else self._items

    @cached_property
    def _rows_by_volunteer(self) -> Grouping:
        if self.answers.are_all_responses:
            return self.answers.by_volunteer
        return grouped(self._responses.volunteer, len(self._volunteers))

    @cached_property
    def _rows_by_item(self) -> Grouping:
        if self.answers.are_all_responses:
            return self.answers.by_item
        return grouped(self._responses.item, len(self._items))

    def _rows(self, start: int, stop: int) -> CrowdGraph:
        return self.replace(responses=self._responses.slice(start, stop))

    def _count_until(self, moment: Moment) -> int:
        return self._responses.clock.count_until(self._responses.time, moment)

    def _induced(self, is_selected: Array, node_masks: Mapping[str, Array]) -> CrowdGraph:
        """Return the graph of some responses with the nodes of the masks, or else those that have a response."""
        rows = self._responses.take(np.flatnonzero(is_selected))
        old_codes, new_codes = {}, {}
        for kind in ("volunteer", "item"):
            has_response = np.bincount(getattr(rows, kind), minlength=len(self._table(kind))) > 0
            old_codes[kind] = np.flatnonzero(node_masks.get(kind, has_response))
            new_codes[kind] = np.searchsorted(old_codes[kind], getattr(rows, kind)).astype(np.int32)
        responses = ResponseTable(
            new_codes["volunteer"], new_codes["item"], rows.label, rows.time, rows.clock, rows.attributes
        )
        items = self._items.take(old_codes["item"])
        return CrowdGraph(
            self._volunteers.take(old_codes["volunteer"]),
            items,
            responses,
            classes=self.classes,
            labels=self.labels,
            gold=self.gold.of_items(items, old_codes["item"]),
        )
