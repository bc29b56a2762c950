"""The numerics: tensors or arrays in, tensors or arrays out; kernels know nothing of graphs.

Comments cite the paper (Simpson, Roberts, Psorakis and Smith 2013) beside the lines that implement it: ``eq:...`` and
``sec:...`` are LaTeX labels, a section title in quotes stands for an equation without a label, and "erratum 1" refers
to the numbered list in ``docs/errata.rst``.
"""

from crowdgraph._compiled_cache import ensure_cache

ensure_cache()

__all__: list[str] = []
