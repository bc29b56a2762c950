"""Every example runs from a clean folder, in seconds and without a warning.

They run in the process of the tests, which has torch and compiled code loaded; warnings are errors here, too.
"""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

# Lines of the longest examples; all others have at most 60.
MAX_LINES = {"10_learning_from_crowds": 90}
EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.fixture
def clean_folder(tmp_path, monkeypatch):
    """Work in an empty folder, and close the figures afterwards."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    plt.close("all")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, clean_folder):
    runpy.run_path(str(path), run_name="__main__")
    assert list(clean_folder.rglob("*.png")), "an example ends in a picture"
    assert len(path.read_text().splitlines()) <= MAX_LINES.get(path.stem, 60)
