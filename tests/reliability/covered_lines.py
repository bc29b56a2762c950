"""Which lines and branches of the code that computes run in the tests.

Compiled functions run where no tool looks: `coverage` sees that they are defined, and nothing of what they do. So their
bodies are left out of the figure of the whole suite, and counted in another run, of the tests of kernels and of models
with ``NUMBA_DISABLE_JIT=1``, in which Python runs the same lines. The two figures are of different lines, and the table
has both. Processes that tests start are not seen at all; what only runs there counts as not covered.

It needs ``coverage``, which ``pip install -c constraints.txt ".[dev]"`` brings.
"""

import ast
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from reliability.attack import Row, Size

ROOT = Path(__file__).parents[2]
FOLDERS = ("core", "kernels", "models", "communities", "io")
# The share of lines and branches that is asked for.
ASKED = 0.95
# The tests of each run; the short form measures one folder only, to try the attack itself.
TESTS = {Size.SHORT: ("tests/kernels/test_special.py",), Size.LONG: ("tests", "crowdgraph")}
UNCOMPILED_TESTS = {Size.SHORT: TESTS[Size.SHORT], Size.LONG: ("tests/kernels", "tests/models", "tests/communities")}


class Covered(NamedTuple):
    """How many lines and branches there are, and which of the lines do not run."""

    n: int
    n_run: int
    missing: dict


def compiled_lines(path):
    """Return the lines of the bodies of compiled functions of a file."""
    lines = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and any(is_compiler(decorator) for decorator in node.decorator_list):
            lines.update(range(node.body[0].lineno, node.end_lineno + 1))
    return lines


def is_compiler(decorator):
    """Whether a decorator is one of numba's, as ``@njit``, ``@numba.njit(...)`` or ``@vectorize(...)``."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("njit", "jit", "vectorize", "guvectorize", "intrinsic", "overload")


def measure(tests, folder, *, compiled=True):
    """Run tests and return what `coverage` says about each file of the folders."""
    data, report = Path(folder, f"data-{compiled}"), Path(folder, f"report-{compiled}.json")
    environment = {
        **os.environ,
        "COVERAGE_FILE": str(data),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
        **({} if compiled else {"NUMBA_DISABLE_JIT": "1"}),
    }
    sources = ",".join(str(ROOT / "crowdgraph" / name) for name in FOLDERS)
    coverage = [sys.executable, "-m", "coverage"]
    pytest = ["-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not science and not browser"]
    run = [*coverage, "run", "--branch", f"--source={sources}", *pytest, *tests]
    ended = subprocess.run(run, check=False, cwd=ROOT, env=environment, stdout=sys.stderr)
    subprocess.run([*coverage, "json", "-q", "-o", str(report)], cwd=ROOT, env=environment, check=True)
    return json.loads(report.read_text(encoding="utf-8"))["files"], ended.returncode


def count(files, folder, *, compiled):
    """Count the lines and branches of a folder: those outside compiled functions, or those inside."""
    n = n_run = 0
    missing = {}
    for name, file in files.items():
        path = ROOT / name
        if path.parent.name != folder:
            continue
        inside = compiled_lines(path)
        for count_of, executed, left_out in (
            (lambda line: line, file["executed_lines"], file["missing_lines"]),
            (lambda branch: branch[0], file["executed_branches"], file["missing_branches"]),
        ):
            run = [one for one in executed if (count_of(one) in inside) is compiled]
            not_run = [one for one in left_out if (count_of(one) in inside) is compiled]
            n, n_run = n + len(run) + len(not_run), n_run + len(run)
            missing.setdefault(name, []).extend(not_run)
    return Covered(n, n_run, {name: lines for name, lines in missing.items() if lines})


def attack(size):
    with tempfile.TemporaryDirectory() as folder:
        for compiled, tests in ((False, TESTS[size]), (True, UNCOMPILED_TESTS[size])):
            files, code = measure(tests, folder, compiled=not compiled)
            for name in FOLDERS:
                covered = count(files, name, compiled=compiled)
                if covered.n:
                    yield row_of(name, covered, compiled, code)


def row_of(name, covered, compiled, code):
    """Return a row that counts lines and branches as tried, and those that no test runs as failed."""
    what = f"{name}, compiled functions as Python" if compiled else f"{name}, lines and branches"
    worst = sorted(covered.missing, key=lambda path: -len(covered.missing[path]))[:3]
    notes = [f"{covered.n_run / covered.n:.1%}, asked {ASKED:.0%}"]
    notes += [f"{Path(path).name} {len(covered.missing[path])}" for path in worst]
    notes += [f"pytest ended with {code}"] if code else []
    if size_of_gap := covered.n - covered.n_run:
        for path, lines in covered.missing.items():
            print(f"{path}: {lines}", file=sys.stderr)
    return Row(what, covered.n, size_of_gap, "", "; ".join(notes))
