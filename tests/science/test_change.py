"""Volunteers who change: how well DynIBCC follows them, simulated and real (``make check-science`` prints tables)."""

import dataclasses
import warnings

import numpy as np
import pytest
from science.real import load

import crowdgraph as cg

SEEDS = range(10)
# How many responses before and after a jump are near it.
NEAR = 20
# How often the order of responses is shuffled.
SHUFFLES = 20
# The largest ratio to static IBCC's error that is asked for.
ASKED = {"none": 1.10, "ramp": 0.85, "step": 0.75, "learning": 0.90}
MODELS = {
    "auto": cg.DynIBCC(noise_scale="auto"),
    "noise as published": cg.DynIBCC(),
    # With the published update one of these crowds converges slowly.
    "all as published": cg.DynIBCC(published=True, max_iter=3_000),
}


def right(values):
    """The diagonals of confusion matrices, (S, 2)."""
    return values[:, [0, 1], [0, 1]]


def in_halves(graph):
    """The same answers, as if each volunteer's first 200 and last 200 were given by two."""
    table = graph.to_arrow().to_pydict()
    so_far = dict.fromkeys(graph.volunteers.ids.tolist(), 0)
    for row, volunteer in enumerate(table["volunteer"]):
        table["volunteer"][row] = f"{volunteer} {'b' if so_far[volunteer] >= 200 else 'a'}"
        so_far[volunteer] += 1
    nodes = [f"{volunteer} {half}" for volunteer in graph.volunteers.ids for half in "ab"]
    items = {"item": graph.items.ids}
    return cg.CrowdGraph.from_responses(table, classes=graph.classes, volunteers={"volunteer": nodes}, items=items)


def near_jumps(truth, volunteer):
    """Which steps, in the order of volunteers, lie near one at which the truth jumped."""
    jumps = np.flatnonzero((np.abs(np.diff(truth[:, 0])) > 0.1) & (np.diff(volunteer) == 0))
    near = np.zeros(len(truth), dtype=bool)
    for jump in jumps:
        near[max(jump - NEAR + 1, 0) : jump + NEAR + 1] = True
    return near


