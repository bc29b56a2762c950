"""The look-alikes of Galaxy Zoo Supernovae have the paper's numbers."""

import hashlib

import igraph
import numpy as np
import pytest
from oracles.baselines import cross_validated
from scipy.sparse import coo_array, csr_array, triu

import crowdgraph as cg

PUBLISHED = {"mean score": 0.754, "weighted sum": 0.772, "majority": 0.781, "weighted majority": 0.738}


@pytest.fixture(scope="module")
def paper():
    return cg.simulate.galaxy_zoo_supernovae(seed=0)


def test_the_crowd_has_the_papers_numbers(paper):
    graph = paper.graph
    assert (len(graph.items), len(graph.volunteers), len(graph.responses)) == (963, 1705, 26_558)
    assert graph.labels == (-1, 1, 3)
    assert graph.classes == ("not supernova", "supernova")
    assert len(graph.gold) == 963
    assert not graph.responses.is_repeat.any()
    sizes = np.bincount(paper.truth.group)
    assert len(sizes) == 5
    assert sizes.min() > 200
    assert graph.items.n_responses.min() >= 10
    counts = np.sort(graph.volunteers.n_responses)[::-1]
    assert counts[:17].sum() > 0.25 * counts.sum(), "a hundredth of the volunteers gives a quarter and more"


def test_behaviours_read_as_the_paper_describes_them(paper):
    truth = paper.truth
    labels = paper.graph.responses.label
    true_class = truth.classes[paper.graph.responses.item]
    group = truth.group[paper.graph.responses.volunteer]

    def share(name, class_code, label):
        rows = (group == truth.group_names.index(name)) & (true_class == class_code)
        return (labels[rows] == paper.graph.labels.index(label)).mean()

    assert share("reasonable", 0, -1) > 0.8
    assert min(share("reasonable", 1, 1), share("reasonable", 1, 3)) > 0.3
    assert share("extremists", 0, -1) > 0.8
    assert share("extremists", 1, 3) > 0.8
    assert min(share("pessimists", 0, -1), share("pessimists", 1, -1)) > 0.85
    assert max(share("optimists", 0, -1), share("optimists", 1, -1)) < 0.1
    assert share("non-committal", 1, 1) > share("non-committal", 1, -1) > share("non-committal", 1, 3)


def test_the_seed_decides(paper):
    assert cg.simulate.galaxy_zoo_supernovae(seed=0).graph.equals(paper.graph)
    assert not cg.simulate.galaxy_zoo_supernovae(seed=1).graph.equals(paper.graph)


def test_groups_arrive_as_the_paper_saw_them():
    firsts = []
    for seed in range(4):
        graph, truth = cg.simulate.galaxy_zoo_supernovae(arriving=True, seed=seed)
        assert len(graph.responses) == 26_558
        group = truth.group[graph.responses.volunteer]
        firsts.append([np.argmax(group == code) for code in range(5)])
    first = dict(zip(truth.group_names, np.mean(firsts, axis=0), strict=True))
    assert first.pop("optimists") == pytest.approx(3_000, abs=500)
    assert first.pop("reasonable") == pytest.approx(12_000, abs=1_000)
    assert max(first.values()) < 500


@pytest.mark.slow
def test_the_full_crowd_has_the_papers_numbers_and_one_seed_draws_the_same_one():
    graph, truth = cg.simulate.galaxy_zoo_supernovae_full(seed=0)
    responses = graph.responses
    assert len(responses) == 493_048
    assert np.count_nonzero(graph.volunteers.n_responses >= 10) == 2131
    assert len(np.unique(truth.community)) == 32
    columns = [responses.volunteer, responses.item, responses.label]
    digest = hashlib.sha256(b"".join(np.asarray(column).astype("<i8").tobytes() for column in columns))
    assert digest.hexdigest()[:16] == "058fd8a3afabb0be"


@pytest.mark.science
def test_the_crowd_is_as_hard_as_the_real_one():
    """Baselines near the paper's AUCs, while knowing the volunteers is worth nearly everything."""
    runs = [cross_validated(*cg.simulate.galaxy_zoo_supernovae(seed=seed), seed=seed) for seed in range(16)]
    means = {name: np.mean([run[name] for run in runs]) for name in runs[0]}
    print("\n| method | paper | here, mean of 16 seeds | spread |\n|---|--:|--:|--:|")
    for name, mean in means.items():
        spread = np.std([run[name] for run in runs], ddof=1)
        print(f"| {name} | {PUBLISHED.get(name, '')} | {mean:.3f} | {spread:.3f} |")
    assert means["oracle"] >= 0.98
    for name, published in PUBLISHED.items():
        assert abs(means[name] - published) <= 0.06, name


@pytest.mark.science
def test_the_full_crowd_has_the_papers_modularity():
    """Weights as in the paper: common items over the mean number of items; its communities had a modularity of 0.75."""
    graph, truth = cg.simulate.galaxy_zoo_supernovae_full(seed=0)
    n_items = graph.volunteers.n_responses
    regular = n_items >= 10
    answered = csr_array(
        (np.ones(len(graph.responses)), (graph.responses.volunteer, graph.responses.item)),
        shape=(len(graph.volunteers), len(graph.items)),
    )[regular]
    common = coo_array(triu(answered @ answered.T, k=1))
    left, right = common.coords
    weights = common.data / (0.5 * (n_items[regular][left] + n_items[regular][right]))
    network = igraph.Graph(n=int(regular.sum()), edges=np.column_stack([left, right]))
    modularity = network.modularity(truth.community[regular], weights=weights)
    print(f"\nmodularity of the 32 task communities: {modularity:.3f} (paper: 0.75)")
    assert modularity == pytest.approx(0.75, abs=0.03)
