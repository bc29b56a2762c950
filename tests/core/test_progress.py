"""Progress in log files: a line now and then, by a clock of the tests."""

import re

import pytest

import crowdgraph as cg
from crowdgraph.core import _progress
from crowdgraph.core._progress import _LogLines, progress_bar


class Clock:
    """A clock that is set by hand."""

    now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_progress, "monotonic", clock)
    monkeypatch.setattr(_progress, "LOG_SECONDS", 30.0)
    monkeypatch.setattr(_LogLines, "last_line", None)
    return clock


def test_a_log_has_a_line_every_half_minute_at_most(clock, capsys):
    with progress_bar("IBCC", visible=True) as bar:
        for _ in range(100):
            clock.now += 1
            bar.set_postfix(bound="-12.5", refresh=False)
            bar.update()
    lines = ["IBCC: 30 sweeps after 30 s, bound -12.5", "IBCC: 60 sweeps after 60 s, bound -12.5"]
    assert capsys.readouterr().err.splitlines() == [*lines, "IBCC: 90 sweeps after 90 s, bound -12.5"]
    with progress_bar("Folds", visible=True, total=2_000, unit="fits") as bar:
        clock.now += 19
        bar.update(1_000)
        clock.now += 1
        bar.set_postfix(noise_scale=2)
    assert capsys.readouterr().err == "Folds: 1,000 of 2,000 fits after 20 s, noise scale 2\n"


def test_who_does_not_ask_gets_no_line(clock, capsys):
    with progress_bar("IBCC", visible=False) as bar:
        clock.now += 1_000
        bar.update()
    assert capsys.readouterr().err == ""


def test_where_somebody_watches_there_is_a_bar(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with progress_bar("IBCC", visible=True) as bar:
        assert type(bar).__module__.startswith("tqdm")


@pytest.mark.parametrize("model", [cg.IBCC(), cg.DynIBCC()], ids=lambda model: model.name)
def test_fits_say_how_far_they_are(model, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "LOG_SECONDS", 0.0)
    model.fit(cg.simulate.crowd(n_volunteers=5, n_items=10, n_responses=30, seed=0).graph, progress=True)
    assert re.search(r": \d+ (sweeps|passes) after \d+ s", capsys.readouterr().err)
