"""Which lines and branches of the code that computes run in the tests.

The tests of these folders run, those of what is built right upon them, and the examples of docstrings; a line that only
runs while something is drawn or reported counts as not tested. So does what runs only in processes that tests start:
`coverage` could look into them, but its files get in the way of tests of full disks.

Compiled functions run where no tool looks: `coverage` sees that they are defined, and nothing of what they do. So their
bodies are left out of that run, and counted in another, with ``NUMBA_DISABLE_JIT=1``, in which Python runs their lines.
There each test is stopped after some seconds of processor time, since sizes were chosen for compiled code; what it ran
until then has run. The two figures are of different lines, and the table has both.

It needs ``coverage``, which ``pip install -c constraints.txt ".[dev]"`` brings.
"""

import ast
import json
import os
import signal
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
TESTED = ("core", "kernels", "models", "communities", "io", "networks", "tensors", "dynamics", "ranks", "cli")
TESTS = {
    Size.SHORT: ("tests/kernels/test_special.py",),
    Size.LONG: ("crowdgraph", *(f"tests/{name}" for name in TESTED)),
}
COMPILED = (
    *("tests/kernels", "tests/models", "tests/communities"),
    *("tests/allocation/test_information_gain.py", "tests/io/test_build_store.py"),
)
UNCOMPILED_TESTS = {Size.SHORT: TESTS[Size.SHORT], Size.LONG: COMPILED}
# Without compilation: one thread, which can be stopped; and Python warns where words of compiled code begin anew.
UNCOMPILED = {"NUMBA_DISABLE_JIT": "1", "NUMBA_NUM_THREADS": "1"}
# One test is of compiled code on disk, which there is none of.
STOPPED = (
    "--deselect",
    "tests/kernels/test_sweep.py::test_compiled_code_is_kept_on_disk",
    "-p",
    "reliability.time_limit",
    "-W",
    "ignore:overflow encountered in scalar:RuntimeWarning",
)


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
    return name in ("njit", "jit", "vectorize", "guvectorize")


def measure(tests, folder, *, compiled=True):
    """Run tests and return what `coverage` says about each file of the folders."""
    data, report = Path(folder, f"data-{compiled}"), Path(folder, f"report-{compiled}.json")
    environment = {
        **os.environ,
        "COVERAGE_FILE": str(data),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
        **({} if compiled else UNCOMPILED),
    }
    sources = ",".join(str(ROOT / "crowdgraph" / name) for name in FOLDERS)
    coverage = [sys.executable, "-m", "coverage"]
    pytest = ["-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not science and not browser"]
    run = [*coverage, "run", "--branch", f"--source={sources}", *pytest, *(() if compiled else STOPPED), *tests]
    # What shells start in the background ignores Ctrl-C, which some tests press.
    ended = subprocess.run(
        run,
        check=False,
        cwd=ROOT,
        env=environment,
        stdout=sys.stderr,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    subprocess.run([*coverage, "json", "-q", "-o", str(report)], cwd=ROOT, env=environment, check=True)
    return json.loads(report.read_text(encoding="utf-8"))["files"], ended.returncode


def processor_seconds():
    """Return what this process and those that it started have taken."""
    return sum(os.times()[:4])


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
            start = processor_seconds()
            files, code = measure(tests, folder, compiled=not compiled)
            print(f"{processor_seconds() - start:,.0f} s of processor time", file=sys.stderr)
            for name in FOLDERS:
                covered = count(files, name, compiled=compiled)
                if covered.n:
                    yield row_of(name, covered, compiled=compiled, code=code)


def row_of(name, covered, *, compiled, code=0):
    """Return a row that counts lines and branches as tried, and those that no test runs as failed."""
    what = f"{name}, compiled functions as Python" if compiled else f"{name}, lines and branches"
    worst = sorted(covered.missing, key=lambda path: -len(covered.missing[path]))[:3]
    notes = [f"{covered.n_run / covered.n:.1%}, asked {ASKED:.0%}"]
    notes += [f"{Path(path).name} {len(covered.missing[path])}" for path in worst]
    notes += [f"pytest ended with {code}"] if code else []
    for path, lines in covered.missing.items():
        print(f"{path}: {lines}", file=sys.stderr)
    return Row(what, covered.n, covered.n - covered.n_run, "", "; ".join(notes))
