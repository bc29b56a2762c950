"""Networks of volunteers: who behaves alike, and who works on the same items."""

from crowdgraph.networks.pi_similarity import pi_similarity
from crowdgraph.networks.task_cooccurrence import task_cooccurrence

__all__ = ["pi_similarity", "task_cooccurrence"]
