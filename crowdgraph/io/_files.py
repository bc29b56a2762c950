"""Files: whether there is one, and writing one whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from crowdgraph.errors import StoreError

# Errors for want of space: a full disk, a used-up quota, a file larger than may be.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_file(path: Any) -> bool:
    """Whether a path names a file; anything else does not."""
    try:
        return Path(path).is_file()
    except (OSError, TypeError, ValueError):
        return False


def reason(error: OSError) -> tuple[str, str]:
    """Why something could not be written, without the names of files in the making, and what to do about it."""
    first: BaseException = error
    while isinstance(first, StoreError) and first.__cause__ is not None:
        first = first.__cause__
    number = getattr(first, "errno", None)
    advice = "; free some space, or write elsewhere" if number in FULL else ""
    return (os.strerror(number) if number else str(first).rstrip(".")), advice


@contextmanager
def atomic_file(path: str | PathLike[str]) -> Iterator[Path]:
    """A new file that takes the place of `path` once it is written whole; on an error the old one stays."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise StoreError(f"{fspath(path)!r} is a directory; give the path of a file.")
    part = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise StoreError(f"Cannot write to {fspath(target.parent)!r}: {error.strerror}.") from error
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        if target.is_file():
            part.chmod(stat.S_IMODE(target.stat().st_mode))
        part.replace(target)
    except OSError as error:
        why, advice = reason(error)
        raise StoreError(
            f"{fspath(path)!r} could not be written: {why}. What was there is unchanged{advice}."
        ) from error
    finally:
        part.unlink(missing_ok=True)
