"""# A crowd of machines

The paper combines *imperfect classifiers*, and people are only one kind. Here 300 shallow decision trees each look at 1
to 5 of the 64 pixels of handwritten digits, and learn from 20 to 400 images. Each is poor; combined they are not.
"""

# %% The items are images; their classes are digits.
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import crowdgraph as cg

images, digits = load_digits(return_X_y=True)
seen, items, seen_digits, truth = train_test_split(images, digits, test_size=600, random_state=0, stratify=digits)

# %% Every tree labels half of the items, so that the table of responses has gaps, as in a crowd.
rng = np.random.default_rng(0)
rows = {"volunteer": [], "item": [], "label": []}
for number in range(300):
    pixels = rng.choice(64, rng.integers(1, 6), replace=False)
    trained = rng.choice(len(seen), rng.integers(20, 400), replace=False)
    tree = DecisionTreeClassifier(max_depth=3, random_state=number).fit(seen[trained][:, pixels], seen_digits[trained])
    shown = rng.choice(len(items), 300, replace=False)
    rows["volunteer"] += [f"tree {number}"] * len(shown)
    rows["item"] += shown.tolist()
    rows["label"] += tree.predict(items[shown][:, pixels]).tolist()

# %% The digits of 120 items are known; those of the other 480 are to be inferred.
gold = {item: int(truth[item]) for item in range(120)}
graph = cg.CrowdGraph.from_responses(rows, gold=gold, classes=range(10))
single = np.mean(graph.responses.label == truth[graph.items.ids[graph.responses.item]])
print(graph)
print(f"a single answer is right in {single:.0%} of the cases")

# %% A vote learns nothing from mistakes; IBCC learns which mistakes a tree makes, and what they reveal.
hidden = graph.items.ids >= 120
hidden_digits = truth[graph.items.ids[hidden]]
for model in (cg.MajorityVote(), cg.WeightedMajority(), cg.DawidSkene(), cg.IBCC()):
    accuracy = np.mean(model.fit(graph).item_probs[hidden].argmax(axis=1) == hidden_digits)
    print(f"{type(model).__name__:<17} is right about {accuracy:.1%} of the items without gold")

# %% Are the models as sure as they should be? Hide some of the gold and see.
result = cg.evaluation.cross_validate(graph, [cg.MajorityVote(), cg.IBCC(), cg.Calibrated()])
out = Path("demo")
out.mkdir(exist_ok=True)
cg.plot.reliability(result).figure.savefig(out / "machines.png", dpi=150)
