"""Orders of crowds that cannot be simulated are refused with what was expected."""

import numpy as np
import pytest

from crowdgraph.errors import ParameterError, ResultError
from crowdgraph.simulate import Group, Queue, crowd

NAN = float("nan")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_volunteers": 0}, ParameterError, "n_volunteers=0 must be a whole number from 1 up"),
        ({"n_responses": 10}, ParameterError, "expected 100 to 40,000"),
        ({"n_casual": 100}, ParameterError, "n_casual=100"),
        ({"n_responses": 10**6}, ParameterError, "expected 100 to 40,000"),
        ({"n_responses": [1, 2]}, ParameterError, "100 numbers"),
        ({"n_communities": 200}, ParameterError, "more than there are"),
        ({"labels": ["a", "b", "c"]}, ParameterError, "2 classes and 3 labels"),
        ({"class_probs": [0.5, 0.6]}, ResultError, "sum to one"),
        ({"groups": []}, ParameterError, "at least one Group"),
        ({"groups": [Group(name="g", confusion=np.eye(3))]}, ParameterError, r"shape \(3, 3\); expected \(2, 2\)"),
        ({"difficulty": 1.0}, ParameterError, "below 1"),
        ({"shared_errors": 1.5}, ParameterError, "shared_errors=1.5 must be a share from 0 to 1"),
        ({"mixing": 1.5}, ParameterError, "a share from 0 to 1"),
        ({"gold": -0.1}, ParameterError, "gold=-0.1"),
        ({"days": 0}, ParameterError, "days"),
        ({"stays": "short"}, ParameterError, "stays='short' is not a choice; use one of 'long'"),
        ({"drift": "sideways"}, ParameterError, "not a choice"),
        ({"drift": "visits"}, ParameterError, "drift='visits' is not a choice.* Did you mean 'visit'"),
        ({"drifting": 1.2}, ParameterError, "drifting=1.2 must be a share from 0 to 1"),
        ({"drifting": NAN}, ParameterError, "drifting=nan must be a share"),
        (
            {"drift_at": 0.5},
            ParameterError,
            "drift_at=0.5 is the moment of a sudden change, but drift='none'; use drift='step'",
        ),
        ({"drift_at": 0.5, "drift": "visit"}, ParameterError, "but drift='visit'"),
        (
            {"drift_at": 0.0, "drift": "step"},
            ParameterError,
            "drift_at=0.0 must be a share of the project's duration between 0 and 1",
        ),
        ({"drift_at": 1.0, "drift": "step"}, ParameterError, "drift_at=1.0 must be"),
        ({"queue": "newest"}, ParameterError, "queue='newest' is not a choice; use one of 'oldest'"),
        ({"queue": 3}, ParameterError, "queue=3 must be 'oldest' or a crowdgraph.simulate.Queue"),
        ({"queue": "oldest", "n_items": 0}, ParameterError, "n_items=0 must be a whole number from 1 up"),
        ({"queue": "oldest", "n_volunteers": 0}, ParameterError, "n_volunteers=0"),
        ({"queue": "oldest", "n_communities": 3}, ParameterError, "n_communities does not go with queue="),
        ({"queue": "oldest", "duplicates": 0.1}, ParameterError, "duplicates does not go with queue="),
        ({"queue": Queue(answers=5)}, ParameterError, "more than the queue can hold: 500 items .* take 2,500"),
        ({"queue": Queue(arrivals=[0.1])}, ParameterError, "arrivals has 1 times for 500 items"),
        (
            {"queue": Queue(answers=100), "n_volunteers": 2, "n_items": 50, "n_responses": [60, 20]},
            ParameterError,
            "n_responses",
        ),
        ({"seed": -1}, ParameterError, "seed=-1"),
        (
            {"groups": [Group(name="g", confusion=np.eye(2), becomes="h")]},
            ParameterError,
            "becomes='h' of group 'g' must be the name of another group",
        ),
        (
            {"groups": [Group(name="g", confusion=np.eye(2), changing={"step": 101})]},
            ParameterError,
            "is for 101 members of group 'g', which has 100",
        ),
    ],
)
def test_options_of_crowds_are_checked(options, error, words):
    with pytest.raises(error, match=words):
        crowd(**options)


ARRIVES = "arrives=.* of group 'g' must be a share .* from 0 to below 0.9"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tail": 0}, "tail=0"),
        ({"arrives": -0.1}, ARRIVES),
        ({"arrives": 0.9}, ARRIVES),
        ({"arrives": 1.0}, ARRIVES),
        ({"arrives": NAN}, ARRIVES),
        ({"changing": {"sideways": 1}}, "changing='sideways' is not a choice"),
        ({"changing": {"step": -1}}, "must be a whole number from 0 up"),
        ({"changing": "step"}, "must map ways to change to numbers"),
    ],
)
def test_options_of_groups_are_checked(options, words):
    with pytest.raises(ParameterError, match=words):
        Group(name="g", confusion=np.eye(2), **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"answers": 0}, "answers=0 must be a whole number from 1 up"),
        ({"rejection": 1.0}, "rejection=1.0 must be a share from 0 to below 1; where everything is rejected"),
        ({"rejection": NAN}, "rejection=nan"),
        ({"session": 0.5}, "session=0.5 must be at least 1"),
        ({"gap": 0}, "gap=0 must be a positive number of days"),
        ({"gap_tail": NAN}, "gap_tail=nan must be positive"),
        ({"arrivals": []}, "must be a list of numbers"),
        ({"arrivals": ["soon"]}, "must be a list of numbers"),
        ({"arrivals": [0.0, 1.2]}, "that of item 1 is 1.2, outside the time span"),
        ({"arrivals": [NAN]}, "that of item 0 is nan"),
        ({"arrivals": [0.5, 0.2]}, "in rising order"),
    ],
)
def test_options_of_queues_are_checked(options, words):
    with pytest.raises(ParameterError, match=words):
        Queue(**options)
