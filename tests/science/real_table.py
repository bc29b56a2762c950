"""One table over all real crowds with gold: how right, how sure and how honest models are.

Run ``python -m science.real_table`` in the folder ``tests``, or ``make check-science``. The crowds are where
CROWDGRAPH_DATA says. crowd-kit's OneCoinDawidSkene, GLAD and MACE are not in the table: the first takes a minute for
all crowds and is less accurate than the majority, the others were seen to take 4 to 13 s for 3,000 to 5,000 answers.
"""

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from oracles.aggregators import Answers, bwa, design_effect, ebcc, smoothed_votes
from science.real import DATA, load
from science.scoring import SCORES, interval_coverage, item_scores, table

import crowdgraph as cg

# Which class a label votes for, where labels are not classes.
VOTES = {
    "predictionbook": {"likely": "yes", "unlikely": "no", "unsure": None},
    "medrel_treat_l3": {"treats": "treats", "another_relation": "not_treats", "none_or_other": "not_treats"},
}
# The judgements of another set, told apart more finely: means are printed with and without it.
TWIN = "medrel_treat_l3"
SHARES = (0.0, 0.1, 0.3)
SEEDS = (0, 1)


@dataclass(frozen=True)
class Row:
    """A model of the table: a function from a graph and votes to class probabilities and confusion, (K, J, L) or None.

    It returns None where it does not apply: the graph has no times, or a package or a method is missing.
    """

    fit: Callable
    uses_gold: bool = True
    needs_time: bool = False


def ours(model, *, calibrated=False):
    """A row of one of crowdgraph's models; `model` is a function from votes to the model."""

    def fit(graph, votes):
        result = model(votes).fit(graph, seed=0)
        if calibrated:
            if not hasattr(result, "calibrated"):
                return None
            result = result.calibrated()
        return result.item_probs, volunteers_confusion(result, graph)

    return fit


def volunteers_confusion(fit, graph):
    """The concentration of each volunteer's confusion, (K, J, L); of a moving one, its mean over their answers."""
    if fit.confusion is None:
        return None
    latest = fit.confusion.latest().concentration
    if not len(fit.confusion.concentration):
        return latest
    steps = graph.answers.of_responses(fit.confusion.at_responses(graph))
    volunteer = graph.answers.volunteer
    n_answers = np.bincount(volunteer, minlength=len(latest))
    sums = np.zeros(latest.shape)
    np.add.at(sums, volunteer, steps)
    return np.where(n_answers[:, None, None] > 0, sums / np.maximum(n_answers, 1)[:, None, None], latest)


def tempered(graph, votes):
    fit = cg.IBCC(votes=votes, confusion_prior=(4, 1)).fit(graph)
    concentration = fit.confusion.latest().concentration
    return design_effect(Answers.of(graph, votes), concentration, fit.class_probs, rho=0.5), None


def crowd_kit(name, **settings):
    """A row of a model of crowd-kit, which knows no votes: labels are replaced by the classes that they vote for."""

    def fit(graph, votes):
        try:
            from crowdkit import aggregation
        except ImportError:
            return None
        import pandas as pd

        answers = Answers.of(graph, votes)
        target = answers.targets[answers.label]
        voting = target >= 0
        columns = {"task": answers.item, "worker": answers.volunteer, "label": target}
        frame = pd.DataFrame({key: column[voting] for key, column in columns.items()})
        known = np.flatnonzero(answers.gold >= 0)
        known = known[np.isin(known, frame["task"])]
        gold = {"true_labels": pd.Series(answers.gold[known], index=known)} if len(known) else {}
        model = getattr(aggregation, name)(**settings).fit(frame, **gold)
        probs = np.full((len(answers.gold), answers.n_classes), 1 / answers.n_classes)
        got = model.probas_.reindex(columns=range(answers.n_classes), fill_value=0.0).fillna(0.0)
        probs[got.index] = got.to_numpy()
        return probs, None

    return fit


