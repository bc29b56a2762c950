"""A simulated crowd as files, and its analysis, which tests of the command line read."""

import pytest
from cli.commands import figures_left_out, run


@pytest.fixture(scope="module", autouse=True)
def without_figures():
    with figures_left_out():
        yield


@pytest.fixture(scope="session")
def crowd(tmp_path_factory):
    """The directory of a simulated crowd of 12 volunteers, with gold for 60% of its 30 items."""
    folder = tmp_path_factory.mktemp("crowd") / "simulated"
    sizes = ("--volunteers", 12, "--items", 30, "--responses", 200, "--gold", 0.6)
    assert run("simulate", folder, *sizes, "--seed", 1).exit_code == 0
    return folder


@pytest.fixture(scope="session")
def analysed(crowd, tmp_path_factory):
    """The directory of that crowd's analysis, and what the command printed."""
    out = tmp_path_factory.mktemp("analysed") / "out"
    options = ("--gold", crowd / "gold.csv", "--out", out, "--snapshots", 0, "--min-responses", 5)
    with figures_left_out():
        result = run("analyse", crowd / "responses.csv", *options)
    assert result.exit_code == 0, result.output
    return out, result
