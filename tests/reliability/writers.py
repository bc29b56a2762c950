"""Everything that writes files, each in two versions, so that one can be disturbed while it replaces the other.

A `Writer` writes version 0 or 1 to a path, and says what is there. A `Target` is what one writer writes to.
"""

import atexit
import json
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from builders import crowd
from reliability.forks import Fork

import crowdgraph as cg
from crowdgraph.analysis import write_results
from crowdgraph.analysis.output import RECORD
from crowdgraph.cli import main
from crowdgraph.cli._output import write_table
from crowdgraph.io.partitions import is_results


class Writer(NamedTuple):
    """What writes to a path.

    Attributes
    ----------
    name
        What the table calls it.
    target
        The name of the file or directory.
    write
        Writes version 0 or 1 to a path.
    content
        What is at a path that exists: equal content is the same version, None is none.
    replaces
        Whether it replaces what is there; otherwise it writes where nothing is.
    resumes
        Whether it leaves behind on purpose what the next run goes on from.
    is_command
        Whether it is a command, which may end the process.
    """

    name: str
    target: str
    write: Callable[[Path, int], object]
    content: Callable[[Path], Any]
    replaces: bool = True
    resumes: bool = False
    is_command: bool = False


class Target:
    """What a writer writes to: version 0, or nothing if it replaces nothing, in a folder without anything else.

    Parameters
    ----------
    writer
        The writer.
    folder
        An empty folder.
    """

    def __init__(self, writer: Writer, folder: Path) -> None:
        self.writer, self.folder, self.path = writer, folder, folder / writer.target
        self.old = None
        if not writer.is_command:
            # What it imports and computes first need not be done by every fork.
            writer.write(self.path, 0)
            remove(self.path)
        if writer.replaces:
            self._complete(0)
            self.old = self.content()
        self._complete(1)
        self.new = self.content()
        self.next_run()

    def content(self) -> Any:
        """Return what is there now; the error if it is damaged."""
        try:
            return self.writer.content(self.path) if self.path.exists() else None
        except Exception as error:
            return error

    def overwrite(self, prepare: Callable[[], object] = lambda: None) -> Fork:
        """Begin to write version 1 in a fork, after `prepare`."""

        def act() -> None:
            prepare()
            self.writer.write(self.path, 1)

        return Fork(act)

    def is_complete(self) -> bool:
        """Return whether the old or the new version is there."""
        content = self.content()
        return any(is_same(content, version) for version in (self.old, self.new))

    def left_over(self) -> list[str]:
        """Return what else is in the folder."""
        return sorted(path.name for path in self.folder.iterdir() if path != self.path)

    def next_run(self) -> list[str]:
        """Write once more, undisturbed; return what is left over then. The target is as at the beginning again."""
        if not self.writer.replaces and is_same(self.content(), self.new):
            remove(self.path)
        self._complete(0 if self.writer.replaces else 1)
        names = self.left_over()
        if not is_same(self.content(), self.old if self.writer.replaces else self.new):
            names.append(f"{self.writer.target}, which is neither old nor new")
        for name in self.left_over() if self.writer.replaces else [self.writer.target, *self.left_over()]:
            remove(self.folder / name)
        return names

    def _complete(self, number: int) -> None:
        fork = Fork(lambda: self.writer.write(self.path, number))
        if fork.wait():
            raise RuntimeError(f"{self.writer.name} failed without being disturbed: {fork.output()}")


def is_same(left: Any, right: Any) -> bool:
    """Return whether two contents are the same version."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return left.shape == right.shape and np.allclose(left, right, rtol=0, atol=1e-9)
    return type(left) is type(right) and left == right


def remove(path: Path) -> None:
    """Remove a file or a directory."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# What is written


@cache
def material() -> Path:
    """Return a folder with tables and a store of two crowds."""
    folder = Path(tempfile.mkdtemp(prefix="crowdgraph-attack-"))
    atexit.register(shutil.rmtree, folder)
    for number, graph in enumerate(crowds()):
        write_table(graph.to_arrow(), folder / f"crowd{number}.csv")
        graph.save(folder / f"crowd{number}.store", format="columns")
    return folder


@cache
def crowds() -> list[cg.CrowdGraph]:
    """Return two crowds."""
    return [crowd(seed=seed).graph for seed in (0, 1)]


@cache
def graphs() -> list[cg.CrowdGraph]:
    """Return these crowds with a fit, a network and communities."""
    return [annotated(graph) for graph in crowds()]


