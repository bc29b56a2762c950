"""Fits by several processes, on one machine or many: ``torchrun -m crowdgraph.distributed fit`` and `fit` in Python."""

from crowdgraph.distributed.fitting import fit

__all__ = ["fit"]
