"""Tables as files, whole or not at all."""

from __future__ import annotations

from os import fspath
from pathlib import Path
from typing import Any

from crowdgraph.errors import ParameterError, StoreError

__all__ = ["check_file", "check_new", "write_table"]


def check_file(path: Path, endings: tuple[str, ...]) -> str:
    """The ending of a file's name, of those that can be written; raise for others, before any work is done."""
    if path.parent.is_file():
        raise StoreError(f"{str(path.parent)!r} is a file, so nothing can be written into it; name a directory.")
    ending = next((ending for ending in endings if path.name.lower().endswith(ending)), None)
    if ending is None:
        raise ParameterError(f"{str(path)!r} must end in {', '.join(endings)}, which says what to write.")
    if path.is_dir():
        raise StoreError(f"{str(path)!r} is a directory; give the path of a file.")
    if not path.parent.is_dir():
        raise StoreError(f"There is no directory {str(path.parent)!r}; make it first.")
    return ending


def check_new(*paths: Path | None, force: bool) -> None:
    """Raise if one of the files to write is there already, unless it may be replaced; None is no file."""
    there = [path for path in paths if path is not None and path.exists()]
    if there and not force:
        raise StoreError(f"{str(there[0])!r} is there already; name another file, or use force to replace it.")


def write_table(table: Any, path: Path) -> None:
    """Write an Arrow table as CSV, compressed CSV or Parquet, by the file's name."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    from crowdgraph.io.files import replacing

    with replacing(path) as part:
        if path.name.lower().endswith(".parquet"):
            pq.write_table(table, fspath(part))
        else:
            packed = "gzip" if path.name.lower().endswith(".gz") else None
            with pa.output_stream(fspath(part), compression=packed) as stream:
                pa_csv.write_csv(table, stream)
