"""Tables of Galaxy Zoo Supernovae, as the paper's authors describe them."""

import csv
import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.errors import CrowdGraphError

HEADER = ("classification", "agent id", "asset id", "PTF type", "PTF class", "score")
ROWS = [
    (11, "007", "x", "SN Ia", "", 3),
    (9, "7", "x", "SN Ia", "", -1),
    (100, "7", "y", "AGN", "galaxy", 1),
    (12, "anna", "z", "NULL", r"\N", 1),
]


def lines(rows, *, header=HEADER, mark=","):
    all_rows = rows if header is None else [header, *rows]
    return "".join(mark.join(map(str, row)) + "\n" for row in all_rows)


def response_tuples(graph):
    return [(r.time, r.volunteer, r.item, r.label) for r in graph.responses]


def test_a_table_is_read_with_its_gold(write):
    graph = cg.read_galaxy_zoo_supernovae(write(lines(ROWS)))
    assert response_tuples(graph) == [(9, "7", "x", -1), (11, "007", "x", 3), (12, "anna", "z", 1), (100, "7", "y", 1)]
    assert graph.labels == (-1, 1, 3)
    assert all(type(label) is int for label in graph.labels)
    assert graph.classes == ("not supernova", "supernova")
    assert graph.responses.clock == cg.Clock("number")
    assert dict(graph.gold) == {"x": "supernova", "y": "not supernova"}
    assert not graph.responses.attributes


@pytest.mark.parametrize("mark", [",", "\t", ";"])
@pytest.mark.parametrize("header", [HEADER, None])
def test_delimiters_are_guessed(write, mark, header):
    plain = cg.read_galaxy_zoo_supernovae(write(lines(ROWS)))
    path = write(lines(ROWS, header=header, mark=mark), "other.csv")
    assert cg.read_galaxy_zoo_supernovae(path).equals(plain)
    assert cg.read_galaxy_zoo_supernovae(path, delimiter=mark).equals(plain)


def test_marks_blank_lines_and_compression_change_nothing(write):
    plain = cg.read_galaxy_zoo_supernovae(write(lines(ROWS)))
    for content in (
        "\ufeff" + lines(ROWS).replace("\n", "\r\n"),
        "\ufeff" + lines(ROWS, header=None),
        "\n\n" + lines(ROWS) + "\n\n",
        lines(ROWS).rstrip("\n"),
        lines([[f" {cell} " for cell in row] for row in ROWS]),
    ):
        assert cg.read_galaxy_zoo_supernovae(write(content)).equals(plain)
    packed = write(gzip.compress(lines(ROWS).encode()), "supernovae.csv.gz")
    assert cg.read_galaxy_zoo_supernovae(packed).equals(plain)
    bars = write(lines(ROWS, mark="|"), "bars.csv")
    assert cg.read_galaxy_zoo_supernovae(bars, delimiter="|").equals(plain)


@pytest.mark.parametrize(
    "header",
    [
        ("Classification ID", "Agent ID", "Asset ID", "PTF Type", "PTF Class", "Score"),
        ("classification_id", "agent_id", "asset_id", "ptf_type", "ptf_class", "score"),
        ("CLASSIFICATION", "agent-id", "AssetId", "type", "class", " SCORE "),
        ('"classification"', '"agent id"', '"asset id"', '"PTF type"', '"PTF class"', '"score"'),
    ],
)
def test_headers_match_loosely(write, header):
    plain = cg.read_galaxy_zoo_supernovae(write(lines(ROWS)))
    assert cg.read_galaxy_zoo_supernovae(write(lines(ROWS, header=header), "loose.csv")).equals(plain)


def test_columns_come_in_any_order_among_others(write):
    plain = cg.read_galaxy_zoo_supernovae(write(lines(ROWS)))
    order = [5, 2, 4, 0, 1, 3]
    rows = [("note", *(row[index] for index in order), "") for row in ROWS]
    header = ("remark", *(HEADER[index] for index in order), "remark")
    assert cg.read_galaxy_zoo_supernovae(write(lines(rows, header=header), "mixed.csv")).equals(plain)


def test_quoted_cells_hold_delimiters_and_line_breaks(write):
    content = '5,"Smith, ""Jo""","line\nbreak","SN Ia; bright","a, b",3\n'
    graph = cg.read_galaxy_zoo_supernovae(write(content))
    assert response_tuples(graph) == [(5, 'Smith, "Jo"', "line\nbreak", 3)]
    assert dict(graph.gold) == {"line\nbreak": "supernova"}


