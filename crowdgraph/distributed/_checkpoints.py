"""Checkpoints: where a fit stands, in one file that any number of ranks can go on from.

A checkpoint holds, for each stage of the fit, the state to which the model was applied last. That of IBCC and
Dawid-Skene is numbers about volunteers and classes: what is known about items follows by one more step. That of
DynIBCC's passes over time is the class probabilities of all items.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from crowdgraph import __version__
from crowdgraph.core._arrays import Array
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.distributed._ranks import TorchRanks, on_first
from crowdgraph.errors import StoreError
from crowdgraph.io._files import atomic_file
from crowdgraph.io._unpacked import check_unpacked
from crowdgraph.io.columns import ResponseStore
from crowdgraph.kernels.fixed_point import Progress
from crowdgraph.messages import Hint
from crowdgraph.models.base import Model

FORMAT = "crowdgraph checkpoint"
VERSION = 1
# What a checkpoint holds of each stage beside its state.
NUMBERS = Progress._fields[1:]
# What to do with a checkpoint that is of no use.
START_ANEW = Hint(
    "Name another file with checkpoint=, or leave resume=True out and remove this one, to start anew.",
    cli="Name another file with --checkpoint, or leave --resume out and remove this one, to start anew.",
)


class CheckpointFile:
    """Writes where a fit stands to a file, every so many sweeps and at the end of each stage.

    All ranks take note, and rank 0 writes: to a new file, which then takes the place of the old one, so that there is a
    complete checkpoint at all times.

    Parameters
    ----------
    path
        The file.
    facts
        What the fit is of; see `facts_of`.
    every
        After how many sweeps to write.
    ranks
        The processes that compute together.
    store
        The store, which must not change meanwhile.
    stages
        The stages that were read from an earlier file.
    """

    def __init__(
        self,
        path: Path,
        facts: Mapping[str, Any],
        *,
        every: int,
        ranks: TorchRanks,
        store: ResponseStore,
        stages: Mapping[str, Progress],
    ) -> None:
        self._path, self._facts, self._every = path, facts, every
        self._ranks, self._store = ranks, store
        self._stages = dict(stages)
        # Whether the file says where the fit stands, from now or from before.
        self.is_written = bool(stages)

    def recorder(self, stage: str) -> StageRecorder:
        """See `crowdgraph.models._resources.Checkpoints`."""
        return StageRecorder(self, stage, self._stages.get(stage), self._every)

    def write(self, stage: str, progress: Progress) -> None:
        """Write where a stage stands, and where those before it ended."""
        self._store.check_unchanged()
        on_first(self._ranks, lambda: _write(self._path, self._facts, {**self._stages, stage: progress}))
        self.is_written = True
        if progress.ended:
            self._stages[stage] = progress._replace(state=progress.state.clone(), objectives=list(progress.objectives))

    def remove(self) -> None:
        """Remove the file, once what it leads to has been written."""
        on_first(self._ranks, lambda: self._path.unlink(missing_ok=True))


class StageRecorder:
    """Keeps where one stage stands; see `crowdgraph.kernels.fixed_point.Recorder`."""

    def __init__(self, file: CheckpointFile, stage: str, last: Progress | None, every: int) -> None:
        self._file, self._stage, self._last, self._every = file, stage, last, every
        self._n_written = 0 if last is None else last.n_steps

    def last(self) -> Progress | None:
        """Return where an earlier process left the stage."""
        return self._last

    def is_due(self, n_steps: int) -> bool:
        """Return whether enough sweeps have passed since the last time."""
        return n_steps >= self._n_written + self._every

    def record(self, progress: Progress) -> None:
        """Write where the stage stands if it has ended, or enough sweeps after the last time."""
        if progress.ended or self.is_due(progress.n_steps):
            self._file.write(self._stage, progress)
            self._n_written = progress.n_steps


class _Content(NamedTuple):
    """What a checkpoint holds, or what is wrong with it."""

    stages: dict[str, Progress]
    fault: StoreError | None = None


def facts_of(model: Model, store: ResponseStore) -> dict[str, Any]:
    """Return what a checkpoint must agree on with the fit that goes on from it."""
    return {
        "crowdgraph": __version__,
        "crowd": store.fingerprint,
        "model": model.name,
        "settings": {name: _described(value) for name, value in model.settings().items()},
    }


def open_checkpoint(
    path: str | PathLike[str],
    model: Model,
    store: ResponseStore,
    *,
    every: int,
    resume: bool,
    ranks: TorchRanks,
) -> CheckpointFile:
    """Return the checkpoints of a fit; with `resume`, from where the file says if it is there.

    Rank 0 reads the file, so that the others need not see it.
    """
    file, facts = Path(path), facts_of(model, store)
    on_first(ranks, lambda: _check_writable(file))
    content = ranks.from_first(_read(file, facts, resume=resume) if ranks.rank == 0 else _Content({}))
    if content.fault is not None:
        raise content.fault
    return CheckpointFile(file, facts, every=every, ranks=ranks, store=store, stages=content.stages)


def _check_writable(path: Path) -> None:
    """Raise before anything is computed if a file cannot be written."""
    if path.is_dir():
        raise StoreError(f"The checkpoint {fspath(path)!r} is a directory; give the path of a file.")
    with suppress(_Tried), atomic_file(path):
        # The file itself is left alone.
        raise _Tried


class _Tried(Exception):  # noqa: N818 - it says that nothing is wrong
    """A file can be written."""


def _write(path: Path, facts: Mapping[str, Any], stages: Mapping[str, Progress]) -> None:
    header = {
        "format": FORMAT,
        "version": VERSION,
        **facts,
        "stages": {name: dict(zip(NUMBERS, progress[1:], strict=True)) for name, progress in stages.items()},
    }
    states: dict[str, Any] = {
        f"state_{number}": progress.state.cpu().numpy() for number, progress in enumerate(stages.values())
    }
    with atomic_file(path) as part, part.open("wb") as file:
        np.savez(file, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **states)


def _read(path: Path, facts: Mapping[str, Any], *, resume: bool) -> _Content:
    if not path.exists():
        return _Content({})
    if not resume:
        return _Content(
            {},
            StoreError(
                f"The checkpoint {fspath(path)!r} is there already.",
                hint=Hint(
                    "Go on from it with resume=True, or remove it to start anew.",
                    cli="Go on from it with --resume, or remove it to start anew.",
                ),
            ),
        )
    try:
        return _Content(_stages_in(path, facts))
    except StoreError as error:
        return _Content({}, error)
    except Exception as error:  # a damaged file can fail anywhere, in ways that nobody foresaw
        return _Content({}, StoreError(f"The checkpoint {fspath(path)!r} is damaged ({error}).", hint=START_ANEW))


def _stages_in(path: Path, facts: Mapping[str, Any]) -> dict[str, Progress]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        unpacked = sum(part.file_size for part in arrays.zip.infolist())
        check_unpacked(
            f"The checkpoint {fspath(path)!r}", packed=path.stat().st_size, unpacked=unpacked, error=StoreError
        )
        header = json.loads(bytes(arrays["header"]))
        if header["format"] != FORMAT or header["version"] != VERSION:
            raise ValueError("it is of another format")
        _check_facts(path, header, facts)
        return {
            name: Progress(torch.from_numpy(arrays[f"state_{number}"]), *_checked_numbers(numbers))
            for number, (name, numbers) in enumerate(header["stages"].items())
        }


def _checked_numbers(numbers: Mapping[str, Any]) -> list[Any]:
    """Return what a checkpoint says about a stage beside its state, or raise if it is of other types."""
    objectives, change, n_steps, converged, ended = (numbers[field] for field in NUMBERS)
    are_numbers = (
        isinstance(objectives, list)
        and objectives
        and all(isinstance(one, float | int) for one in (*objectives, change))
    )
    if not are_numbers or type(n_steps) is not int or n_steps < 0 or {type(converged), type(ended)} != {bool}:
        raise ValueError("the numbers of a stage are of other types")
    return [objectives, change, n_steps, converged, ended]


def _check_facts(path: Path, header: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Raise if a checkpoint is of another fit, and say in what."""
    name = f"The checkpoint {fspath(path)!r}"
    if header["crowd"] != facts["crowd"]:
        raise StoreError(f"{name} is of another crowd than the store.", hint=START_ANEW)
    if header["crowdgraph"] != facts["crowdgraph"]:
        raise StoreError(
            f"{name} was written by crowdgraph {header['crowdgraph']}; this is crowdgraph {facts['crowdgraph']}, whose "
            "sweeps may differ.",
            hint=START_ANEW,
        )
    if header["model"] != facts["model"]:
        raise StoreError(
            f"{name} is of the model {header['model']!r}, and {facts['model']!r} is to be fitted.", hint=START_ANEW
        )
    for setting, value in facts["settings"].items():
        before = header["settings"].get(setting)
        if before != value:
            raise StoreError(f"{name} was written with {setting}={before}, not {value}.", hint=START_ANEW)


def _described(value: Any) -> str:
    """Return a setting as text that is the same for equal settings and differs for others."""
    if not isinstance(value, CrowdPrior):
        return repr(value)
    parts: tuple[Array, ...] = (value.confusion, value.shared, value.class_concentration)
    digest = hashlib.blake2b(repr((value.ids.tolist(), value.classes, value.labels)).encode(), digest_size=16)
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return f"a prior with the checksum {digest.hexdigest()}"
