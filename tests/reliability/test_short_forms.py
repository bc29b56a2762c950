"""The short form of every attack finds nothing."""

import sys
from importlib import import_module

import pytest
from reliability.attack import Size

# Mutants and covered lines need minutes even when they are short.
ATTACKS = ("kills", "fuzz", "faults", "odd_crowds", "relations", "determinism")
# They fork, limit what a process may take, and read /proc.
ON_LINUX = ("kills", "fuzz", "faults")


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_fails(name):
    if name in ON_LINUX and sys.platform != "linux":
        pytest.skip("needs Linux")
    rows = list(import_module(f"reliability.{name}").attack(Size.SHORT))
    assert rows
    assert all(row.tried for row in rows)
    assert not [row for row in rows if row.failed]
