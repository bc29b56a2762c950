"""Names that people know from other tools, and what to call here: the advice of the errors about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

TABLE = "cg.CrowdGraph.from_responses(table)"
CSV = 'cg.read_csv("responses.csv")'
DETECT = "cg.Leiden().detect(network)"
SIMILAR = "cg.networks.pi_similarity(graph)"
PROBS = "fit.item_probs, or fit.to_frame() for a table"
TABLE_NAMES = ("from_pandas", "from_polars", "from_dataframe", "from_frame", "from_df", "from_table", "from_records")

# By class or module, what to write instead of a name.
OTHER_NAMES: dict[str, dict[str, str]] = {
    "crowdgraph": {
        **dict.fromkeys((*TABLE_NAMES, "from_responses", "read_pandas", "read_table"), TABLE),
        **dict.fromkeys(("Graph", "Crowd", "BipartiteGraph"), TABLE),
        "from_csv": CSV,
        **dict.fromkeys(("open", "read", "read_file"), 'cg.load("responses.csv")'),
        "save": 'graph.save("crowd.cg")',
        **dict.fromkeys(("analyse", "analyze"), "cg.analysis.analyse(graph)"),
        **dict.fromkeys(("Louvain", "louvain", "leiden"), DETECT),
        **dict.fromkeys(("pi_similarity", "similarity"), SIMILAR),
    },
    "crowdgraph.communities": dict.fromkeys(("detect", "Louvain", "louvain", "fit"), DETECT),
    "crowdgraph.networks": dict.fromkeys(("similarity", "PiSimilarity"), SIMILAR),
    "crowdgraph.plot": {
        **dict.fromkeys(("confusion_matrix", "confusions"), "cg.plot.confusion_history(fit.confusion.of(volunteer))"),
        **dict.fromkeys(("graph", "plot_network"), "cg.plot.network(network)"),
        **dict.fromkeys(
            ("show", "savefig"), 'cg.plot.activity(graph).figure.savefig("picture.png"), or plt.savefig("picture.png")'
        ),
    },
    "CrowdGraph": {
        **dict.fromkeys(TABLE_NAMES, TABLE),
        **dict.fromkeys(("from_csv", "read_csv"), CSV),
        **dict.fromkeys(("load", "open"), 'cg.load("crowd.cg")'),
        "to_frame": "graph.responses.to_frame()",
        "plot": "cg.plot.activity(graph), or another function of cg.plot",
        "predict": "cg.IBCC().fit(graph).predict()",
    },
    "ModelFit": {
        **dict.fromkeys(("predict_proba", "probas_", "probs", "probabilities", "posterior"), PROBS),
        **dict.fromkeys(("labels_", "labels", "predictions"), "fit.predict()"),
        "plot": "cg.plot.skill_over_time(fit.confusion), or another function of cg.plot",
    },
    "Model": {
        **dict.fromkeys(("predict", "fit_predict"), "model.fit(graph).predict()"),
        **dict.fromkeys(("predict_proba", "fit_predict_proba"), "model.fit(graph).item_probs"),
        **dict.fromkeys(("transform", "fit_transform"), "graph.annotate(model.fit(graph))"),
    },
    "Detector": dict.fromkeys(("fit", "predict", "fit_predict"), "detector.detect(network)"),
}


def advice(owner: str, name: str) -> str | None:
    """Return the message about a name of a class or module that other tools have, or None for other names.

    Examples
    --------
    >>> advice("CrowdGraph", "from_pandas")
    "CrowdGraph has no 'from_pandas'. Write cg.CrowdGraph.from_responses(table)."
    """
    instead = OTHER_NAMES.get(owner, {}).get(name)
    return None if instead is None else f"{owner} has no {name!r}. Write {instead}."


def missing_from_module(module: str, name: str) -> AttributeError:
    """Return the error about a name that a module does not have."""
    return AttributeError(advice(module, name) or f"module {module!r} has no attribute {name!r}")


def _raise_advice(kinds: tuple[type, ...], name: str) -> None:
    """Raise the error about a name, if other tools have it, of any of some classes."""
    for kind in kinds:
        if (message := advice(kind.__name__, name)) is not None:
            raise AttributeError(message)


class AdvisesOnNames:
    """Mixin: a name that other tools have gets an error that says what to write here."""

    # Unseen by type checkers, for which any name would exist.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            _raise_advice(type(self).__mro__, name)
            # Raises the usual error, or that of a property that failed.
            return object.__getattribute__(self, name)


class AdvisesOnClassNames(type):
    """A class whose own missing names get the advice of `AdvisesOnNames`, as in ``CrowdGraph.from_pandas``."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            _raise_advice(cls.__mro__, name)
            return type.__getattribute__(cls, name)
