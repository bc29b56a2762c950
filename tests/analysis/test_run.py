"""Steps of an analysis: timed, skipped with a reason, their warnings kept."""

import warnings

import pytest

from crowdgraph.analysis.analyse import StepRunner, StepSkippedError
from crowdgraph.errors import ConvergenceWarning, GoldWarning, collect_warnings


def test_a_step_that_cannot_be_done(graph):
    def cannot():
        raise StepSkippedError("There is nobody.")

    steps = StepRunner(graph)
    assert steps.run("first", lambda: 5) == 5
    assert steps.run("second", cannot) is None
    assert steps.skipped == {"second": "There is nobody."}
    assert list(steps.timings) == ["first", "second"]


def test_other_errors_are_not_hidden(graph):
    with pytest.raises(ZeroDivisionError):
        StepRunner(graph).run("first", lambda: 1 / 0)


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
    steps = StepRunner(graph)
    steps.note("so")
    steps.note("so")
    assert steps.notes == ["so"]
