"""Predictive checks are quiet about independent answers, and name the cause where dependence is planted.

Run with ``make check-science``; it prints the table that the documentation shows.
"""

import numpy as np
import pytest

import crowdgraph as cg

pytestmark = pytest.mark.science

SEEDS = 40
NAMES = (
    "agreement",
    "errors in common",
    "items nearly everyone gets wrong",
    "pairs who err together",
    "volunteers",
    "label shares",
)
FIVE = tuple("abcde")


def alike(classes=("no", "yes"), right=0.9, names=("all",)):
    """Groups who are right equally often, and otherwise say anything."""
    n = len(classes)
    confusion = np.full((n, n), (1 - right) / (n - 1)) + np.eye(n) * (right - (1 - right) / (n - 1))
    return [cg.simulate.Group(name=name, confusion=confusion) for name in names]


def five(**options):
    return {"n_volunteers": 80, "n_items": 300, "n_responses": 2_400, "classes": FIVE, "groups": alike(FIVE), **options}


def judges(seed, *, hard=0.12, correlated=True, gold=100):
    """Nine judges of 1,000 prompts; with hard prompts, and two pairs of judges of whom one often repeats the other."""
    rng = np.random.default_rng(seed)
    n_judges, n_items, n_classes = 9, 1_000, 3
    truth = rng.integers(n_classes, size=n_items)
    is_hard = rng.random(n_items) < hard
    skill = np.linspace(0.65, 0.85, n_judges)
    is_right = rng.random((n_judges, n_items)) < np.where(is_hard, 0.4, skill[:, None])
    wrong = (truth + rng.integers(1, n_classes, size=(n_judges, n_items))) % n_classes
    said = np.where(is_right, truth, wrong)
    if correlated:
        for copy, model in ((1, 0), (5, 4)):
            repeats = rng.random(n_items) < 0.3
            said[copy, repeats] = said[model, repeats]
    judge, item = np.divmod(np.arange(said.size), n_items)
    names = np.array(["A", "B", "tie"])
    return cg.CrowdGraph.from_responses(
        {"volunteer": judge, "item": item, "label": names[said.ravel()]},
        gold={code: str(names[truth[code]]) for code in range(gold)},
        classes=names.tolist(),
    )


def crowds(**options):
    return lambda seed: cg.simulate.crowd(**options, seed=seed).graph


MISLED = "Volunteers make the same errors about the same items"
HARD = "Items differ in difficulty"
EITHER = "everybody, or volunteers err together; gold would tell which"
PAIRS = "These volunteers err together: "
PRIOR = "errors in common are not the cause"

INDEPENDENT = {
    "2 labels, 10 answers an item, gold": crowds(),
    "2 labels, 10 answers an item, no gold": crowds(gold=0.0),
    "2 labels, 2 answers an item, no gold": crowds(n_responses=1_000, gold=0.0),
    "5 labels, prior too strong, 20 % gold": crowds(**five(gold=0.2)),
    "5 labels, prior too strong, no gold": crowds(**five(gold=0.0)),
    "9 judges, 3 labels": lambda seed: judges(seed, hard=0.0, correlated=False),
}
# Crowds with dependence, and what the verdict must and must not say.
DEPENDENT = {
    "difficulty .2 and shared errors .4": (crowds(difficulty=0.2, shared_errors=0.4), [MISLED], [HARD, PRIOR]),
    "both, no gold": (crowds(difficulty=0.2, shared_errors=0.4, gold=0.0), [EITHER], [MISLED, PRIOR]),
    "shared errors .4": (crowds(shared_errors=0.4), [MISLED], [HARD, PRIOR]),
    "5 labels, shared errors .4": (crowds(**five(gold=0.2, shared_errors=0.4)), [], [HARD, PRIOR]),
    "difficulty .2, 60 answers an item": (crowds(difficulty=0.2, n_responses=30_000), [HARD], [MISLED, PRIOR]),
    "9 judges, 12 % hard, 100 gold items": (lambda seed: judges(seed, correlated=False), [], [MISLED, PAIRS]),
    "9 judges, 12 % hard, 500 gold items": (lambda seed: judges(seed, correlated=False, gold=500), [HARD], [PAIRS]),
    "9 judges, two pairs": (lambda seed: judges(seed, hard=0.0), [PAIRS], [MISLED, HARD]),
    "9 judges, 12 % hard, two pairs, 500 gold items": (lambda seed: judges(seed, gold=500), [PAIRS, HARD], [MISLED]),
}


def checked(make):
    """The checks of a crowd for each seed."""
    graphs = [make(seed) for seed in range(SEEDS)]
    model = cg.IBCC(confusion_prior=(4, 1))
    return [cg.evaluation.predictive_checks(graph, model.fit(graph), seed=1) for graph in graphs]


def row(name, found):
    """Print a line of the table: how often the p-value of each check is below 0.05, and how often it stands out."""
    p_values = np.array([[check.p_value for check in checks] for checks in found])
    small = (p_values < 0.05).mean(axis=0)
    cells = ["not checked" if np.isnan(p).all() else f"{share:.0%}" for p, share in zip(p_values.T, small, strict=True)]
    print(f"| {name} | {' | '.join(cells)} |")
    return dict(zip((check.name for check in found[0]), small, strict=True))


def header(title):
    print(f"\n{title}: share of {SEEDS} crowds with p < 0.05\n\n| crowd | {' | '.join(NAMES)} |\n|{'---|' * 7}")


def test_independent_answers_seldom_stand_out():
    header("independent answers")
    found = {name: checked(make) for name, make in INDEPENDENT.items()}
    small = {name: row(name, checks) for name, checks in found.items()}
    for name, shares in small.items():
        assert shares["agreement"] <= 0.08, name
        assert shares["errors in common"] <= 0.08, name
        assert shares["pairs who err together"] <= 0.1, name
    alarms = [any(check.stands_out for check in checks.checks[:4]) for one in found.values() for checks in one]
    print(f"\nSome check of independence stands out (p < 0.02) in {np.mean(alarms):.1%} of {len(alarms)} crowds.")
    assert np.mean(alarms) <= 0.05
    strong = [checks.verdict for name, one in found.items() if "prior" in name for checks in one]
    assert np.mean([PRIOR in verdict and HARD not in verdict for verdict in strong]) >= 0.95


def test_planted_dependence_is_named():
    header("planted dependence")
    for name, (make, expected, wrong) in DEPENDENT.items():
        found = checked(make)
        row(name, found)
        named = [all(words in checks.verdict for words in expected) for checks in found]
        misnamed = [any(words in checks.verdict for words in wrong) for checks in found]
        right = f"named right: {np.mean(named):.0%}, " if expected else ""
        print(f"|   {right}wrong cause: {np.mean(misnamed):.0%} | | | | | | |")
        if PAIRS in expected:
            planted = {frozenset((0, 1)), frozenset((4, 5))}
            pairs = [{frozenset(pair[:2]) for pair in checks.pairs} for checks in found]
            print(
                f"|   both pairs: {np.mean([planted <= one for one in pairs]):.0%}, "
                f"others too: {np.mean([bool(one - planted) for one in pairs]):.0%} | | | | | | |"
            )
            assert np.mean([planted <= one for one in pairs]) >= 0.9
            assert np.mean([bool(one - planted) for one in pairs]) <= 0.1
        assert np.mean([any(check.stands_out for check in checks.checks[:4]) for checks in found]) >= 0.95, name
        assert np.mean(named) >= 0.8, name
        assert np.mean(misnamed) <= 0.1, name
