"""Networks over time: built at several snapshots, of all responses until then or of those in a sliding window."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import as_list, check_bool, check_seed
from crowdgraph.core._progress import progress_bar
from crowdgraph.core.clock import Length, Moment, length_in_ticks
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.network_track import NetworkTrack
from crowdgraph.dynamics.over_time import (
    MakeNetwork,
    SnapshotFits,
    check_network_and_model,
    snapshot_ends,
    snapshot_views,
)
from crowdgraph.errors import NotAnnotatedError, ParameterError, TooFewError
from crowdgraph.messages import with_article
from crowdgraph.models.base import Model
from crowdgraph.networks.task_cooccurrence import task_cooccurrence

__all__ = ["networks_over_time"]


def networks_over_time(
    graph: CrowdGraph,
    *,
    counts: Iterable[int] | None = None,
    times: Iterable[Moment] | None = None,
    every: Length | None = None,
    network: MakeNetwork = task_cooccurrence,
    model: Model | None = None,
    window: Length | None = None,
    hindsight: bool = False,
    compare_starts: bool = True,
    seed: int | None = None,
    progress: bool = False,
) -> NetworkTrack:
    """Build a network of volunteers at several times.

    At each snapshot the network is built from the responses until then, or from the last ones if there is a `window`.
    Where there are too few answers, the network has no volunteers, and ``track.reasons`` says why.

    Parameters
    ----------
    graph
        The graph.
    counts, times, every
        When to take snapshots: after these numbers of responses, before these moments (both in rising order), or at
        regular intervals since the first response, until all responses have been seen. Lengths are timedeltas, or text
        such as ``"30D"``, for datetimes and numbers for other times. ``track.times`` are the times of the last response
        of each snapshot.
    network
        Builds the network from a graph that carries the fit: `task_cooccurrence`, `pi_similarity`, or one of them with
        other settings, such as ``functools.partial(pi_similarity, min_responses=10)``.
    model
        The model of the volunteers' confusion, fitted at each snapshot, for networks that need one.
    window
        How far back each network looks, as a length of time before the moment of the snapshot (for `counts`, before its
        last response). The model is fitted to all responses until then; the network counts those of the window, so it
        is built by ``network(view, window=(start, None))``. If left out, all responses until then count.
    hindsight, compare_starts
        As for `over_time`.
    seed
        The same seed gives the same track.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> track = cg.dynamics.networks_over_time(graph, counts=[2_000, 4_000])
    >>> track
    NetworkTrack(task_cooccurrence: 2 snapshots with 34, 60 volunteers)
    >>> track[1]
    VolunteerNetwork(task_cooccurrence: 60 volunteers, 1,070 edges, density 0.605, 0 isolated)
    """
    check_bool("hindsight", hindsight)
    check_bool("compare_starts", compare_starts)
    check_seed(seed)
    check_network_and_model(network, model)
    if window is not None:
        _check_takes_window(network)
    moments = None if times is None else as_list(times, "times")
    views = snapshot_views(graph, counts=counts, times=moments, every=every)
    starts = [None] * len(views)
    if window is not None:
        starts = _window_starts(graph, snapshot_ends(graph, views, moments, every), window)
    fits = SnapshotFits(graph, model, hindsight=hindsight, compare_starts=compare_starts)
    built = []
    with progress_bar("Networks over time", visible=progress, total=len(views), unit="snapshots") as bar:
        for view, start, view_seed in zip(views, starts, np.random.SeedSequence(seed).spawn(len(views)), strict=True):
            fit = fits.fit(view, np.random.default_rng(view_seed))
            built.append(_network_or_reason(network, view if fit is None else view.annotate(fit), start))
            bar.update()
    networks, reasons = zip(*built, strict=True)
    method = next((one.method for one in networks if one.method), "networks")
    last_response = [max(len(view.responses) - 1, 0) for view in views]
    return NetworkTrack(
        ids=graph.volunteers.ids,
        times=np.asarray(graph.responses.time[last_response]),
        counts=np.array([len(view.responses) for view in views], dtype=np.int64),
        snapshots=networks,
        clock=graph.responses.clock,
        method=method,
        params={"window": window, "hindsight": hindsight, "model": None if model is None else model.name},
        reasons=reasons,
    )


def _check_takes_window(network: MakeNetwork) -> None:
    """Raise if a function cannot be asked for the network of a period."""
    try:
        inspect.signature(network).bind(None, window=None)
    except TypeError as error:
        name = getattr(network, "__name__", repr(network))
        raise ParameterError(
            f"window= needs a network function that takes window=, as networks.task_cooccurrence and "
            f"networks.pi_similarity do; {name} does not ({error}). Give it that parameter, or leave out window=."
        ) from error
    except ValueError:  # built-in functions may have no signature
        return


def _network_or_reason(network: MakeNetwork, view: CrowdGraph, start: Any) -> tuple[VolunteerNetwork, str]:
    """Return the network of a view, or one without volunteers and the reason why."""
    options = {} if start is None else {"window": (start, None)}
    try:
        result = network(view, **options)
    except NotAnnotatedError as error:
        if view.annotations:
            raise
        raise NotAnnotatedError(
            f"{error.args[0]} Snapshots leave out annotations, which may have seen the future.",
            hint="Fit a model to each snapshot: model=cg.IBCC().",
        ) from error
    except TooFewError as error:
        nobody = VolunteerNetwork(ids=np.zeros(0, object), weights=np.zeros((0, 0)), method="")
        return nobody, str(error)
    if not isinstance(result, VolunteerNetwork):
        raise ParameterError(
            "network= must build a VolunteerNetwork from a graph, as networks.task_cooccurrence does; got "
            f"{with_article(type(result))} from it."
        )
    return result, ""


def _window_starts(graph: CrowdGraph, ends: Array, window: Length) -> list[Any]:
    """Return the moments from which networks count responses up to these ends."""
    times = graph.responses.time
    starts = ends - length_in_ticks("window", window, graph.responses.clock, times)
    return list(_as_times(np.ceil(starts) if times.dtype.kind != "f" else starts, times))


def _as_times(numbers: Array, times: Array) -> Array:
    """Return ticks as times of the column's kind."""
    if times.dtype.kind == "f":
        return numbers
    integers = numbers.astype(np.int64)
    return integers.view(times.dtype) if times.dtype.kind == "M" else integers
