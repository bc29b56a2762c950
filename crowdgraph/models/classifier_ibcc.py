"""IBCC with a classifier of the items' features as the prior of each item's class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import converted, integer, is_integer, non_negative, positive, precision, setting
from crowdgraph.core._progress import progress_bar
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import ParameterError, UntrainedClassifierWarning, warn
from crowdgraph.kernels.backend_names import PRECISIONS, Precision
from crowdgraph.messages import Hint, Message, argument
from crowdgraph.models._priors import (
    CROWD,
    ClassPrior,
    ConfusionPrior,
    crowd_prior,
    normalise_class_prior,
    normalise_confusion_prior,
    volunteer_priors,
)
from crowdgraph.models.base import Model
from crowdgraph.models.ibcc import IBCC
from crowdgraph.models.label_votes import Votes, check_mapping, vote_codes

if TYPE_CHECKING:
    from crowdgraph.models._classifier_rounds import Outcome
    from crowdgraph.models._crowd_prior import LearnedPrior

__all__ = ["ClassifierIBCC"]

LINEAR, AUTO = "linear", "auto"
# Pseudo-counts of equal class proportions which answers do not move.
HELD_PROPORTIONS = 1e6


def _check_classifier(name: str, value: Any) -> None:
    """Raise unless a classifier is a word that is known, a module or a function."""
    if isinstance(value, str) or not callable(value):
        raise ParameterError(
            argument(name, value) + f" must be {LINEAR!r}, a torch.nn.Module from features to logits, or a function "
            "of the numbers of features and classes that returns one."
        )


def _check_batch_size(name: str, value: Any) -> None:
    if not is_integer(value) or value < 1:
        raise ParameterError(argument(name, value) + f" must be a whole number from 1 up, or {AUTO!r}.")


def _check_callable(name: str, value: Any) -> None:
    if not callable(value):
        raise ParameterError(
            argument(name, value) + " must be a function of parameters that returns a torch optimiser.",
            hint="Such as optimiser=lambda parameters: torch.optim.SGD(parameters, lr=0.1).",
        )


@dataclass(frozen=True, eq=False, repr=False)
class ClassifierIBCC(Model):
    r"""IBCC in which a classifier of the items' features takes the part of the class proportions.

    The prior of each item's class is :math:`\text{softmax}(f(x_i))`, with `f` a network of your choice and `x` the
    item's features. Answers teach the network, and the network says how good volunteers are and what items are, also
    those that nobody answered:

    .. math::
        \ln \rho_{ij} = \ln \text{softmax}(f(x_i))_j + \sum_{\text{answers about } i} E[\ln \pi^{(k)}_{j, \text{label}}]

    A fit starts from that of `IBCC`. In each round, the classifier is trained for some epochs on the bound given the
    volunteers' confusion, in mini-batches; then classes and confusion follow in closed form, given the classifier.

    A network that was trained on an item repeats what the item's answers say, and as its prior would count them twice.
    Therefore items are split in `folds`, and the prior of each comes from a copy that was trained on the others. The
    bound, with these priors, is then an honest judge: a round that does not raise it is not used, and the fit ends
    after two such rounds. If no round raises it, the features do not help, and the fit is that of IBCC. At last the
    classifier is trained on the resulting class probabilities of all items, for as many epochs; it is in
    ``fit.classifier``, and predicts the items that have neither answers nor gold.

    Parameters
    ----------
    classifier
        A ``torch.nn.Module`` from features to J logits, in the order of ``graph.classes``; it is copied, and
        training starts from its present weights. Or a function of the numbers of features and classes that returns
        one. Or ``"linear"``: multinomial logistic regression on standardised features.
    features
        The items' features: the name of an item attribute, or several; an array or tensor with a row for each item, in
        the order of ``graph.items``; a mapping from item ids to rows; a function of a list of item ids that returns
        rows; or a torch ``Dataset`` with an entry for each item. They are held in memory.
    confusion_prior, class_prior, votes
        As for `IBCC`; the prior of the classes is that of the IBCC from which the fit starts.
    folds
        In how many parts items are split, so that none has a prior from a classifier that was trained on it. 1 trains
        one classifier on all items and uses it as their prior, which is faster, and too sure of itself.
    epochs, batch_size
        How often a round goes over all items, and how many items a batch has: a tenth of them if left out, but from 16
        to 256.
    learning_rate, weight_decay
        Those of AdamW.
    optimiser
        Another optimiser: a function of parameters that returns one of ``torch.optim``. L-BFGS needs a line search,
        ``line_search_fn="strong_wolfe"``, and a `batch_size` of all items.
    max_rounds, min_gain
        When to stop: after so many rounds, or after two that raise the bound by less than this, in nats for each item
        with answers or gold.
    max_iter, tol
        When the sweeps of a round end, as for `IBCC`.
    device, dtype
        Where to compute, such as ``"cuda"``, and the precision of everything but the classifier, which has its own.

    Examples
    --------
    >>> import numpy as np
    >>> import crowdgraph as cg
    >>> crowd = cg.simulate.crowd(n_volunteers=20, n_items=100, n_responses=200, gold=0, seed=0)
    >>> noise = np.random.default_rng(0).normal(size=(100, 2))
    >>> features = noise + 3 * crowd.truth.classes[:, None]
    >>> fit = cg.ClassifierIBCC("linear", features=features).fit(crowd.graph, seed=0)
    >>> plain = cg.IBCC().fit(crowd.graph)
    >>> right, before = ((one.item_probs.argmax(axis=1) == crowd.truth.classes).mean() for one in (fit, plain))
    >>> bool(right > before)
    True
    >>> fit.classifier
    Sequential(
      (0): Standardised()
      (1): Linear(in_features=2, out_features=2, bias=True)
    )
    """

    name: ClassVar[str] = "classifier_ibcc"

    classifier: Any = setting(LINEAR, _check_classifier)
    _: KW_ONLY
    features: Any = None
    confusion_prior: ConfusionPrior = converted(CROWD, normalise_confusion_prior)
    class_prior: ClassPrior = converted(None, normalise_class_prior)
    votes: Votes | None = setting(None, check_mapping)
    folds: int = integer(5)
    epochs: int = integer(5)
    batch_size: int | str = setting(AUTO, _check_batch_size)
    learning_rate: float = positive(0.01)
    weight_decay: float = non_negative(0.01)
    optimiser: Callable[[Any], Any] | None = setting(None, _check_callable)
    max_rounds: int = integer(50)
    min_gain: float = non_negative(1e-3)
    max_iter: int = integer(1_000, minimum=2)
    tol: float = positive(1e-5)
    device: str = converted("cpu", str)
    dtype: Precision = precision("float64", PRECISIONS)

    # Models with other networks or features are others, and networks cannot be compared.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def _check_settings(self) -> None:
        if self.features is None:
            raise ParameterError(
                "ClassifierIBCC needs features=, from which its classifier predicts the classes of items.",
                hint="Give the name of an item attribute, an array with a row for each item, a mapping from item ids, "
                "a function of item ids, or a torch Dataset; without features, use IBCC.",
            )

    def settings(self) -> dict[str, Any]:
        """Return the model's settings by name; networks, features and functions as text."""
        named = {
            "classifier": self.classifier if isinstance(self.classifier, str) else _described(self.classifier),
            "features": _described_features(self.features),
            "optimiser": None if self.optimiser is None else _described(self.optimiser),
        }
        return {name: named.get(name, value) for name, value in super().settings().items()}

    def warm_up(self, graph: CrowdGraph) -> None:
        """Compile, or load from disk, what IBCC needs."""
        self._ibcc().warm_up(graph)

    def _fit(self, graph: CrowdGraph, *, seed: int | None, start: ModelFit | None, progress: bool) -> ModelFit:
        from crowdgraph.kernels.backends import choose_backend
        from crowdgraph.models._classifier_rounds import Sweeps, Training
        from crowdgraph.models._classifiers import seeded
        from crowdgraph.models._features import feature_rows

        backend = choose_backend("torch", device=self.device, dtype=self.dtype)
        rows = feature_rows(self.features, graph)
        beginning = self._beginning(graph, start, seed=seed)
        with (
            seeded(seed, backend.device) as generator,
            progress_bar("ClassifierIBCC", visible=progress, unit="rounds") as bar,
        ):
            training = Training(self, graph, rows, backend, generator)
            sweeps = Sweeps(graph, beginning.confusion_prior, backend, max_iter=self.max_iter, tol=self.tol)
            state = sweeps.settle(sweeps.counted(beginning.item_probs), beginning.class_logs(training.n_items))
            outcome = training.rounds(
                sweeps, state, on_round=lambda bound: (bar.set_postfix(bound=bound), bar.update())
            )
            classifier = training.final_classifier(outcome)
            probs = training.item_probs(outcome, classifier)
        return self._summarise(graph, beginning, outcome, probs, classifier, backend.facts(), seed=seed)

    def _ibcc(self, **settings: Any) -> IBCC:
        names = ("confusion_prior", "class_prior", "votes", "max_iter", "tol")
        return IBCC(**{**{name: getattr(self, name) for name in names}, **settings})

    def _beginning(self, graph: CrowdGraph, start: ModelFit | None, *, seed: int | None) -> _Beginning:
        """Return the class probabilities to start from, and the priors."""
        from crowdgraph.models._crowd_prior import learn_prior

        prior = crowd_prior(graph, self.confusion_prior, self.class_prior, self.votes)
        model = self._ibcc()
        if start is None:
            fit = model._fit(graph, seed=seed, start=None, progress=False)
            if _has_lost_classes(graph, fit, self.votes):
                model = self._ibcc(class_prior=HELD_PROPORTIONS)
                fit = model._fit(graph, seed=seed, start=None, progress=False)
        else:
            fit = start
        learned = None
        if self.confusion_prior == CROWD:
            # As IBCC does: from a first fit with a mild prior.
            first = (
                fit
                if start is not None
                else replace(model, confusion_prior=prior)._fit(graph, seed=seed, start=None, progress=False)
            )
            learned = learn_prior(
                graph, first.item_probs, votes=self.votes, class_concentration=prior.class_concentration
            )
        return _Beginning(fit, prior if learned is None else learned.newcomers, prior, learned, graph)

    def _summarise(
        self,
        graph: CrowdGraph,
        beginning: _Beginning,
        outcome: Outcome,
        probs: Array,
        classifier: Any,
        facts: dict[str, str],
        *,
        seed: int | None,
    ) -> ModelFit:
        """Return the fit in which the rounds ended."""
        class_concentration = beginning.prior.class_concentration + probs.sum(axis=0)
        class_probs = class_concentration / class_concentration.sum()
        return self._result(
            graph,
            seed=seed,
            item_probs=probs,
            class_probs=class_probs,
            class_concentration=class_concentration,
            confusion=ConfusionTrack.static(
                ids=graph.volunteers.ids,
                concentration=self._confusion(graph, beginning, probs, class_probs),
                classes=graph.classes,
                labels=graph.labels,
            ),
            prior=beginning.prior,
            bound=np.array(outcome.bounds),
            converged=outcome.converged,
            n_iter=outcome.n_rounds,
            diagnostics={
                "start": beginning.fit.model,
                "classifier": {"rounds_used": outcome.best_round, "folds": self.folds, "epochs": outcome.epochs},
                "change": outcome.change,
                **beginning.facts(),
                **facts,
            },
            classifier=classifier,
        )

    def _confusion(self, graph: CrowdGraph, beginning: _Beginning, probs: Array, class_probs: Array) -> Array:
        """Return the volunteers' confusion as concentrations, (K, J, L); widened as IBCC's if the prior is learned."""
        from crowdgraph.core.answers import expected_counts
        from crowdgraph.models._crowd_prior import honest_concentration
        from crowdgraph.models.label_votes import vote_mask

        if beginning.learned is None:
            return np.asarray(beginning.confusion_prior + expected_counts(graph, probs))
        return honest_concentration(
            graph,
            beginning.learned.own,
            probs,
            is_correct=vote_mask(graph, self.votes),
            class_probs=class_probs,
            learned=beginning.learned,
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"ClassifierIBCC({shown})"

    def _warn_about(self, fit: ModelFit, graph: CrowdGraph) -> None:
        super()._warn_about(fit, graph)
        trains = any(one.requires_grad for one in fit.classifier.parameters())
        if trains and not fit.diagnostics["classifier"]["rounds_used"]:
            warn(
                "The classifier has not learned anything that explains the answers better, so that the fit is that of "
                "IBCC: items without answers have the proportions of the classes, and fit.classifier is of no use.",
                UntrainedClassifierWarning,
                hint="If features say something about the classes, bring them to a common scale near 1, change "
                "learning_rate, or raise epochs.",
            )

    def _convergence_message(self, fit: ModelFit) -> Message:
        return Message(
            f"ClassifierIBCC did not converge in {fit.n_iter:,} rounds: the bound still rose by more than "
            f"min_gain={self.min_gain:g} nats for each item. "
        ) + Hint("Raise max_rounds, or epochs, or learning_rate; or min_gain if that is accurate enough.")


class _Beginning(NamedTuple):
    """Where a fit begins: an earlier fit, the priors of newcomers and of all volunteers, and what the crowd taught."""

    fit: ModelFit
    prior: CrowdPrior
    first_prior: CrowdPrior
    learned: LearnedPrior | None
    graph: CrowdGraph

    @property
    def item_probs(self) -> Array:
        return self.fit.item_probs

    @property
    def confusion_prior(self) -> Array:
        """The prior concentration of the volunteers' confusion, (1 or K, J, L)."""
        return volunteer_priors(self.first_prior, self.graph) if self.learned is None else self.learned.own

    def class_logs(self, n_items: int) -> Array:
        """Return the prior of all items before there is a classifier, from the proportions of the classes, (N, J)."""
        from scipy.special import digamma, log_softmax

        concentration = self.prior.class_concentration + self.item_probs.sum(axis=0)
        if self.fit.class_concentration is not None:
            concentration = self.fit.class_concentration
        return np.tile(log_softmax(digamma(concentration)), (n_items, 1))

    def facts(self) -> dict[str, Any]:
        from crowdgraph.models._crowd_prior import weights_to_facts

        return {} if self.learned is None else {"crowd_prior": weights_to_facts(self.learned.weights)}


def _has_lost_classes(graph: CrowdGraph, fit: ModelFit, votes: Votes | None) -> bool:
    """Return whether no more than half of the classes that answers vote for are the most probable one of any item.

    With an answer or so to each item nothing stops the class proportions of IBCC from running towards one class.
    """
    if votes is None and not set(graph.labels) <= set(graph.classes):
        return False
    voted = vote_codes(graph, votes)[graph.answers.label]
    n_voted = len(np.unique(voted[voted >= 0]))
    return n_voted > 1 and 2 * len(np.unique(fit.item_probs.argmax(axis=1))) <= n_voted


def _described(part: Any) -> str:
    """Return a name of a network or a function, as a saved fit holds it."""
    return str(getattr(part, "__name__", type(part).__name__))


def _described_features(features: Any) -> Any:
    """Return names of attributes as they are, and anything else in words."""
    if isinstance(features, str):
        return features
    if isinstance(features, list | tuple) and all(isinstance(name, str) for name in features):
        return list(features)
    shape = getattr(features, "shape", None)
    return _described(features) if shape is None else f"{_described(features)} of shape {tuple(shape)}"
