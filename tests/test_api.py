"""The shape of the public API: names, signatures and docstrings follow the rules."""

import inspect
import subprocess
import sys

import pytest

import crowdgraph as cg
from crowdgraph import testing

MODULES = {
    "errors": cg.errors,
    "evaluation": cg.evaluation,
    "models": cg.models,
    "plot": cg.plot,
    "simulate": cg.simulate,
}
CLASSES = [getattr(cg, name) for name in cg.__all__ if inspect.isclass(getattr(cg, name))]
FUNCTIONS = {
    **{name: getattr(cg, name) for name in cg.__all__ if inspect.isfunction(getattr(cg, name))},
    "evaluation.cross_validate": cg.evaluation.cross_validate,
    "testing.check_model": testing.check_model,
    "testing.exact_posterior": testing.exact_posterior,
    **{f"plot.{name}": getattr(cg.plot, name) for name in cg.plot.__all__},
    **{f"simulate.{name}": getattr(cg.simulate, name) for name in cg.simulate.__all__ if name.islower()},
}
METHODS = {
    f"{cls.__name__}.{name}": member
    for cls in CLASSES
    for name, member in inspect.getmembers(cls, lambda member: inspect.isfunction(member) or inspect.ismethod(member))
    if not name.startswith("_") and member.__module__.startswith("crowdgraph")
}
# Words that other tools use and that would make two names for one thing; see CONTRIBUTING.
FOREIGN = ("worker", "annotator", "performer", "task_id", "get_", "compute_", "utils", "helper", "manager")


def test_exported_names_are_the_namespace():
    assert set(dir(cg)) == {*cg.__all__, "__version__"}
    assert len(set(cg.__all__)) == len(cg.__all__)
    with pytest.raises(AttributeError, match="no attribute 'CrowdGarph'"):
        _ = cg.CrowdGarph


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_modules_export_what_they_say(module):
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("name", [*FUNCTIONS, *METHODS])
def test_signatures(name):
    function = {**FUNCTIONS, **METHODS}[name]
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    assert len(positional) <= 2, f"{name} takes {len(positional)} positional arguments"
    assert all(p.annotation is not p.empty for p in parameters), f"{name} has untyped arguments"
    assert inspect.signature(function).return_annotation is not inspect.Signature.empty
    seeds = [p for p in parameters if p.name == "seed"]
    assert all(p.kind is p.KEYWORD_ONLY and p.annotation == "int | None" for p in seeds)
    axes = [p for p in parameters if p.name == "ax"]
    assert all(p.kind is p.KEYWORD_ONLY and p.default is None for p in axes)


@pytest.mark.parametrize("name", [*FUNCTIONS, *METHODS, *(cls.__name__ for cls in CLASSES)])
def test_names_and_docstrings(name):
    thing = {**FUNCTIONS, **METHODS, **{cls.__name__: cls for cls in CLASSES}}[name]
    assert inspect.getdoc(thing), f"{name} has no docstring"
    assert not any(word in name.lower() for word in FOREIGN)


def test_every_error_is_in_the_drawn_tree():
    drawn = cg.errors.__doc__
    for name in sorted(set(cg.errors.__all__) - {"Hint", "Interface", "Message"}):
        error = getattr(cg.errors, name)
        assert issubclass(error, cg.errors.CrowdGraphError | cg.errors.CrowdGraphWarning)
        assert name in drawn
        assert error.__doc__.splitlines()[0]


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