def ebcc_row(graph, votes):
    """The best of several starts: one where there are many answers, up to 25 where there are few (10 with gold)."""
    answers = Answers.of(graph, votes)
    most = 10 if (answers.gold >= 0).any() else 25
    restarts = int(np.clip(100_000 // len(answers.item), 1, most))
    return ebcc(answers, restarts=restarts).probs, None


ROWS = {
    "majority vote": Row(ours(lambda votes: cg.MajorityVote(votes=votes)), uses_gold=False),
    "vote shares, one vote added per class": Row(
        lambda graph, votes: (smoothed_votes(Answers.of(graph, votes)), None), uses_gold=False
    ),
    "IBCC, prior (4, 1)": Row(ours(lambda votes: cg.IBCC(votes=votes, confusion_prior=(4, 1)))),
    "the same with a design effect of .5, written out": Row(tempered),
    "IBCC": Row(ours(lambda votes: cg.IBCC(votes=votes))),
    "IBCC, calibrated": Row(ours(lambda votes: cg.IBCC(votes=votes), calibrated=True)),
    "Cautious": Row(ours(lambda votes: cg.Cautious(model=cg.IBCC(votes=votes)))),
    "Dawid-Skene": Row(ours(lambda votes: cg.DawidSkene(votes=votes))),
    "DynIBCC": Row(ours(lambda votes: cg.DynIBCC(votes=votes)), needs_time=True),
    "crowd-kit DawidSkene": Row(crowd_kit("DawidSkene")),
    "EBCC": Row(ebcc_row),
    "BWA": Row(lambda graph, votes: (bwa(Answers.of(graph, votes)), None)),
}


# The rows that are printed again for the crowds with times.
TIMED_ROWS = ("IBCC", "IBCC, calibrated", "Cautious", "DynIBCC")


def set_names():
    """The real crowds with gold that are on this machine."""
    return sorted(path.parent.name for path in DATA.glob("*/gold.csv"))


load_once = cache(load)


def score(row, name, *, share, seed):
    """Scores of a row on one crowd with gold for a share of the gold items, on the other gold items; None if it cannot.

    The items whose gold is given are drawn without regard to class.
    """
    full, votes = load_once(name), VOTES.get(name)
    if row.needs_time and full.responses.clock.kind == "order":
        return None
    known = np.flatnonzero(full.gold.codes >= 0)
    given = np.random.default_rng(seed).permutation(known)[: round(share * len(known))]
    gold = {full.items.ids[code]: full.classes[full.gold.codes[code]] for code in given.tolist()}
    graph = full.with_gold(gold or None, classes=full.classes)
    fitted = row.fit(graph, votes)
    if fitted is None:
        return None
    probs, concentration = fitted
    scored = np.setdiff1d(known, given)
    truth = np.full(len(full.items), -1)
    truth[scored] = full.gold.codes[scored]
    scores = item_scores(probs[scored], truth[scored])
    if concentration is not None:
        scores["interval"] = interval_coverage(Answers.of(full, votes), concentration, truth)
    return scores


def measure(share, *, rows=None, names=None, log=None):
    """Return the scores of each row and crowd, {row: {crowd: scores}}, the mean over seeds where gold is drawn."""
    rows, names = rows or ROWS, names or set_names()
    results = {}
    for title, row in rows.items():
        if share and not row.uses_gold:
            continue
        start = time.perf_counter()
        results[title] = {}
        for name in names:
            runs = [score(row, name, share=share, seed=seed) for seed in (SEEDS if share else SEEDS[:1])]
            if None not in runs:
                results[title][name] = {key: nan_mean([run.get(key, np.nan) for run in runs]) for key in SCORES}
        if log:
            print(f"{share:.0%} gold, {title}: {time.perf_counter() - start:.0f} s", file=log, flush=True)
    return results


def nan_mean(values):
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else np.nan


def means(results, *, without=(), only=None):
    """Return the mean over crowds of each score, a row for each model, and the number of crowds."""
    rows = {}
    for title, by_name in results.items():
        kept = [scores for name, scores in by_name.items() if name not in without and (only is None or name in only)]
        if kept:
            rows[title] = {"sets": len(kept)} | {key: nan_mean([scores[key] for scores in kept]) for key in SCORES}
    return rows


def describe(studies):
    """Return the table of all shares of gold, {share: results}; again without the twin, and for crowds with times."""
    timed = {name for results in studies.values() for name in results.get("DynIBCC", ())}
    selections = {
        "all real crowds": {},
        f"without {TWIN}": {"without": (TWIN,)},
        "crowds with times": {"only": timed},
    }
    parts = []
    for title, selection in selections.items():
        rows = {}
        for share, results in studies.items():
            kept = {name: results[name] for name in TIMED_ROWS if name in results} if "only" in selection else results
            gold = f"{share:.0%} gold: " if share else ""
            rows |= {gold + name: row for name, row in means(kept, **selection).items()}
        if rows:
            parts.append(table(rows, ("sets", *SCORES), title=title))
    absent = dict.fromkeys(name for results in studies.values() for name, by_name in results.items() if not by_name)
    if absent:
        parts.append(f"Left out, since a package, a method or times are not there: {', '.join(absent)}.")
    return "\n\n".join(parts)


def by_set(results, key):
    """Return a table of one score, a row for each crowd."""
    names = dict.fromkeys(name for scores in results.values() for name in scores)
    titles = [title for title, scores in results.items() if any(not np.isnan(row[key]) for row in scores.values())]
    rows = {name: {title: results[title][name][key] for title in titles if name in results[title]} for name in names}
    return table(rows, titles, title=key)


def main():
    warnings.simplefilter("ignore")
    studies = {share: measure(share, log=sys.stderr) for share in SHARES}
    print(describe(studies))
    for key in ("accuracy", "log loss", "interval"):
        print("\n" + by_set(studies[0.0], key))


if __name__ == "__main__":
    main()
