"""Runs of tests in forks of a process that has imported all other packages, but nothing of this one.

Importing them takes seconds, which would be most of the time of a short run. A fork imports the package anew, so one
module of it may have another source there than on disk. Which examples hypothesis draws depends on nothing but the
test, so a run gives the same when it is repeated.
"""

import gc
import importlib.util
import os
import resource
import shutil
import signal
import sys
import traceback
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import NamedTuple

from reliability.forks import ONE_THREAD

ROOT = Path(__file__).parents[2]
COPIED = ("crowdgraph", "tests", "docs", "conftest.py", "pyproject.toml")
IMPORTED = (
    *("hypothesis.extra.numpy", "igraph", "matplotlib.pyplot", "networkx", "numba", "pandas", "pyarrow.parquet"),
    *("pytest", "scipy.optimize", "scipy.sparse.csgraph", "scipy.special", "scipy.stats", "sklearn.metrics", "torch"),
)
OPTIONS = [
    *("-q", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider", "--hypothesis-seed=0"),
    # What is imported before pytest starts cannot have its assertions rewritten, and has none.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
]
SELECTED = ["-m", "not science and not browser"]
# The processor time that a test may take with a change: so many times what it took before, and so many seconds; more
# where it compiles what changed.
TIMES, SECONDS, TO_COMPILE = 5, 10, 60
# The exit code of a run whose harness, not pytest, came to an error.
FAULT = 70
# What a run with a change may take by the clock, and the memory of any in bytes.
LIMIT, MEMORY = 1_200, 6 << 30


class Outcome(NamedTuple):
    """How a run ended.

    Attributes
    ----------
    word
        "passed", "failed", "late" if a test ran too long, or "broken" if pytest did not run.
    tests
        The tests that failed, or that ran too long.
    """

    word: str
    tests: list


class Checkout:
    """A copy of the package and its tests, and the compiled code that belongs to it.

    Parameters
    ----------
    folder
        Where both go.
    """

    def __init__(self, folder):
        self.root, self.cache = Path(folder, "copy"), Path(folder, "cache")
        self.root.mkdir()
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, self.root / name)
        os.environ.update(ONE_THREAD, PYTHONPATH=str(self.root), NUMBA_CACHE_DIR=str(self.cache))
        sys.dont_write_bytecode = False
        for name in IMPORTED:
            importlib.import_module(name)
        # What forks share is not looked through for garbage, which would take longer than many a test.
        gc.collect()
        gc.freeze()

    def start(self, arguments, make_plugin, *, changed=None, stale=(), slot=0):
        """Begin a run of pytest in a fork, with the plugin that a function makes there; return its process id.

        With `changed`, a module and its source, the package has that source. Compiled code of `stale` functions, pairs
        of modules and names, is left out of the cache, which is then one of the run's own: numba keeps code by the file
        of a function, and would neither see the change nor that a function it calls has changed. Runs at the same time
        have different slots.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        if pid := os.fork():
            return pid
        code = FAULT
        try:
            os.setsid()
            # A shell lets what it starts in the background ignore it.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.alarm(LIMIT if changed else 0)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            self._enter(changed, stale, slot)
            import pytest

            plugin, temporary = make_plugin(), self.cache.with_name(f"temporary-{slot}")
            code = int(pytest.main([*OPTIONS, f"--basetemp={temporary}", *arguments], plugins=[plugin, Quick()]))
            plugin.end()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def log(self, slot):
        """Where the output of a slot's run goes."""
        return self.cache.with_name(f"log-{slot}")

    def _enter(self, changed, stale, slot):
        with self.log(slot).open("wb") as log:
            for stream in (1, 2):
                os.dup2(log.fileno(), stream)
        os.chdir(self.root)
        own = {ROOT, ROOT / "tests", ROOT / "tests" / "reliability", ROOT / "benchmarks"}
        sys.path[:] = [str(self.root), *(path for path in sys.path if Path(path or ROOT) not in own)]
        for name in [name for name in sys.modules if name.split(".")[0] in ("reliability", "crowdgraph")]:
            del sys.modules[name]
        if stale:
            self._leave_out(stale, self.cache.with_name(f"cache-{slot}"))
        if changed:
            sys.meta_path.insert(0, Changed(*changed, self.root))

    def _leave_out(self, stale, own):
        """Use a copy of the cache without some functions."""
        import numba

        def left_out(_, names):
            """Files are called ``module.function-line.py311.nbi``."""
            return [name for name in names if tuple(name.partition("-")[0].split(".")[:2]) in stale]

        shutil.rmtree(own, ignore_errors=True)
        if self.cache.is_dir():
            shutil.copytree(self.cache, own, ignore=left_out)
        os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = str(own)


class Changed:
    """Finds one module with another source than that on disk."""

    def __init__(self, path, source, root):
        self._name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        self._path, self._source = str(root / path), source

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=Loader(name, self._path, self._source))


class Loader(SourceFileLoader):
    """Compiles a source of its own."""

    def __init__(self, name, path, source):
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname):
        return compile(self._source, self.path, "exec", dont_inherit=True)


class Quick:
    """A plugin of pytest without what only takes time: shrunk and kept examples, and notes on compiled code."""

    def pytest_collection(self):
        from hypothesis import Phase, settings

        from crowdgraph.kernels import _runtime

        _runtime.NOTICE_AFTER = 1e6
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("forked", settings.default, database=None, phases=phases)
        settings.load_profile("forked")


class Chosen:
    """A plugin of pytest that runs some tests in order, and writes down those that fail and the one that runs.

    Parameters
    ----------
    tests
        The seconds that each may take by itself.
    note
        The file.
    """

    def __init__(self, tests, note):
        self._tests, self._note = tests, note
        self._failed = []

    def pytest_collection_modifyitems(self, items):
        order = {test: place for place, test in enumerate(self._tests)}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])

    def pytest_runtest_logstart(self, nodeid):
        self._note.write_text("\n".join([*self._failed, nodeid]), encoding="utf-8")
        signal.setitimer(signal.ITIMER_VIRTUAL, self._tests[nodeid])

    def pytest_runtest_logfinish(self, nodeid):
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def pytest_runtest_logreport(self, report):
        if report.failed and report.nodeid not in self._failed:
            self._failed.append(report.nodeid)

    def pytest_collectreport(self, report):
        if report.failed:
            self._failed.append(f"{report.nodeid} (collected)")

    def end(self):
        self._note.write_text("\n".join(self._failed), encoding="utf-8")


def outcome_of(status, note):
    """Return how a fork ended, by its status and by what it wrote down."""
    code = os.waitstatus_to_exitcode(status)
    tests = note.read_text(encoding="utf-8").split("\n") if note.exists() else []
    # 2 and 4: tests, or the package itself, cannot be imported. Faults of compiled code end a run by a signal. So does
    # a lack of memory of the machine, which says nothing.
    words = {0: "passed", 1: "failed", 2: "failed", 4: "failed", -signal.SIGKILL: "broken"}
    words |= {-signal.SIGVTALRM: "late", -signal.SIGALRM: "late"}
    return Outcome(
        words.get(code, "failed" if code < 0 else "broken"), [one for one in tests if one] or [str(code)] * bool(code)
    )
