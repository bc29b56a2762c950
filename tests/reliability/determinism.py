"""The same seed gives the same bits: in another process, with other hashes, for everything that computes.

``python tests/reliability/determinism.py`` prints a digest of everything; what draws random numbers has a seed.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from builders import crowd
from reliability.attack import Row, Size
from reliability.odd_crowds import KINDS, Subject

import crowdgraph as cg
from crowdgraph.analysis import analyse, write_results
from crowdgraph.errors import CrowdGraphError, CrowdGraphWarning

# What makes other processes differ from this one, where anything could: how text is hashed, and in which order.
HASH_SEEDS = {Size.SHORT: ("1",), Size.LONG: tuple(map(str, range(1, 11)))}
# The kinds whose targets return results; the others write files or words.
REPEATED = ("models", "networks", "detectors", "policies", "plans", "tracks", "evaluation")
# Results that hold seconds.
TIMED = {"cross validation"}
# The short form repeats what others build on.
SHORT = {
    "models": ("IBCC", "DynIBCC", "Dawid-Skene", "Gibbs", "cautious"),
    "networks": ("who behave alike", "who work on the same items"),
    "detectors": ("NMF of alike", "Leiden of together"),
    "policies": ("GreedyValue", "RandomPolicy"),
    "tracks": ("communities",),
}
SIMULATORS = {
    "crowd": lambda: cg.simulate.crowd(n_communities=2, seed=0).graph,
    "Galaxy Zoo Supernovae": lambda: cg.simulate.galaxy_zoo_supernovae(seed=0).graph,
}
# Files of an analysis that are the same each time; the others name moments, seconds and folders.
SAME_FILES = (".csv", ".parquet", ".graphml", ".svg", ".png")


def digest(value, state=None):
    """Return a digest of all that a result holds, to the last bit."""
    state = hashlib.sha256() if state is None else state
    if isinstance(value, np.ndarray) and value.dtype != object:
        state.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif hasattr(value, "tocsr"):
        matrix = value.tocsr()
        for part in (matrix.indptr, matrix.indices, matrix.data):
            digest(part, state)
    elif isinstance(value, cg.CrowdGraph):
        for table in ("volunteers", "items", "responses"):
            state.update(repr(value.to_arrow(table=table).to_pydict()).encode())
    elif hasattr(value, "__dataclass_fields__"):
        saved = (name for name, one in value.__dataclass_fields__.items() if one.metadata.get("saved", True))
        for name in saved:
            digest(getattr(value, name), state)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            state.update(repr(key).encode())
            digest(part, state)
    elif isinstance(value, list | tuple):
        for part in value:
            digest(part, state)
    elif hasattr(value, "__dict__") and type(value).__module__.startswith("crowdgraph"):
        digest(vars(value), state)
    else:
        state.update(repr(value).encode())
    return state.hexdigest()


def actions(size):
    """Return what is repeated: functions without arguments, by kind and name."""
    chosen = SHORT if size is Size.SHORT else {kind: KINDS[kind].keys() - TIMED for kind in REPEATED}
    subject = Subject(crowd(gold=0.3, n_communities=2).graph, Path())
    repeated = {
        (kind, name): partial(KINDS[kind][name], subject) for kind, names in chosen.items() for name in sorted(names)
    }
    repeated |= {("simulators", name): simulate for name, simulate in SIMULATORS.items()}
    return repeated | ({("analysis", "files"): files_of_analysis} if size is Size.LONG else {})


def files_of_analysis():
    """The digests of the files of an analysis that hold results."""
    graph = crowd(gold=0.3, n_communities=2).graph
    with tempfile.TemporaryDirectory() as folder:
        write_results(analyse(graph, snapshots=2, min_responses=1), Path(folder, "results"))
        files = sorted(path for path in Path(folder).rglob("*") if path.suffix in SAME_FILES)
        return [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


def digests(size):
    """Return a digest of each action's result, or of why it is refused."""
    results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdGraphWarning)
        for (kind, name), action in actions(size).items():
            try:
                results[f"{kind}: {name}"] = digest(action())
            except CrowdGraphError as error:
                results[f"{kind}: {name}"] = f"refused: {error}"
    return results


def attack(size):
    """Compare this process with others, and this process with itself."""
    mine, failed = digests(size), {}
    others = [digests_elsewhere(size, hash_seed) for hash_seed in HASH_SEEDS[size]]
    for other in others:
        for name in mine:
            if other[name] != mine[name]:
                failed.setdefault(name, []).append(other[name])
    kinds = dict.fromkeys(name.split(":")[0] for name in mine)
    for kind in kinds:
        names = [name for name in mine if name.startswith(f"{kind}:")]
        wrong = [name for name in names if name in failed]
        refused = sum(mine[name].startswith("refused") for name in names)
        note = "; ".join([f"{refused} refused", *(f"differs: {name}" for name in wrong)])
        yield Row(
            f"{kind}, same bits in another process",
            len(names) * len(others),
            sum(len(failed[n]) for n in wrong),
            "",
            note,
        )


def digests_elsewhere(size, hash_seed):
    """Return the digests of another process."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, __file__, size.value]
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(output)


if __name__ == "__main__":
    print(json.dumps(digests(Size(sys.argv[1]) if sys.argv[1:] else Size.LONG), indent=2))
