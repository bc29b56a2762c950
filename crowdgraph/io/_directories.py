"""Folders that appear whole or not at all, also where one is replaced that cannot be renamed.

A folder is written under a hidden name beside its target, and then exchanged with it. What the user has in the target,
and what appears there meanwhile, moves on into the new folder. A mount point, or the folder in which the shell stands,
has to stay itself: the new files then move into it one by one, the record last, and after a kill the next run goes on.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

from crowdgraph.errors import StoreError
from crowdgraph.io._files import write_failure
from crowdgraph.io._temporary import (
    COMPLETE,
    OLD,
    PART,
    label_of,
    leftovers,
    let_go,
    locked,
    make_part,
    remove,
    remove_parts,
    sync,
    sync_tree,
)

# What Linux calls the working directory, and the exchange of two names, in renameat2.
AT_FDCWD, RENAME_EXCHANGE = -100, 2
# A folder that cannot be renamed, or not on this file system.
CANNOT_MOVE = (errno.EBUSY, errno.EXDEV, errno.EPERM, errno.EACCES)
CANNOT_EXCHANGE = (errno.ENOSYS, errno.EINVAL)


class Record(NamedTuple):
    """How a folder says which files are its own: all others are the user's.

    Attributes
    ----------
    name
        The file that lists them.
    files
        Returns the names of a folder's own files, relative to it; none if it has no list.
    """

    name: str
    files: Callable[[Path], set[str]]


@contextmanager
def new_directory(directory: str | PathLike[str], *, record: Record) -> Iterator[Path]:
    """Yield a new folder that becomes the directory once all is written; on an error nothing is left of it.

    The files of the directory that its record lists are replaced, and others stay.
    """
    target = Path(os.path.realpath(directory))
    recover(target, record)
    is_replacing = bool(record.files(target))
    new_parents = [parent for parent in target.parents if not parent.exists()]
    part, descriptor = None, -1
    is_written = False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(target.stat().st_mode) if target.is_dir() else None
        part, descriptor = make_part(
            target, lambda path: _make_folder(path, mode), folder=target if _must_stay(target) else None
        )
        yield part
        sync_tree(part)
        is_written = True
    except OSError as error:
        reason, advice = write_failure(error)
        raise StoreError(
            f"The results could not be written to {fspath(directory)!r}: {reason}. None were kept{advice}."
        ) from error
    else:
        put(part, target, record, is_replacing=is_replacing)
    finally:
        if part is not None and not is_written:
            remove(part)
        let_go(descriptor)
        for parent in new_parents:
            with suppress(OSError):
                parent.rmdir()


def put(part: Path, target: Path, record: Record, *, is_replacing: bool) -> None:
    """Make a complete folder the target.

    Parameters
    ----------
    part
        The hidden folder, beside the target or in it.
    target
        What it becomes.
    record
        How either folder lists its own files.
    is_replacing
        Whether the own files of the target are replaced; if not, all that it holds stays.
    """
    try:
        if part.parent == target:
            _move_in(part, target, record, is_replacing=is_replacing)
        else:
            _put_beside(part, target, record, is_replacing=is_replacing)
        sync(target.parent)
    except OSError as error:
        reason, _ = write_failure(error)
        rescued = _rescue(part, target)
        raise StoreError(
            f"All was written, but could not be moved to {fspath(target)!r}: {reason}. What could not is in "
            f"{fspath(rescued)!r}; move it from there."
        ) from error


def recover(target: Path, record: Record) -> None:
    """Put right what processes left that were killed while they wrote this folder: it is then the old one or the new.

    What other processes are writing at this moment is not touched.
    """
    for old in leftovers(target, OLD):
        with locked(old) as is_ours:
            if not is_ours:
                continue
            if target.exists():
                _retire(old, target, record.files(old))
            else:
                old.rename(target)
    remove_parts(target)
    for part in leftovers(target, COMPLETE, folder=target):
        with locked(part) as is_ours:
            if is_ours:
                _move_files(part, target, record, is_replacing=True)
    remove_parts(target, folder=target)


def own_files(folder: Path) -> list[str]:
    """Return the files and links in a folder and its folders, by their names relative to it.

    What a process is writing into it does not count before it is complete.
    """
    names = []
    hidden = {path.name for ending in (PART, COMPLETE) for path in leftovers(folder, ending, folder=folder)}
    for parent, folders, files in os.walk(folder):
        if hidden and Path(parent) == folder:
            folders[:] = [name for name in folders if name not in hidden]
        links = [name for name in folders if Path(parent, name).is_symlink()]
        names += [Path(parent, name).relative_to(folder).as_posix() for name in (*files, *links)]
    return names


def _make_folder(path: Path, mode: int | None) -> None:
    path.mkdir()
    if mode is not None:
        # The owner has to write into it, whoever may write into what it replaces.
        path.chmod(mode | stat.S_IRWXU)


def _must_stay(target: Path) -> bool:
    """Return whether a folder cannot be replaced by another of its name."""
    if not target.is_dir():
        return False
    with suppress(OSError):
        working = Path.cwd()
        if target in (working, *working.parents):
            return True
    return os.path.ismount(target) or not os.access(target.parent, os.W_OK | os.X_OK)


def _put_beside(part: Path, target: Path, record: Record, *, is_replacing: bool) -> None:
    try:
        # An empty folder is replaced by this, too.
        part.rename(target)
        return
    except OSError as error:
        if not target.is_dir():
            raise
        if error.errno in CANNOT_MOVE:
            _copy_in(part, target, record, is_replacing=is_replacing)
            return
    with locked(target):
        # Whichever of the two folders has this name from now on: it is the one to remove.
        old = part.with_name(part.name.removesuffix(PART) + OLD)
        part.rename(old)
        try:
            is_exchanged = _exchange(old, target)
        except OSError as error:
            old.rename(part)
            if error.errno not in CANNOT_MOVE:
                raise
            _copy_in(part, target, record, is_replacing=is_replacing)
            return
        if not is_exchanged:
            old.rename(part)
            _rename_twice(part, target, old)
        # The new folder stands; if the old one cannot be removed now, the next run tries again.
        with suppress(OSError):
            _retire(old, target, record.files(old) if is_replacing else set())


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders at once; return whether the system can."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    if renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in CANNOT_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), fspath(other))


def _rename_twice(part: Path, target: Path, old: Path) -> None:
    target.rename(old)
    try:
        part.rename(target)
    except OSError:
        old.rename(target)
        raise


def _retire(old: Path, target: Path, owned: set[str]) -> None:
    """Remove a folder that was replaced, after all in it that is not its own has moved on to the new one."""
    for parent, folders, files in os.walk(old):
        inner = Path(parent).relative_to(old)
        links = [name for name in folders if Path(parent, name).is_symlink()]
        for name in (*files, *links):
            path = Path(parent, name)
            # Links are never ours, whatever they are called.
            if path.is_symlink() or (inner / name).as_posix() not in owned:
                _set(path, target / inner, name)
        if not folders and not files and inner.parts:
            with suppress(FileExistsError, NotADirectoryError):
                (target / inner).mkdir(parents=True)
                (target / inner).chmod(stat.S_IMODE(Path(parent).stat().st_mode))
    sync(target)
    # From here on nothing in it is worth anything, so that what a kill leaves of it can go.
    last = old.with_name(f".{label_of(target)}.{os.urandom(4).hex()}{PART}")
    old.rename(last)
    remove(last)


def _set(path: Path, folder: Path, name: str) -> None:
    """Move a file into a folder; if its name is taken there, under that name with a number, as backups have it."""
    with suppress(FileExistsError, NotADirectoryError):
        folder.mkdir(parents=True, exist_ok=True)
    while not folder.is_dir():
        folder = folder.parent
    path.rename(_free(folder / name))


def _free(path: Path) -> Path:
    """Return a path if nothing is there, or else with a number behind its name, as in ``notes.txt~1~``."""
    candidate, number = path, 0
    while os.path.lexists(candidate):
        number += 1
        candidate = path.with_name(f"{path.name}~{number}~")
    return candidate


# Folders that stay


def _copy_in(part: Path, target: Path, record: Record, *, is_replacing: bool) -> None:
    """Replace the files of a folder that turned out to be none that can be renamed."""
    inside, descriptor = make_part(target, lambda path: path.mkdir(), folder=target)
    try:
        shutil.copytree(part, inside, symlinks=True, dirs_exist_ok=True)
        sync_tree(inside)
        _move_in(inside, target, record, is_replacing=is_replacing)
        remove(part)
    finally:
        remove(inside)
        let_go(descriptor)


def _move_in(part: Path, target: Path, record: Record, *, is_replacing: bool) -> None:
    """Move a complete folder's files into the folder that it lies in; once begun, the next process could finish it."""
    complete = part.with_name(part.name.removesuffix(PART) + COMPLETE)
    part.rename(complete)
    sync(target)
    _move_files(complete, target, record, is_replacing=is_replacing)


