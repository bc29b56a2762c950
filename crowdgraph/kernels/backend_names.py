"""The words that the settings `backend` and `dtype` can be; importing them loads neither torch nor compiled code."""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["BACKENDS", "PRECISIONS", "BackendName", "Precision"]

BackendName = Literal["auto", "compiled", "torch"]
Precision = Literal["float64", "float32"]
BACKENDS: tuple[str, ...] = get_args(BackendName)
PRECISIONS: tuple[str, ...] = get_args(Precision)
