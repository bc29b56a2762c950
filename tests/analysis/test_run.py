"""Steps of an analysis: timed, skipped with a reason, their warnings kept."""

import warnings

import pytest

from crowdgraph.analysis.analyse import Run, StepSkippedError
from crowdgraph.errors import ConvergenceWarning, GoldWarning, collect_warnings


def test_a_step_that_cannot_be_done(graph):
    def cannot():
        raise StepSkippedError("There is nobody.")

    run = Run(graph)
    assert run.step("first", lambda: 5) == 5
    assert run.step("second", cannot) is None
    assert run.skipped == {"second": "There is nobody."}
    assert list(run.timings) == ["first", "second"]


def test_other_errors_are_not_hidden(graph):
    with pytest.raises(ZeroDivisionError):
        Run(graph).step("first", lambda: 1 / 0)


def test_warnings_of_one_kind_are_told_once():
    notes = []
    with collect_warnings(notes):
        for number in range(3):
            warnings.warn(f"not settled after {number}", ConvergenceWarning, stacklevel=1)
        warnings.warn("gold for nobody", GoldWarning, stacklevel=1)
    assert notes == ["not settled after 0 (And 2 more like this.)", "gold for nobody"]


def test_warnings_of_others_are_passed_on():
    notes = []
    with pytest.warns(DeprecationWarning, match="old"), collect_warnings(notes):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert notes == []


def test_notes_are_kept_once(graph):
    run = Run(graph)
    run.note("so")
    run.note("so")
    assert run.notes == ["so"]