def _move_files(complete: Path, target: Path, record: Record, *, is_replacing: bool) -> None:
    # A record that somebody else wrote could name files elsewhere.
    owned = record.files(target) & set(own_files(target)) if is_replacing else set()
    new = record.files(complete)
    # Once the record has moved, too, nothing of the old files is left.
    for name in owned - new if new else ():
        if not (target / name).is_symlink():
            with suppress(OSError):
                (target / name).unlink()
                (target / name).parent.rmdir()
    for parent, folders, _ in os.walk(complete):
        for name in folders:
            folder = target / Path(parent, name).relative_to(complete)
            if os.path.lexists(folder) and not folder.is_dir():
                folder.rename(_free(folder))
            folder.mkdir(exist_ok=True)
    for name in sorted(own_files(complete), key=lambda name: (name == record.name, name)):
        path = target / name
        if os.path.lexists(path) and (name not in owned or path.is_symlink() or path.is_dir()):
            path.rename(_free(path))
        (complete / name).replace(path)
    sync_tree(target)
    remove(complete)


def _rescue(part: Path, target: Path) -> Path:
    """Give complete work a visible name that the next run does not take for left over; return where it is."""
    source = next(
        (path for ending in (PART, OLD, COMPLETE) if (path := part.with_name(part.stem + ending)).exists()), part
    )
    visible = _free(source.with_name(f"{label_of(target)}.new"))
    try:
        source.rename(visible)
    except OSError:
        return source
    return visible
