"""Hidden files and folders beside what they will replace: their names, a lock while their process runs, and clean-up.

A process that is killed cannot remove them. The next one that writes the same target does, unless the lock says that
their process is still running, or the file system has no locks to ask.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# What is being written; what was complete when it was to be moved into a folder; what was replaced.
PART, COMPLETE, OLD = ".part", ".complete", ".old"
MAX_LABEL = 40
DIGEST_LETTERS = 8
# What file systems answer that have no locks, or that cannot write folders through.
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
CANNOT_SYNC = (errno.EINVAL, errno.EBADF, errno.ENOSYS, errno.EOPNOTSUPP)


def label_of(target: Path) -> str:
    """Return what hidden names of a target begin with: its name, shortened where hidden names would get too long."""
    name = target.name or "root"
    if len(name.encode()) <= MAX_LABEL:
        return name
    digest = hashlib.blake2b(os.fsencode(name)).hexdigest()[:DIGEST_LETTERS]
    return f"{name[: (MAX_LABEL - DIGEST_LETTERS) // 4]}-{digest}"


def make_part(target: Path, make: Callable[[Path], None], *, folder: Path | None = None) -> tuple[Path, int]:
    """Make a hidden file or folder for a target with `make`, and lock it; close the descriptor to let go of it.

    Parameters
    ----------
    target
        What it will become.
    make
        Makes a file or a folder of a name.
    folder
        Where; beside the target if left out.
    """
    while True:
        part = (folder or target.parent) / f".{label_of(target)}.{secrets.token_hex(4)}{PART}"
        make(part)
        try:
            descriptor = _open(part)
        except FileNotFoundError:
            continue  # Another process took it for left over, before it was locked.
        if _locked(descriptor) is not False and part.exists():
            return part, descriptor
        let_go(descriptor)


def leftovers(target: Path, ending: str, *, folder: Path | None = None) -> list[Path]:
    """Return the hidden files and folders of a target with an ending, the latest first."""
    # What was replaced may have been a store, whose hidden names are always the same, to resume.
    token = r"(\.[0-9a-f]{8})?" if ending == OLD else r"\.[0-9a-f]{8}"
    pattern = re.compile(rf"\.{re.escape(label_of(target))}{token}{re.escape(ending)}")
    dated = []
    with suppress(OSError), os.scandir(folder or target.parent) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name):
                with suppress(FileNotFoundError):
                    dated.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path))
    return [Path(path) for _, path in sorted(dated, reverse=True)]


@contextmanager
def locked(path: Path) -> Iterator[bool | None]:
    """Lock a file or folder; yield False if another process has locked it, None if nobody can."""
    try:
        descriptor = _open(path)
    except OSError:
        yield None
        return
    try:
        yield _locked(descriptor)
    finally:
        let_go(descriptor)


def remove_parts(target: Path, *, folder: Path | None = None) -> None:
    """Remove unfinished files and folders that processes left which no longer run."""
    for part in leftovers(target, PART, folder=folder):
        with locked(part) as is_ours:
            if is_ours:
                remove(part)


def remove(path: Path) -> None:
    """Remove a file or a folder, as far as possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def let_go(descriptor: int) -> None:
    """Give up the lock of a file or folder."""
    if descriptor >= 0:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Write a file through to the disk, or the entries of a folder, where that can be done."""
    is_folder = path.is_dir()
    try:
        # Windows can do so through a descriptor that may write only, and not for folders.
        descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    except OSError:
        if is_folder:
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not is_folder or error.errno not in CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Write all files of a folder, and the folders themselves, through to the disk."""
    for parent, _, names in os.walk(folder):
        for name in names:
            if (path := Path(parent, name)).is_file():
                sync(path)
        sync(Path(parent))


def _open(path: Path) -> int:
    return -1 if os.name == "nt" else os.open(path, os.O_RDONLY | os.O_NOFOLLOW)


def _locked(descriptor: int) -> bool | None:
    """Return whether a lock could be taken; None where there are no locks."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:
        return None
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in NO_LOCKS:
            return None
        raise
    return True
