"""What every script in this folder contributes to the page: pictures, and the paper's values beside ours."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

import crowdgraph as cg

# The priors that the paper's authors used for Galaxy Zoo Supernovae.
AUTHORS_PRIOR = {"confusion_prior": [[0.5, 0.3, 0.05], [0.18, 0.36, 0.41]], "class_prior": [100, 10]}
# Which class a score votes for, and which scores are right for a class.
VOTES = {-1: "not supernova", 1: "supernova", 3: "supernova"}
CORRECT = {"not supernova": -1, "supernova": [1, 3]}

DPI = 130


def output_folder() -> Path:
    """Return the folder named on the command line, or ``docs/_build/paper``; create it if needed."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/paper")
    out.mkdir(parents=True, exist_ok=True)
    return out


def write_entry(
    name: str,
    title: str,
    *,
    paper: str,
    rows: Sequence[tuple[str, str, str]],
    pictures: Mapping[str, Axes],
    remark: str,
    side_by_side: bool = False,
) -> None:
    """Write the pictures, by caption, and the rows (what, in the paper, here); print the rows.

    With `side_by_side` two pictures stand beside each other.
    """
    out = output_folder()
    files = {}
    for index, (caption, ax) in enumerate(pictures.items()):
        files[caption] = f"{name}-{index}.png"
        ax.figure.savefig(out / files[caption], dpi=DPI, bbox_inches="tight")
    entry = {
        "title": title,
        "paper": paper,
        "rows": rows,
        "pictures": files,
        "remark": remark,
        "side_by_side": side_by_side,
    }
    (out / f"{name}.json").write_text(json.dumps(entry, indent=1), encoding="utf-8")
    print(f"\n{title}")
    for what, published, ours in rows:
        print(f"  {what:<64} paper {published:<22} here {ours}")


def listed(values: Iterable[object]) -> str:
    """Return the values in one line."""
    return ", ".join(map(str, values))


def busiest(crowd: cg.simulate.SimulatedCrowd, drift: str) -> str:
    """Return the id of the busiest of the volunteers who change in this way."""
    codes = np.flatnonzero(crowd.truth.drift == drift)
    return crowd.graph.volunteers.ids[codes[crowd.graph.volunteers.n_responses[codes].argmax()]]
