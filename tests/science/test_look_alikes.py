"""The look-alikes tell the paper's story, in nearly all of ten seeds."""

import pytest
from science.look_alikes import print_full_stories, print_stories

pytestmark = pytest.mark.science


def test_kinds_arrive_as_in_the_paper_and_changes_are_flagged():
    stories = print_stories(range(10))
    assert sum(one.kinds == (3, 4, 5) for one in stories) >= 8
    assert all(one.is_monotone for one in stories), "no group is lost and found again"
    assert sum(one.modularity == tuple(sorted(one.modularity)) for one in stories) >= 8
    assert stories[0].flagged == ("learning", "ramp", "step", "visit"), "the demo's four"
    assert all(one.false_flags <= one.n_steady / 100 for one in stories)


def test_modularity_of_the_full_crowd_rises():
    stories = print_full_stories(range(10))
    assert sum(modularity == sorted(modularity) for _, modularity in stories) >= 8
    assert all(numbers[-1] > numbers[0] for numbers, _ in stories)
    assert all(0.7 < modularity[-1] < 0.82 for _, modularity in stories)
