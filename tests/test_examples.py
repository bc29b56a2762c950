"""Every example runs from a clean folder, in seconds and without a warning."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", path], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("*.png")), "an example ends in a picture"
    assert len(path.read_text().splitlines()) <= 60


def test_the_papers_page(tmp_path):
    """The quickest of the paper's scripts, and the page with it; ``make paper`` runs all."""
    folder = EXAMPLES[0].parent / "paper"
    code = "import make_page; make_page.SCRIPTS = ['figure_volunteers']; make_page.main()"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    out = tmp_path / "docs" / "_build" / "paper"
    page = (out / "index.html").read_text()
    assert "dynamics of four volunteers" in page
    for picture in re.findall(r'src="([^"]+)"', page):
        assert (out / picture).stat().st_size > 10_000
