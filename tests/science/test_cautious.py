"""How sure models are of real items, and how right: IBCC beside Cautious, without gold, where the sets are present."""

import numpy as np
import pytest
from science.real import load

import crowdgraph as cg

pytestmark = pytest.mark.science

SETS = ["act_cf_amt", "act_ms", "act_sp_amt", "act_zencrowd_all", "bluebird", "cti_face", "cti_product"]
SETS += ["cti_sentiment", "fact_eval", "gal_adult2", "snow_rte", "snow_temp"]


@pytest.mark.filterwarnings("ignore")
def test_cautious_is_less_surely_wrong_on_real_crowds():
    print("\n| set | IBCC: right, log loss | difficulty | difficulty and who errs together |\n|---|--:|--:|--:|")
    losses = []
    for name in SETS:
        graph = load(name)
        scored = np.flatnonzero(graph.gold.codes >= 0)
        right = graph.gold.codes[scored]
        unseen = graph.with_gold({})
        plain = cg.IBCC().fit(unseen)
        together = cg.Leiden().detect(cg.networks.error_correlation(unseen.annotate(plain)), seed=0)
        fits = [plain, *(cg.Cautious(communities=found).fit(unseen) for found in (None, together))]
        probs = [fit.item_probs[scored] for fit in fits]
        losses.append([-np.log(some[np.arange(len(some)), right].clip(1e-15)).mean() for some in probs])
        accuracy = [(some.argmax(axis=1) == right).mean() for some in probs]
        cells = (f"{share:.3f}, {loss:.2f}" for share, loss in zip(accuracy, losses[-1], strict=True))
        print(f"| {name} | " + " | ".join(cells) + " |")
    plain, hard, both = np.array(losses).T
    print(f"mean log loss {plain.mean():.2f}, {hard.mean():.2f}, {both.mean():.2f}")
    assert (hard < plain).all()
    assert (both < plain).all()
