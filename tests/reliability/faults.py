"""Let disks be full, folders read-only, memory short, pipes closed and processes interrupted.

What was written before is still there, nothing is left over, and whoever called reads one sentence, not a traceback.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from builders import crowd
from cli.commands import figures_left_out
from reliability.attack import Row, Size
from reliability.forks import ROOT, Fork, environment, in_fresh_process
from reliability.kills import watch
from reliability.writers import WRITERS, Target, command, is_same, material, remove

import crowdgraph as cg
from crowdgraph.cli.distributed import main as distributed
from crowdgraph.errors import CrowdGraphError

# How often each case is tried.
N_TRIED = {Size.SHORT: 1, Size.LONG: 6}
# Without rights to mount a file system some attacks cannot be made.
MOUNT, UNMOUNT = shutil.which("mount"), shutil.which("umount")
CAN_MOUNT = sys.platform == "linux" and os.geteuid() == 0 and None not in (MOUNT, UNMOUNT)
# How root runs a command that may not write where others may not.
SETPRIV = shutil.which("setpriv")
WITHOUT_RIGHTS = [SETPRIV, "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 and SETPRIV else []
# The writers of the short form.
IN_SHORT = ("graph.save", "tables", "write_results, force", "build_store", "crowdgraph convert --force")
# Two processes write so often while another one reads.
N_WRITES = 20
MEGABYTE = 2**20
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143}
# How a process ends that nobody listens to.
AFTER_CLOSED_PIPE = (0, 128 + signal.SIGPIPE, -signal.SIGPIPE)


def attack(size: Size) -> Iterator[Row]:
    """Yield a row for each fault."""
    yield from in_fresh_process(__name__, size)


def rows(size: Size) -> Iterator[Row]:
    """Yield these rows; those of the long form need rights, or minutes."""
    with figures_left_out() if size is Size.SHORT else nullcontext():
        yield file_size_limit(size)
        yield from interrupts(size)
        yield two_writers()
        yield closed_pipe()
        yield ascii_terminal()
        if size is Size.LONG:
            yield out_of_memory()
            yield no_place_for_compiled_code()
            if CAN_MOUNT:
                yield full_disk(size)
                yield read_only()
                yield no_temporary_space()
                yield mount_point()


# Faults of a writer


def targets(size: Size, folder: Path) -> Iterator[Target]:
    """Yield the targets of all writers, or of those that are quick, in empty folders."""
    for writer in WRITERS:
        if size is Size.LONG or writer.name in IN_SHORT:
            own = folder / writer.name.replace(" ", "-")
            own.mkdir()
            yield Target(writer, own)
            remove(own)


def file_size_limit(size: Size) -> Row:
    """Let no file be larger than a limit, as quotas do."""
    rng, faults = np.random.default_rng(0), Faults("a limit of the size of files, as quotas set", "0 of 1")
    with TemporaryDirectory(prefix="crowdgraph-faults-") as folder:
        for target in targets(size, Path(folder)):
            for number in range(N_TRIED[size]):
                # Messages are files, too, and shorter than this.
                limit = 4_096 + int(rng.integers(max(largest_file(target.path) - 4_096, 1)))
                fork = overwrite(target, partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit)))
                faults.add(f"{target.writer.name}, {number}, {limit} bytes", faults_of(target, fork))
    return faults.row()


def full_disk(size: Size) -> Row:
    """Let a disk be full before all is written."""
    rng, faults = np.random.default_rng(1), Faults("a full disk", "0 of 4")
    with small_disk(64 * MEGABYTE) as folder:
        for target in targets(size, folder):
            n_bytes = size_of(target.path)
            for number in range(N_TRIED[size]):
                with filled(folder / "filler", leave=int(rng.integers(2 * n_bytes + 1))):
                    fork = overwrite(target)
                    fork.wait()
                faults.add(f"{target.writer.name}, {number}", faults_of(target, fork))
    return faults.row()


def read_only() -> Row:
    """Let nothing be written at all."""
    faults = Faults("a read-only disk")
    with small_disk(64 * MEGABYTE) as folder:
        for target in targets(Size.LONG, folder):
            remount(folder, "ro")
            fork = overwrite(target)
            fork.wait()
            remount(folder, "rw")
            faults.add(target.writer.name, faults_of(target, fork, codes=(1,)))
    return faults.row()


def overwrite(target: Target, prepare: Callable[[], object] = lambda: None) -> Fork:
    """Begin to write version 1; an error of ours ends the fork as it ends a command."""

    def act() -> None:
        prepare()
        try:
            target.writer.write(target.path, 1)
        except CrowdGraphError as error:
            print(f"Error: {error}")
            sys.exit(1)

    return Fork(act)


def faults_of(target: Target, fork: Fork, *, codes: tuple[int, ...] = (0, 1)) -> list[str]:
    """Return what is wrong after a disturbed write, and put the target in order."""
    faults = faults_of_end(fork, codes)
    if not target.is_complete():
        faults.append("neither the old nor the new version is there")
    names = target.left_over()
    if names and not target.writer.resumes:
        faults.append(f"left over: {names}")
    names = target.next_run()
    return [*faults, f"left over after the next run: {names}"] if names else faults


def faults_of_end(fork: Fork, codes: tuple[int, ...]) -> list[str]:
    """Return what is wrong with how a process ended: another exit code, a traceback, or no sentence."""
    code, output = fork.wait(), fork.output()
    faults = [] if code in codes else [f"exit code {code}; expected one of {codes}: {output[-300:]!r}"]
    if "Traceback" in output:
        faults.append(f"a traceback: {output[-300:]!r}")
    if code == 1 and "Error: " not in output:
        faults.append(f"no sentence: {output[-300:]!r}")
    return faults


# Interrupted processes


def interrupts(size: Size) -> Iterator[Row]:
    """Send signals at random moments of commands; in the short form before operations on files."""
    rng = np.random.default_rng(2)
    before = {signal.SIGINT: "0 of 12", signal.SIGTERM: "9 of 10"}
    for number, code in SIGNALS.items():
        faults = Faults(f"{number.name} in commands", before[number])
        with TemporaryDirectory(prefix="crowdgraph-faults-") as folder:
            for target in targets(size, Path(folder)):
                if target.writer.is_command:
                    for tried in range(N_TRIED[size]):
                        fork = interrupted(target, number, rng, size)
                        faults.add(f"{target.writer.name}, {tried}", faults_of(target, fork, codes=(0, code)))
        with TemporaryDirectory(prefix="crowdgraph-faults-") as folder:
            for tried in range(N_TRIED[size]):
                fork = interrupted_fit(Path(folder), number, int(rng.integers(1, 30)))
                left_over = [path.name for path in Path(folder).iterdir() if path.name.endswith((".part", ".old"))]
                also = [f"left over: {left_over}"] if left_over else []
                faults.add(f"distributed fit, {tried}", faults_of_end(fork, (0, code)) + also)
        yield faults.row()


def interrupted(target: Target, number: signal.Signals, rng: np.random.Generator, size: Size) -> Fork:
    """Send a signal to a command, early or late."""
    if size is Size.SHORT:
        return overwrite(target, partial(signal_at, target.folder, number, int(rng.integers(1, 5))))
    begin = time.monotonic()
    overwrite(target).wait()
    duration = time.monotonic() - begin
    target.next_run()
    fork = overwrite(target)
    time.sleep(rng.uniform(0, duration))
    fork.kill(number)
    return fork


def signal_at(folder: Path, number: signal.Signals, at: int) -> None:
    """Send a signal to this process before one of its operations on files."""
    watch(folder, lambda operation: operation == at and os.kill(os.getpid(), number))


def interrupted_fit(folder: Path, number: signal.Signals, at: int) -> Fork:
    """Send a signal to a fit with checkpoints, which goes on from the last one if there is one."""
    options = ["--out", folder / "fit", "--checkpoint", folder / "fit.checkpoint", "--every", "1", "--resume"]

    def act() -> None:
        signal_at(folder, number, at)
        sys.argv = ["crowdgraph.distributed", "fit", *map(str, [material() / "crowd0.store", *options])]
        distributed()

    return Fork(act)


# Others


def two_writers() -> Row:
    """Let two processes write the same file while this one reads it."""
    faults = Faults("files that are read while two processes write them", "0 of 254")
    for writer in WRITERS:
        if writer.name in ("graph.save", "to_graphml"):
            with TemporaryDirectory(prefix="crowdgraph-faults-") as folder:
                target = Target(writer, Path(folder))
                forks = [Fork(partial(write_often, target, number)) for number in (0, 1)]
                for reading in range(N_WRITES):
                    content = target.content()
                    is_sound = any(is_same(content, version) for version in (target.old, target.new))
                    faults.add(f"{writer.name}, {reading}", [] if is_sound else [f"{content!r}"[:200]])
                ends = [fault for fork in forks for fault in faults_of_end(fork, (0,))]
                faults.add(f"{writer.name}, the end", [*ends, *target.left_over()])
    return faults.row()


def write_often(target: Target, number: int) -> None:
    """Write a version again and again."""
    for _ in range(N_WRITES):
        target.writer.write(target.path, number)


def closed_pipe() -> Row:
    """Let nobody read what a command prints."""
    faults = Faults("a closed pipe", "1 of 1")
    for arguments in reading_commands():
        fork = Fork(partial(print_into, arguments, close_output))
        faults.add(str(arguments[0]), faults_of_end(fork, AFTER_CLOSED_PIPE))
    return faults.row()


def close_output() -> None:
    """Make the output a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)
    # The old one remembers that its file could be read from anywhere.
    sys.stdout = os.fdopen(1, "w", closefd=False)


