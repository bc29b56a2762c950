"""Kernels are tested on small tensors."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_torch_thread():
    """Small tensors are done before other threads have woken up, and these spin on processors that tests need."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)
