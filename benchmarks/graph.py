"""Build a graph of 10 million responses from Parquet, and check that views do not copy it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from side_by_side import measure

import crowdgraph as cg

N_RESPONSES, N_VOLUNTEERS, N_ITEMS = 10_000_000, 50_000, 1_000_000

SETUP = "import crowdgraph as cg, pyarrow as pa, pyarrow.parquet as pq, numpy; cg.CrowdGraph, cg.read_parquet"
BASELINE = """
table = pq.read_table({path!r})
volunteer, item = table["volunteer"].dictionary_encode(), table["item"].dictionary_encode()
"""
OURS = "graph = cg.read_parquet({path!r})"


def main() -> None:
    print(f"{N_RESPONSES:,} responses, {N_VOLUNTEERS:,} volunteers with heavy-tailed activity, {N_ITEMS:,} items.\n")
    print("| Parquet file | read_table + dictionary_encode | read_parquet | times | peak memory / bytes of columns |")
    print("|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in (
            "text ids, sorted by time",
            "text ids, shuffled",
            "integer ids, sorted by time",
            "integer ids, shuffled",
            "integer ids with gaps, sorted by time",
        ):
            path = str(Path(folder) / "responses.parquet")
            n_bytes = write(path, text="text" in kind, shuffled="shuffled" in kind, gaps="gaps" in kind)
            pieces = {name: (SETUP, code.format(path=path)) for name, code in (("base", BASELINE), ("ours", OURS))}
            measured = measure(pieces, repeats=3)
            base, ours = measured["base"], measured["ours"]
            print(
                f"| {kind} | {base.seconds:.2f} s | {ours.seconds:.2f} s | {ours.seconds / base.seconds:.2f} "
                f"| {ours.peak_bytes / n_bytes:.2f} |",
                flush=True,
            )
        check_views(cg.read_parquet(path))


def write(path: str, *, text: bool, shuffled: bool, gaps: bool) -> int:
    """Write the file, and return how many bytes its columns take in memory."""
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, N_VOLUNTEERS + 1)
    volunteer = rng.choice(N_VOLUNTEERS, N_RESPONSES, p=weights / weights.sum())
    item = rng.integers(0, N_ITEMS, N_RESPONSES)
    time = rng.integers(0, 10**13, N_RESPONSES) + 1_700_000_000 * 10**6
    if not shuffled:
        time.sort()
    columns = {
        "volunteer": names("volunteer", volunteer, N_VOLUNTEERS) if text else pa.array(volunteer),
        "item": names("subject", item, N_ITEMS) if text else pa.array(item * 40 if gaps else item),
        "label": names("label", rng.integers(0, 3, N_RESPONSES), 3),
        "time": pa.array(time, pa.timestamp("us")),
    }
    table = pa.table(columns)
    pq.write_table(table, path)
    return int(table.nbytes)


def names(word: str, codes: np.ndarray, n_names: int) -> pa.Array:
    return pc.take(pa.array([f"{word}-{code}" for code in range(n_names)]), pa.array(codes))


def check_views(graph: cg.CrowdGraph) -> None:
    """Print whether views and annotated graphs share the memory of the columns."""
    middle = graph.responses.time[len(graph.responses) // 2]
    track = cg.ConfusionTrack.static(
        ids=graph.volunteers.ids,
        concentration=np.ones((len(graph.volunteers), len(graph.classes), len(graph.labels))),
        classes=graph.classes,
        labels=graph.labels,
    )
    print("\n| of 10 million responses | shares memory |\n|---|---|")
    for name, view in (("before(t)", graph.before(middle)), ("annotate(track)", graph.annotate(track))):
        columns = ("volunteer", "item", "label", "time")
        same = all(np.shares_memory(getattr(graph.responses, c), getattr(view.responses, c)) for c in columns)
        print(f"| {name} | {'yes' if same else 'NO'} |", flush=True)
