"""Arguments that are results, names of results, or nothing; communities laid onto a graph."""

import dataclasses

import numpy as np
import pytest

import crowdgraph as cg
from crowdgraph.core.result import CodedColumn, Tabular, check_ids
from crowdgraph.errors import AlignmentError, NotAnnotatedError, ParameterError


@pytest.fixture
def communities():
    """Two communities of two of the graph's three volunteers."""
    return cg.Communities(
        ids=["cleo", "anna"], participation=[[1.0, 0.0], [0.3, 0.7]], modularity=0.1, method="by hand"
    )


@pytest.fixture
def votes(graph, fit):
    """A fit without confusion matrices."""
    return dataclasses.replace(fit, model="votes", confusion=None)


def test_a_fit_is_given_named_or_the_latest(graph, fit, votes):
    carrying = graph.annotate(fit).annotate(votes)
    assert graph.resolve_fit(fit) is fit
    assert carrying.resolve_fit("made-up", needs="confusion") is fit
    assert carrying.resolve_fit() is votes


def test_fits_that_do_not_serve_are_refused(graph, fit, votes):
    with pytest.raises(NotAnnotatedError, match="carries no model's fit") as raised:
        graph.resolve_fit()
    assert "--model ibcc" in raised.value.message.wording("cli")
    with pytest.raises(NotAnnotatedError, match=r"'votes' has no confusion matrices\. Fit a model with"):
        graph.resolve_fit(votes, needs="confusion")
    with pytest.raises(ParameterError, match="fit= takes a fit or the name of one; got a int"):
        graph.resolve_fit(3)
    with pytest.raises(AlignmentError, match="made for another graph"):
        graph.subgraph(items=["x"]).resolve_fit(fit)


def test_communities_are_given_named_or_the_latest(graph, communities):
    carrying = graph.annotate(communities)
    assert graph.resolve_communities(communities) is communities
    assert carrying.resolve_communities("by hand") is carrying.resolve_communities() is communities
    with pytest.raises(NotAnnotatedError, match=r"Find some: .*networks\.task_cooccurrence\(graph\)"):
        graph.resolve_communities(network="task_cooccurrence")
    with pytest.raises(ParameterError, match="communities= takes Communities or the name of some; got a list"):
        graph.resolve_communities([])
    with pytest.raises(AlignmentError, match="1 of its volunteers are not in this one"):
        graph.subgraph(volunteers=["anna"]).resolve_communities(communities)


def test_communities_are_laid_onto_a_graph(graph, communities):
    membership = communities.on(graph)
    assert membership.assignment.tolist() == [1, -1, 0]
    assert membership.participation.tolist() == [[0.3, 0.7], [0.0, 0.0], [1.0, 0.0]]


def test_communities_are_laid_onto_a_network_that_they_know(communities):
    network = cg.VolunteerNetwork(ids=["anna", "cleo"], weights=[[0, 1], [1, 0]], method="by hand")
    assert communities.on(network).assignment.tolist() == [1, 0]
    larger = cg.VolunteerNetwork(ids=["anna", "bert"], weights=[[0, 1], [1, 0]], method="by hand")
    with pytest.raises(AlignmentError, match=r"lack 1 of the network's volunteers \('bert'\)\. Detect them"):
        communities.on(larger)


def test_missing_ids_are_counted_and_named(graph):
    table = graph.volunteers.table
    check_ids(["anna", "bert"], table, lacking="There lack {}", hint="Stop.")
    with pytest.raises(ParameterError, match=r"^There lack 2 \(1, 2\)\. Stop\.$"):
        check_ids(np.array([1, 2]), table, lacking="There lack {}", hint="Stop.", error=ParameterError)
    with pytest.raises(AlignmentError, match=r"^Of {x} there lack 1 \(3\)\. Stop\.$"):
        check_ids([3], table, lacking="Of {x} there lack {}", hint="Stop.")


@pytest.mark.parametrize(("kind", "columns"), [("pandas", "columns"), ("polars", "columns"), ("arrow", "column_names")])
def test_what_says_its_columns_becomes_a_table(kind, columns):
    class Pairs(Tabular):
        def _columns(self):
            return {
                "volunteer": CodedColumn(np.array([1, 0]), np.array(["anna", "bert"], dtype=object)),
                "n": np.arange(2),
            }

    assert list(getattr(Pairs().to_frame(kind=kind), columns)) == ["volunteer", "n"]
    assert Pairs().to_frame(kind="text").splitlines()[1] == "bert       0"
