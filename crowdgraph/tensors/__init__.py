"""The equations of IBCC, DynIBCC, pi-similarity and Bayesian NMF as pure, differentiable functions of PyTorch tensors.

They are what ``backend="torch"`` runs. They know nothing of graphs: `CrowdGraph.to_torch`, `ModelFit.to_torch`,
`ConfusionTrack.to_torch` and `VolunteerNetwork.to_torch` return what they take.
"""

from crowdgraph.tensors.dirichlet import dirichlet_divergence, expected_log, log_normaliser
from crowdgraph.tensors.dynibcc import (
    FilteredStates,
    LastStates,
    Rounds,
    States,
    Steps,
    confusion_over_time,
    dirichlet_of_states,
    expected_score,
    filter_states,
    last_states,
    predict_states,
    predictive_score,
    smooth_states,
    step_logs,
)
from crowdgraph.tensors.ibcc import (
    AnswerMatrix,
    item_log_weights,
    item_posteriors,
    log_evidence,
    lower_bound,
    sufficient_counts,
)
from crowdgraph.tensors.nmf import nmf_objective
from crowdgraph.tensors.similarity import pi_similarity

__all__ = [
    "AnswerMatrix",
    "FilteredStates",
    "LastStates",
    "Rounds",
    "States",
    "Steps",
    "confusion_over_time",
    "dirichlet_divergence",
    "dirichlet_of_states",
    "expected_log",
    "expected_score",
    "filter_states",
    "item_log_weights",
    "item_posteriors",
    "last_states",
    "log_evidence",
    "log_normaliser",
    "lower_bound",
    "nmf_objective",
    "pi_similarity",
    "predict_states",
    "predictive_score",
    "smooth_states",
    "step_logs",
    "sufficient_counts",
]


def __dir__() -> list[str]:
    return __all__
