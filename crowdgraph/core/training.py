"""Who would gain from training, and from whom they could learn."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdgraph.core.columns import Array, Sealed, object_array, read_only
from crowdgraph.core.result import Columns, Tabular, real_array, unique_ids
from crowdgraph.errors import ResultError

__all__ = ["TrainingPlan"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingPlan(Sealed, Tabular):
    """Volunteers who would gain from training, those who would gain most first, and from whom they could learn.

    Attributes
    ----------
    volunteers
        Their ids, of shape (M,).
    community
        The community of each, of shape (M,); -1 for none.
    information
        How much a label of each tells about an item of average class, in nats, of shape (M,).
    better
        The community from which each could learn, of shape (M,); it may be their own.
    gain
        How much more a label would tell, in nats, if they answered as that community does on average, of shape (M,).
    n_responses
        How many answers each gave, of shape (M,): how much the gain would matter, and how surely it is known.
    teachers
        For each, the members of the better community to learn from, the best first; it may be nobody.
    common
        For each of these, how many items both answered.
    """

    volunteers: Array
    community: Array
    information: Array
    better: Array
    gain: Array
    n_responses: Array
    teachers: Sequence[Sequence[Hashable]]
    common: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        volunteers = unique_ids(self.volunteers, kind="volunteer")
        checked: dict[str, Any] = {"volunteers": volunteers}
        for name in ("information", "gain"):
            checked[name] = real_array(name, getattr(self, name), shape=(len(volunteers),))
        for name in ("community", "better", "n_responses"):
            checked[name] = read_only(getattr(self, name), dtype=np.int64)
        for name in ("teachers", "common"):
            checked[name] = tuple(map(tuple, getattr(self, name)))
        lengths = {name: len(values) for name, values in checked.items()}
        if len(set(lengths.values())) > 1:
            raise ResultError(f"A training plan needs as many values as volunteers; got {lengths}.")
        if list(map(len, checked["teachers"])) != list(map(len, checked["common"])):
            raise ResultError("A training plan needs a number of common items for each teacher.")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.volunteers)

    def _columns(self) -> Columns:
        """One row for each volunteer; teachers, and how many items they have in common, as text."""
        numbers = ("community", "information", "better", "gain", "n_responses")
        lists = ("teachers", "common")
        return {
            "volunteer": self.volunteers,
            **{name: getattr(self, name) for name in numbers},
            **{name: object_array(", ".join(map(str, row)) for row in getattr(self, name)) for name in lists},
        }

    def __repr__(self) -> str:
        taught = sum(map(bool, self.teachers))
        most = f"; at most {self.gain.max():.3g} nats more for each label" if len(self) else ""
        return f"TrainingPlan({len(self):,} volunteers would gain, {taught:,} of them have teachers{most})"
