"""The short form of every attack finds nothing."""

from importlib import import_module

import pytest
from reliability.attack import Size

# Mutants and covered lines need minutes even when they are short.
ATTACKS = ("odd_crowds", "relations", "determinism")


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_fails(name):
    rows = list(import_module(f"reliability.{name}").attack(Size.SHORT))
    assert rows
    assert all(row.tried for row in rows)
    assert not [row for row in rows if row.failed]
