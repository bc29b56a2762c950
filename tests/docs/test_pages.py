"""The gallery of examples, the drawings, and the snippets and names that no doctest checks."""

import importlib.util
import inspect
import posixpath
import re
import runpy
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree as ET

import pytest

import crowdgraph as cg

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
DRAWINGS = sorted((DOCS / "_static").glob("*/*.svg"))


def module(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_has_a_page_and_a_light_picture(path):
    assert f".. example:: {path.stem}\n" in (DOCS / "tutorials" / f"{path.stem}.rst").read_text()
    assert f"   {path.stem}\n" in (DOCS / "tutorials" / "index.rst").read_text()
    assert (DOCS / "_static" / "gallery" / f"{path.stem}.png").stat().st_size < 150_000


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_pages_show_every_line_of_an_example(path):
    source = path.read_text()
    lines = [line.strip() for line in module("gallery").page(path.stem, source)]
    expected = [line.removeprefix("# %%").strip() for line in source.replace('"""# ', "", 1).splitlines()]
    missing = {line for line in expected if line and line != '"""'} - set(lines)
    assert not missing


def test_an_example_is_cut_into_cells():
    gallery = module("gallery")
    source = '"""# A title\n\nOne sentence. Another.\n"""\n\n# %% First.\na = 1\n\n# %% Second.\n# why\nb = 2\n'
    assert gallery.title_and_text(source) == ("A title", "One sentence. Another.")
    assert gallery.cells(source) == [("First.", "a = 1"), ("Second.", "# why\nb = 2")]
    card = "\n".join(gallery.card("09_new", source))
    assert "One sentence." in card
    assert "Another." not in card
    assert "/_static/gallery/09_new.png" in card


def test_thumbnails_are_small(tmp_path):
    from PIL import Image

    thumbnails = module("thumbnails")
    Image.effect_noise((1600, 1000), 50).save(tmp_path / "large.png")
    thumbnails.shrink(tmp_path / "large.png", tmp_path / "small.png")
    with Image.open(tmp_path / "small.png") as small:
        assert small.size == (800, 500)
    assert [thumbnails.first_picture(path) for path in EXAMPLES[:2]] == ["first_graph.png", "roc.png"]


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_drawings_can_be_read_in_both_themes_and_aloud(path):
    root = ET.fromstring(path.read_text())  # noqa: S314 - ours
    assert root.get("aria-label")
    assert root.get("stroke") == "currentColor"
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    assert all(text.get("fill", "currentColor") == "currentColor" for text in texts)
    assert any(f"{path.parent.name}/{path.name}" in page.read_text() for page in DOCS.rglob("*.rst"))


def test_the_landing_pages_snippet_runs(tmp_path, monkeypatch):
    lines = (DOCS / "index.rst").read_text().split(".. code-block:: python\n\n")[1].splitlines()
    code = "\n".join(line[3:] for line in lines[: next(i for i, line in enumerate(lines) if line[:1].strip())])
    graph = cg.simulate.crowd(n_volunteers=30, n_items=100, n_responses=900, seed=0).graph
    graph.to_pandas().to_csv(tmp_path / "responses.csv", index=False)
    graph.to_pandas(table="gold")[["item", "label"]].to_csv(tmp_path / "gold.csv", index=False)
    (tmp_path / "snippet.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("snippet.py")
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_the_errata_name_tests_that_exist():
    page = (DOCS / "errata.rst").read_text()
    named = re.findall(r"``(test_\w+?)(?:_\.\.\.)?``", page)
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path.name != "test_pages.py")
    assert len(named) == 5
    assert [name for name in named if f"def {name}" not in tests] == []
    for path in re.findall(r"``(tests/[\w/]+\.py|examples/\w+\.py)``", page):
        assert (ROOT / path).exists(), path


def test_every_warning_is_explained():
    explained = (DOCS / "faq.rst").read_text()
    names = [name for name in cg.errors.__all__ if name.endswith("Warning")]
    assert [name for name in names if f"`{name}`" not in explained] == []


def test_the_reference_has_every_public_name():
    pages = "\n".join(path.read_text() for path in (DOCS / "reference").glob("*.rst"))
    documented = re.findall(r"^\.\. auto\w+:: (\S+)$", pages, re.MULTILINE)
    assert len(documented) == len(set(documented))
    public = [name for name in cg.__all__ if not inspect.ismodule(getattr(cg, name))]
    assert [name for name in public if f"crowdgraph.{name}" not in documented] == []


def links(page):
    """Return the pages to which a page leads by its text, its cards and the list beside it."""
    text = next(path for path in (DOCS / f"{page}.rst", DOCS / f"{page}.md") if path.exists()).read_text()
    names = re.findall(r":doc:`(?:[^`<]*<)?([^`>]+)>?`", text) + re.findall(r":link: (\S+)\n\s+:link-type: doc", text)
    for entries in re.findall(r"^\.\. toctree::\n(?:   :.*\n)*\n((?:   .*\n?)+)", text, re.MULTILINE):
        names += [re.sub(r".*<(.*)>", r"\1", entry.strip()) for entry in entries.splitlines()]
    folder = PurePosixPath("/", page).parent
    return {posixpath.normpath(folder / name).strip("/") for name in names}


def test_every_page_is_two_clicks_from_the_front_page():
    pages = {
        str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.[rm][sd]*") if "_build" not in path.parts
    }
    once = links("index")
    twice = set().union(*map(links, once))
    assert len(once) < len(pages)
    assert pages - {"index"} - once - twice == set()


def test_the_header_shows_all_sections():
    """The theme would hide more of them than the setting says under "More"."""
    (shown,) = re.findall(r'"header_links_before_dropdown": (\d+)', (DOCS / "conf.py").read_text())
    entries = (DOCS / "index.rst").read_text().partition(".. toctree::\n   :hidden:\n\n")[2].split("\n")
    assert 0 < len([entry for entry in entries if entry.strip()]) <= int(shown)