def ascii_terminal() -> Row:
    """Print names in letters that a terminal does not know."""
    faults = Faults("a terminal of ASCII", "1 of 1")
    for arguments in reading_commands():
        fork = Fork(partial(print_into, arguments, ascii_output))
        faults.add(str(arguments[0]), faults_of_end(fork, (0,)))
    return faults.row()


def ascii_output() -> None:
    """Make the streams those of a terminal that knows ASCII only."""
    sys.stdout, sys.stderr = (
        TextIOWrapper(os.fdopen(stream, "wb", closefd=False), encoding="ascii", line_buffering=True)
        for stream in (1, 2)
    )


def reading_commands() -> list[tuple[object, ...]]:
    """Return commands that print about a crowd whose volunteers have names in many letters."""
    table = material() / "letters.csv"
    names = ("Zoë", "Łukasz", "李", "😀")
    rows = [
        f"{name},item {number},{('ja', 'weiß nicht')[number % 2]}"
        for volunteer, name in enumerate(names)
        for number in range(volunteer, volunteer + 6)
    ]
    table.write_text("\n".join(["volunteer,item,label", *rows]), encoding="utf-8")
    return [("inspect", table), ("inspect", table, "--json"), ("allocate", table, "--budget", 5)]


def print_into(arguments: tuple[object, ...], prepare: Callable[[], None]) -> None:
    """Run a command whose streams were prepared."""
    prepare()
    command(*arguments)


