"""The README's example runs as it is written."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.csv import write_csv

import crowdgraph as cg

README = Path(__file__).parent.parent / "README.md"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A crowd with anna in it, as files in the folder where the example runs."""
    graph = cg.simulate.crowd(n_volunteers=15, n_items=40, n_responses=400, gold=0.3, start="2026-01-01", seed=0).graph
    table = graph.to_arrow()
    names = ["anna" if name == "volunteer-03" else name for name in table["volunteer"].to_pylist()]
    write_csv(table.set_column(0, "volunteer", pa.array(names)), tmp_path / "responses.csv")
    write_csv(graph.to_arrow(table="gold").select(["item", "label"]), tmp_path / "gold.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_example_runs(files, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    exec(code, {})  # noqa: S102 - it is ours
    assert "volunteer" in capsys.readouterr().out
    assert (files / "report.html").stat().st_size > 10_000
    assert set(cg.load(files / "whales.crowd").annotations) >= {"dynibcc", "pi_similarity"}
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
