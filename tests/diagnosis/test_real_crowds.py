"""The doctor on real crowds, where they are on this machine."""

import numpy as np
import pytest
from science.real import load

pytestmark = pytest.mark.science


@pytest.mark.parametrize("name", ["cti_sentiment", "snow_temp", "gal_adult2"])
def test_constant_volunteers_are_constant_also_where_gold_says_otherwise(name):
    graph = load(name)
    (finding,) = graph.diagnose().of("constant answers")
    against = 0
    for volunteer in finding.ids.tolist():
        responses = graph.volunteers[volunteer].responses
        _, counts = np.unique(responses.label, return_counts=True)
        assert counts.max() >= 0.97 * len(responses)
        against += sum(graph.items[one.item].gold not in (None, one.label) for one in responses)
    assert against >= 5


def test_two_platforms_are_two_parts():
    """Nobody worked on both platforms of this set, nor on sentences of both."""
    (finding,) = load("opendomain_rel_multi").diagnose().of("parts")
    assert (finding.severity, finding.numbers["parts"]) == ("warning", 2)


def test_a_crowd_in_order_is_left_in_peace():
    findings = load("act_sp_amt").diagnose()
    assert findings.worst == "info"
