"""Communities by several processes: rank 0 searches, and each has its rows of the weights and some null networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from crowdgraph import __version__
from crowdgraph.communities import BayesianNMF
from crowdgraph.communities._team import working_with
from crowdgraph.core._arrays import Array
from crowdgraph.core.communities import Communities
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.distributed._ranks import TIMEOUT, TorchRanks, joined
from crowdgraph.distributed.fitting import check_alike, ended_by_signal, said_once
from crowdgraph.errors import CrowdGraphError, LostRankError, ParameterError
from crowdgraph.kernels._runtime import single_threaded_torch
from crowdgraph.kernels.fixed_point import Step
from crowdgraph.kernels.nmf import CompiledWeights, Prior, RowStep
from crowdgraph.messages import with_article

__all__ = ["detect"]

Argument = TypeVar("Argument")
Value = TypeVar("Value")


def detect(
    detector: BayesianNMF,
    network: VolunteerNetwork | None,
    *,
    seed: int | None = None,
    timeout: float = TIMEOUT,
    progress: bool = False,
) -> Communities:
    """Find the communities of a network, together with the processes that ``torchrun`` started.

    Every process (rank) calls this function. Rank 0 searches: it prepares the weights, hands each rank the rows of its
    own volunteers, and in each step every rank computes its rows of the next factors. Null networks are drawn and
    measured by all ranks, each some of them. The communities are those of ``detector.detect``, whatever the number of
    ranks, and all ranks return them. Without ``torchrun`` the process detects them by itself.

    Parameters
    ----------
    detector
        A `BayesianNMF`. Rows are shared where compiled code runs; two factors (``symmetric=False``) and
        ``backend="torch"`` are the work of rank 0, and only null networks are shared.
    network
        The network. Only that of rank 0 is looked at: the other ranks may give None, and then have no more in memory
        than their rows of the weights, the factors, and a null network at a time.
    seed
        The same seed gives the same communities.
    timeout
        After how many seconds without a word from a rank the others give up.
    progress
        Whether rank 0 shows a progress bar.

    Raises
    ------
    LostRankError
        If another rank ended.
    StoreError
        If ranks run different versions.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> network = cg.networks.task_cooccurrence(graph)
    >>> cg.distributed.detect(cg.BayesianNMF(), network, seed=0)
    Communities(bayesian_nmf: 3 of sizes 20, 20, 20; modularity 0.612)
    """
    if not isinstance(detector, BayesianNMF):
        raise ParameterError(
            f"Ranks detect communities together with a BayesianNMF; got {with_article(type(detector))}."
        )
    try:
        with joined(timeout=timeout) as ranks, ended_by_signal(ranks), said_once(ranks):
            if ranks.size == 1:
                return detector.detect(_required(network), seed=seed, progress=progress)
            check_alike(ranks.gather({"crowdgraph": __version__}))
            if ranks.rank:
                return _follow(ranks)
            return _lead(ranks, lambda: detector.detect(_required(network), seed=seed, progress=progress))
    except LostRankError as error:
        raise LostRankError(error.message, hint="Detect them again: nothing is kept of unfinished searches.") from error


def _required(network: VolunteerNetwork | None) -> VolunteerNetwork:
    if network is None:
        raise ParameterError("The network is None; rank 0 needs one, and only the others may leave it out.")
    return network


class _Task(NamedTuple):
    """What rank 0 asks all ranks to do next.

    Attributes
    ----------
    kind
        Take rows of weights; take a step of them; compute values of a function; or end.
    content
        The number of columns, the function and its arguments, or the communities (an error if there are none).
    """

    kind: Literal["weights", "step", "map", "end"]
    content: Any = None


class _Rows(NamedTuple):
    """The rows of weights that a rank computes with, and how they are multiplied."""

    starts: Array
    columns: Array | None
    values: Array
    rows: range
    largest: float
    prior: Prior

    def compiled(self) -> CompiledWeights:
        """Return them for compiled code."""
        precision = self.values.dtype
        return CompiledWeights(
            self.starts, self.columns, self.values, precision=precision, rows=self.rows, largest=self.largest
        )


def _lead(ranks: TorchRanks, search: Callable[[], Communities]) -> Communities:
    """Search as rank 0, and tell the others how it ended."""
    try:
        with working_with(_Leader(ranks)):
            communities = search()
    except LostRankError:
        raise
    except CrowdGraphError as error:
        ranks.from_first(_Task("end", error))
        raise
    ranks.from_first(_Task("end", communities))
    return communities


class _Shared(NamedTuple):
    """Weights of which every rank has some rows.

    Attributes
    ----------
    weights, prior, precision
        The weights, and how they are factorised.
    own
        The rows of this rank.
    bounds
        Where the rows of each rank begin.
    """

    weights: Any
    prior: Prior
    precision: Any
    own: CompiledWeights
    bounds: list[int]


class _Leader:
    """Rank 0, which the others follow; see `crowdgraph.communities._team.Team`."""

    def __init__(self, ranks: TorchRanks) -> None:
        self._ranks = ranks
        self._shared: _Shared | None = None

    def nmf_step(self, weights: Any, prior: Prior, *, precision: Any) -> Callable[[Tensor], Step]:
        """See `Team`."""
        last = self._shared
        # Several starts factorise the same weights.
        if last is None or last.weights is not weights or (last.prior, last.precision) != (prior, precision):
            self._shared = None
            last = self._shared = self._hand_out(weights, prior, precision)
        ranks, shared = self._ranks, last

        def step(state: Tensor) -> Step:
            ranks.from_first(_Task("step", state.shape[1]))
            ranks.from_first_tensor(state)
            own = shared.own.row_step(state, prior)
            rows = ranks.stack_on_first(_packed(own), shared.bounds).numpy()
            following = np.ascontiguousarray(rows[:, :-2])
            return own._replace(following=following, logs=rows[:, -2].copy(), changes=rows[:, -1].copy()).step()

        return step

    def map(self, function: Callable[[Argument], Value], arguments: Sequence[Argument]) -> list[Value]:
        """See `Team`."""
        # The others forget their rows meanwhile.
        self._shared = None
        self._ranks.from_first(_Task("map", (function, arguments)))
        values = []
        for value in _values(self._ranks, function, arguments):
            if isinstance(value, CrowdGraphError):
                raise value
            values.append(value)
        return values

    def _hand_out(self, weights: Any, prior: Prior, precision: Any) -> _Shared:
        """Give every rank its rows, with about as many weights as any other's."""
        n, size, largest = weights.shape[0], self._ranks.size, float(weights.max())
        is_dense = isinstance(weights, np.ndarray)
        starts = np.arange(n + 1) * n if is_dense else weights.indptr.astype(np.int64)
        bounds = np.searchsorted(starts, np.arange(size + 1) * int(starts[-1]) / size).tolist()
        bounds[0], bounds[-1] = 0, n

        def part_of(rank: int) -> _Rows:
            rows = range(bounds[rank], bounds[rank + 1])
            begin, end = int(starts[rows.start]), int(starts[rows.stop])
            values = weights[rows.start : rows.stop].ravel() if is_dense else weights.data[begin:end]
            columns = None if is_dense else weights.indices[begin:end].astype(np.int32, copy=False)
            starts_of_rows = np.clip(starts, begin, end) - begin
            return _Rows(starts_of_rows, columns, values.astype(precision, copy=False), rows, largest, prior)

        self._ranks.from_first(_Task("weights"))
        return _Shared(weights, prior, precision, self._ranks.hand_out(part_of).compiled(), bounds)


