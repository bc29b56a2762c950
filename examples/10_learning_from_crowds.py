"""# Teach a network with a crowd's answers

Can a crowd that is often wrong teach a network to read digits, with one answer for each picture?
"""

# %% Let forty volunteers of mixed skill, right for 20 to 95 % of pictures, label handwritten digits.
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits

import crowdgraph as cg

PICTURES, DIGITS = load_digits(return_X_y=True)
N_VOLUNTEERS, N_TRAIN = 40, 1_200
# Answers to each item, and the share of items without any.
SETTINGS = {"1 answer": (1, 0), "2 answers": (2, 0), "3 answers": (3, 0), "1 answer, none for a third": (1, 1 / 3)}


def simulate(rng, n_answers, share_without):
    """Return the graph of a crowd's answers about training items, and these items followed by those for testing."""
    order = rng.permutation(len(DIGITS))
    skill = rng.uniform(0.2, 0.95, N_VOLUNTEERS)
    item = np.repeat(np.arange(round(share_without * N_TRAIN), N_TRAIN), n_answers)
    volunteer = np.argsort(rng.random((len(item) // n_answers, N_VOLUNTEERS)))[:, :n_answers].ravel()
    right = rng.random(len(item)) < skill[volunteer]
    label = np.where(right, DIGITS[order[item]], rng.integers(10, size=len(item)))
    table = {"volunteer": volunteer, "item": item, "label": label}
    nodes = {"items": {"item": range(N_TRAIN)}, "volunteers": {"volunteer": range(N_VOLUNTEERS)}}
    return cg.CrowdGraph.from_responses(table, labels=range(10), classes=range(10), **nodes), order


# %% One and the same network learns from majority votes, from IBCC's classes (both as gold), and with the answers.
def network(n_features, n_classes):
    return torch.nn.Sequential(torch.nn.Linear(n_features, 32), torch.nn.ReLU(), torch.nn.Linear(32, n_classes))


def classifier_ibcc(pixels):
    # Digits are about equally frequent; with one answer each, the proportions cannot be learned from answers alone.
    return cg.ClassifierIBCC(network, features=pixels, class_prior=100, batch_size=512, learning_rate=0.02)


def accuracies(seed, n_answers, share_without):
    """Return the shares of answered training items and of test items that each way gets right."""
    graph, order = simulate(np.random.default_rng(seed), n_answers, share_without)
    pixels = torch.tensor(PICTURES[order] / 16, dtype=torch.float32)
    model = classifier_ibcc(pixels[:N_TRAIN])
    votes, ibcc = cg.MajorityVote().fit(graph), cg.IBCC(class_prior=100).fit(graph)
    answered = np.flatnonzero(graph.answers.n_by_item)
    taught = {"majority": graph.with_gold(gold_of(votes, answered)), "IBCC": graph.with_gold(gold_of(ibcc, answered))}
    fits = {name: model.fit(one, seed=seed) for name, one in {**taught, "ClassifierIBCC": graph}.items()}
    train = {name: fit.item_probs[answered].argmax(axis=1) == DIGITS[order[answered]] for name, fit in fits.items()}
    test = {name: predict(fit.classifier, pixels[N_TRAIN:]) == DIGITS[order[N_TRAIN:]] for name, fit in fits.items()}
    return [{name: right.mean() for name, right in part.items()} for part in (train, test)]


def gold_of(fit, items):
    return {item: dict(zip(fit.classes, fit.item_probs[item], strict=True)) for item in items.tolist()}


def predict(classifier, pixels):
    with torch.no_grad():
        return classifier(pixels).argmax(dim=1).numpy()


# %% Compare them over two crowds, or as many as you say, then in all settings; "behind": ClassifierIBCC is ahead.
seeds = range(int(sys.argv[1]) if len(sys.argv) == 2 and sys.argv[1].isdigit() else 2)
figure, panels = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
settings = SETTINGS if len(seeds) > 2 else {name: SETTINGS[name] for name in ("1 answer", "3 answers")}
for position, (setting, sizes) in enumerate(settings.items()):
    shares = [accuracies(seed, *sizes) for seed in seeds]
    for part, (panel, title) in enumerate(zip(panels, ("answered training items", "test items"), strict=True)):
        for shift, name in enumerate(shares[0][part]):
            values = np.array([one[part][name] for one in shares])
            ahead = sum(one[part]["ClassifierIBCC"] > one[part][name] for one in shares)
            error = values.std(ddof=1) / np.sqrt(len(values))
            print(f"{setting:27} {title:24} {name:15} {values.mean():.3f} +- {error:.3f}  behind {ahead}/{len(values)}")
            panel.errorbar(position + 0.2 * shift, values.mean(), error, fmt="o", color=f"C{shift}", label=name)
        panel.set(title=title, xticks=np.arange(len(settings)) + 0.2, xticklabels=settings)
        panel.tick_params(axis="x", labelsize=7)
panels[0].set_ylabel("share that is right")
panels[0].legend(*(handles[:3] for handles in panels[0].get_legend_handles_labels()))
Path("demo").mkdir(exist_ok=True)
figure.savefig("demo/learning_from_crowds.png", dpi=150)
