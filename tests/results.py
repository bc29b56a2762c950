"""Compare results field by field."""

from collections.abc import Mapping

import numpy as np
from scipy.sparse import issparse


def same_result(left, right):
    """Whether two results, or parts of them, hold the same; what is not saved with a graph does not count."""
    if type(left) is not type(right):
        return False
    if hasattr(left, "__dataclass_fields__"):
        saved = [name for name, one in left.__dataclass_fields__.items() if one.metadata.get("saved", True)]
        return all(same_result(getattr(left, name), getattr(right, name)) for name in saved)
    if issparse(left):
        return np.array_equal(left.toarray(), right.toarray())
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(same_result, left, right))
    if isinstance(left, Mapping):
        return left.keys() == right.keys() and all(same_result(left[name], right[name]) for name in left)
    return left == right or (left != left and right != right)


def same_graph(left, right):
    """Whether two graphs hold the same, annotations included."""
    return (
        left.equals(right)
        and list(left.annotations) == list(right.annotations)
        and all(same_result(left.annotations[name], right.annotations[name]) for name in left.annotations)
    )
