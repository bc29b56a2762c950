"""Pseudonyms: nobody is named any more, the key says who was who, and is never overwritten."""

import csv
import stat

import pytest
from builders import crowd, fitted

import crowdgraph as cg
from crowdgraph.errors import InputError, ParameterError, StoreError


def read_key(path):
    with path.open(newline="") as file:
        return {row["pseudonym"]: row["volunteer"] for row in csv.DictReader(file)}


def test_names_are_gone_and_the_key_brings_them_back(tmp_path):
    graph = crowd(seed=3).graph
    hidden = cg.pseudonymise(graph, key=tmp_path / "key.csv")
    key = read_key(tmp_path / "key.csv")
    assert not set(graph.volunteers) & set(hidden.volunteers)
    answers = [(response.volunteer, response.item, response.label, response.time) for response in graph.responses]
    back = [(key[one.volunteer], one.item, one.label, one.time) for one in hidden.responses]
    assert back == answers
    assert dict(hidden.gold) == dict(graph.gold)
    assert stat.S_IMODE((tmp_path / "key.csv").stat().st_mode) == 0o600


def test_what_names_volunteers_is_left_out(tmp_path):
    table = {"volunteer": ["anna"], "item": ["x"], "label": [1], "user_id": ["7"], "user_ip": ["3"], "x": [5]}
    hidden = cg.pseudonymise(cg.CrowdGraph.from_responses(table), key=tmp_path / "key.csv")
    assert list(hidden.responses.attributes) == ["x"]
    assert not cg.pseudonymise(fitted(), key=tmp_path / "other.csv").annotations


def test_a_key_is_used_again_and_extended(tmp_path):
    graph = crowd(seed=3).graph
    names = list(graph.volunteers)
    key = tmp_path / "key.csv"
    some = cg.pseudonymise(graph.subgraph(volunteers=names[:5]), key=key)
    first = read_key(key)
    every = cg.pseudonymise(graph, key=key, reuse=True)
    assert first.items() <= read_key(key).items()
    assert set(some.volunteers) <= set(every.volunteers)
    before = key.read_bytes()
    assert list(cg.pseudonymise(graph, key=key, reuse=True).volunteers) == list(every.volunteers)
    assert key.read_bytes() == before


def test_bad_keys_are_refused_and_stay_as_they_are(tmp_path):
    graph = crowd(seed=3).graph
    key = tmp_path / "key.csv"
    key.write_text("mine")
    with pytest.raises(StoreError, match=r"'.*key.csv' is there already.*reuse=True"):
        cg.pseudonymise(graph, key=key)
    for text in ("volunteer,name\nanna,x\n", "volunteer,pseudonym\nanna,x\nbert,x\n", "volunteer,pseudonym\nanna,\n"):
        key.write_text(text)
        with pytest.raises(InputError, match="is no key of pseudonyms"):
            cg.pseudonymise(graph, key=key, reuse=True)
        assert key.read_text() == text
    with pytest.raises(InputError, match="There is no key"):
        cg.pseudonymise(graph, key=tmp_path / "none.csv", reuse=True)
    with pytest.raises(ParameterError, match="graph"):
        cg.pseudonymise("graph", key=tmp_path / "none.csv")
