"""Convert responses that are never in memory to a store of columns, load it and fit it: speed, memory and size on disk.

``python benchmarks/out_of_core.py 300`` takes 300 million responses instead of 10 million, and so does the environment
variable ``CROWDGRAPH_MILLIONS``. The table has a tenth as many items, and a volunteer for every 300 responses.
``python benchmarks/out_of_core.py 300 IBCC`` fits that model only, and converts one kind of table.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from side_by_side import measure

N_CLASSES = 3
ROWS_PER_GROUP = 2**20
# Beyond so many responses, fits are measured with a limit of memory only.
MAX_IN_MEMORY = 20 * 10**6
MEMORY = "4GB"
SETUP = "import crowdgraph as cg; cg.build_store, cg.load, cg.IBCC"
# What is measured of a store, one row each: a name, and code in which {source} is the table and {store} the store.
STEPS = {
    "build_store": f"cg.build_store({{source!r}}, {{store!r}}, memory={MEMORY!r}, force=True)",
    "load": "graph = cg.load({store!r})",
}


# The models that are fitted, and how much a fit may take for every million responses: GB, but 1 at least.
MODELS = {"IBCC": 0.0133, "DynIBCC": 0.03}
# What is measured of a fit: its processor time, the memory of the whole process, and how often it visits a response.
FIT = """
used = time.process_time()
fit = cg.{model}().fit(graph, memory={memory!r})
facts |= dict(processor=time.process_time() - used, process=resident("VmHWM"), visited=fit.diagnostics["visited"])
"""
FIT_SETUP = """
import crowdgraph as cg
small = cg.simulate.crowd(n_items=20, n_responses=100, classes=(0, 1, 2), seed=0).graph
cg.{model}().warm_up(small)
graph = cg.load({store!r})
"""


class Case(NamedTuple):
    text: bool
    shuffled: bool


CASES = {
    "integer ids, sorted by time": Case(text=False, shuffled=False),
    "integer ids, shuffled": Case(text=False, shuffled=True),
    "text ids, sorted by time": Case(text=True, shuffled=False),
}


def main(millions: float | None = None, model: str | None = None) -> None:
    if millions is None:
        millions = float(os.environ.get("CROWDGRAPH_MILLIONS", "10"))
    n_responses = int(millions * 10**6)
    n_items, n_volunteers = n_responses // 10, n_responses // 300
    print(f"{n_responses:,} responses, {n_items:,} items, {n_volunteers:,} volunteers; {MEMORY} allowed.\n")
    if model is not None:
        measure_fits(n_responses, {model: MODELS[model]})
        return
    measure_fits(n_responses, MODELS)
    print("| table | step | seconds | responses a second | peak memory | bytes a response: Parquet | store |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            source, store = Path(folder) / "responses.parquet", Path(folder) / "responses.store"
            write(source, n_responses, case)
            for step, code in STEPS.items():
                filled = code.format(source=str(source), store=str(store))
                measured = measure({step: (SETUP, filled)}, repeats=1)[step]
                sizes = [size(path) / n_responses for path in (source, store)]
                print(
                    f"| {name} | {step} | {measured.seconds:.1f} | {n_responses / measured.seconds:,.0f} "
                    f"| {measured.peak_bytes / 1e9:.2f} GB | {sizes[0]:.1f} | {sizes[1]:.1f} |",
                    flush=True,
                )


def measure_fits(n_responses: int, models: dict[str, float]) -> None:
    """Print what it takes to convert a table, and to fit the store with the responses in memory and with a limit."""
    print("| model | limit | seconds | processor seconds | visits | nanoseconds a visit | memory of the process |")
    print("|---|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        source, store = Path(folder) / "responses.parquet", Path(folder) / "responses.store"
        write(source, n_responses, CASES["integer ids, sorted by time"])
        built = measure({"": (SETUP, STEPS["build_store"].format(source=str(source), store=str(store)))}, repeats=1)[""]
        print(
            f"| build_store | {MEMORY} | {built.seconds:.1f} | | | | {built.peak_bytes / 1e9:.2f} GB more |", flush=True
        )
        for model, per_million in models.items():
            limit = f"{max(1.0, per_million * n_responses / 10**6):.1f}GB"
            for memory in (None, limit) if n_responses <= MAX_IN_MEMORY else (limit,):
                code = FIT.format(model=model, memory=memory)
                measured = measure({"": (FIT_SETUP.format(model=model, store=str(store)), code)}, repeats=1)[""]
                facts = measured.facts
                print(
                    f"| {model} | {memory or 'in memory'} | {measured.seconds:.1f} | {facts['processor']:.1f} "
                    f"| {facts['visited'] / n_responses:.0f} | {facts['processor'] / facts['visited'] * 1e9:.0f} "
                    f"| {facts['process'] / 1e9:.2f} GB |",
                    flush=True,
                )
    print()


def write(path: Path, n_responses: int, case: Case) -> None:
    """Write responses of a crowd whose volunteers differ in skill and activity, a group of rows at a time."""
    rng = np.random.default_rng(0)
    n_items, n_volunteers = max(n_responses // 10, 1), max(n_responses // 300, 1)
    writer = None
    for start in range(0, n_responses, ROWS_PER_GROUP):
        n_rows = min(ROWS_PER_GROUP, n_responses - start)
        item = rng.integers(0, n_items, n_rows)
        volunteer = (rng.random(n_rows) ** 2 * n_volunteers).astype(np.int64)
        skill = 0.55 + 0.4 * (volunteer * 7919 % 1000) / 1000
        is_right = rng.random(n_rows) < skill
        label = np.where(is_right, item % N_CLASSES, rng.integers(0, N_CLASSES, n_rows)).astype(np.int8)
        time = rng.integers(0, 10 * n_responses, n_rows)
        if not case.shuffled:
            time = 10 * start + np.sort(rng.integers(0, 10 * n_rows, n_rows))
        ids = {"volunteer": volunteer, "item": item}
        if case.text:
            ids = {name: pa.array(np.char.add(f"{name}-", codes.astype(str))) for name, codes in ids.items()}
        table = pa.table({**ids, "label": label, "time": time})
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=case.text)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def size(path: Path) -> int:
    """Return how many bytes a file, or the files of a directory, take."""
    return sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]), *sys.argv[2:3])
