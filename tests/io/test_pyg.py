"""Graphs and networks in PyTorch Geometric: the same numbers, and layers that run on them."""

import sys
import warnings

import numpy as np
import pytest
import torch
from builders import crowd, mirrored
from hypothesis import given
from scipy.sparse import csr_array
from strategies import graphs

import crowdgraph as cg
from crowdgraph.errors import CrowdGraphWarning, MissingPackageError, ParameterError, TimeError

with warnings.catch_warnings():
    # It uses what torch deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    pytest.importorskip("torch_geometric", reason="needs torch-geometric", exc_type=ImportError)
    from torch_geometric.nn import HeteroConv, SAGEConv
    from torch_geometric.transforms import ToUndirected

RESPONSES = ("volunteer", "answers", "item")


@pytest.fixture(scope="module")
def annotated():
    graph = crowd(n_volunteers=10, n_items=30, n_responses=150, gold=0.2).graph
    graph = graph.annotate(cg.IBCC().fit(graph))
    participation = np.random.default_rng(0).dirichlet([1, 1], 8)
    return graph.annotate(
        cg.Communities(ids=graph.volunteers.ids[:8], participation=participation, method="by hand", modularity=0.1)
    )


@given(graphs())
def test_nodes_and_edges_are_those_of_the_graph(graph):
    data = graph.to_pyg(dtype="float64")
    edges = data[RESPONSES]
    tensors = graph.to_torch()
    assert data.validate()
    assert data.node_types == ["volunteer", "item"]
    assert data.edge_types == [RESPONSES]
    assert torch.equal(edges.edge_index, torch.stack([tensors.volunteer, tensors.item]))
    assert torch.equal(edges.label, tensors.label)
    assert edges.time.dtype == torch.float64
    assert torch.equal(edges.time, tensors.time.double())
    assert data["volunteer"].ids == graph.volunteers.ids.tolist()
    assert data["item"].ids == graph.items.ids.tolist()
    assert (data["volunteer"].num_nodes, data["item"].num_nodes) == (len(graph.volunteers), len(graph.items))
    assert torch.allclose(data["item"].gold, tensors.gold, equal_nan=True)
    assert data["item"].gold_mask.tolist() == graph.gold.known.tolist()
    assert data["item"].y.tolist() == graph.gold.codes.tolist()
    assert (data.classes, data.labels) == (list(graph.classes), list(graph.labels))
    assert not {"confusion", "participation", "class_probs"} & {*data["volunteer"].keys(), *data["item"].keys()}


@given(graphs())
def test_numeric_attributes_become_matrices(graph):
    """Of the attributes that the strategy draws, notes are no numbers."""
    data = graph.to_pyg(dtype="float64")
    attributes = graph.responses.attributes
    numeric = [
        name
        for name, column in attributes.items()
        if name != "note" and any(value is not None and value == value for value in column.tolist())
    ]
    stores = {"edge_attr": (data[RESPONSES], attributes, numeric)}
    since = graph.volunteers.attributes["since"].tolist()
    named = ["since"] if any(value is not None for value in since) else []
    stores["x"] = (data["volunteer"], graph.volunteers.attributes, named)
    for matrix, (store, columns, names) in stores.items():
        assert store.get(f"{matrix}_columns", []) == names
        for position, name in enumerate(names):
            expected = [np.nan if value is None else float(value) for value in columns[name].tolist()]
            np.testing.assert_array_equal(store[matrix][:, position].numpy(), expected)
    assert "x" not in data["item"]


def test_annotations_are_attributes_of_nodes(annotated):
    data = annotated.to_pyg()
    volunteers = data["volunteer"]
    mean = annotated.confusion().latest().mean
    assert torch.equal(volunteers.confusion, torch.tensor(mean, dtype=torch.float32))
    participation = annotated.communities().participation
    assert torch.equal(volunteers.participation[:8], torch.tensor(participation, dtype=torch.float32))
    assert volunteers.participation[8:].tolist() == [[0, 0], [0, 0]]
    assert volunteers.community.tolist() == [*annotated.communities().assignment.tolist(), -1, -1]
    assert torch.equal(data["item"].class_probs, torch.tensor(annotated.item_probs(), dtype=torch.float32))


def test_items_that_were_not_answered_have_the_label_minus_one():
    columns = {"volunteer": ["a", "b"], "item": ["x", "x"], "label": ["yes", None]}
    data = cg.CrowdGraph.from_responses(columns, missing="keep").to_pyg()
    assert data[RESPONSES].label.tolist() == [0, -1]
    assert data[RESPONSES].edge_index.tolist() == [[0, 1], [0, 0]]


