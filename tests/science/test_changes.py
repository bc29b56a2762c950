"""The test for changes beside Fisher's exact test of the first half of the answers against the last."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control, fisher_exact

import crowdgraph as cg

SEEDS = range(20)
RATE = 0.05


def crowd_of(rights, n_items, seed):
    """A crowd whose volunteers are right with the probabilities of a (V, n) array, answer by answer; no gold."""
    rng = np.random.default_rng(seed)
    n_volunteers, n = rights.shape
    truth = rng.integers(2, size=n_items)
    item = np.concatenate([rng.permutation(n_items)[:n] for _ in range(n_volunteers)])
    right = rng.random(rights.shape) < rights
    time = rng.random(rights.shape).cumsum(axis=1)
    return cg.CrowdGraph.from_responses(
        {
            "volunteer": np.repeat([f"v{code:03d}" for code in range(n_volunteers)], n),
            "item": item,
            "label": np.where(right.ravel(), truth[item], 1 - truth[item]),
            "time": time.ravel(),
        },
        classes=[0, 1],
    )


def fisher_flags(graph, fit):
    """Who changed by Fisher's test of the halves, with the most probable classes as truth and the same rate."""
    answers, best = graph.answers, fit.item_probs.argmax(axis=1)
    right = best[answers.item] == answers.label
    p_values = []
    for code in range(len(graph.volunteers)):
        first, last = np.array_split(right[answers.by_volunteer.rows(code)], 2)
        p_values.append(fisher_exact([[first.sum(), (~first).sum()], [last.sum(), (~last).sum()]]).pvalue)
    return false_discovery_control(p_values) <= RATE


def learners(n_volunteers=79, n_learners=16):
    rights = np.full((n_volunteers, 40), 0.92)
    rights[:n_learners] = np.interp(np.arange(40), [9, 20], [0.56, 0.92])
    return rights, n_learners


def steps(before, after, n_volunteers=25, n_changed=5, n=2_000, at=800):
    rights = np.full((n_volunteers, n), max(before, after))
    rights[n_changed:] = np.linspace(0.65, 0.9, n_volunteers - n_changed)[:, None]
    rights[:n_changed, :at], rights[:n_changed, at:] = before, after
    return rights, n_changed


SCENES = {
    "16 of 79 learn, 40 answers": (learners(), 400),
    "a rise from .73 to .85 at 800 of 2,000": (steps(0.73, 0.85), 4_000),
    "a drop from .71 to .46 at 800 of 2,000": (steps(0.71, 0.46), 4_000),
    "a drop from .85 to .60 at 120 of 150": (steps(0.85, 0.6, n=150, at=120), 400),
    "nobody changes, 40 answers": (learners(n_learners=0), 400),
    "nobody changes, 3 answers an item": (learners(n_learners=0), 1_000),
}


def measured(scene, model):
    """The power and the false share of both tests, a value for each seed."""
    (rights, n_changed), n_items = SCENES[scene]
    power, false = ({"changes": [], "fisher": []} for _ in range(2))
    for seed in SEEDS:
        graph = crowd_of(rights, n_items, seed)
        fit = model.fit(graph)
        flags = {"changes": fit.changes(false_discovery_rate=RATE).q_values <= RATE, "fisher": fisher_flags(graph, fit)}
        changed = graph.volunteers.ids < f"v{n_changed:03d}"
        for name, flagged in flags.items():
            power[name].append(flagged[changed].mean() if n_changed else np.nan)
            false[name].append(flagged[~changed].sum() / max(flagged.sum(), 1))
    return power, false


@pytest.mark.science
@pytest.mark.parametrize("model", [cg.IBCC(), cg.DynIBCC(noise_scale="auto")], ids=["ibcc", "dynibcc"])
def test_power_and_false_share(model):
    """Of those who changed at least as many as Fisher's test sees, and of those reported at most a twentieth false."""
    results = {scene: measured(scene, model) for scene in SCENES}
    print(f"\n| {model.name} | power | Fisher's | false share | Fisher's |\n|---|--:|--:|--:|--:|")
    for scene, (power, false) in results.items():
        numbers = [np.mean(part[name]) for part in (power, false) for name in ("changes", "fisher")]
        print(f"| {scene} | " + " | ".join(f"{number:.3f}" for number in numbers) + " |")
    assert np.mean([false["changes"] for _, false in results.values()]) <= RATE
    for power, false in results.values():
        # A single scene of twenty crowds varies by chance.
        shares = false["changes"]
        assert np.mean(shares) <= RATE + 2 * np.std(shares) / np.sqrt(len(SEEDS))
        assert not np.mean(power["changes"]) < np.mean(power["fisher"])
