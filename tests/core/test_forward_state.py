"""Where a filter ended: what it checks."""

from copy import deepcopy

import numpy as np
import pytest

from crowdgraph.core.forward_state import ForwardState
from crowdgraph.errors import ResultError


def state(**changes):
    fields = {
        "ids": ["anna", "bob"],
        "mean": np.zeros((2, 3, 2)),
        "covariance": np.ones((2, 3, 2)),
        "noise": np.zeros((2, 3)),
        "times": np.array([4, 5]),
    }
    return ForwardState(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mean": np.zeros((3, 3, 2))}, "mean has shape"),
        ({"covariance": np.ones((2, 3, 2, 3))}, "covariance has shape"),
        ({"covariance": np.zeros((2, 3, 2))}, "must be positive"),
        ({"noise": np.full((2, 3), -1.0)}, "must not be negative"),
        ({"noise": np.full((2, 3), np.nan)}, "not finite"),
        ({"times": np.array([1])}, "times has shape"),
    ],
)
def test_bad_states_are_refused(changes, message):
    with pytest.raises(ResultError, match=message):
        state(**changes)


def test_states_are_joined_by_volunteer():
    other = state(ids=["bob", "cleo"], mean=np.ones((2, 3, 2)))
    joined = state().joined(other)
    assert joined.ids.tolist() == ["anna", "bob", "cleo"]
    assert joined.mean[:, 0, 0].tolist() == [0, 0, 1]
    assert state().joined(None).ids.tolist() == ["anna", "bob"]
    assert len(state().joined(state(ids=["x", "y"], covariance=np.tile(np.eye(2), (2, 3, 1, 1)))).ids) == 2
    assert repr(joined) == "ForwardState(3 volunteers)"
    assert deepcopy(joined) is joined