@pytest.mark.science
@pytest.mark.parametrize("drift", ASKED)
def test_tracking(drift):
    """60 volunteers with 400 responses each, two classes, 1,500 items, no gold."""
    names = [*MODELS, "ibcc", "ibcc, volunteers cut in two"]
    ratios, covered, accurate, at_jumps = ({name: [] for name in names} for _ in range(4))
    scales = []
    for seed in SEEDS:
        crowd = cg.simulate.crowd(
            n_volunteers=60, n_items=1_500, n_responses=[400] * 60, drift=drift, gold=0, seed=seed
        )
        graph = crowd.graph
        by_volunteer = np.argsort(graph.responses.volunteer, kind="stable")
        truth = right(crowd.truth.confusion[by_volunteer])
        static = cg.IBCC().fit(graph)
        snapshot, places = static.confusion.latest(), graph.responses.volunteer[by_volunteer]
        error = np.sqrt(((right(snapshot.mean[places]) - truth) ** 2).mean())
        found = {"ibcc": (static, snapshot.mean[places], [end[places] for end in snapshot.interval(0.9)])}
        cut = cg.IBCC().fit(in_halves(graph))
        pieces = 2 * places + (np.arange(len(places)) % 400 >= 200)
        found["ibcc, volunteers cut in two"] = (
            cut,
            cut.confusion.latest().mean[pieces],
            [end[pieces] for end in cut.confusion.latest().interval(0.9)],
        )
        for name, model in MODELS.items():
            fit = model.fit(graph)
            assert fit.converged
            found[name] = (fit, fit.confusion.mean, fit.confusion.interval(0.9))
        scales.append(found["auto"][0].diagnostics["noise_scale"])
        near = near_jumps(truth, places)
        for name, (fit, mean, ends) in found.items():
            low, high = (right(end) for end in ends)
            holds = (low <= truth) & (truth <= high)
            if near.any():
                at_jumps[name].append(holds[near].mean())
            ratios[name].append(np.sqrt(((right(mean) - truth) ** 2).mean()) / error)
            covered[name].append(holds.mean())
            accurate[name].append((fit.item_probs.argmax(axis=1) == crowd.truth.classes).mean())
    print(f"\n{drift}: noise scale chosen {np.mean(scales):.2f} ({min(scales):.2f} to {max(scales):.2f})")
    print("| model | error / IBCC's | from | to | 90 % covers | from | to | items right |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name in ratios:
        r, c, a = ratios[name], covered[name], accurate[name]
        print(
            f"| {name} | {np.mean(r):.2f} | {min(r):.2f} | {max(r):.2f} | {np.mean(c):.3f} | {min(c):.3f} "
            f"| {max(c):.3f} | {np.mean(a):.3f} |"
        )
    if drift == "step":
        told = ", ".join(f"{name} {np.mean(values):.3f}" for name, values in at_jumps.items())
        print(f"Within {NEAR} responses of a jump the 90 % intervals cover: {told}")
    assert max(ratios["auto"]) <= ASKED[drift]
    if drift in ("none", "ramp"):
        assert 0.85 <= np.mean(covered["auto"]) <= 0.97


# The class that each label votes for, where it is not the label itself.
REAL = {
    "medrel_treat": None,
    "predictionbook": {"likely": "yes", "unlikely": "no", "unsure": None},
    "mvh_cueconflict": None,
    "nyt_rel_2p": None,
}


def gold_only(name):
    """The responses to gold items, and the classes that gold has."""
    graph = load(name)
    graph = graph.subgraph(items=graph.items.ids[graph.gold.known].tolist())
    classes = [graph.classes[code] for code in np.unique(graph.gold.codes)]
    return graph.with_gold({item: graph.gold[item] for item in graph.gold}, classes=classes)


def halves(graph):
    """The graph of every other volunteer, and of the rest."""
    ids = graph.volunteers.ids
    return [graph.subgraph(volunteers=ids[first::2].tolist(), items=graph.items.ids.tolist()) for first in (0, 1)]


def foretold(graph, model):
    """For each volunteer the log probability of all their responses, each foretold from those before it."""
    track = model.fit(graph).confusion
    before = np.concatenate([np.zeros((1, *track.mean.shape[1:])), track.mean[:-1]])
    begun = track.starts[:-1][np.diff(track.starts) > 0]
    prior = track.initial / track.initial.sum(axis=2, keepdims=True)
    before[begun] = prior[np.diff(track.starts) > 0]
    order = np.argsort(graph.responses.volunteer, kind="stable")
    truth, label = graph.gold.codes[graph.responses.item[order]], graph.responses.label[order]
    logs = np.log(before[np.arange(len(order)), truth, label])
    return np.bincount(graph.responses.volunteer[order], logs, minlength=len(graph.volunteers))


def gains(parts, settings, scales, priors):
    """By volunteer, what a noise scale gains over none, from the same prior; and the total without noise."""
    gained, total = [], 0.0
    for part, scale, prior in zip(parts, scales, priors, strict=True):
        options = {**settings, "confusion_prior": prior}
        still = foretold(part, cg.DynIBCC(noise_scale=0, **options))
        gained.append(foretold(part, cg.DynIBCC(noise_scale=scale, **options)) - still)
        total += still.sum()
    return np.concatenate(gained), total


def interval(values, n_responses):
    """The gain of a response, and its 95 % interval by a bootstrap over volunteers."""
    weights = np.random.default_rng(0).multinomial(len(values), np.full(len(values), 1 / len(values)), 10_000)
    return (values.sum() / n_responses, *np.quantile(weights @ values / n_responses, [0.025, 0.975]))


def shuffled(graph, seed):
    """The same graph, with each volunteer's responses in another order."""
    rng = np.random.default_rng(seed)
    old = np.argsort(graph.responses.volunteer, kind="stable")
    new = np.lexsort((rng.random(len(old)), graph.responses.volunteer))
    columns = {}
    for name in ("item", "label"):
        column = getattr(graph.responses, name).copy()
        column[old] = column[new]
        columns[name] = column
    return graph.replace(responses=dataclasses.replace(graph.responses.table, **columns))


def measured(name):
    """Filtered, gold items known; what one half of the volunteers is foretold with was chosen from the other half.

    Noise also helps volunteers to leave a prior that does not fit them; the prior learned from the other half tells how
    much of the gain that is. And if the order of responses did not matter, that of the data would gain no more than a
    shuffled one.
    """
    graph = gold_only(name)
    votes = REAL[name] or {label: label if label in graph.classes else None for label in graph.labels}
    settings = {"inference": "filtered", "votes": votes}
    parts = halves(graph)
    others = parts[::-1]
    scales = [cg.DynIBCC(noise_scale="auto", **settings).fit(part).diagnostics["noise_scale"] for part in others]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learned = [cg.IBCC(votes=votes, learn_prior=True).fit(part).prior.shared for part in others]
    kinds = {
        "chosen noise": (settings, scales, (None, None)),
        "noise as published": (settings, (1, 1), (None, None)),
        "all as published": ({**settings, "published": True}, (1, 1), (None, None)),
        "chosen noise, learned prior": (settings, scales, learned),
        "noise as published, learned prior": (settings, (1, 1), learned),
    }
    n, found = len(graph.responses), {}
    print(f"\n{name}: {n:,} responses, noise scales {np.round(scales, 2)}")
    print("| | nats a response without noise | gain | 95 % from | to |\n|---|--:|--:|--:|--:|")
    for kind, options in kinds.items():
        values, total = gains(parts, *options)
        found[kind] = interval(values, n)
        print(f"| {kind} | {total / n:.4f} |" + " |".join(f" {value:+.4f}" for value in found[kind]) + " |")
    null = [
        gains([shuffled(part, seed) for part in parts], settings, (1, 1), learned)[0].sum() / n
        for seed in range(SHUFFLES)
    ]
    print(f"the last row with responses shuffled: mean {np.mean(null):+.4f}, highest of {SHUFFLES} {max(null):+.4f}")
    return found


@pytest.mark.science
def test_next_response():
    found = {name: measured(name) for name in REAL}
    for kind in ("chosen noise", "chosen noise, learned prior"):
        better = [name for name, told in found.items() if told[kind][1] > 0]
        worse = [name for name, told in found.items() if told[kind][2] < 0]
        assert len(set(better) & {"medrel_treat", "predictionbook", "mvh_cueconflict"}) >= 2
        assert not worse


@pytest.mark.science
def test_changes_reported():
    """How many volunteers are reported to have changed, where nobody does and where everybody does."""
    shares = {}
    for drift in (*ASKED, "visit"):
        graphs = [
            cg.simulate.crowd(
                n_volunteers=60, n_items=1_500, n_responses=[400] * 60, drift=drift, gold=0, seed=seed
            ).graph
            for seed in range(3)
        ]
        for model in (cg.IBCC(), cg.DynIBCC(noise_scale="auto")):
            changes = [model.fit(graph).changes() for graph in graphs]
            sudden = [change.kind == "sudden" for one in changes for change in one]
            shares[drift, model.name] = sum(map(len, changes)) / 180, np.mean(sudden) if sudden else np.nan
    print("\n| volunteers | model | reported to have changed | of these suddenly |\n|---|---|--:|--:|")
    for (drift, model), (share, sudden) in shares.items():
        print(f"| {drift} | {model} | {share:.0%} | {sudden:.0%} |")
    assert shares["none", "ibcc"][0] <= 0.01
    assert shares["none", "dynibcc"][0] <= 0.01
    assert shares["step", "dynibcc"][0] >= 0.8


@pytest.mark.science
def test_noise_of_crowds_that_stay():
    """How often some noise is found in crowds whose volunteers never change, also where no prior fits them all."""
    kinds = {
        "one kind": [0.75],
        "good and guessing": [0.9, 0.5],
        "good and contrary": [0.9, 0.1],
        "good, guessing and contrary": [0.9, 0.5, 0.1],
    }
    found = {}
    for name, rights in kinds.items():
        groups = [
            cg.simulate.Group(name=str(right), confusion=[[right, 1 - right], [1 - right, right]]) for right in rights
        ]
        graphs = [
            cg.simulate.crowd(n_volunteers=60, n_items=300, n_responses=6_000, groups=groups, gold=1, seed=seed).graph
            for seed in range(20)
        ]
        found[name] = [cg.DynIBCC(noise_scale="auto").fit(graph).diagnostics["noise_scale"] for graph in graphs]
    print("\n| volunteers who stay | crowds of 20 with noise | highest |\n|---|--:|--:|")
    for name, scales in found.items():
        print(f"| {name} | {np.count_nonzero(scales)} | {max(scales):.2f} |")
    assert max(map(np.count_nonzero, found.values())) <= 4
