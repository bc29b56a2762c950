"""Fit a model to a store by several processes, each of which reads only its share."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn, TypeVar

from crowdgraph.core._parameters import check_integer, check_number
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.distributed._checkpoints import facts_of, open_checkpoint
from crowdgraph.distributed._ranks import TorchRanks, joined
from crowdgraph.distributed._shares import item_share, shares
from crowdgraph.errors import CrowdGraphError, LostRankError, ParameterError, StoreError
from crowdgraph.io.columns import ResponseStore, open_store
from crowdgraph.io.partitions import finish_results, prepare_results, write_partition
from crowdgraph.messages import Hint, with_article
from crowdgraph.models import IBCC, DawidSkene
from crowdgraph.models._resources import memory_in_bytes, using
from crowdgraph.models.base import Model, check_crowd

__all__ = ["fit"]

Value = TypeVar("Value")
# After how many seconds without a word from a rank the others give up. A sweep takes seconds to minutes.
TIMEOUT = 600.0
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
    what volunteers are like is known to all, and is added up once each sweep. The answer is that of ``model.fit`` to
    1e-9, whatever the number of ranks. Without ``torchrun`` the process fits by itself.

    Parameters
    ----------
    model
        An `IBCC` or `DawidSkene`.
    store
        A directory of columns, or what `crowdgraph.open_store` returned; all ranks must be able to read it.
    out
        A directory for the results, which `crowdgraph.load` opens: every rank writes its own items as Parquet.
    checkpoint
        A file for checkpoints, which rank 0 writes. Nothing of the size of the items is in it.
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
        The fit as this rank holds it: class probabilities of its own items, and everything else of the whole crowd.

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
        _naming_checkpoint(checkpoint),
        joined(timeout=timeout) as ranks,
        _ended_by_signal(ranks),
        _said_once(ranks),
    ):
        opened = _open_everywhere(model, store, ranks)
        check_crowd(opened.classes, opened.n_answers)
        own = shares(opened.by_item.starts, ranks.size, kind="item")[ranks.rank]
        if out is not None:
            # Whoever ended after the results were finished goes on to write them once more.
            crowd = opened.fingerprint if resume else None
            _on_first(ranks, lambda: prepare_results(out, replaced_crowd=crowd))
        checkpoints = (
            None
            if checkpoint is None
            else open_checkpoint(checkpoint, model, opened, every=every, resume=resume, ranks=ranks)
        )
        with using(memory=limit, ranks=ranks if ranks.size > 1 else None, checkpoints=checkpoints):
            graph = item_share(opened, own, on_disk=limit is not None)
            fitted = _fit_share(model, graph, opened, visible=progress and ranks.rank == 0)
            if out is not None:
                _write_results(Path(out), fitted, graph, opened, ranks)
        return fitted


def _fit_share(model: Model, graph: CrowdGraph, store: ResponseStore, *, visible: bool) -> ModelFit:
    model._warn_about_repeats(store.n_repeats, store.n_responses)
    fitted = model._fit(graph, seed=None, start=None, progress=visible)
    model._warn_about(fitted, graph)
    store.check_unchanged()
    # Without its source: a share of the items is not the graph that methods of a fit need.
    return ModelFit(
        **{
            name: getattr(fitted, name)
            for name in (
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
        }
    )


def _write_results(out: Path, fitted: ModelFit, graph: CrowdGraph, store: ResponseStore, ranks: TorchRanks) -> None:
    bounds = [graph.n_volunteers * number // ranks.size for number in range(ranks.size + 1)]
    own = range(bounds[ranks.rank], bounds[ranks.rank + 1])
    files = ranks.gather(write_partition(out, fitted, number=ranks.rank, n_parts=ranks.size, volunteers=own))
    _on_first(ranks, lambda: finish_results(out, fitted, graph, store, files))


def _check_arguments(model: object, *, every: int, timeout: float) -> None:
    if not isinstance(model, IBCC | DawidSkene):
        kind = type(model).__name__ if isinstance(model, Model) else with_article(type(model))
        raise ParameterError(f"Ranks fit an IBCC or DawidSkene together; got {kind}.")
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
            raise StoreError(f"Rank {rank}: " + answer.error.message)
    _check_alike([answer.facts for answer in answers])
    return opened


def _check_alike(facts: list[dict[str, Any]]) -> None:
    """Raise if ranks differ in what they are to fit, and name them."""
    for key, what in (
        ("crowdgraph", "run different versions of crowdgraph"),
        ("crowd", "opened stores of different crowds"),
        ("model", "are to fit different models"),
        ("settings", "are to fit the model with different settings"),
    ):
        others = [rank for rank, own in enumerate(facts) if own[key] != facts[0][key]]
        if others:
            values = "" if key == "settings" else f" ({facts[0][key]} and {facts[others[0]][key]})"
            names = ", ".join(map(str, others))
            raise StoreError(
                f"Ranks {what}: rank 0 differs from rank{'s' * (len(others) > 1)} {names}{values}.",
                hint="All ranks need the same installation, the same store and the same arguments.",
            )


def _on_first(ranks: TorchRanks, act: Callable[[], None]) -> None:
    """Let rank 0 do something; raise everywhere if that fails."""
    error = None
    if ranks.rank == 0:
        try:
            act()
        except CrowdGraphError as failure:
            error = failure
    error = ranks.from_first(error)
    if error is not None:
        raise error


@contextmanager
def _naming_checkpoint(path: str | PathLike[str] | None) -> Iterator[None]:
    """Say where to go on if a rank is lost."""
    try:
        yield
    except LostRankError as error:
        if path is None:
            hint = Hint(
                "Nothing was kept; name a file with checkpoint= to be able to resume.",
                cli="Nothing was kept; name a file with --checkpoint to be able to resume.",
            )
        else:
            hint = Hint(
                f"Go on from the checkpoint {fspath(path)!r} with resume=True, with any number of ranks.",
                cli=f"Go on from the checkpoint {fspath(path)!r} with the same command and --resume, with any number "
                "of processes.",
            )
        raise LostRankError(error.message, hint=hint) from error


@contextmanager
def _said_once(ranks: TorchRanks) -> Iterator[None]:
    """Let only rank 0 warn, since all ranks notice the same."""
    with warnings.catch_warnings():
        if ranks.rank:
            warnings.simplefilter("ignore")
        yield


@contextmanager
def _ended_by_signal(ranks: TorchRanks) -> Iterator[None]:
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
