"""Validated links are no chance, and lie inside planted task communities; ``make check-science`` prints the tables."""

import pytest
from science.validated_links import (
    CHANCE,
    LEVELS,
    PLANTED,
    SEEDS,
    chance_table,
    look_alike,
    planted_row,
    print_chance,
    print_planted,
)

pytestmark = pytest.mark.science


@pytest.mark.parametrize("name", CHANCE)
def test_without_task_structure(name):
    results = chance_table(name)
    print_chance(name, results)
    for level in LEVELS:
        assert max(one.shares["configuration", level] for one in results) <= level


def test_popular_items_mislead_the_hypergeometric():
    assert min(one.shares["hypergeometric", 0.01] for one in chance_table("popular items")) > 0.1


@pytest.mark.parametrize(("n_communities", "mixing"), PLANTED)
def test_planted_communities(n_communities, mixing):
    rows = [planted_row(seed, n_communities=n_communities, mixing=mixing) for seed in SEEDS]
    print_planted(n_communities, mixing, rows)
    assert min(row["validated inside"] for row in rows) >= 0.95


def test_the_full_look_alike_takes_seconds():
    network, rows = look_alike()
    print(network, rows)
    assert max(seconds for seconds, _ in rows.values()) < 10