def out_of_memory() -> Row:
    """Let a process have less memory than a network of all volunteers needs."""
    faults = Faults("too little memory", "1 of 1")
    graph = crowd(n_volunteers=3_000, n_items=2_000, n_responses=40_000, seed=0).graph
    with TemporaryDirectory(prefix="crowdgraph-faults-") as name:
        folder = Path(name)
        graph.save(folder / "large.crowd")
        options = ("--model", "ibcc", "--snapshots", 0, "--min-responses", 1, "--max-volunteers", 3_000)
        for megabytes in (30, 60, 100, 150, 250):
            out = folder / str(megabytes)

            def act(out: Path = out, megabytes: int = megabytes) -> None:
                limit_memory(megabytes * MEGABYTE)
                command("analyse", folder / "large.crowd", "--out", out, *options)

            left_over = [path.name for path in folder.iterdir() if path.name.startswith(".")]
            faults.add(f"{megabytes} MB", faults_of_end(Fork(act), (0, 1)) + left_over)
    return faults.row()


def limit_memory(n_bytes: int) -> None:
    """Let this process have so much more memory."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + n_bytes, used + n_bytes))


def no_place_for_compiled_code() -> Row:
    """Run an installation that may not be written to, for a user without a home."""
    faults = Faults("no home, and a read-only installation", "1 of 1")
    with TemporaryDirectory(prefix="crowdgraph-faults-") as name:
        package = Path(name) / "crowdgraph"
        shutil.copytree(ROOT / "crowdgraph", package, ignore=shutil.ignore_patterns("__pycache__"))
        with protected(package):
            code = "import crowdgraph as cg; print(cg.IBCC().fit(cg.simulate.crowd(seed=0).graph).converged)"
            ended = subprocess.run(
                [*WITHOUT_RIGHTS, sys.executable, "-c", code],
                env=environment(HOME="/proc/nobody", XDG_CACHE_HOME="/proc/nobody", PYTHONPATH=name),
                cwd="/",
                capture_output=True,
                text=True,
                check=False,
            )
        sound = ended.returncode == 0 and "True" in ended.stdout and "Traceback" not in ended.stderr
        faults.add("fit", [] if sound else [ended.stderr[-300:]])
    return faults.row()


@contextmanager
def protected(folder: Path) -> Iterator[None]:
    """Let nobody write to a folder, but for those who may do anything."""
    modes = {path: path.stat().st_mode for path in (folder, *folder.rglob("*"))}
    for path, mode in modes.items():
        path.chmod(mode & 0o555)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def no_temporary_space() -> Row:
    """Let a fit that streams find no space for its temporary files."""
    faults = Faults("no space for temporary files")
    with small_disk(MEGABYTE) as folder:
        graph = cg.load(material() / "crowd0.store")
        for model in (cg.IBCC(max_iter=5), cg.DawidSkene(max_iter=5), cg.DynIBCC(max_iter=5)):
            with filled(folder / "filler", leave=0):
                fork = Fork(partial(fit_streaming, model, graph, folder))
                fork.wait()
            left_over = [str(path) for path in folder.iterdir()]
            faults.add(model.name, faults_of_end(fork, (0, 1)) + left_over)
    return faults.row()


def fit_streaming(model: cg.models.Model, graph: cg.CrowdGraph, folder: Path) -> None:
    """Fit a model with temporary files in a folder."""
    tempfile.tempdir = str(folder)
    try:
        model.fit(graph, memory="8GB")
    except CrowdGraphError as error:
        print(f"Error: {error}")
        sys.exit(1)


def mount_point() -> Row:
    """Write results to a directory on which a file system is mounted, as containers do."""
    faults = Faults("a mount point as --out", "1 of 1")
    with small_disk(64 * MEGABYTE) as folder:
        for arguments in (("simulate", folder), ("simulate", folder, "--force")):
            fork = Fork(partial(command, *arguments, "--responses", 100, "--volunteers", 5, "--items", 40))
            faulty = faults_of_end(fork, (0,))
            names = sorted(path.name for path in folder.iterdir())
            expected = ["gold.csv", "responses.csv", "run.json", "truth.csv"]
            faults.add(str(arguments[2:]), faulty if names == expected else [*faulty, f"there are {names}"])
    return faults.row()


class Faults:
    """Counts cases, and prints those that fail."""

    def __init__(self, what: str, before: str = "") -> None:
        self._what, self._before = what, before
        self._n_tried, self._n_failed = 0, 0

    def add(self, case: str, faults: list[str]) -> None:
        """Count a case, with what was wrong."""
        self._n_tried, self._n_failed = self._n_tried + 1, self._n_failed + bool(faults)
        if faults:
            print(f"{self._what}: {case}: {'; '.join(faults)}", file=sys.stderr, flush=True)

    def row(self) -> Row:
        """Return the row of the table."""
        return Row(self._what, self._n_tried, self._n_failed, self._before)


# Disks


@contextmanager
def small_disk(n_bytes: int) -> Iterator[Path]:
    """Yield a folder that is a small disk of its own."""
    with TemporaryDirectory(prefix="crowdgraph-faults-") as folder:
        subprocess.run([MOUNT, "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run([UNMOUNT, "--lazy", folder], check=True)


def remount(folder: Path, how: str) -> None:
    """Let a disk be read-only, or not."""
    subprocess.run([MOUNT, "-o", f"remount,{how}", folder], check=True)


@contextmanager
def filled(filler: Path, *, leave: int) -> Iterator[None]:
    """Fill a disk but for some bytes."""
    free = shutil.disk_usage(filler.parent).free
    with filler.open("wb") as file:
        if free > leave:
            os.posix_fallocate(file.fileno(), 0, free - leave)
    try:
        yield
    finally:
        filler.unlink()


def largest_file(path: Path) -> int:
    """Return the size of the largest file of a target."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return max((file.stat().st_size for file in files), default=0)


def size_of(path: Path) -> int:
    """Return the size of a target."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
