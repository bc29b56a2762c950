"""Random small faults in the code that computes, each in a copy of the package, are noticed by the tests.

A mutant has one operator, comparison, number, truth value or sign changed, or one statement less. The tests that
mention its module run first, then the others of its folder and those of folders that build on it. A seed draws all
mutants: ``python tests/reliability/mutants.py 25`` tries the first 25.
"""

import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from reliability.attack import Row, Size

ROOT = Path(__file__).parents[2]
FOLDERS = ("core", "kernels", "models", "communities", "io")
COPIED = ("crowdgraph", "tests", "docs", "conftest.py", "pyproject.toml")
# Folders of tests that use the code of a folder closely, beside its own.
NOTICED_BY = {
    "core": ("report", "dynamics"),
    "kernels": ("tensors", "models", "communities", "networks", "evaluation"),
    "models": ("tensors", "evaluation", "ranks"),
    "communities": ("dynamics",),
    "io": ("ranks", "cli"),
}
N_MUTANTS = {Size.SHORT: 25, Size.LONG: 300}
# The share that must be noticed, and the seconds that the tests of a mutant may take, in processor time.
ASKED, MAX_SECONDS = 0.9, 600

OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class Mutant(NamedTuple):
    """A change of a file: what stood on a line, and what stands there instead."""

    path: Path
    line: int
    before: str
    after: str
    source: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.before} -> {self.after}"


def changes_of(path):
    """Return the changes that a file allows: by line, nodes and what may stand in their places."""
    by_line = {}
    for node in executed_nodes(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        for replacement in replacements(node):
            by_line.setdefault(node.lineno, []).append((node, replacement))
    return by_line


def mutant_of(path, node, replacement):
    """Return the mutant of a file in which one node is replaced."""
    source = (ROOT / path).read_text(encoding="utf-8")
    start, end = offsets(source, node)
    changed = source[:start] + replacement + source[end:]
    ast.parse(changed)
    return Mutant(path, node.lineno, shortened(source[start:end]), shortened(replacement), changed)


def executed_nodes(node, *, inside=False):
    """Yield the nodes within functions that are neither annotations, defaults, docstrings, nor words of messages."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        for statement in node.body if isinstance(node.body, list) else [node.body]:
            yield from executed_nodes(statement, inside=True)
        return
    if isinstance(node, ast.Raise | ast.JoinedStr) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ):
        if inside and isinstance(node, ast.Raise):
            yield node
        return
    if inside:
        yield node
    skipped = getattr(node, "annotation", None)
    for child in ast.iter_child_nodes(node):
        if child is not skipped:
            yield from executed_nodes(child, inside=inside)


def replacements(node):
    """Yield what could stand in the place of a node."""
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OPERATORS:
        yield f"({ast.unparse(with_operator(node))})"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield f"({ast.unparse(ast.Compare(node.left, [OPERATORS[type(node.ops[0])]()], node.comparators))})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield repr(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield repr(node.value + 1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.AugAssign | ast.Raise) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield "pass"


def with_operator(node):
    """The node with the other operator."""
    other = OPERATORS[type(node.op)]()
    return ast.BinOp(node.left, other, node.right) if isinstance(node, ast.BinOp) else ast.BoolOp(other, node.values)


def offsets(source, node):
    """Where a node begins and ends in the text; `ast` counts columns in bytes."""
    lines = source.splitlines(keepends=True)

    def offset(line, column):
        return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())

    return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)


def shortened(text):
    """The text on one line."""
    return " ".join(text.split())[:90].replace("|", "or")


def draw_mutants(number, *, seed=0):
    """Draw so many mutants, each of another line."""
    paths = [path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / "crowdgraph" / folder).glob("*.py")]
    changes = {(path, line): nodes for path in sorted(paths) for line, nodes in changes_of(path).items()}
    rng = random.Random(seed)  # noqa: S311 - nothing here is secret
    return [mutant_of(path, *rng.choice(changes[path, line])) for path, line in rng.sample(sorted(changes), number)]


class Workshop:
    """A copy of the package in which one file at a time is changed, with a cache of compiled code of its own.

    Compiled code is kept by the file that defines a function. So what is compiled of modules that use a changed one is
    thrown away with it, or the change would go unnoticed.
    """

    def __init__(self, folder):
        self.root, self.cache = Path(folder, "copy"), Path(folder, "cache")
        self.root.mkdir()
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, self.root / name)
        self.importers = {
            path.stem: imported_kernels(path) for path in (self.root / "crowdgraph" / "kernels").glob("*.py")
        }

    def is_noticed(self, mutant):
        """Return "failed" if a test fails with a mutant, "late" if the tests take too long, "" if they all pass."""
        original = (self.root / mutant.path).read_text(encoding="utf-8")
        kept = self.cache.with_name("kept")
        if self.cache.is_dir():
            shutil.copytree(self.cache, kept)
        try:
            (self.root / mutant.path).write_text(mutant.source, encoding="utf-8")
            if mutant.path.parent.name == "kernels":
                self.forget(mutant.path.stem)
            return self.run(tests_of(mutant.path))
        finally:
            (self.root / mutant.path).write_text(original, encoding="utf-8")
            shutil.rmtree(self.cache, ignore_errors=True)
            if kept.is_dir():
                kept.rename(self.cache)

    def forget(self, stem):
        """Throw away what was compiled of a module and of those that use it."""
        stale, found = set(), {stem}
        while found - stale:
            stale |= found
            found = {user for user, used in self.importers.items() if used & stale}
        for file in self.cache.rglob("*.nb?"):
            if file.name.split(".")[0] in stale:
                file.unlink()

    def run(self, tests):
        """Run tests until one fails."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.root),
            "NUMBA_CACHE_DIR": str(self.cache),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
        limit = f"ulimit -t {MAX_SECONDS}; exec "
        process = subprocess.run(
            ["/bin/sh", "-c", limit + '"$@"', "sh", *command, "-m", "not science and not browser", *tests],
            cwd=self.root,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
        )
        if process.returncode < 0:
            return "late"
        return "" if process.returncode == 0 else "failed"


def imported_kernels(path):
    """The other kernels that a module imports."""
    imports = (
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)
    )
    return {(node.module or "").rpartition(".")[2] for node in imports if "kernels" in (node.module or "")}


