"""Networks that learn from crowds: the likelihood of a crowd's answers as a module of PyTorch.

`CrowdLikelihood` is for training loops of your own; `crowdgraph.ClassifierIBCC` is a model that has one.
"""

from crowdgraph.nn.batches import AnswersByItem
from crowdgraph.nn.crowd_likelihood import CrowdLikelihood

__all__ = ["AnswersByItem", "CrowdLikelihood"]


def __dir__() -> list[str]:
    return __all__
