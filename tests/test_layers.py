"""Who may import whom: the layers of the architecture, read from the source."""

import ast
from pathlib import Path

import crowdgraph

ROOT = Path(crowdgraph.__file__).parent

# Each part may import the parts named here (and itself) at the top of a file.
GROUND = {"messages", "errors", "core", "tensors", "kernels"}
VERBS = {"io", "models", "networks", "communities"}
STUDIES = {"dynamics", "allocation", "diagnosis", "evaluation"}
MAY_IMPORT = {
    "messages": set(),
    "errors": {"messages"},
    "core": {"messages", "errors"},
    "tensors": {"messages", "errors"},
    "kernels": {"messages", "errors", "tensors", "_compiled_cache"},
    "nn": {"messages", "errors", "core", "tensors"},
    "io": {"messages", "errors", "core", "tensors", "_compiled_cache"},
    "models": GROUND,
    "networks": GROUND,
    "communities": GROUND | {"networks"},
    "simulate": {"messages", "errors", "core"},
    "datasets": {"messages", "errors", "core", "io", "simulate"},
    "compat": GROUND | {"io", "models"},
    "dynamics": GROUND | VERBS,
    "evaluation": GROUND | VERBS,
    "allocation": GROUND | VERBS | {"evaluation"},
    "diagnosis": GROUND | {"models"},
    "plot": {"messages", "errors", "core"},
    "report": {"messages", "errors", "core", "io", "plot"} | STUDIES,
    "distributed": GROUND | VERBS | {"cli"},
    "analysis": GROUND | VERBS | STUDIES | {"plot", "report"},
    "cli": {"messages", "errors", "core", "io", "models", "simulate", "analysis", "report", "distributed"} | STUDIES,
}
# The graph's exports and diagnosis, the calibration of a fit and the test for changes are thin methods, which import
# what they call.
MAY_IMPORT_INSIDE = {"core": {"io", "diagnosis", "kernels", "models"}}
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
    "torch_geometric",
}
FREE_OF = {
    "messages": HEAVY,
    "errors": HEAVY,
    "core": HEAVY,
    "simulate": HEAVY,
    "plot": HEAVY - {"matplotlib"},
    "tensors": HEAVY - {"torch"},
    "nn": HEAVY - {"torch"},
    "kernels": HEAVY - {"torch", "numba", "scipy"},
}

FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT)


def imports(source):
    """Each imported module, and whether it is imported at the top of the file; type-checking blocks do not count."""
    tree = ast.parse(source)
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
            yield from ((alias.name, id(node) in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), id(node) in top


def violations(path):
    part = path.relative_to(ROOT).parts[0]
    for module, at_top in imports(path.read_text()):
        package, *rest = module.split(".")
        inside = set() if at_top else MAY_IMPORT_INSIDE.get(part, set())
        if package == "crowdgraph" and rest[:1] and rest[0] not in {part} | MAY_IMPORT[part] | inside:
            yield f"{path.relative_to(ROOT)} imports {module}"
        if at_top and package in FREE_OF.get(part, set()):
            yield f"{path.relative_to(ROOT)} imports {package} at the top"
        if not package:
            yield f"{path.relative_to(ROOT)} imports relatively"


def test_layers():
    assert {path.relative_to(ROOT).parts[0] for path in FILES} == set(MAY_IMPORT) - {"messages", "errors"}
    assert [violation for path in FILES for violation in violations(path)] == []


def test_the_test_sees_imports():
    source = "import torch\ndef f():\n    from crowdgraph.io import csv\n    from . import x\n"
    assert list(imports(source)) == [("torch", True), ("crowdgraph.io", False), (".", False)]
