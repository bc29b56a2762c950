"""The memory of this process is what it takes now."""

import numpy as np

from crowdgraph.core._memory import resident_bytes


def test_memory_that_is_taken_counts():
    before = resident_bytes()
    block = np.ones(12_500_000)
    assert resident_bytes() > before + 0.8 * block.nbytes
