"""The command ``torchrun -m crowdgraph.distributed fit``, which every process of a group runs."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import typer

from crowdgraph.cli._last_word import last_word
from crowdgraph.cli._options import Prior, Votes, parse_prior, parse_votes
from crowdgraph.cli._output import Quiet, fail, note, prepare_streams, print_error, say
from crowdgraph.cli.app import Commands, listen_to_signals

__all__ = ["app", "main"]

MODELS = {"ibcc": "IBCC", "dynibcc": "DynIBCC", "dawid-skene": "DawidSkene"}

app = typer.Typer(
    name="crowdgraph.distributed",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _about() -> None:
    """Fit crowds on disk by several processes, on one machine or many.

    Begin with [bold]torchrun --nproc-per-node=2 -m crowdgraph.distributed fit STORE --out RESULTS[/bold]
    """


@app.command(no_args_is_help=True)
def fit(
    store: Annotated[
        Path, typer.Argument(help="The crowd: a directory that crowdgraph convert --store wrote.", metavar="STORE")
    ],
    *,
    model: Annotated[str, typer.Option(help="ibcc, dynibcc or dawid-skene.")] = "ibcc",
    out: Annotated[
        Path | None, typer.Option(help="A directory for the results: Parquet, a partition for each process.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A file that says where the fit stands; STORE.checkpoint if left out.")
    ] = None,
    every: Annotated[int, typer.Option(help="After how many sweeps to write the checkpoint.", min=1)] = 10,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint if it is there, with any number of processes.")
    ] = False,
    memory: Annotated[str | None, typer.Option(help="The memory that each process may take, such as 4GB.")] = None,
    prior: Prior = None,
    vote: Votes = None,
    quiet: Quiet = False,
    noise_scale: Annotated[
        str | None,
        typer.Option(
            help="For dynibcc: the scale of volunteers' changes. 1 is as published (the default), 0 for no change, and "
            "auto chooses the scale that predicts answers best.",
            metavar="NUMBER|auto",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, or cuda for the GPU of each process.")] = "cpu",
    dtype: Annotated[str, typer.Option(help="The precision: float64, or float32, which takes less memory.")] = (
        "float64"
    ),
    timeout: Annotated[
        float, typer.Option(help="After how many seconds without a word from a process the others give up.", min=1)
    ] = 600.0,
) -> None:
    """Fit a model to a crowd on disk, together with the other processes that torchrun started.

    For example:

    [bold]torchrun --nproc-per-node=4 -m crowdgraph.distributed fit galaxies.store --out results[/bold]
    [bold]torchrun --nproc-per-node=2 -m crowdgraph.distributed fit galaxies.store --out results --resume[/bold]
    """
    make_model = partial(
        _model, model, store, prior=prior, vote=vote, noise_scale=noise_scale, device=device, dtype=dtype
    )
    checkpoint = store.with_name(f"{store.name}.checkpoint") if checkpoint is None else checkpoint
    early = _EarlyEnd(checkpoint)
    killed = f"Rank {os.environ.get('RANK', '0')} was killed, perhaps for lack of memory. {_advice(checkpoint)}"
    from crowdgraph.core._text import quantity
    from crowdgraph.distributed._ranks import joined
    from crowdgraph.distributed.fitting import fit as fit_together
    from crowdgraph.errors import CrowdGraphError, LostRankError, collect_warnings

    messages: list[str] = []
    with last_word(killed) as word, joined(timeout=timeout) as ranks:
        early.no_more()
        # While it fits, a process that is asked to end raises an error. Afterwards it says so, and ends by itself.
        if ranks.size > 1:
            signal.signal(signal.SIGTERM, lambda *_: None)
        try:
            with collect_warnings(messages):
                fitted = fit_together(
                    make_model(),
                    store,
                    out=out,
                    checkpoint=checkpoint,
                    every=every,
                    resume=resume,
                    memory=memory,
                    timeout=timeout,
                    progress=not quiet,
                )
        except CrowdGraphError as error:
            word.say(error.message)
            if ranks.reports():
                fail(error.message)
            raise typer.Exit(1) from error
        complete = (
            "Nothing was kept but the checkpoint; name a directory with --out to keep the results."
            if out is None
            else f"Open the results with cg.load({str(out)!r})."
        )
        if ranks.rank == 0:
            note(messages)
            state = "converged" if fitted.converged else "did not converge"
            say(f"{fitted.model}: {state} after {fitted.n_iter:,} sweeps by {quantity(ranks.size, 'process')}.")
            say(complete)
        lost = f"The fit was complete when one of the processes was lost. {complete}"
        word.say(lost)
        try:
            ranks.gather(None)
        except LostRankError as error:
            if ranks.reports():
                fail(lost)
            raise typer.Exit(1) from error


def main() -> None:
    """Run the command."""
    prepare_streams()
    listen_to_signals()
    app(prog_name="python -m crowdgraph.distributed")


class _EarlyEnd:
    """Says what to do if a process is asked to end before it has met the others, and ends it.

    A thread waits for the signal, because the process may wait for the others in code that is not Python.

    Parameters
    ----------
    checkpoint
        Where a fit stands that was begun earlier.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint, self._wakeup = checkpoint, -1
        if "RANK" not in os.environ:
            return
        signals, self._wakeup = os.pipe()
        os.set_blocking(self._wakeup, False)
        self._handler = signal.signal(signal.SIGTERM, lambda *_: None)
        signal.set_wakeup_fd(self._wakeup)
        Thread(target=self._wait, args=(signals,), daemon=True).start()

    def no_more(self) -> None:
        """Leave signals to others from now on."""
        if self._wakeup >= 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, self._handler)
            os.close(self._wakeup)

    def _wait(self, signals: int) -> None:
        while number := os.read(signals, 1):
            if number[0] != signal.SIGTERM:
                continue
            # Nobody knows who else is there; the process that was lost is not both of these.
            if os.environ["RANK"] in ("0", "1"):
                print_error(
                    f"Rank {os.environ['RANK']} was asked to end before it met the others, as all are when one has "
                    f"ended or the job is stopped. {_advice(self._checkpoint)}"
                )
            os._exit(1)


def _advice(checkpoint: Path) -> str:
    """Return how to go on where it is not known whether there is a checkpoint."""
    return (
        "Repeat the same command with --resume, with any number of processes: it goes on from the checkpoint "
        f"{str(checkpoint)!r} if that is there, and begins anew otherwise."
    )


def _model(
    name: str,
    store: Path,
    *,
    prior: str | None,
    vote: list[str] | None,
    noise_scale: str | None,
    device: str,
    dtype: str,
) -> Any:
    """Return the model that the options describe."""
    from crowdgraph import models
    from crowdgraph.errors import ParameterError, check_choice
    from crowdgraph.io.columns import open_store

    name = name.replace("_", "-")
    check_choice("model", name, tuple(MODELS))
    settings: dict[str, Any] = {"device": device, "dtype": dtype}
    if vote:
        opened = open_store(store)
        settings["votes"] = parse_votes(vote, opened.labels, opened.classes)
    if prior is not None:
        if name == "dawid-skene":
            raise ParameterError("--prior is for models with a prior, and dawid-skene has none; leave it out.")
        settings["confusion_prior"] = parse_prior(prior)
    if noise_scale is not None:
        if name != "dynibcc":
            raise ParameterError(
                f"--noise-scale is for volunteers who change, and in {name} nobody does; leave it out, or use --model "
                "dynibcc."
            )
        settings["noise_scale"] = _as_number(noise_scale)
    return getattr(models, MODELS[name])(**settings)


def _as_number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
