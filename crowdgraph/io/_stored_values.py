"""Check values of files that a stranger may have written, before results are made of them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array, lock

# The kinds of arrays that files hold, as NumPy calls them: truth values, numbers, times and text.
ARRAY_KINDS = "biufcmMSU"
# The plain types of fields, by the names by which annotations call them.
PLAIN_TYPES: dict[str, Any] = {
    "bool": bool,
    "int": int,
    "float": (int, float),
    "str": str,
    "tuple": tuple,
    "Array": np.ndarray,
    "Mapping": Mapping,
    "Inference": str,
    "ClockKind": str,
}
PARTS = re.compile(r"\w+")
# How the headers of NumPy files are read, by their version; later versions are for types that are not written.
NPY_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_npy(content: bytes) -> Array:
    """Return an array from the content of a NumPy file, in the byte order of this machine.

    Nothing is allocated before the header and the size of the content are known to agree.
    """
    file = io.BytesIO(content)
    read_header = NPY_HEADERS[np.lib.format.read_magic(file)]
    shape, is_fortran, dtype = read_header(file)
    if dtype.kind not in ARRAY_KINDS or not dtype.itemsize:
        raise ValueError(f"an array is of type {dtype}")
    n_values = 1
    for size in shape:
        n_values *= size
    if min(shape, default=0) < 0 or n_values * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"an array of shape {shape} has {len(content) - file.tell():,} bytes")
    values = np.frombuffer(content, dtype, n_values, file.tell()) if n_values else np.zeros(0, dtype)
    array = values.reshape(shape, order="F" if is_fortran else "C")
    return lock(np.array(array, dtype=dtype.newbyteorder("="), order="C"))


def check_stored_fields(kind: type, values: Mapping[str, Any], stored: Iterable[type]) -> None:
    """Raise unless the fields of a stored result are of the types that its class names.

    Parameters
    ----------
    kind
        The class.
    values
        The fields that the file holds.
    stored
        The classes that fields may be of, beside plain types.
    """
    classes = {one.__name__: one for one in stored}
    declared = {field.name: str(field.type) for field in fields(kind) if field.metadata.get("saved", True)}
    for name, value in values.items():
        words = PARTS.findall(declared[name])
        known = [{**PLAIN_TYPES, **classes}[word] for word in words if word in PLAIN_TYPES or word in classes]
        # What has no name here, such as a sparse array, is for the class to check.
        if not known or "csr_array" in words or (value is None and "None" in words):
            continue
        if not isinstance(value, known[0]) or (isinstance(value, bool) and known[0] is not bool):
            raise ValueError(f"{name} of a {kind.__name__} is a {type(value).__name__}")
        if known[0] is tuple and words[1] in classes and not all(isinstance(part, known[1]) for part in value):
            raise ValueError(f"{name} of a {kind.__name__} holds values other than {words[1]}")
