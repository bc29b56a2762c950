"""Which tests run a line of the package, and how long each takes: what may notice that the line is wrong.

One run of the tests under `coverage` tells of every line which tests run it; whoever shares a fixture runs its lines.
Compiled functions run where no tool looks: who runs a line that names one is taken to run it, and so are the tests that
name it themselves. Lines that no test is seen to run, as those run once while a module is imported, are left to the
tests that run anything of their module.
"""

import ast
import json
import os
import re
from collections import defaultdict
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from reliability.covered_lines import is_compiler


class LineTests:
    """The tests of each line of a package.

    Parameters
    ----------
    root
        The directory of the package and its tests.
    records
        What `recorded` kept of each run: the tests by file and line, and the seconds of each test.
    """

    def __init__(self, root, records):
        self.root = root
        self.seconds, self.lines = {}, defaultdict(lambda: defaultdict(set))
        for record in records:
            self.seconds |= record["seconds"]
            for path, lines in record["lines"].items():
                for line, tests in lines.items():
                    self.lines[path][int(line)].update(tests)

    def leave_out(self, tests):
        """Forget tests that fail without any change."""
        for test in tests:
            self.seconds.pop(test, None)

    def of(self, path, line):
        """Return the tests that may notice a change of a line: those of the same name first, and the quickest first."""
        mirrored = f"test_{path.stem.strip('_')}.py"
        found = self._that_run(str(path), self._statement(path, line))
        found |= self._that_call(self.compiled_with(path, line))
        if not found & self.seconds.keys():
            found = self._near(path)
        return sorted(
            found & self.seconds.keys(),
            key=lambda test: (Path(file_of(test)).name != mirrored and file_of(test) != str(path), self.seconds[test]),
        )

    def _that_run(self, path, lines):
        return {*chain.from_iterable(self.lines[path].get(line, ()) for line in lines)}

    def compiled_with(self, path, line):
        """Return the compiled functions that a line is part of, and those that call them: their modules and names."""
        known, found = set(), {(path.stem, one.name) for one in self.compiled.get(str(path), ()) if line in one.lines}
        while found - known:
            function = (found - known).pop()
            known.add(function)
            for place, used in self.uses[function]:
                found |= {(Path(place).stem, one.name) for one in self.compiled.get(place, ()) if used in one.lines}
        return known

    def _that_call(self, functions):
        """Return the tests that run a line, or have one, that names one of some compiled functions."""
        found = set()
        for function in functions:
            for path, line in self.uses[function]:
                found |= self._that_run(path, [line])
            found |= {test for test in self.seconds if self._words(file_of(test)).issuperset(function)}
        return found

    def _near(self, path):
        """Return the tests that run anything of a module, or name it."""
        run = {*chain.from_iterable(self.lines[str(path)].values())}
        return run | {test for test in self.seconds if path.stem in self._words(file_of(test))}

    def _statement(self, path, line):
        """Return the lines of the smallest statement at a line, without the statements inside it."""
        best = range(line, line + 1)
        size = None
        for node in ast.walk(ast.parse((self.root / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno:
                body = getattr(node, "body", None)
                last = body[0].lineno - 1 if isinstance(body, list) else node.end_lineno
                if line <= last and (size is None or last - node.lineno <= size):
                    best, size = range(node.lineno, last + 1), last - node.lineno
        return best

    def _words(self, file):
        if file not in self.words:
            self.words[file] = set(re.findall(r"\w+", (self.root / file).read_text(encoding="utf-8")))
        return self.words[file]

    @cached_property
    def words(self):
        return {}

    @cached_property
    def compiled(self):
        """The compiled functions of each file; those inside another function go by its name."""
        found = {}
        for path in sorted((self.root / "crowdgraph").rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            functions = [
                Compiled(outer.name, range(node.lineno, node.end_lineno + 1))
                for outer in tree.body
                if isinstance(outer, ast.FunctionDef)
                for node in ast.walk(outer)
                if isinstance(node, ast.FunctionDef) and any(map(is_compiler, node.decorator_list))
            ]
            if functions:
                found[str(path.relative_to(self.root))] = functions
        return found

    @cached_property
    def uses(self):
        """The files and lines that name each compiled function, by its module and name."""
        found = defaultdict(list)
        for path in sorted((self.root / "crowdgraph").rglob("*.py")):
            tree, file = ast.parse(path.read_text(encoding="utf-8")), str(path.relative_to(self.root))
            meant = {one.name: (path.stem, one.name) for one in self.compiled.get(file, ())}
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module:
                    module = node.module.rpartition(".")[2]
                    meant |= {alias.asname or alias.name: (module, alias.name) for alias in node.names}
            for node in ast.walk(tree):
                if isinstance(node, ast.Name) and node.id in meant:
                    found[meant[node.id]].append((file, node.lineno))
        return found


class Compiled(NamedTuple):
    """A compiled function: the name by which it is reached, and its lines."""

    name: str
    lines: range


def file_of(test):
    """The file of a test."""
    return test.partition("::")[0]


def spent():
    """The processor time of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Recorder:
    """A plugin of pytest that records which test runs which line, and how long each takes in processor time."""

    def __init__(self, root, path):
        import coverage

        self._root, self._path = root, path
        self._coverage = coverage.Coverage(
            data_file=None, config_file=False, source=[str(root / "crowdgraph")], messages=False
        )
        self._users = defaultdict(set)
        self._seconds, self._failed = {}, []
        self._coverage.start()

    def pytest_collection_modifyitems(self, items):
        for item in items:
            for definition in chain.from_iterable(item._fixtureinfo.name2fixturedefs.values()):
                if definition.scope != "function":
                    self._users[context_of(definition)].add(item.nodeid)

    def pytest_runtest_logstart(self, nodeid):
        self._coverage.switch_context(nodeid)
        self._started = spent()
        self._test = nodeid

    def pytest_runtest_logfinish(self, nodeid):
        self._seconds[nodeid] = spent() - self._started

    def pytest_fixture_setup(self, fixturedef):
        self._coverage.switch_context(self._test if fixturedef.scope == "function" else context_of(fixturedef))

    def pytest_runtest_call(self, item):
        self._coverage.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._failed.append(report.nodeid)

    def end(self):
        """Write what was recorded; tests that failed are left out."""
        self._coverage.stop()
        data = self._coverage.get_data()
        lines = {}
        for file in sorted(data.measured_files()):
            by_line = {
                line: sorted({test for one in contexts for test in self._users.get(one, {one}) if one})
                for line, contexts in data.contexts_by_lineno(file).items()
            }
            lines[str(Path(file).relative_to(self._root))] = by_line
        seconds = {test: time for test, time in self._seconds.items() if test not in self._failed}
        record = {"lines": lines, "seconds": seconds, "failed": self._failed}
        self._path.write_text(json.dumps(record), encoding="utf-8")


def context_of(definition):
    """The name under which the lines of a shared fixture are recorded."""
    return f"{definition.baseid} fixture {definition.argname}"
