"""Where a classifier beside the answers does not help: many answers, features that say nothing, a single fold.

Run ``python -m science.learning`` in the folder ``tests`` (some minutes). The crowds are those of
``examples/10_learning_from_crowds.py`` with other seeds.
"""

import argparse
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
from science.scoring import table

EXAMPLE = Path(__file__).parents[2] / "examples" / "10_learning_from_crowds.py"


def study(seeds):
    """Return the mean shares of test items that are right, and the rounds used, by setting."""
    example = load_example()
    rows = {}
    for n_answers in (1, 3, 9, 15):
        shares = [example["accuracies"](seed, n_answers, 0)[1] for seed in seeds]
        rows[f"{n_answers} answers"] = {name: np.mean([one[name] for one in shares]) for name in shares[0]}
    single = [accuracy(example, seed, n_answers=1, folds=1) for seed in seeds]
    rows["1 answer, folds=1"] = {"ClassifierIBCC": np.mean([right for right, _ in single])}
    noise = [accuracy(example, seed, n_answers=2, noise=True) for seed in seeds]
    rows["2 answers, random features"] = {
        "ClassifierIBCC": np.mean([right for right, _ in noise]),
        "rounds used": max(rounds for _, rounds in noise),
    }
    return rows


def load_example():
    """The functions of the example; it runs with its two seeds, and its figure is thrown away."""
    mpl.use("agg")
    arguments, sys.argv = sys.argv, ["example"]
    try:
        return runpy.run_path(str(EXAMPLE), run_name="example")
    finally:
        sys.argv = arguments


def accuracy(example, seed, *, n_answers, folds=5, noise=False):
    """The share of test items that a fit's classifier gets right, and how many of its rounds were used."""
    import torch

    graph, order = example["simulate"](np.random.default_rng(seed), n_answers, 0)
    pixels = torch.tensor(example["PICTURES"][order] / 16, dtype=torch.float32)
    if noise:
        pixels = torch.randn(pixels.shape, generator=torch.Generator().manual_seed(seed))
    n_train = example["N_TRAIN"]
    model = replace(example["classifier_ibcc"](pixels[:n_train]), folds=folds)
    fit = model.fit(graph, seed=seed)
    right = example["predict"](fit.classifier, pixels[n_train:]) == example["DIGITS"][order[n_train:]]
    return right.mean(), fit.diagnostics["classifier"]["rounds_used"]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    seeds = range(100, 100 + parser.parse_args().seeds)
    columns = ["majority", "IBCC", "ClassifierIBCC", "rounds used"]
    print(table(study(seeds), columns, title="test items right"))


if __name__ == "__main__":
    main()
