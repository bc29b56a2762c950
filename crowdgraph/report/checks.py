"""The checks of the model on the page: convergence, calibration against gold, expected answers, and evidence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crowdgraph.core.fit import ModelFit
from crowdgraph.evaluation.model_checks import Calibration, Unmeasured
from crowdgraph.evaluation.predictive import PredictiveChecks
from crowdgraph.messages import Interface, Message, wording
from crowdgraph.report._results import GraphResults, to_numbers, to_texts
from crowdgraph.report.communities import community_evidence

__all__ = ["check_section"]

# A line of more points looks the same.
MAX_POINTS = 500


def check_section(results: GraphResults) -> dict[str, Any]:
    """Return all checks that the results allow."""
    fits = results.all_of(ModelFit)
    if not fits and results.communities is None:
        return results.advice(
            "There is no model to check yet"
            + Message(": graph = graph.annotate(cg.IBCC().fit(graph)).", cli="; use --model ibcc.")
        )
    return {
        "fits": [_convergence(name, fit) for name, fit in fits.items()],
        "calibration": _calibration(results.calibration, results.interface),
        "predictive": _predictive(results.predictive, results.interface),
        "evidence": None if results.communities is None else community_evidence(results.communities),
    }


def _convergence(name: str, fit: ModelFit) -> dict[str, Any]:
    """Return whether a fit converged, its bound after each iteration, and its diagnostics that are single values."""
    steps = np.unique(np.linspace(0, len(fit.bound) - 1, min(len(fit.bound), MAX_POINTS)).round().astype(np.int64))
    diagnostics = {key: value for key, value in fit.diagnostics.items() if isinstance(value, int | float | str)}
    return {
        "name": name,
        "model": fit.model,
        "converged": bool(fit.converged),
        "iterations": fit.n_iter,
        "steps": (steps + 1).tolist(),
        "bound": to_numbers(fit.bound[steps], 6),
        "facts": [[key, _short(value)] for key, value in diagnostics.items()],
    }


def _short(value: float | str) -> str:
    """Return a number in few digits."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _calibration(measured: Calibration | Unmeasured | None, interface: Interface) -> dict[str, Any] | None:
    """Return how often the most probable class of gold items is right, by its probability; or why that is unknown."""
    if measured is None:
        return None
    if isinstance(measured, Unmeasured):
        return {"missing": wording(measured.reason, interface)}
    return {
        "without_gold": measured.gold != "unused",
        "hidden": measured.gold == "hidden",
        "stated": to_numbers(measured.stated),
        "observed": to_numbers(measured.observed),
        "items": measured.n_items.tolist(),
        "accuracy": round(measured.accuracy, 4),
        "sure": measured.n_sure,
        "sure_accuracy": _rounded(measured.sure_accuracy),
        "error": round(measured.error, 4),
        "error_interval": to_numbers(measured.error_interval),
        "log_loss": round(measured.log_loss, 4),
        "log_loss_interval": to_numbers(measured.log_loss_interval),
        "verdict": measured.verdict,
    }


def _predictive(checks: PredictiveChecks | None, interface: Interface) -> dict[str, Any]:
    """Return the predictive checks: each with its numbers, the share of each label, and pairs who err together."""
    if checks is None:
        missing = "Whether volunteers answer independently was not checked" + Message(
            ": crowdgraph.analysis.analyse(graph) does it, and cg.evaluation.predictive_checks(graph).",
            cli="; crowdgraph analyse does it.",
        )
        return {"missing": wording(missing, interface)}
    return {
        "replicates": checks.n_replicates,
        "verdict": wording(checks.verdict, interface),
        "checks": [
            {
                "name": check.name,
                **{
                    name: _rounded(getattr(check, name))
                    for name in ("observed", "replicated", "low", "high", "p_value")
                },
                "stands_out": check.stands_out,
                "reason": check.reason,
            }
            for check in checks
        ],
        "labels": to_texts(checks.labels.labels),
        "observed": to_numbers(checks.labels.observed),
        "expected": to_numbers(checks.labels.replicated),
        "pairs": [
            [str(pair.volunteer), str(pair.other), pair.n_common, round(pair.correlation, 3)] for pair in checks.pairs
        ],
    }


def _rounded(share: float) -> float | None:
    return None if math.isnan(share) else round(share, 4)
