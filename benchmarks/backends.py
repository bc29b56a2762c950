"""Compare compiled code with tensors, and double with single precision, on the CPU: complete fits of each model."""

from __future__ import annotations

from pathlib import Path

from side_by_side import measure

SETUP = """
import sys; sys.path.insert(0, {folder!r})
import warnings; warnings.simplefilter("ignore")
import crowdgraph as cg
from crowds import Size, crowd
graph = crowd(Size({size}))
model = cg.{model}
{warm_up}
"""
# Items, volunteers, responses, classes and labels. Tensors take a step for each response of the busiest volunteer, so
# that DynIBCC is measured on fewer.
LARGE, SMALL = "100_000, 5_000, 1_000_000, 3, 3", "963, 1_705, 26_558, 2, 3"
MODELS = {
    "IBCC": (LARGE, "IBCC(confusion_prior=(4, 1), {options})"),
    "DawidSkene": (LARGE, "DawidSkene({options})"),
    "Cautious": (LARGE, "Cautious({options})"),
    "DynIBCC": (SMALL, "DynIBCC(confusion_prior=[[4, 1, 1], [1, 1, 4]], max_iter=5, {options})"),
}
FIT = ("model.warm_up(graph)", "model.fit(graph)")
NETWORKS = {"BayesianNMF, dense": "pi_similarity(graph)", "BayesianNMF, sparse": "task_cooccurrence(graph)"}
DETECT = """
graph = graph.annotate(cg.IBCC().fit(graph))
network = cg.networks.{network}
cg.BayesianNMF(nulls=0, restarts=1, max_communities=8).detect(network, seed=0)
"""
BACKENDS = ("compiled", "torch")
PRECISIONS = ("float64", "float32")


def main() -> None:
    """Print the seconds and the memory of a fit or a detection by backend and precision."""
    print("Complete fits on two cores: seconds, and memory beside the graph. Ratios are to compiled code in float64.\n")
    print("| model | responses | backend | precision | seconds | ratio | peak memory | ratio |")
    print("|---|--:|---|---|--:|--:|--:|--:|")
    folder = str(Path(__file__).parent)
    for name, (size, model) in MODELS.items():
        pieces = {}
        for backend in BACKENDS:
            for precision in PRECISIONS:
                options = f"backend={backend!r}, dtype={precision!r}"
                setup = SETUP.format(folder=folder, size=size, model=model.format(options=options), warm_up=FIT[0])
                pieces[f"{backend} | {precision}"] = (setup, FIT[1])
        print_rows(f"{name} | {size.split(', ')[2].replace('_', ',')}", pieces)
    for name, network in NETWORKS.items():
        pieces = {}
        for backend in BACKENDS:
            for precision in PRECISIONS:
                options = f"nulls=0, restarts=2, backend={backend!r}, dtype={precision!r}"
                setup = SETUP.format(
                    folder=folder,
                    size="2_000, 1_500, 60_000, 3, 3",
                    model=f"BayesianNMF({options})",
                    warm_up=DETECT.format(network=network),
                )
                pieces[f"{backend} | {precision}"] = (setup, "model.detect(network, seed=0)")
        print_rows(f"{name} | 60,000", pieces)


def print_rows(name: str, pieces: dict[str, tuple[str, str]]) -> None:
    results = measure(pieces, repeats=3)
    first = next(iter(results.values()))
    for piece, result in results.items():
        print(
            f"| {name} | {piece} | {result.seconds:.2f} | {result.seconds / first.seconds:.1f} "
            f"| {result.peak_bytes / 2**20:,.0f} MiB | {result.peak_bytes / first.peak_bytes:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
