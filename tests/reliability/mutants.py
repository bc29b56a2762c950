"""Random small faults in the code that computes, each in a copy of the package, are noticed by the tests.

A mutant has one operator, comparison, number, truth value or sign changed, or one statement less. The tests that run
the changed line are tried, the quickest first, until one fails or they have had their time; what no test notices by
then has survived. First all tests run without a change, to see which line each of them runs; those that fail even so
are left out.

A seed draws all mutants: ``python tests/reliability/mutants.py --seed 1 --number 25`` tries the first 25 of seed 1,
``--first 20`` leaves out 20 of these, and ``--records DIRECTORY`` keeps which test runs which line, and uses what is
there.
"""

import argparse
import ast
import json
import os
import random
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from reliability.attack import Row, Size
from reliability.forked_tests import FAULT, SECONDS, SELECTED, TIMES, TO_COMPILE, Checkout, Chosen, Outcome, outcome_of
from reliability.forks import in_fresh_process
from reliability.line_tests import LineTests, Recorder, file_of, spent

ROOT = Path(__file__).parents[2]
FOLDERS = ("core", "kernels", "models", "communities", "io")
# Directories of tests that are seen to run lines of these. The others draw, or start processes that no tool looks into.
TESTS = (
    *(f"tests/{name}" for name in FOLDERS),
    *(f"tests/{name}" for name in ("tensors", "networks", "dynamics", "evaluation", "diagnosis")),
    *(f"tests/{name}" for name in ("report", "simulate", "nn", "allocation", "analysis")),
    "crowdgraph",
)
# The short form is of one directory of the package and its own tests.
SHORT_FOLDERS, SHORT_TESTS = ("communities",), ("tests/communities", "crowdgraph/communities")
N_MUTANTS = {Size.SHORT: 25, Size.LONG: 300}
# The share that must be noticed.
ASKED = 0.9
# The tests of a mutant may take so many seconds of processor time, by what they took without it. Those of the first
# round are of few files, since a file takes time to collect.
FIRST_SECONDS, FIRST_FILES, MAX_SECONDS = 5, 6, 30
# So many runs at a time.
JOBS = max(1, (os.cpu_count() or 1) // 2)

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


def draw_mutants(number, *, seed=0, folders=FOLDERS):
    """Draw so many mutants, each of another line; more of a seed begin with the same."""
    paths = [path.relative_to(ROOT) for folder in folders for path in (ROOT / "crowdgraph" / folder).glob("*.py")]
    changes = {(path, line): nodes for path in sorted(paths) for line, nodes in changes_of(path).items()}
    rng = random.Random(seed)  # noqa: S311 - nothing here is secret
    lines = rng.sample(sorted(changes), len(changes))
    return [mutant_of(path, *rng.choice(changes[path, line])) for path, line in lines[:number]]


class Workshop:
    """Where mutants are tried, some at a time."""

    def __init__(self, folder, jobs, records):
        self.folder, self.jobs = Path(folder), jobs
        self.records = (records or self.folder / "records").absolute()
        self.records.mkdir(exist_ok=True)
        self.checkout = Checkout(folder)

    def record(self, tests):
        """Run tests without a change; return what the run of each directory recorded."""
        return self.run_all([self.recording(name) for name in tests])

    def recording(self, name):
        """Record the tests of a directory, unless that was done before."""
        note = self.records / f"{name.replace('/', '-')}.json"
        if not note.exists():
            status = yield partial(self.checkout.start, [name, *SELECTED], partial(Recorder, self.checkout.root, note))
            if os.waitstatus_to_exitcode(status) not in (0, 1):
                note.unlink(missing_ok=True)
                raise RuntimeError(f"The tests of {name} cannot be run.")
        record = json.loads(note.read_text(encoding="utf-8"))
        say(f"recorded {len(record['seconds'])} tests of {name}; {record['failed']} failed")
        return record

    def trial(self, mutant, known):
        """Try a mutant on the tests of its line, in two rounds; return the outcome."""
        stale = known.compiled_with(mutant.path, mutant.line)
        tests = known.of(mutant.path, mutant.line)
        for place, chosen in enumerate(rounds(tests, known.seconds)):
            limits = {test: TIMES * known.seconds[test] + SECONDS + TO_COMPILE * bool(stale) for test in chosen}
            note = self.folder / f"note-{mutant.path.stem}-{mutant.line}-{place}"
            start = partial(self.checkout.start, changed=(mutant.path, mutant.source), stale=stale)
            outcome = outcome_of((yield partial(start, arguments(chosen), partial(Chosen, limits, note))), note)
            if outcome.word != "passed":
                break
        else:
            outcome = Outcome("survived", [])
        say(f"{outcome.word:8}  {mutant}  [{' '.join(outcome.tests[:1]) or f'{len(tests)} tests'}]")
        return outcome

    def control(self, killers, known):
        """Run tests that failed with a mutant without any change; return those that fail even so."""
        limits = {test: TIMES * known.seconds[test] + SECONDS + TO_COMPILE for test in killers}
        note = self.folder / "note-control"
        outcome = outcome_of(
            (yield partial(self.checkout.start, arguments(killers)[1:], partial(Chosen, limits, note))), note
        )
        return outcome.tests

    def run_all(self, tasks):
        """Return what tasks return: generators that yield what starts a run, and go on with its exit status."""
        queue = [(place, task, None) for place, task in enumerate(tasks)]
        running, free, returned = {}, list(range(self.jobs)), {}
        while queue or running:
            while queue and free:
                place, task, status = queue.pop(0)
                try:
                    start = task.send(status)
                except StopIteration as stop:
                    returned[place] = stop.value
                    continue
                slot = free.pop()
                running[start(slot=slot)] = place, task, slot
            if running:
                pid, status = os.wait()
                place, task, slot = running.pop(pid)
                free.append(slot)
                if os.waitstatus_to_exitcode(status) == FAULT:
                    raise RuntimeError(self.checkout.log(slot).read_text(encoding="utf-8", errors="replace"))
                queue.insert(0, (place, task, status))
        return [returned[place] for place in range(len(tasks))]


def rounds(tests, seconds):
    """Yield the tests to try first, and then the others that there is time for."""
    first, files, time = [], set(), 0.0
    for test in tests:
        if time + seconds[test] < FIRST_SECONDS and len(files | {file_of(test)}) <= FIRST_FILES:
            first.append(test)
            files.add(file_of(test))
            time += seconds[test]
    later = []
    for test in sorted(set(tests).difference(first), key=tests.index):
        if time + seconds[test] < MAX_SECONDS:
            later.append(test)
            time += seconds[test]
    yield from filter(None, (first, later))


def arguments(tests):
    """The arguments of pytest that collect tests and stop at the first that fails."""
    return ["-x", *dict.fromkeys(map(file_of, tests))]


def say(text):
    """Write a line about what was just done, with the processor time until now."""
    print(f"{spent():6.0f} s  {text}", file=sys.stderr, flush=True)


def attack(size):
    yield from in_fresh_process("reliability.mutants", size)


def rows(size):
    short = size is Size.SHORT
    mutants = draw_mutants(N_MUTANTS[size], folders=SHORT_FOLDERS if short else FOLDERS)
    yield from try_mutants(mutants, SHORT_TESTS if short else TESTS)


def try_mutants(mutants, tests=TESTS, *, jobs=JOBS, records=None):
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(folder, jobs, records)
        recorded = workshop.record(tests)
        known = LineTests(workshop.checkout.root, recorded)
        outcomes = workshop.run_all([workshop.trial(mutant, known) for mutant in mutants])
        killers = {one.tests[0] for one in outcomes if one.word == "failed" and one.tests[0] in known.seconds}
        unsound = workshop.run_all([workshop.control(sorted(killers), known)])[0] if killers else []
    failing = sorted(test for record in recorded for test in record["failed"])
    survivors = [
        mutant
        for mutant, outcome in zip(mutants, outcomes, strict=True)
        if outcome.word not in ("failed", "late") or set(outcome.tests) & set(unsound)
    ]
    counts = Counter(outcome.word for outcome in outcomes)
    share = 1 - len(survivors) / max(len(mutants), 1)
    notes = [
        f"{share:.1%} noticed, asked {ASKED:.0%}",
        f"{counts['late']} made tests run too long",
        f"{spent():.0f} s of processor time",
        *(f"fails without a change: {test}" for test in {*failing, *unsound}),
        *map(str, survivors),
    ]
    yield Row("mutants that no test notices", len(mutants), len(survivors), "11 of 48", "; ".join(notes))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, default=25)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--records", type=Path)
    given = parser.parse_args()
    for row in try_mutants(
        draw_mutants(given.number, seed=given.seed)[given.first :], jobs=given.jobs, records=given.records
    ):
        print(row)
