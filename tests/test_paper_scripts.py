"""The scripts of the paper's page call what exists; the table of claims names what exists.

That the scripts run, on small crowds, takes half a minute, and is one of the slow checks.
"""

import ast
import csv
import importlib
import inspect
import re
from dataclasses import replace
from functools import reduce
from pathlib import Path
from unittest.mock import create_autospec

import matplotlib.pyplot as plt
import pytest

import crowdgraph as cg
from crowdgraph.simulate.galaxy_zoo import CLASSES, KINDS, LABELS

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "examples" / "paper"
LOOK_ALIKES = ("galaxy_zoo_supernovae", "galaxy_zoo_supernovae_auc_table", "galaxy_zoo_supernovae_full")
# Constants of the scripts, for small crowds.
MODELS = {"DynIBCC()": cg.DynIBCC(max_iter=5), "DynIBCC(published=True)": cg.DynIBCC(published=True, max_iter=5)}
SMALL = {
    "entry": {"DPI": 40},
    "table_methods": {"SEEDS": range(1), "MAX_DRAWS": 20, "SELECTION": {"min_per_class": 5, "min_experienced": 3}},
    "figure_prototypes": {"FURTHER_SEEDS": range(1, 2)},
    "figure_pi_over_time": {"COUNTS": [400, 800, 1_200]},
    "figure_membership": {"COUNTS": [600, 1_200]},
    "figure_tasks_over_time": {"COUNTS": [400, 800, 1_200]},
    "published": {"SEEDS": range(1), "MODELS": MODELS},
}


def small(*, drift="none", seed=0):
    return cg.simulate.crowd(
        n_volunteers=40,
        n_items=60,
        n_responses=1_200,
        classes=CLASSES,
        labels=LABELS,
        groups=KINDS,
        queue="oldest",
        drift=drift,
        seed=seed,
    )


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    """Make the scripts importable, let them simulate small crowds, and let them write into an empty folder."""
    monkeypatch.syspath_prepend(SCRIPTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["make_page.py"])
    for name in LOOK_ALIKES:
        # A keyword that the real function does not take is an error here, too.
        monkeypatch.setattr(cg.simulate, name, create_autospec(getattr(cg.simulate, name), side_effect=small))
    detect = cg.BayesianNMF._detect
    # One start without comparison with null networks: what is found does not matter here.
    quick = {"restarts": 1, "nulls": 0}
    monkeypatch.setattr(
        cg.BayesianNMF, "_detect", lambda self, *args, **how: detect(replace(self, **quick), *args, **how)
    )
    yield tmp_path
    plt.close("all")


@pytest.fixture(scope="module")
def claims():
    with (ROOT / "docs" / "paper_rows.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.science
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
def test_the_page_is_made_of_all_scripts(scripts, monkeypatch, claims):
    make_page = importlib.import_module("make_page")
    assert set(make_page.SCRIPTS) == {path.stem for path in SCRIPTS.glob("*.py")} - {
        "entry",
        "make_page",
        "forecasters",
    }
    for name, constants in SMALL.items():
        for constant, value in constants.items():
            monkeypatch.setattr(importlib.import_module(name), constant, value)
    make_page.main()
    out = scripts / "docs" / "_build" / "paper"
    page = (out / "index.html").read_text(encoding="utf-8")
    pictures = re.findall(r'src="([^"]+)"', page)
    assert len(pictures) >= 15
    for picture in pictures:
        assert (out / picture).stat().st_size > 2_000
    assert page.count("<svg") == 3
    assert all(f'id="{name}"' in page for name in make_page.SCRIPTS)
    assert len(re.findall(r"<tr><td>", page[page.index('id="claims"') :])) == len(claims)


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_calls_suit_the_package(path):
    """Every call of something of the package names what exists, with keywords that it takes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not re.fullmatch(r"cg(\.\w+)+", name := ast.unparse(node.func)):
            continue
        parameters = inspect.signature(resolve(name.removeprefix("cg."))).parameters
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        unknown = {keyword.arg for keyword in node.keywords} - set(parameters) - {None}
        assert takes_any or not unknown, f"{name} does not take {unknown}"


def test_names_in_the_table_of_claims_exist(claims):
    for row in claims:
        for name in re.findall(r"(?<!`)`([^`]+)`(?!`)", row["in crowdgraph"]):
            resolve(name.removeprefix("crowdgraph."))
        for name, keyword in re.findall(r"``([\w.]+)\((\w+)=", row["in crowdgraph"]):
            assert keyword in inspect.signature(resolve(name)).parameters, f"{name}({keyword}=)"
        for path in re.findall(r"``([\w./]+\.svg)``", row["in crowdgraph"]):
            assert (ROOT / path).exists()


def test_every_claim_has_a_verdict_and_a_sentence(claims):
    for row in claims:
        assert row["verdict"] in {"exact", "improved", "explained", "missing"}
        assert row["how"].endswith(".")
        assert all(row.values())


def resolve(name):
    """Return the object of this name in the package."""
    return reduce(getattr, name.split("."), cg)
