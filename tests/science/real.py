"""Where real crowds are, if they are on this machine."""

import os
from pathlib import Path

import pytest

import crowdgraph as cg

DATA = Path(os.environ.get("CROWDGRAPH_DATA", Path(__file__).parents[3] / "shared" / "data"))


def load(name):
    """A real crowd with its gold; the test is skipped where it is not on this machine."""
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip("the real crowds are not on this machine")
    gold = folder / "gold.csv"
    return cg.read_csv(next(folder.glob("responses.csv*")), gold=gold if gold.is_file() else None)
