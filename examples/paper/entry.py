"""What every script in this folder contributes to the page: pictures, and the paper's values beside ours."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes

# The priors that the paper's authors used for Galaxy Zoo Supernovae.
AUTHORS_PRIOR = {"confusion_prior": [[0.5, 0.3, 0.05], [0.18, 0.36, 0.41]], "class_prior": [100, 10]}


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
) -> None:
    """Write the pictures, by caption, and the rows (what, in the paper, here); print the rows."""
    out = output_folder()
    files = {}
    for index, (caption, ax) in enumerate(pictures.items()):
        files[caption] = f"{name}-{index}.png"
        ax.figure.savefig(out / files[caption], dpi=130, bbox_inches="tight")
    entry = {"title": title, "paper": paper, "rows": rows, "pictures": files, "remark": remark}
    (out / f"{name}.json").write_text(json.dumps(entry, indent=1), encoding="utf-8")
    print(f"\n{title}")
    for what, published, ours in rows:
        print(f"  {what:<44} paper {published:<12} here {ours}")
