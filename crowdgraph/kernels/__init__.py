"""Numerical kernels: tensors in, tensors out; they know nothing of graphs."""
