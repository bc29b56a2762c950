"""Files and networks broken at random: each either reads or is refused by one of our own errors."""

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.errors import CrowdGraphError

ATTRIBUTES = st.dictionaries(
    st.sampled_from(["kind", "id", "label", "time", "gold", "position", "volunteer", "extra"]),
    st.sampled_from(
        ["volunteer", "item", "yes", "2026-01-01", 1, 2.5, None, True, float("nan"), (1, 2), [1], {"yes": 1.0}]
    ),
    max_size=4,
)


def read_or_refused(read, *args, **options):
    """The graph, or None where one of our errors says why there is none."""
    try:
        return read(*args, **options)
    except CrowdGraphError:
        return None


@given(st.binary(max_size=60) | st.text('volunteeritmlab,;"\n\r\t 01', max_size=60).map(str.encode), st.booleans())
def test_any_bytes_as_csv(tmp_path_factory, content, headed):
    path = tmp_path_factory.mktemp("bytes") / "responses.csv"
    path.write_bytes(b"volunteer,item,label,time\n" * headed + content)
    graph = read_or_refused(cg.read_csv, path)
    assert graph is None or len(graph.responses) > 0
    read_or_refused(cg.read_panoptes, path, task="T0")
    read_or_refused(cg.read_parquet, path)
    read_or_refused(cg.load, path)


@given(
    st.lists(ATTRIBUTES, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), ATTRIBUTES), max_size=4),
    st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]),
)
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
def test_any_network(nodes, edges, kind):
    network = kind()
    for number, attributes in enumerate(nodes):
        network.add_nodes_from([(number, {"kind": "volunteer" if number % 2 else "item", **attributes})])
    for left, right, attributes in edges:
        if left < len(nodes) and right < len(nodes):
            network.add_edges_from([(left, right, {"label": "yes", **attributes})])
    graph = read_or_refused(cg.CrowdGraph.from_networkx, network)
    assert graph is None or len(graph.responses) == network.number_of_edges()


def test_text_that_is_no_text_in_parquet(tmp_path):
    """Parquet carries bytes that claim to be text; they are refused, not passed on."""
    for column in ("volunteer", "item", "label"):
        columns = {"volunteer": ["a", "b"], "item": ["x", "y"], "label": ["n", "y"]}
        broken = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff\xfe", b"ok"]).buffers())
        pq.write_table(pa.table({**columns, column: broken}), tmp_path / "r.parquet")
        with pytest.raises(CrowdGraphError, match=column):
            cg.read_parquet(tmp_path / "r.parquet")