def test_a_moment_shows_what_was_known_then(annotated):
    moment = annotated.responses[49].time
    with pytest.warns(CrowdGraphWarning, match="left out"):
        data = annotated.to_pyg(at=moment)
    n_known = data[RESPONSES].num_edges
    assert n_known == np.count_nonzero(annotated.responses.time <= annotated.responses.time[49])
    assert "confusion" not in data["volunteer"]
    assert data["volunteer"].num_nodes == 10
    with pytest.raises(TimeError):
        annotated.to_pyg(at="not a time")


def test_changing_the_data_leaves_the_graph_unchanged(annotated):
    before = annotated.confusion().latest().mean.copy()
    data = annotated.to_pyg(dtype="float64")
    for store in data.stores:
        for value in store.values():
            if isinstance(value, torch.Tensor):
                value.fill_(1)
            elif isinstance(value, list):
                value.clear()
    assert annotated.responses.volunteer.max() == 9
    assert annotated.classes == ("no", "yes")
    assert len(annotated.volunteers.ids) == 10
    assert np.array_equal(annotated.confusion().latest().mean, before)


def test_a_layer_passes_messages_from_volunteers_to_items(annotated):
    """A convolution without weights of its own adds up what the volunteers say; a learned one has gradients."""
    data = ToUndirected()(annotated.to_pyg())
    kinds = [RESPONSES, ("item", "rev_answers", "volunteer")]
    features = {"volunteer": data["volunteer"].confusion.flatten(1), "item": data["item"].class_probs}
    torch.manual_seed(0)
    layer = HeteroConv({kind: SAGEConv((-1, -1), 3, aggr="sum") for kind in kinds})
    outputs = layer(features, data.edge_index_dict)
    assert outputs["item"].shape == (30, 3)
    assert outputs["volunteer"].shape == (10, 3)
    convolution = layer.convs[RESPONSES]
    summed = torch.zeros(30, 4).index_add(
        0, data[RESPONSES].edge_index[1], features["volunteer"][data[RESPONSES].edge_index[0]]
    )
    expected = convolution.lin_l(summed) + convolution.lin_r(features["item"])
    assert torch.allclose(outputs["item"], expected, atol=1e-5)
    mask = data["item"].gold_mask
    assert mask.any()
    torch.nn.functional.cross_entropy(outputs["item"][mask], data["item"].y[mask]).backward()
    assert convolution.lin_l.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("is_sparse", [True, False])
def test_networks_list_their_links_in_both_directions(is_sparse):
    weights = mirrored(np.random.default_rng(0).poisson(0.5, (7, 7)) / 3)
    weights[6] = weights[:, 6] = 0
    ids = list("abcdefg")
    network = cg.VolunteerNetwork(ids=ids, weights=csr_array(weights) if is_sparse else weights, method="by hand")
    data = network.to_pyg(dtype="float64")
    assert data.validate()
    assert data.is_undirected()
    assert (data.num_nodes, data.ids) == (7, ids)
    assert data.edge_index.tolist() == [part.tolist() for part in np.nonzero(weights)]
    assert data.edge_weight.tolist() == weights[np.nonzero(weights)].tolist()
    assert network.to_pyg().edge_weight.dtype == torch.float32


def test_tested_links_have_p_values():
    graph = crowd(n_volunteers=12, n_items=40, n_responses=200).graph
    network = cg.networks.task_cooccurrence(graph).backbone(level=0.999)
    data = network.to_pyg(dtype="float64")
    assert data.p_value.tolist() == network.p_values.toarray()[tuple(data.edge_index.numpy())].tolist()
    assert len(data.p_value) == 2 * network.n_edges > 0


def test_a_network_without_links_has_no_edges():
    data = cg.VolunteerNetwork(ids=["a", "b"], weights=np.zeros((2, 2)), method="by hand").to_pyg()
    assert data.edge_index.shape == (2, 0)
    assert data.num_nodes == 2


def test_bad_precisions_and_missing_packages_are_named(graph, monkeypatch):
    network = cg.VolunteerNetwork(ids=["a", "b"], weights=[[0, 1], [1, 0]], method="by hand")
    for subject in (graph, network):
        with pytest.raises(ParameterError, match="dtype='float16' is not a precision"):
            subject.to_pyg(dtype="float16")
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    for subject in (graph, network):
        with pytest.raises(MissingPackageError, match="pip install torch-geometric"):
            subject.to_pyg()
