"""The shape of the API: what is exported, how it is called, that it is documented, and how things are named."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import crowdgraph as cg
from crowdgraph import errors

ROOT = Path(cg.__file__).parent
PUBLIC = [importlib.import_module(f"crowdgraph.{name}") for name in cg.__all__ if inspect.ismodule(getattr(cg, name))]
EXPORTED = {
    f"{owner.__name__}.{name}".removeprefix("crowdgraph."): getattr(owner, name)
    for owner in (cg, *PUBLIC)
    for name in owner.__all__
}
CLASSES = {name: kind for name, kind in EXPORTED.items() if inspect.isclass(kind)}
FUNCTIONS = {name: function for name, function in EXPORTED.items() if inspect.isfunction(function)}
METHODS = {
    f"{owner}.{name}": member
    for owner, kind in CLASSES.items()
    for name, member in inspect.getmembers(kind, lambda member: inspect.isfunction(member) or inspect.ismethod(member))
    if not name.startswith("_") and member.__module__.startswith("crowdgraph")
}
# Words that other tools use and that would make two names for one thing; see CONTRIBUTING.
FOREIGN = ("worker", "annotator", "performer", "task_id", "get_", "compute_", "utils", "helper", "manager")
# Words that say nothing about what they name.
VAGUE = {"told", "tell", "tells", "found", "made", "given", "kept", "place", "places", "thing", "things", "whole"}


def module_names():
    """Every module of the package by its dotted name."""
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def identifiers(path):
    """Every name that a file defines: functions, classes, arguments, variables and attributes."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


def test_exports():
    assert set(dir(cg)) == {*cg.__all__, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'CrowdGarph'"):
        _ = cg.CrowdGarph
    wrong = []
    for name, path in module_names():
        private = any(part.startswith("_") for part in name.split("."))
        exports = getattr(importlib.import_module(name), "__all__", None)
        empty = path.name == "__init__.py" and not [
            node for node in ast.parse(path.read_text()).body if not isinstance(node, ast.Expr)
        ]
        if private and exports is not None:
            wrong.append(f"{name} is private and has __all__")
        if not private and not empty and exports is None:
            wrong.append(f"{name} is public and has no __all__")
        module = importlib.import_module(name)
        wrong += [f"{name}.__all__ names {one!r}" for one in exports or () if not hasattr(module, one)]
        if len(set(exports or ())) < len(exports or ()):
            wrong.append(f"{name}.__all__ repeats a name")
    assert wrong == []


def test_completion_shows_public_names():
    modules = {*PUBLIC, *filter(inspect.ismodule, EXPORTED.values())}
    assert {module.__name__: dir(module) for module in modules} == {
        module.__name__: sorted(module.__all__) for module in modules if module is not cg
    }


def test_modules_do_not_hide_functions():
    """All modules have been imported here, also those that have the name of a function beside them."""
    for name, _ in module_names():
        importlib.import_module(name)
    hidden = [name for name, thing in EXPORTED.items() if getattr(*_owner_and_name(name)) is not thing]
    assert hidden == []


def _owner_and_name(path):
    owner, _, name = f"crowdgraph.{path}".rpartition(".")
    return sys.modules[owner], name


def test_signatures():
    wrong = []
    for name, function in {**FUNCTIONS, **METHODS}.items():
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
        if sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters) > 2:
            wrong.append(f"{name} takes more than two positional arguments")
        if any(p.annotation is p.empty for p in parameters) or signature.return_annotation is signature.empty:
            wrong.append(f"{name} is not typed")
        for p in parameters:
            if p.name == "seed" and not (p.kind is p.KEYWORD_ONLY and p.annotation == "int | None"):
                wrong.append(f"{name} takes a seed that is not a keyword, or not None or an integer")
            if p.name == "ax" and not (p.kind is p.KEYWORD_ONLY and p.default is None):
                wrong.append(f"{name} takes axes that are not a keyword, or not None by default")
    assert wrong == []


def test_documentation():
    things = {**CLASSES, **FUNCTIONS, **METHODS}
    assert [name for name, thing in things.items() if not inspect.getdoc(thing)] == []
    kinds = {name for name in errors.__all__ if name.endswith(("Error", "Warning"))}
    assert [name for name in kinds if name not in errors.__doc__] == []
    assert all(issubclass(getattr(errors, name), errors.CrowdGraphError | errors.CrowdGraphWarning) for name in kinds)


def test_names():
    foreign = [name for name in {**CLASSES, **FUNCTIONS, **METHODS} if any(word in name.lower() for word in FOREIGN)]
    vague = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for _, path in module_names()
        for name, line in identifiers(path)
        if VAGUE & set(name.lower().strip("_").split("_"))
    ]
    assert foreign + vague == []


def test_import_is_light():
    """Importing crowdgraph loads neither torch nor any other heavy package; using the graph's class no torch."""
    code = (
        "import sys, crowdgraph\n"
        "heavy = {'torch', 'numba', 'sklearn', 'pandas', 'polars', 'scipy', 'networkx', 'igraph', 'matplotlib'}\n"
        "heavy |= {'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "crowdgraph.simulate.crowd(seed=0)\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "False"]
