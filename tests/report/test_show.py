"""Showing the page in a browser, or in a notebook."""

import sys
import webbrowser
from html import unescape
from types import ModuleType, SimpleNamespace

import pytest

import crowdgraph as cg


@pytest.fixture
def annotated():
    graph = cg.simulate.crowd(n_volunteers=8, n_items=20, n_responses=90, seed=0).graph
    return graph.annotate(cg.MajorityVote().fit(graph))


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """The addresses that a browser was asked for; temporary files are in a folder of the test."""
    addresses = []
    monkeypatch.setattr(webbrowser, "open", addresses.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return addresses


def notebook(monkeypatch, shell):
    """Pretend that this is IPython with a shell, and return what is displayed."""
    shown = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: shell

    def show_raw(data, *, raw):
        assert raw
        shown.append(data)

    display.display = show_raw
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


def test_a_browser_opens_the_page(annotated, opened, tmp_path):
    path = cg.report.show(annotated, title="My crowd")
    assert opened == [path.as_uri()]
    assert path.is_relative_to(tmp_path)
    assert path.parent.stat().st_mode & 0o077 == 0
    assert "<title>My crowd</title>" in path.read_text(encoding="utf-8")


def test_a_notebook_shows_the_page_itself(annotated, opened, monkeypatch):
    shown = notebook(monkeypatch, SimpleNamespace(kernel=object()))
    path = cg.report.show(annotated)
    assert opened == []
    (data,) = shown
    assert data["text/plain"] == str(path)
    page = data["text/html"].removeprefix('<iframe srcdoc="').partition('" width=')[0]
    assert unescape(page) == path.read_text(encoding="utf-8")
    assert '"' not in page


@pytest.mark.parametrize("shell", [None, SimpleNamespace()])
def test_ipython_in_a_terminal_is_no_notebook(shell, annotated, opened, monkeypatch):
    shown = notebook(monkeypatch, shell)
    path = cg.report.show(annotated)
    assert (opened, shown) == ([path.as_uri()], [])
