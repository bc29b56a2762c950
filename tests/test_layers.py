"""Who may import whom: the layers of the architecture, read from the source."""

import ast
from pathlib import Path

import pytest

import crowdgraph

ROOT = Path(crowdgraph.__file__).parent

# Each part may import the parts named here (and itself) at the top of a file.
BELOW = {"errors", "core", "kernels"}
MAY_IMPORT = {
    "errors": set(),
    "core": {"errors"},
    "kernels": {"errors"},
    "io": {"errors", "core"},
    "models": BELOW,
    "networks": BELOW,
    "communities": BELOW | {"networks"},
    "dynamics": BELOW | {"io", "models", "networks", "communities"},
    "allocation": BELOW | {"io", "models", "networks", "communities", "evaluation"},
    "evaluation": BELOW | {"io", "models", "networks", "communities"},
    "diagnosis": BELOW | {"models"},
    "simulate": {"errors", "core"},
    "plot": {"errors", "core"},
    "report": {"errors", "core", "io", "evaluation", "plot"},
    "analysis": BELOW | {"io", "models", "networks", "communities", "dynamics", "diagnosis", "plot", "report"},
    "cli": {"errors", "core", "io", "analysis", "allocation", "evaluation", "models", "simulate"},
}
# The graph's doors out and its diagnosis are thin: they import io and the doctor inside the method.
MAY_IMPORT_INSIDE = {"core": {"io", "diagnosis"}}
# What a layer may not import from other packages, so that a user of the graph never waits for torch.
HEAVY = {
    "torch",
    "numba",
    "pandas",
    "polars",
    "networkx",
    "igraph",
    "matplotlib",
    "mpltern",
    "pyarrow",
    "narwhals",
    "scipy",
    "sklearn",
    "tqdm",
    "arviz_stats",
}
FREE_OF = {
    "errors": HEAVY,
    "core": HEAVY,
    "simulate": HEAVY,
    "plot": HEAVY - {"matplotlib"},
    "kernels": HEAVY - {"torch", "numba", "scipy"},
}

FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT)


def part_of(path):
    return path.relative_to(ROOT).parts[0]


def imports(path):
    """Each imported module, and whether it is imported at the top of the file (type-checking blocks do not count)."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module, id(node) in top


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_layers(path):
    part = part_of(path)
    for module, at_top in imports(path):
        package, *rest = module.split(".")
        if package == "crowdgraph":
            target = rest[0] if rest else ""
            allowed = {part} | MAY_IMPORT[part] | (set() if at_top else MAY_IMPORT_INSIDE.get(part, set()))
            assert target in allowed, f"{path.name} of {part} imports {module}"
        elif at_top:
            assert package not in FREE_OF.get(part, set()), f"{path.name} of {part} imports {package} at the top"


def test_every_part_has_a_layer():
    assert {part_of(path) for path in FILES} <= set(MAY_IMPORT)


def test_the_test_sees_imports(tmp_path):
    source = tmp_path / "x.py"
    source.write_text("import torch\ndef f():\n    from crowdgraph.io import csv\n")
    assert list(imports(source)) == [("torch", True), ("crowdgraph.io", False)]
