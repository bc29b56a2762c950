"""Attack the package, print what was tried and what failed, and write docs/reliability.md: ``make check-reliability``.

``python tests/reliability/run.py fuzz kills`` makes some of the attacks, and replaces their sections of the page;
``--short`` makes the short form, which writes no page. ``--again fuzz read_csv-17`` tries once more what was printed as
failed.
"""

import sys
from functools import partial
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

from page import print_sections  # noqa: E402
from reliability.attack import Size  # noqa: E402

# Each is a module beside this one with a function `attack`. None may be called as a package is: scripts find it first.
ATTACKS = ("kills", "fuzz", "odd_crowds", "relations", "faults", "mutants", "covered_lines", "determinism")
INTRODUCTION = """# Reliability

These tables were printed by `make check-reliability`, which attacks the package and writes this page. What was tried
and what failed is counted anew; *0.1.0* is what the same kind of attack counted on the first version.
"""


def main(arguments):
    size = Size.SHORT if "--short" in arguments else Size.LONG
    names = [argument for argument in arguments if not argument.startswith("--")] or ATTACKS
    if "--again" in arguments:
        attack, *seeds = names
        for seed in seeds:
            import_module(f"reliability.{attack}").again(seed)
        return
    if size is Size.SHORT:
        for name in names:
            print_rows(name, size)
        return
    topics = {name: partial(print_rows, name, size) for name in ATTACKS}
    print_sections(ROOT / "docs" / "reliability.md", INTRODUCTION, topics, names)


def print_rows(name, size):
    """Print the table of an attack."""
    print("| what | tried | failed | 0.1.0 | |\n|---|--:|--:|--:|---|")
    for row in import_module(f"reliability.{name}").attack(size):
        print(f"| {row.what} | {row.tried:,} | {row.failed:,} | {row.before} | {row.note} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
