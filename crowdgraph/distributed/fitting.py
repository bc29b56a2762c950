"""Fit a model to a store by several processes, each of which reads only its share."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
import torch

from crowdgraph.core._arrays import lock
from crowdgraph.core._maps import scratch_array
from crowdgraph.core._memory import memory_in_bytes
from crowdgraph.core._parameters import check_integer, check_number
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.soft_answers import refuse_streamed_soft_answers
from crowdgraph.distributed._checkpoints import CheckpointFile, facts_of, open_checkpoint
from crowdgraph.distributed._ranks import TIMEOUT, TorchRanks, joined, on_first
from crowdgraph.distributed._shares import item_share, shares, volunteer_share
from crowdgraph.errors import CrowdGraphError, LostRankError, ParameterError, StoreError
from crowdgraph.io._files import undamaged
from crowdgraph.io.columns import ResponseStore, open_store
from crowdgraph.io.partitions import finish_results, prepare_results, write_partition
from crowdgraph.kernels.backends import choose_backend
from crowdgraph.messages import Hint, with_article
from crowdgraph.models import IBCC, DawidSkene, DynIBCC
from crowdgraph.models._priors import CROWD, crowd_prior
from crowdgraph.models._resources import SharedItems, current_resources, using
from crowdgraph.models._tensors import AnswerSums, AnswerTensors
from crowdgraph.models.base import Model, check_crowd
from crowdgraph.models.ibcc import prior_of_newcomers

__all__ = ["fit"]

# After how many sweeps a checkpoint is written.
EVERY = 10


def fit(
    model: Model,
    store: ResponseStore | str | PathLike[str],
    *,
    out: str | PathLike[str] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    every: int = EVERY,
    resume: bool = False,
    memory: str | int | None = None,
    timeout: float = TIMEOUT,
    progress: bool = False,
) -> ModelFit:
    """Fit a model to a crowd on disk, together with the other processes that ``torchrun`` started.

    Every process (rank) calls this function with the same arguments. Each reads the responses about its own items only;
    what volunteers are like is known to all, and is added up once each sweep. The answer is that of ``model.fit``,
    whatever the number of ranks: to 1e-9 where the fit settles, and to `tol` where it is still moving when it ends.
    Without ``torchrun`` the process fits by itself.

    Parameters
    ----------
    model
        An `IBCC`, `DawidSkene` or `DynIBCC`. The ranks of a `DynIBCC` share the volunteers and all know the classes of
        all items.
    store
        A directory of columns, or what `crowdgraph.open_store` returned; all ranks must be able to read it.
    out
        A directory for the results, which `crowdgraph.load` opens: every rank writes its own items as Parquet.
    checkpoint
        A file for checkpoints, which rank 0 writes and, once the results are in `out`, removes. Nothing of the size of
        the items is in it, except for the class probabilities of a `DynIBCC`.
    every
        After how many sweeps to write a checkpoint.
    resume
        Whether to go on from `checkpoint` if that file is there, perhaps with another number of ranks.
    memory
        The memory that each rank may take, such as ``"4GB"``; responses then pass through memory block by block.
    timeout
        After how many seconds without a word from a rank the others give up.
    progress
        Whether rank 0 shows a progress bar.

    Returns
    -------
    ModelFit
        The fit as this rank holds it: class probabilities of its own items, for `DynIBCC` confusion of its own
        volunteers, and everything else of the whole crowd.

    Raises
    ------
    LostRankError
        If another rank ended; the message names the checkpoint.
    StoreError
        If the store is damaged or changed meanwhile, ranks read different stores, or the checkpoint is of another fit.

    Examples
    --------
    >>> import crowdgraph as cg, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "supernovae.store"
    >>> graph = cg.simulate.crowd(seed=0).graph
    >>> graph.save(path, format="columns")
    >>> fit = cg.distributed.fit(cg.IBCC(), path, out=path.with_name("results"))
    >>> bool(abs(fit.item_probs - cg.IBCC().fit(graph).item_probs).max() < 1e-9)
    True
    >>> cg.load(path.with_name("results")).fit().model
    'ibcc'
    """
    _check_arguments(model, every=every, timeout=timeout)
    limit = None if memory is None else memory_in_bytes(memory)
    with (
        _Resumption(checkpoint) as resumption,
        joined(timeout=timeout) as ranks,
        ended_by_signal(ranks),
        said_once(ranks),
    ):
        opened = _open_everywhere(model, store, ranks)
        check_crowd(opened.classes, opened.n_answers)
        # What a rank cannot compute on is named before anything is written.
        choose_backend(**{name: model.settings()[name] for name in ("backend", "device", "dtype")})
        checkpoints = (
            None
            if checkpoint is None
            else open_checkpoint(checkpoint, model, opened, every=every, resume=resume, ranks=ranks)
        )
        resumption.checkpoints = checkpoints
        if out is not None:
            # Whoever ended after the results were finished goes on to write them once more.
            crowd = opened.fingerprint if resume else None
            on_first(ranks, lambda: prepare_results(out, replaced_crowd=crowd))
        with using(memory=limit, ranks=ranks if ranks.size > 1 else None, checkpoints=checkpoints):
            visible = progress and ranks.rank == 0
            share = _fit_share(model, opened, ranks, on_disk=limit is not None, visible=visible)
            if out is not None:
                _write_results(Path(out), share, opened, ranks)
                if checkpoints is not None:
                    checkpoints.remove()
        return share.fit


class _Share(NamedTuple):
    """What a rank has fitted: its items, all volunteers or its own, and the positions of those that it writes."""

    fit: ModelFit
    graph: CrowdGraph
    volunteers: range


def _fit_share(model: Model, store: ResponseStore, ranks: TorchRanks, *, on_disk: bool, visible: bool) -> _Share:
    refuse_streamed_soft_answers(store.manifest["attributes"])
    with undamaged(store.path):
        parts = shares(store.by_item.starts, ranks.size, kind="item")
        graph = item_share(store, parts[ranks.rank], on_disk=on_disk)
    if isinstance(model, DynIBCC):
        share = _fit_volunteers(model, store, graph, parts, ranks, visible=visible)
    else:
        model._warn_about_repeats(store.n_repeats, store.n_responses)
        fitted = model._fit(graph, seed=None, start=None, progress=visible)
        model._warn_about(fitted, graph)
        bounds = [graph.n_volunteers * number // ranks.size for number in range(ranks.size + 1)]
        share = _Share(_without_source(fitted), graph, range(bounds[ranks.rank], bounds[ranks.rank + 1]))
    store.check_unchanged()
    return share


def _fit_volunteers(
    model: DynIBCC, store: ResponseStore, graph: CrowdGraph, parts: list[range], ranks: TorchRanks, *, visible: bool
) -> _Share:
    """Fit volunteers who change: first all as if they did not, by items, then each rank its own volunteers.

    `graph` has the rank's items, and `parts` are the items of each rank.
    """
    prior = crowd_prior(graph, model.confusion_prior, model.class_prior, model.votes)
    static = model._static_model(CROWD if model.confusion_prior == CROWD else prior)
    first = static._fit(graph, seed=None, start=None, progress=visible)
    if model.confusion_prior == CROWD:
        backend = choose_backend(model.backend, device=model.device, dtype=model.dtype)
        tensors = AnswerTensors(graph, backend)
        sums = AnswerSums(tensors, tensors.kernels()[0])
        prior = prior_of_newcomers(graph, prior, first, votes=model.votes, sums=sums)
    items = parts[ranks.rank]
    on_disk = current_resources().memory is not None
    shape = (store.n_items, len(store.classes))
    probs = scratch_array(shape, np.float64) if on_disk else np.empty(shape)
    probs[items.start : items.stop] = first.item_probs
    ranks.spread_rows(torch.from_numpy(probs), parts)
    volunteers = shares(store.by_volunteer.starts, ranks.size, kind="volunteer")[ranks.rank]
    with undamaged(store.path):
        own = volunteer_share(store, volunteers, on_disk=on_disk)
    start = ModelFit(
        model=first.model,
        items=own.items.ids,
        classes=own.classes,
        item_probs=lock(probs),
        class_probs=first.class_probs,
    )
    known = np.concatenate(ranks.gather(graph.gold.known))
    with using(items=SharedItems(parts, known)):
        fitted = replace(model, confusion_prior=prior)._fit(own, seed=None, start=start, progress=visible)
    item_probs = lock(np.array(fitted.item_probs[items.start : items.stop]))
    fitted = replace(_without_source(fitted, items=graph.items.ids, item_probs=item_probs), params=model.settings())
    model._warn_about(fitted, graph)
    return _Share(fitted, graph, range(own.n_volunteers))


def _without_source(fitted: ModelFit, **changes: Any) -> ModelFit:
    """Return a fit without its graph, which is only a share, and which methods of a fit would take for the crowd."""
    names = (
        "model",
        "items",
        "classes",
        "item_probs",
        "class_probs",
        "confusion",
        "bound",
        "converged",
        "n_iter",
        "params",
        "class_concentration",
        "prior",
        "diagnostics",
    )
    return ModelFit(**{name: getattr(fitted, name) for name in names} | changes)


def _write_results(out: Path, share: _Share, store: ResponseStore, ranks: TorchRanks) -> None:
    own = write_partition(out, share.fit, number=ranks.rank, n_parts=ranks.size, volunteers=share.volunteers)
    files = ranks.gather(own)
    on_first(ranks, lambda: finish_results(out, share.fit, share.graph, store, files))


def _check_arguments(model: object, *, every: int, timeout: float) -> None:
    if not isinstance(model, IBCC | DawidSkene | DynIBCC):
        kind = type(model).__name__ if isinstance(model, Model) else with_article(type(model))
        raise ParameterError(f"Ranks fit an IBCC, DawidSkene or DynIBCC together; got {kind}.")
    if isinstance(model, IBCC) and model.restarts:
        raise ParameterError(
            f"restarts={model.restarts} draws class probabilities of all items, which no rank holds.",
            hint="Leave restarts out.",
        )
    check_integer("every", every, minimum=1)
    check_number("timeout", timeout, valid=lambda value: value > 0, expected="be a number of seconds above zero")


class _Opened(NamedTuple):
    """What a rank says about the store that it opened, or why it could not."""

    facts: dict[str, Any]
    error: CrowdGraphError | None


def _open_everywhere(model: Model, store: ResponseStore | str | PathLike[str], ranks: TorchRanks) -> ResponseStore:
    """Open the store on every rank, or raise on all of them if one cannot or has another one."""
    try:
        opened = store if isinstance(store, ResponseStore) else open_store(store)
    except CrowdGraphError as error:
        ranks.gather(_Opened({}, error))
        raise
    answers = ranks.gather(_Opened(facts_of(model, opened), None))
    for rank, answer in enumerate(answers):
        if answer.error is not None:
            raise StoreError(
                f"Rank {rank}: " + answer.error.message, hint="All ranks must be able to read the same store."
            )
    check_alike([answer.facts for answer in answers])
    return opened


def check_alike(facts: list[dict[str, Any]]) -> None:
    """Raise if ranks differ in what they are to fit, and name them."""
    for key, what in (
        ("crowdgraph", "run different versions of crowdgraph"),
        ("crowd", "opened stores of different crowds"),
        ("model", "are to fit different models"),
        ("settings", "are to fit the model with different settings"),
    ):
        others = [rank for rank, own in enumerate(facts) if own.get(key) != facts[0].get(key)]
        if others:
            values = "" if key == "settings" else f" ({facts[0][key]} and {facts[others[0]][key]})"
            names = ", ".join(map(str, others))
            raise StoreError(
                f"Ranks {what}: rank 0 differs from rank{'s' * (len(others) > 1)} {names}{values}.",
                hint="All ranks need the same installation, the same store and the same arguments.",
            )


class _Resumption:
    """Says how to go on if a rank is lost.

    Attributes
    ----------
    checkpoints
        The checkpoints of the fit, once the ranks have opened them.
    """

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self._path = path
        self.checkpoints: CheckpointFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, LostRankError):
            raise LostRankError(error.message, hint=self._advice()) from error

    def _advice(self) -> Hint:
        if self._path is None:
            return Hint(
                "Nothing was kept; name a file with checkpoint= to be able to resume.",
                cli="Nothing was kept; name a file with --checkpoint to be able to resume.",
            )
        name = f"the checkpoint {fspath(self._path)!r}"
        if self.checkpoints is not None and self.checkpoints.is_written:
            return Hint(
                f"Go on from {name} with resume=True, with any number of ranks.",
                cli=f"Go on from {name} with the same command and --resume, with any number of processes.",
            )
        if self.checkpoints is not None:
            return Hint(
                f"Nothing was written to {name} yet; fit again, with any number of ranks.",
                cli=f"Nothing was written to {name} yet; repeat the same command, with any number of processes.",
            )
        # Ranks that have not opened it do not know what earlier processes left.
        return Hint(
            f"Fit again with resume=True, with any number of ranks: it goes on from {name} if that is there, and "
            "begins anew otherwise.",
            cli=f"Repeat the same command with --resume, with any number of processes: it goes on from {name} if that "
            "is there, and begins anew otherwise.",
        )


@contextmanager
def said_once(ranks: TorchRanks) -> Iterator[None]:
    """Let only rank 0 warn, since all ranks notice the same."""
    with warnings.catch_warnings():
        if ranks.rank:
            warnings.simplefilter("ignore")
        yield


@contextmanager
def ended_by_signal(ranks: TorchRanks) -> Iterator[None]:
    """Turn the signal by which torchrun and schedulers end a process into an error, which names the checkpoint."""
    if ranks.size == 1 or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        raise LostRankError(
            f"Rank {ranks.rank} of {ranks.size} was asked to end, as all are when one has ended or the job is stopped."
        )

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
