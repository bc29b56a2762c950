"""How much a compressed file may unpack to, so that a small file of a stranger cannot fill the memory."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa

from crowdgraph.core._memory import in_words, memory_in_bytes
from crowdgraph.errors import CrowdGraphError, InputError, ParameterError
from crowdgraph.messages import Hint

# Tables of answers unpack to 5 to 12 times their packed size, exports of Zooniverse to 25 (gzip) to 40 (bzip2); bombs
# unpack to a thousand times and more.
MAX_RATIO = 100
# What any file may unpack to, however small it is.
ALWAYS_ALLOWED = 64 * 10**6
# How much is unpacked at once to count it.
BLOCK_BYTES = 2**20
# The environment variable that sets another limit.
VARIABLE = "CROWDGRAPH_MAX_UNPACKED"
# How Arrow calls the compressions that it recognises by the ends of names.
COMPRESSIONS = {".bz2": "bz2", ".gz": "gzip", ".lz4": "lz4", ".zst": "zstd"}


def unpacked_limit(packed: int) -> int:
    """Return how many bytes a file of `packed` bytes may unpack to: what the user says, or 100 times as many.

    64 MB are always allowed.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen is None:
        return max(ALWAYS_ALLOWED, MAX_RATIO * packed)
    try:
        return memory_in_bytes(chosen)
    except ParameterError as error:
        raise ParameterError(
            f"The environment variable {VARIABLE}={chosen!r} is not an amount of memory; give text such as '8GB'."
        ) from error


def check_unpacked(name: str, *, packed: int, unpacked: int, error: type[CrowdGraphError] = InputError) -> None:
    """Raise if a file unpacks to more than is allowed.

    Parameters
    ----------
    name
        The file, as messages call it.
    packed, unpacked
        Its size in bytes, and that of what it holds.
    error
        The error to raise.
    """
    limit = unpacked_limit(packed)
    if unpacked > limit:
        raise too_large(name, packed, limit, error)


def too_large(name: str, packed: int, limit: int, error: type[CrowdGraphError]) -> CrowdGraphError:
    """Return the error for a file that unpacks to more than is allowed."""
    set_it = f"set the environment variable {VARIABLE}, such as {VARIABLE}=8GB"
    return error(
        f"{name} of {in_words(packed)} unpacks to more than {in_words(limit)}, which could fill the memory.",
        hint=Hint(f"If you trust the file, {set_it}.", cli=f"If you trust the file, {set_it}."),
    )


class UnpackedStream(io.RawIOBase):
    """The content of a compressed file.

    Before more is handed out than any file may unpack to, the rest is unpacked once and counted, so that a file that
    unpacks to too much is refused before its rows fill the memory.

    Parameters
    ----------
    path
        The file.
    compression
        How it is compressed, as Arrow calls it.
    """

    def __init__(self, path: str | PathLike[str], compression: str) -> None:
        self._path, self._compression = fspath(path), compression
        self._packed = Path(path).stat().st_size
        self._uncounted = min(ALWAYS_ALLOWED, unpacked_limit(self._packed))
        self._stream: Any = pa.input_stream(self._path, compression=compression)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, and return how many bytes there were."""
        content = self._stream.read(len(buffer))
        if self._uncounted >= 0:
            self._uncounted -= len(content)
            if self._uncounted < 0:
                self._count()
        buffer[: len(content)] = content
        return len(content)

    def _count(self) -> None:
        """Unpack everything block by block, none of which is kept, and raise once it is too much."""
        limit, n_read = unpacked_limit(self._packed), 0
        with pa.input_stream(self._path, compression=self._compression) as stream:
            while block := stream.read(BLOCK_BYTES):
                n_read += len(block)
                if n_read > limit:
                    raise too_large(repr(self._path), self._packed, limit, InputError)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        super().close()


@contextmanager
def text_source(path: str | PathLike[str]) -> Iterator[Any]:
    """Yield what Arrow reads a CSV file from: its path or, if it is compressed by its name, a limited stream."""
    compression = COMPRESSIONS.get(Path(path).suffix)
    if compression is None:
        yield fspath(path)
        return
    with UnpackedStream(path, compression) as source:
        yield source