def _follow(ranks: TorchRanks) -> Communities:
    """Do what rank 0 asks for, until it has found the communities."""
    with single_threaded_torch():
        task = _next_task(ranks)
        while task.kind != "end":
            if task.kind == "map":
                _values(ranks, *task.content)
            task = _take_steps(ranks) if task.kind == "weights" else _next_task(ranks)
    if isinstance(task.content, CrowdGraphError):
        raise task.content
    communities: Communities = task.content
    return communities


def _next_task(ranks: TorchRanks) -> _Task:
    return ranks.from_first(_Task("end"))


def _take_steps(ranks: TorchRanks) -> _Task:
    """Take the rows of all steps that rank 0 takes of some weights; return what it asks for afterwards."""
    rows: _Rows = ranks.hand_out(None)
    own = rows.compiled()
    task = _next_task(ranks)
    while task.kind == "step":
        state = ranks.from_first_tensor(torch.empty((own.n, task.content), dtype=torch.float64))
        ranks.stack_on_first(_packed(own.row_step(state, rows.prior)), ())
        task = _next_task(ranks)
    return task


def _packed(part: RowStep) -> Tensor:
    """Return the rows of a step as one tensor."""
    return torch.from_numpy(np.column_stack([part.following, part.logs, part.changes]))


def _values(
    ranks: TorchRanks, function: Callable[[Argument], Value], arguments: Sequence[Argument]
) -> list[Value | CrowdGraphError]:
    """Return the values of a function, of which this process computes every N-th, or the errors instead of them."""

    def value(argument: Argument) -> Value | CrowdGraphError:
        try:
            return function(argument)
        except CrowdGraphError as error:
            return error

    values: list[Any] = [None] * len(arguments)
    own = [value(argument) for argument in arguments[ranks.rank :: ranks.size]]
    for rank, part in enumerate(ranks.gather(own)):
        values[rank :: ranks.size] = part
    return values
