"""Files that tests of input and output write."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Write text or bytes to a file and return its path."""

    def write(content, name="responses.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
