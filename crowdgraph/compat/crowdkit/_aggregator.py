"""The base class of crowd-kit's aggregators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

from crowdgraph.errors import ParameterError
from crowdgraph.io._columns import import_optional
from crowdgraph.messages import quote

if TYPE_CHECKING:
    import pandas as pd


class Aggregator(ABC):
    """What all aggregators share: `fit` and predict in one call, and settings that scikit-learn can read.

    Attributes
    ----------
    labels_
        The most probable label of each task: a series named ``agg_label``, by ``task``.
    probas_
        The probability of each label (columns) of each task (index).
    """

    labels_: pd.Series[Any]
    probas_: pd.DataFrame

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({settings})"

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_"):
            raise AttributeError(
                f"This {type(self).__name__} has no {name!r}; call fit(data) first, or see vars(...) for what it has."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @abstractmethod
    def fit(self, data: pd.DataFrame) -> Self:
        """Aggregate the labels of a table, and return this aggregator with the results as attributes."""

    def fit_predict(self, data: pd.DataFrame, *args: Any, **kwargs: Any) -> pd.Series[Any]:
        """Return the most probable label of each task; arguments are those of `fit`."""
        return self.fit(data, *args, **kwargs).labels_

    def fit_predict_proba(self, data: pd.DataFrame, *args: Any, **kwargs: Any) -> pd.DataFrame:
        """Return the probability of each label (columns) of each task (index); arguments are those of `fit`."""
        return self.fit(data, *args, **kwargs).probas_

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002 - scikit-learn's signature
        """Return the settings by name, as scikit-learn's ``clone`` reads them."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change settings, and return this aggregator."""
        unknown = [name for name in params if name not in self.get_params()]
        if unknown:
            raise ParameterError(
                f"{type(self).__name__} has no setting {unknown[0]!r}; its settings are {quote(self.get_params())}."
            )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def _set_probas(self, probas: pd.DataFrame) -> None:
        """Set the probabilities and what follows from them; of equally probable labels, the first one is taken."""
        self.probas_ = probas
        self.labels_ = probas.idxmax(axis="columns") if probas.size else import_optional("pandas").Series(dtype=float)
        self.labels_ = self.labels_.rename("agg_label")
