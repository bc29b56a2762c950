"""Random crowds as codes, of which graphs are built that should give the same results."""

from dataclasses import dataclass, field, replace

import numpy as np

import crowdgraph as cg


@dataclass(frozen=True)
class RandomCrowd:
    """Rows of codes of volunteers, items and labels, with times, and the classes of gold items by their codes."""

    volunteer: np.ndarray
    item: np.ndarray
    label: np.ndarray
    time: np.ndarray
    gold: dict = field(default_factory=dict)
    classes: tuple = ("no", "yes")

    def graph(self, *, volunteer="v{}".format, item="i{}".format, classes=None, labels=None, more_volunteers=()):
        """Build the graph; functions of codes name volunteers and items, and classes and labels may be in any order."""
        columns = {
            "volunteer": [volunteer(code) for code in self.volunteer.tolist()],
            "item": [item(code) for code in self.item.tolist()],
            "label": [self.classes[code] for code in self.label.tolist()],
            "time": self.time.tolist(),
        }
        if more_volunteers:
            more_volunteers = {"volunteer": [*more_volunteers, *dict.fromkeys(columns["volunteer"])]}
        return cg.CrowdGraph.from_responses(
            columns,
            classes=classes or self.classes,
            labels=labels or self.classes,
            gold={item(code): self.classes[known] for code, known in self.gold.items()},
            volunteers=more_volunteers or None,
        )

    def rows(self, order):
        """The crowd with its rows in another order, or some of them."""
        names = ("volunteer", "item", "label", "time")
        return replace(self, **{name: getattr(self, name)[order] for name in names})

    def simultaneous(self):
        """The crowd with equal times of different volunteers, and different ones of each."""
        time = np.zeros(len(self.volunteer), dtype=int)
        for code in range(self.volunteer.max() + 1):
            own = self.volunteer == code
            time[own] = np.arange(own.sum())
        return replace(self, time=time)

    def shuffled(self, rng):
        """The crowd with its rows in random order."""
        return self.rows(rng.permutation(len(self.time)))


def random_crowd(rng, *, max_classes=4, max_responses=80):
    """A crowd of good volunteers, bad ones and liars, with gold for an item or more."""
    n_classes = int(rng.integers(2, max_classes + 1))
    n_volunteers, n_items, n = rng.integers((2, 2, 5), (9, 16, max_responses)).tolist()
    accuracy = rng.choice([0.95, 0.8, 0.6, 0.5, 0.2], n_volunteers)
    truth = rng.integers(0, n_classes, n_items)
    volunteer, item = rng.integers(0, n_volunteers, n), rng.integers(0, n_items, n)
    label = np.where(rng.random(n) < accuracy[volunteer], truth[item], rng.integers(0, n_classes, n))
    known = [item[0], *(code for code in np.unique(item) if rng.random() < 0.2)]
    gold = {int(code): int(truth[code]) for code in known}
    classes = tuple(f"c{code}" for code in range(n_classes))
    return RandomCrowd(volunteer, item, label, np.arange(n), gold, classes)


def random_communities(rng):
    """A crowd of one to three groups, of volunteers who mostly answer the items of their group."""
    n_groups, n_volunteers, n = rng.integers((1, 6, 100), (4, 25, 500)).tolist()
    group = rng.integers(0, n_groups, n_volunteers)
    volunteer = rng.integers(0, n_volunteers, n)
    field_of_work = np.where(rng.random(n) < 0.9, group[volunteer], rng.integers(0, n_groups, n))
    item = field_of_work * 20 + rng.integers(0, 20, n)
    label = np.where(rng.random(n) < 0.8, item % 2, rng.integers(0, 2, n))
    return RandomCrowd(volunteer, item, label, np.arange(n))


def renamed(code):
    """Another name for a volunteer, in another order of names."""
    return f"\u2764{code * 7919 % 1_009}"