def annotated(graph: cg.CrowdGraph) -> cg.CrowdGraph:
    """Return a graph with a fit, a network and communities."""
    graph = graph.annotate(cg.IBCC(max_iter=5).fit(graph))
    network = cg.networks.pi_similarity(graph)
    return graph.annotate(network).annotate(cg.Leiden().detect(network, seed=0), name="communities")


@cache
def analyses() -> list[cg.analysis.Analysis]:
    """Return the analyses of these crowds."""
    return [cg.analysis.analyse(graph, model="ibcc", snapshots=0, detector=cg.Leiden()) for graph in crowds()]


def save_network(path: Path, number: int) -> None:
    """Write the network of a crowd."""
    graph = graphs()[number]
    graph.network("pi_similarity").save(path, communities=graph.communities())


def fit_alone(path: Path, number: int) -> None:
    """Fit a store with a checkpoint after every sweep, and go on from the last one."""
    model = cg.IBCC(max_iter=20)
    options = {"checkpoint": path.with_name("fit.checkpoint"), "every": 1, "resume": True}
    cg.distributed.fit(model, material() / f"crowd{number}.store", out=path, **options)


def command(*arguments: object) -> None:
    """Run the command line as its process does."""
    sys.argv = ["crowdgraph", *map(str, arguments)]
    main()


ANALYSIS = ("--model", "ibcc", "--snapshots", 0, "--min-responses", 1, "--max-volunteers", 3)


def analyse(path: Path, number: int) -> None:
    """Analyse a crowd by the command line."""
    command("analyse", material() / f"crowd{number}.csv", "--out", path, "--force", *ANALYSIS)


def update(path: Path, number: int) -> None:
    """Write results, or renew those that are there with the responses of another crowd."""
    if number:
        command("update", path, material() / "crowd1.csv")
    else:
        analyse(path, 0)


def convert(path: Path, number: int) -> None:
    """Convert a table by the command line."""
    options = ("--store",) if path.suffix == ".store" else ()
    command("convert", material() / f"crowd{number}.csv", *options, path, "--force")


# What is there


def archive(path: Path) -> dict[str, bytes]:
    """Return the parts of a saved graph that can be loaded."""
    cg.load(path)
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def store(path: Path) -> str:
    """Return the fingerprint of a store whose files have their checksums."""
    return cg.open_store(path, verify=True).fingerprint


def results(path: Path) -> dict[str, bytes]:
    """Return the graph of results, of which every file that they name is there, and no other."""
    recorded = json.loads((path / RECORD).read_text(encoding="utf-8"))["files"]
    present = [file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()]
    if sorted(recorded) != sorted(present) or not all((path / name).stat().st_size for name in present):
        raise ValueError(f"{recorded} are recorded, {present} are there")
    return archive(path / "graph.crowd")


def partitions(path: Path) -> np.ndarray | None:
    """Return the class probabilities of a fit in partitions; None while it is not complete."""
    return cg.load(path).fit().item_probs if is_results(path) else None


WRITERS = (
    Writer("graph.save", "graph.crowd", lambda path, number: graphs()[number].save(path), archive),
    Writer(
        "graph.save, columns",
        "graph.store",
        lambda path, number: crowds()[number].save(path, format="columns"),
        store,
        replaces=False,
    ),
    Writer("network.save", "network.graphml", save_network, Path.read_bytes),
    Writer("to_graphml", "graph.graphml", lambda path, number: graphs()[number].to_graphml(path), Path.read_bytes),
    Writer("to_gexf", "graph.gexf", lambda path, number: graphs()[number].to_gexf(path), Path.read_bytes),
    Writer("tables", "t.csv.gz", lambda path, number: write_table(graphs()[number].to_arrow(), path), Path.read_bytes),
    Writer("report.write", "r.html", lambda path, number: cg.report.write(analyses()[number], path), Path.read_bytes),
    Writer(
        "write_results",
        "results",
        lambda path, number: write_results(analyses()[number], path),
        results,
        replaces=False,
    ),
    Writer(
        "write_results, force",
        "results",
        lambda path, number: write_results(analyses()[number], path, force=True),
        results,
    ),
    Writer(
        "build_store",
        "crowd.store",
        lambda path, number: cg.build_store(material() / f"crowd{number}.csv", path, force=True),
        store,
        resumes=True,
    ),
    Writer("distributed.fit, checkpoints", "fit", fit_alone, partitions, replaces=False, resumes=True),
    Writer("crowdgraph analyse --force", "results", analyse, results, is_command=True),
    Writer("crowdgraph update", "results", update, results, is_command=True),
    Writer("crowdgraph convert --force", "graph.crowd", convert, archive, is_command=True),
    Writer("crowdgraph convert --store --force", "crowd.store", convert, store, resumes=True, is_command=True),
)
