"""ForwardState, in which the filter of a dynamic model ended: from it, later responses can be filtered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays, id_array, read_only
from crowdgraph.core.clock import is_finite
from crowdgraph.core.result import VolunteerIndexed, real_array, unique_ids
from crowdgraph.errors import ResultError

__all__ = ["ForwardState"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ForwardState(ReadOnlyArrays, VolunteerIndexed):
    """What the filter of `DynIBCC` knows of volunteers after their last response, and nothing but their responses.

    ``fit.forward`` holds it, and `ModelFit.as_prior` passes it on: a fit of later responses with that prior filters on
    from there.

    Attributes
    ----------
    ids
        The volunteers who have responded, K of them.
    mean
        The log odds of giving each label to items of each class, of shape (K, L, J).
    covariance
        Their variances, of shape (K, L, J); as published, their covariances, of shape (K, L, J, J).
    noise
        The variance that the log odds gain before the next response because of the last one, of shape (K, L).
    times
        When they last responded, of shape (K,).
    """

    ids: Array
    mean: Array
    covariance: Array
    noise: Array
    times: Array

    def __post_init__(self) -> None:
        ids = unique_ids(self.ids, kind="volunteer")
        mean = real_array("mean", self.mean, shape=(len(ids), None, None))
        squares = (mean.shape[2],) if np.ndim(self.covariance) > mean.ndim else ()
        self._set(
            ids=ids,
            mean=mean,
            covariance=real_array("covariance", self.covariance, shape=(*mean.shape, *squares)),
            noise=real_array("noise", self.noise, shape=mean.shape[:2]),
            times=read_only(self.times),
        )
        if not (self.variance > 0).all() or not (self.noise >= 0).all():
            raise ResultError(
                "Variances of a forward state must be positive and noise must not be negative; the smallest are "
                f"{self.variance.min():g} and {self.noise.min():g}."
            )
        if self.times.shape != (len(ids),):
            raise ResultError(f"times has shape {self.times.shape}; expected ({len(ids)},), one for each volunteer.")
        if self.times.dtype.kind not in "ifM" or not is_finite(self.times):
            raise ResultError(f"times of {self.times.dtype} must be finite numbers or datetimes.")

    @property
    def variance(self) -> Array:
        """The variances of the log odds, of shape (K, L, J)."""
        if self.covariance.ndim == self.mean.ndim:
            return self.covariance
        return np.asarray(self.covariance.diagonal(axis1=-2, axis2=-1))

    def joined(self, other: ForwardState | None) -> ForwardState:
        """Return these volunteers, and those of another state of the same kind who are not among them."""
        if (
            other is None
            or other.covariance.ndim != self.covariance.ndim
            or other.times.dtype.kind != self.times.dtype.kind
        ):
            return self
        rows = [row for row, volunteer in enumerate(other.ids.tolist()) if volunteer not in self.table]
        parts = {
            name: np.concatenate([getattr(self, name), getattr(other, name)[rows]])
            for name in ("mean", "covariance", "noise", "times")
        }
        return ForwardState(ids=id_array([*self.ids.tolist(), *other.ids[rows].tolist()]), **parts)

    def __deepcopy__(self, memo: dict[int, Any]) -> ForwardState:
        return self

    def __repr__(self) -> str:
        return f"ForwardState({len(self.ids):,} volunteers)"
