"""Scores on real crowds and simulated ones: what an ordered model gains over IBCC, votes and means."""

import numpy as np
import pytest
from builders import ratings
from science.real import load

import crowdgraph as cg

pytestmark = pytest.mark.science

# Real crowds with ordered labels. Of two of them only some labels are: the fourth of cti_relevance is a broken link,
# and those of act_cf_amt are "not about the weather" and "cannot tell". Responses and gold with these are left out.
SETS = {"gal_adult2": "GPRX", "cti_relevance": "012", "act_cf_amt": "012"}
MODELS = {
    "mean score": lambda scores: cg.MeanScore(scores=scores),
    "vote shares": lambda scores: cg.MajorityVote(),
    "IBCC": lambda scores: cg.IBCC(),
    "ordinal IBCC": lambda scores: cg.OrdinalIBCC(scores=scores),
    "IBCC, calibrated": lambda scores: cg.Calibrated(),
    "ordinal IBCC, calibrated": lambda scores: cg.Calibrated(model=cg.OrdinalIBCC(scores=scores)),
}


def ordered(name):
    """A real crowd with its ordered labels alone and without gold, the gold classes, and what labels stand for."""
    full, labels = load(name), list(SETS[name])
    table = full.to_arrow().to_pydict()
    gold = {item: label for item, label in dict(full.gold).items() if label in labels}
    chosen = [
        row
        for row, (item, label) in enumerate(zip(table["item"], table["label"], strict=True))
        if label in labels and (item in gold or item not in full.gold)
    ]
    graph = cg.CrowdGraph.from_responses(
        {part: [table[part][row] for row in chosen] for part in ("volunteer", "item", "label")}, labels=labels
    )
    return graph, gold, {label: float(code) for code, label in enumerate(labels)}


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
def scores_of(graph, gold, scores):
    """Log loss (no chance below 1e-6) and mean absolute error of the expected score of every model, on gold unseen."""
    items = [item for item in gold if item in graph.items.table]
    rows, truth = graph.items.table.codes(items), np.array([graph.classes.index(gold[item]) for item in items])
    values = np.array([scores[name] for name in graph.classes])
    result = {}
    for name, make in MODELS.items():
        fit = make(scores).fit(graph)
        chances = fit.item_probs[rows, truth]
        errors = fit.expected_scores(scores).expected[rows] - values[truth]
        result[name] = (-np.log(np.maximum(chances, 1e-6)).mean(), np.abs(errors).mean())
    return result


def show(title, result):
    print(f"\n{title}")
    for name, (loss, error) in result.items():
        print(f"  {name:<26} log loss {loss:.3f}   mean absolute error {error:.3f}")


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
@pytest.mark.parametrize("name", SETS)
def test_expected_scores_of_real_crowds_are_no_worse_than_means(name):
    result = scores_of(*ordered(name))
    show(name, result)
    assert result["ordinal IBCC"][1] < result["mean score"][1]
    if name == "gal_adult2":
        assert result["ordinal IBCC"][1] < result["IBCC"][1]
        assert result["ordinal IBCC, calibrated"][0] < result["IBCC, calibrated"][0]


@pytest.mark.parametrize("sizes", [{"n_items": 400}, {"n_volunteers": 80, "n_items": 300, "each": 3}])
def test_graders_are_what_the_model_is_made_for(sizes):
    every = []
    for seed in range(10):
        graph, truth = ratings(seed, **sizes)
        gold = dict(enumerate(truth.tolist()))
        every.append(scores_of(graph, gold, {score: float(score) for score in range(1, 6)}))
    mean = {name: tuple(np.mean([one[name] for one in every], axis=0)) for name in MODELS}
    show(f"simulated graders, {sizes}", mean)
    assert mean["ordinal IBCC"][0] < min(mean[name][0] for name in ("mean score", "vote shares", "IBCC"))
    assert mean["ordinal IBCC"][1] < min(mean[name][1] for name in ("mean score", "vote shares", "IBCC"))