def test_scores_and_numbers_are_numbers(write):
    rows = [
        (1, "a", "x", "", "", "+3"),
        (10, "a", "y", "", "", "-1.0"),
        (2, "a", "z", "", "", "1."),
        (-4, *"bx", "", "", 3),
    ]
    graph = cg.read_galaxy_zoo_supernovae(write(lines(rows)))
    assert response_tuples(graph) == [(-4, "b", "x", 3), (1, "a", "x", 3), (2, "a", "z", 1), (10, "a", "y", -1)]
    assert len(graph.gold) == 0


# PTF type, PTF class, and the gold that follows.
RULE = [
    ("SN Ia", "", "supernova"),
    ("SN II", "NULL", "supernova"),
    ("sn?", "", "supernova"),
    ("SLSN-I", "", "supernova"),
    ("", "Supernova", "supernova"),
    ("transient", "SUPERNOVA candidate", "supernova"),
    ("SN, not AGN", "", "supernova"),
    ("unknown SN", "", "supernova"),
    ("SN Ia", "galaxy", "supernova"),
    ("not SN", "", "not supernova"),
    ("Not a supernova", "", "not supernova"),
    ("non-SN", "", "not supernova"),
    ("notSN", "", "not supernova"),
    ("no_supernova", "", "not supernova"),
    ("AGN; is_not_SN", "", "not supernova"),
    ("nova", "", "not supernova"),
    ("AGN", "", "not supernova"),
    ("", "variable star", "not supernova"),
    ("0", "0", "not supernova"),
    ("", "", None),
    ("NULL", "None", None),
    (r"\N", "null", None),
]


def test_gold_follows_the_rule(write):
    rows = [(row, "a", row, kind, group, 3) for row, (kind, group, _) in enumerate(RULE)]
    graph = cg.read_galaxy_zoo_supernovae(write(lines(rows, mark="\t")))
    assert dict(graph.gold) == {str(row): gold for row, (_, _, gold) in enumerate(RULE) if gold is not None}


def test_gold_may_be_in_some_rows_only(write):
    rows = [(1, "a", "x", "", "", 3), (2, "b", "x", "SN II", "", 3), (3, "c", "x", "", "supernova", 1)]
    assert dict(cg.read_galaxy_zoo_supernovae(write(lines(rows))).gold) == {"x": "supernova"}


@given(st.binary(max_size=60) | st.text('agentscorSN,;"\n\r\t 013-', max_size=80).map(str.encode), st.booleans())
def test_any_bytes_are_read_or_refused(tmp_path_factory, content, headed):
    path = tmp_path_factory.mktemp("bytes") / "supernovae.csv"
    path.write_bytes((lines([]).encode() if headed else b"") + content)
    try:
        graph = cg.read_galaxy_zoo_supernovae(path)
    except CrowdGraphError:
        return
    assert len(graph.responses) > 0


@pytest.fixture(scope="module")
def simulated_rows():
    """A simulated crowd as a graph and as rows of a table."""
    graph = cg.simulate.galaxy_zoo_supernovae(seed=3).graph
    kinds = {0: ("AGN", "not SN"), 1: ("SN Ia", "")}
    codes = graph.gold.codes[graph.responses.item].tolist()
    rows = [
        (number, response.volunteer, response.item, *kinds[code], response.label)
        for number, (response, code) in enumerate(zip(graph.responses, codes, strict=True), start=1000)
    ]
    return graph, rows


@pytest.mark.parametrize(("mark", "headed"), [(",", True), (",", False), ("\t", True), (";", False)])
def test_a_simulated_crowd_survives(tmp_path, simulated_rows, mark, headed):
    graph, rows = simulated_rows
    # Files need not be sorted: the numbers tell the order.
    shuffled = [rows[index] for index in np.random.default_rng(0).permutation(len(rows))]
    path = tmp_path / "supernovae.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=mark).writerows([HEADER, *shuffled] if headed else shuffled)
    restored = cg.read_galaxy_zoo_supernovae(path)
    assert response_tuples(restored) == [(number, who, what, label) for number, who, what, _, _, label in rows]
    assert (restored.classes, restored.labels) == (graph.classes, graph.labels)
    assert dict(restored.gold) == dict(graph.gold)
