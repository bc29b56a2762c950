"""Check that a path is a file, take its checksum, parse XML, and write files completely or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from crowdgraph.errors import CrowdGraphError, StoreError
from crowdgraph.io._temporary import let_go, make_part, remove_parts, sync
from crowdgraph.messages import printable

if TYPE_CHECKING:
    from xml.parsers.expat import XMLParserType

# Errors for lack of space: a full disk, an exhausted quota, a file above the size limit.
NO_SPACE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# How many bytes of an XML file are read at once.
XML_CHUNK = 2**22


def is_file(path: Any) -> bool:
    """Return whether a path names an existing file; False for anything that is not a path."""
    try:
        return Path(path).is_file()
    except (OSError, TypeError, ValueError):
        return False


def is_directory(path: Any) -> bool:
    """Return whether a path names an existing directory; False for anything that is not a path."""
    try:
        return Path(path).is_dir()
    except (OSError, TypeError, ValueError):
        return False


def quoted(path: Any) -> str:
    """Return a path as messages quote it, and anything that is not a path as Python writes it."""
    return repr(fspath(path)) if isinstance(path, str | PathLike) else repr(path)


def not_a_file(path: Any) -> str:
    """Return how a message begins that is about a path which `is_file` denies."""
    if is_directory(path):
        return f"{quoted(path)} is a directory, not a file"
    return f"{quoted(path)} does not exist or is not a file"


def is_saved_graph(path: str | PathLike[str]) -> bool:
    """Return whether a file is a graph that `CrowdGraph.save` wrote, as far as its parts tell."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "manifest.json" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def file_digest(path: Path) -> str:
    """Return the SHA-256 checksum of a file, so that a run can be repeated on exactly the same data."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def reason_of(error: Exception) -> str:
    """Return what an error of a library says, for the middle of a sentence: on one line, without its last full stop."""
    return printable(" ".join(str(error).split())).rstrip(". ")


def write_failure(error: OSError) -> tuple[str, str]:
    """Return why a file could not be written, without the names of temporary files, and what to do about it."""
    cause: BaseException = error
    while isinstance(cause, StoreError) and cause.__cause__ is not None:
        cause = cause.__cause__
    number = getattr(cause, "errno", None)
    advice = "; free some space, or write elsewhere" if number in NO_SPACE_ERRORS else ""
    return (os.strerror(number) if number else str(cause).rstrip(".")), advice


@contextmanager
def undamaged(path: str | PathLike[str]) -> Iterator[None]:
    """Say that what is read at a path is damaged, if reading it fails in a way that nobody foresaw."""
    try:
        yield
    except (CrowdGraphError, MemoryError):
        raise
    except Exception as error:  # what a stranger wrote can fail anywhere
        raise StoreError(f"{fspath(path)!r} is damaged: its parts do not fit together ({error}).") from error


@contextmanager
def atomic_file(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` once it is complete; after an error the old file is unchanged.

    It has the permissions of what it replaces from the beginning. What killed processes left is removed.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise StoreError(f"{fspath(path)!r} is a directory; give the path of a file.")
    if target.exists() and not target.is_file():
        raise StoreError(
            f"{fspath(path)!r} is a pipe, a device or a socket, which a file would replace; give the path of a file."
        )
    old = target.stat() if target.is_file() else None
    try:
        remove_parts(target)
        temporary, descriptor = make_part(target, lambda part: _make_file(part, old))
    except OSError as error:
        advice = " Create the directory first." if error.errno == errno.ENOENT else ""
        raise StoreError(f"Cannot write to {fspath(target.parent)!r}: {error.strerror}.{advice}") from error
    try:
        yield temporary
        sync(temporary)
        if old is not None:
            temporary.chmod(stat.S_IMODE(old.st_mode))
        temporary.replace(target)
        sync(target.parent)
    except OSError as error:
        why, advice = write_failure(error)
        raise StoreError(
            f"{fspath(path)!r} could not be written: {why}. What was there is unchanged{advice}."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
        let_go(descriptor)


def _make_file(path: Path, old: os.stat_result | None) -> None:
    """Make an empty file that as many may read as may read an old one, and its group, before anything is in it."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if old is None else 0o600)
    try:
        if old is not None and hasattr(os, "fchmod"):
            if (old.st_uid, old.st_gid) != (os.fstat(descriptor).st_uid, os.fstat(descriptor).st_gid):
                with suppress(OSError):
                    os.fchown(descriptor, -1, old.st_gid)
                with suppress(OSError):
                    os.fchown(descriptor, old.st_uid, -1)
            # Its owner has to write it, also where the old one may only be read.
            os.fchmod(descriptor, stat.S_IMODE(old.st_mode) | stat.S_IRUSR | stat.S_IWUSR)
    finally:
        os.close(descriptor)


def parse_xml(parser: XMLParserType, file: BinaryIO) -> None:
    """Feed a file to an expat parser.

    Its own ParseFile reads 2 kB at a time, and expat begins a long attribute anew with each of them.
    """
    while chunk := file.read(XML_CHUNK):
        parser.Parse(chunk, False)  # noqa: FBT003 - it has no keywords
    parser.Parse(b"", True)  # noqa: FBT003
