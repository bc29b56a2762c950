"""The forecast of when items settle holds what it promises on crowds that really go on."""

import pytest
from science.continuation import compare_all

pytestmark = pytest.mark.science


def test_the_true_number_of_answers_lies_within_the_interval():
    within = compare_all()
    assert {name: min(counts.values()) for name, counts in within.items() if min(counts.values()) < 8} == {}
