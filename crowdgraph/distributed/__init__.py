"""Work by several processes, on one machine or many: ``torchrun -m crowdgraph.distributed fit``, and in Python."""

from crowdgraph.distributed.fitting import fit
from crowdgraph.distributed.similarity import pi_similarity

__all__ = ["fit", "pi_similarity"]