def tests_of(path):
    """The tests of a module: its examples, what mentions it, the other tests of its folder, and those of NOTICED_BY."""
    folder = path.parent.name
    nearby = sorted((ROOT / "tests" / folder).glob("test_*.py"))
    further = [file for name in NOTICED_BY[folder] for file in sorted((ROOT / "tests" / name).glob("test_*.py"))]
    word = path.stem.strip("_")
    files = sorted(
        [*nearby, *further], key=lambda file: word not in file.stem and f".{path.stem}" not in file.read_text()
    )
    return [str(path), *(str(file.relative_to(ROOT)) for file in files)]


def attack(size):
    yield from try_mutants(N_MUTANTS[size])


def try_mutants(number, *, first=0):
    counts, survivors, start = Counter(), [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(folder)
        for mutant in draw_mutants(number)[first:]:
            outcome = workshop.is_noticed(mutant)
            counts[outcome or "survived"] += 1
            if not outcome:
                survivors.append(mutant)
            print(
                f"{time.monotonic() - start:6.0f} s  {outcome or 'survived':8}  {mutant}", file=sys.stderr, flush=True
            )
    tried = counts.total()
    note = f"asked at most {1 - ASKED:.0%}; {counts['late']} made tests run too long"
    note = "; ".join([note, *map(str, survivors)])
    yield Row("mutants that no test notices", tried, len(survivors), "11 of 48", note)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    for row in try_mutants(numbers[0], first=numbers[1] if numbers[1:] else 0):
        print(row)
