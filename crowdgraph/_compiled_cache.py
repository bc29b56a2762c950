"""Where compiled code is kept between runs; imported before any code is compiled.

numba writes it beside the sources or into the user's cache directory, and raises where it can write to neither, as in
containers and batch systems without a home. Compiled code then goes into a private directory for temporary files. It
also raises where a disk or a quota is full: then what it compiled is used, and not kept.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path

# The directories of this package that hold code to be compiled.
SOURCES = tuple(Path(__file__).parent / name for name in ("kernels", "io"))


@cache
def ensure_cache() -> None:
    """Let numba keep compiled code in a temporary directory, or nowhere, where it could keep it in no usual place."""
    _go_on_without_space()
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen and _is_writable(Path(chosen)):
        return
    if all(_is_writable(folder / "__pycache__") for folder in SOURCES) or _is_writable(_user_cache()):
        return
    folder = _private_folder()
    if folder is None:
        _keep_nothing()
    else:
        os.environ["NUMBA_CACHE_DIR"] = str(folder)
        if "numba" in sys.modules:
            from numba import config

            config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    where = "nowhere, so that each run compiles anew" if folder is None else f"in {folder}"
    sys.stderr.write(
        f"crowdgraph: neither its own directory nor a home can be written to, so compiled code is kept {where}. Set "
        "NUMBA_CACHE_DIR to a directory that can be written to.\n"
    )


def _go_on_without_space() -> None:
    """Let functions of this package run where a full disk or quota keeps numba from writing what it compiled."""
    from numba.core.caching import Cache

    save = Cache.save_overload

    def save_if_possible(self: Cache, sig: object, data: object) -> None:
        try:
            save(self, sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            if not self._py_func.__module__.startswith("crowdgraph."):
                raise
            _note_lack_of_space(error.strerror or str(error))

    Cache.save_overload = save_if_possible  # type: ignore[method-assign]


@cache
def _note_lack_of_space(reason: str) -> None:
    """Write once to the error stream that compiled code is not kept."""
    sys.stderr.write(
        f"crowdgraph: compiled code cannot be kept ({reason}), so each run compiles anew. Free some space, or set "
        "NUMBA_CACHE_DIR to a directory that has some.\n"
    )


def _user_cache() -> Path:
    """Return where numba keeps compiled code of sources that cannot be written to; a path that is none without a home.

    It asks the system for the home, where the environment does not say.
    """
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "numba"
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Caches")) / "numba"  # noqa: PTH111 - as numba does
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "numba"  # noqa: PTH111


def _is_writable(folder: Path) -> bool:
    """Return whether files can be written to a directory, or to one that would be made there."""
    if not folder.is_absolute():
        return False
    existing = next(one for one in (folder, *folder.parents) if os.path.lexists(one))
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def _private_folder() -> Path | None:
    """Return a directory for temporary files that nobody else can write to, the same in each run, or None.

    Compiled code is pickled: what another user left there would be run.
    """
    try:
        owner = os.getuid() if hasattr(os, "getuid") else 0
        folder = Path(tempfile.gettempdir()) / f"crowdgraph-{owner}"
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
        if stat.S_ISDIR(facts.st_mode) and facts.st_uid == owner and not stat.S_IMODE(facts.st_mode) & 0o077:
            return folder
        return Path(tempfile.mkdtemp(prefix="crowdgraph-"))
    except OSError:
        return None


def _keep_nothing() -> None:
    """Let functions be compiled that ask for a place which is not there."""
    from numba.core.dispatcher import Dispatcher

    Dispatcher.enable_caching = lambda _: None  # type: ignore[method-assign, assignment]
