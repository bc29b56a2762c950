"""The conda recipe, CITATION.cff, Read the Docs and the source archive agree with pyproject.toml."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import crowdgraph as cg

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
RECIPE = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
# What conda-forge calls otherwise.
CONDA_NAMES = {
    "igraph": "python-igraph",
    "matplotlib": "matplotlib-base",
    "torch": "pytorch",
    "tzdata": "python-tzdata",
}


def conda_requirement(requirement):
    """Return a requirement of pyproject.toml in conda's words, without its marker: one package serves all systems."""
    name, bound = re.fullmatch(r"([\w-]+)(>=[\d.]+)?", requirement.partition(";")[0]).groups(default="")
    return f"{CONDA_NAMES.get(name, name)} {bound}".rstrip()


def test_the_recipe_requires_what_the_package_requires():
    python, *run = RECIPE["requirements"]["run"]
    assert run == [conda_requirement(requirement) for requirement in PROJECT["dependencies"]]
    assert (
        python.replace("${{ python_min }}", RECIPE["context"]["python_min"]) == f"python {PROJECT['requires-python']}"
    )
    assert conda_requirement(PYPROJECT["build-system"]["requires"][0]) in RECIPE["requirements"]["host"]


def test_the_recipe_describes_the_package():
    assert RECIPE["package"]["name"] == PROJECT["name"]
    assert RECIPE["about"]["summary"] == PROJECT["description"]
    assert RECIPE["build"]["python"]["entry_points"] == [f"{name} = {at}" for name, at in PROJECT["scripts"].items()]


@pytest.mark.parametrize("version", [RECIPE["context"]["version"], CITATION["version"]], ids=["recipe", "citation"])
def test_versions_agree(version):
    assert version == cg.__version__


def test_licences_and_authors_agree():
    assert RECIPE["about"]["license"] == CITATION["license"] == PROJECT["license"]
    assert CITATION["authors"] == PROJECT["authors"]
    assert CITATION["title"] == PROJECT["name"]


def test_classifiers_begin_where_the_required_python_does():
    versions = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert PROJECT["requires-python"] == f">={versions[0]}"


def test_the_documentation_is_built_with_a_python_that_is_tested():
    settings = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text(encoding="utf-8"))
    assert f"Programming Language :: Python :: {settings['build']['tools']['python']}" in PROJECT["classifiers"]
    assert (ROOT / settings["sphinx"]["configuration"]).is_file()


def test_the_source_archive_has_files_that_exist():
    assert [
        name
        for name in PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
        if not (ROOT / name).exists()
    ] == []


def test_the_paper_cites_what_its_bibliography_has():
    cited = set(re.findall(r"(?<!\w)@([a-z]+\d*)", (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")))
    entries = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(cited) == sorted(entries)
