"""Tensors."""

import numpy as np
import torch
from hypothesis import given
from strategies import graphs


@given(graphs())
def test_tensors_are_the_columns(graph):
    tensors = graph.to_torch()
    for name in ("volunteer", "item", "label"):
        column = getattr(tensors, name)
        assert column.dtype == torch.int64
        assert column.tolist() == getattr(graph.responses, name).tolist()
    times = graph.responses.time
    if times.dtype.kind == "M":
        times = (times - np.datetime64(0, "s")) / np.timedelta64(1, "s")
    np.testing.assert_allclose(tensors.time.numpy(), times, rtol=1e-15)
    np.testing.assert_array_equal(tensors.gold.numpy(), graph.gold.probs)


def test_tensors_are_copies(graph):
    tensors = graph.to_torch(device="cpu")
    tensors.label[:] = -5
    assert graph.responses.label.min() == 0
