"""How much text of Parquet files unpacks to: a long text that a file holds once can stand in any number of rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# How much of a column is read at once; Arrow's own read-ahead would hold the whole file.
BUFFER_BYTES = 2**20


def repeated_text(source: Any, footer: pq.FileMetaData, *, limit: int) -> int:
    """Return to how many bytes text unpacks that a Parquet file holds once and repeats; 0 where that cannot be much.

    Parameters
    ----------
    source
        The path of the file, or its content.
    footer
        What its end says about it.
    limit
        What is allowed; beyond it nothing is counted.
    """
    n_bytes = 0
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    for index in range(footer.num_columns if groups else 0):
        column, chunks = footer.schema.column(index), [group.column(index) for group in groups]
        # Most files meet neither bound, and the first is known without reading anything.
        bound = sum(chunk.num_values * chunk.total_uncompressed_size for chunk in chunks)
        most = limit // footer.num_columns
        if column.physical_type != "BYTE_ARRAY" or bound <= most:
            continue
        with pq.ParquetFile(source, read_dictionary=[column.path], buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
            longest = [_longest_text(file, column.path, group) for group in range(len(groups))]
            bound = sum(chunk.num_values * length for chunk, length in zip(chunks, longest, strict=True))
            if bound > most and column.path == column.name:
                batches = file.iter_batches(columns=[column.path])
                bound = 0
                while bound <= limit and (batch := next(batches, None)):
                    text = batch.column(0)
                    bound += pc.sum(pc.binary_length(text.dictionary).take(text.indices)).as_py() or 0
            # Of lists and records Arrow does not read the codes of all rows: what they may unpack to counts.
            n_bytes += bound if bound > most else 0
    return n_bytes


def _longest_text(file: pq.ParquetFile, path: str, group: int) -> int:
    """Return the length of the longest text that codes in a group of rows can name: all come before its rows."""
    batch = next(file.iter_batches(1, row_groups=[group], columns=[path]), None)
    if batch is None:
        return 0
    text = batch.column(0)
    while pa.types.is_nested(text.type):
        text = text.field(0) if pa.types.is_struct(text.type) else text.values
    # Decimal numbers may be stored like text, but are not read as codes.
    if not pa.types.is_dictionary(text.type):
        return 0
    return pc.max(pc.binary_length(text.dictionary)).as_py() or 0
