"""DynIBCC over steps that pass block by block, from a store larger than memory, and over those of several processes.

A block has the steps of consecutive volunteers. A pass filters and smooths one block after the other and adds up what
their answers say about the items (eq:DynVB_lnqstar_ti), so that nothing as long as the steps is held but for a block.
Where several processes share the volunteers, each then updates its share of the items, from the sums of all, and they
exchange the class probabilities. Answers are added one volunteer after the other, however they are cut into blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from crowdgraph.kernels.dglm import Scan
from crowdgraph.kernels.dynibcc import MAX_CHOICE_STEPS, DynamicVB, ItemFeedback, Likelihood, _Part, draw_volunteers
from crowdgraph.kernels.ranks import Ranks
from crowdgraph.tensors.devices import limits_of, most_precise, total
from crowdgraph.tensors.dirichlet import dirichlet_divergence, expected_log
from crowdgraph.tensors.dynibcc import LastStates, Stage, Steps
from crowdgraph.tensors.ibcc import item_posteriors

__all__ = ["BlockwiseVB", "StepBlock", "StepBlocks"]

# Items that are updated together, so that temporary tensors stay small.
ITEMS_TOGETHER = 2**16


class StepBlock(NamedTuple):
    """The steps of consecutive volunteers, and the kernels for them.

    Attributes
    ----------
    volunteers, rows
        The volunteers, and their steps among all.
    steps, scan, likelihood
        The steps, counted from the first of the block, and what runs on them. Items cannot be updated from the
        likelihood.
    """

    volunteers: slice
    rows: slice
    steps: Steps
    scan: Scan
    likelihood: Likelihood


class StepBlocks(Protocol):
    """All steps of a process, as blocks.

    Attributes
    ----------
    starts
        Where each volunteer's steps begin, of shape (K + 1,).
    """

    starts: Tensor

    def __iter__(self) -> Iterator[StepBlock]:
        """Yield the blocks; each may leave memory when the next one is asked for."""
        ...

    def first_steps(self, volunteers: Tensor, lengths: Tensor) -> Steps:
        """Return so many of the first steps of some volunteers."""
        ...

    def kernels(self, steps: Steps, prior: Tensor | LastStates) -> tuple[Scan, Likelihood]:
        """Return the kernels for some steps from a prior, (1 or n, J, L)."""
        ...

    def rows_for_all(self, *shape: int) -> Tensor:
        """Return room for a table of a shape at every step, in double precision; a file may hold it."""
        ...

    def release(self, rows: slice) -> None:
        """Take rows of the last such table out of memory, if a file holds them."""
        ...


class BlockwiseVB(DynamicVB):
    """Variational Bayes for DynIBCC whose passes go through blocks of volunteers; see `DynamicVB`.

    Parameters
    ----------
    blocks
        The steps of this process.
    class_prior, probs, fixed, stage
        As for `DynamicVB`; of all items.
    ranks
        The processes that share the volunteers.
    shares
        The items that each of them updates.
    """

    def __init__(
        self,
        blocks: StepBlocks,
        *,
        class_prior: Tensor,
        probs: Tensor,
        fixed: Tensor,
        stage: Stage,
        ranks: Ranks,
        shares: Sequence[range],
    ) -> None:
        self.probs, self._fixed = probs, fixed
        self._blocks, self._class_prior, self._stage = blocks, class_prior, stage
        self._ranks, self._shares = ranks, shares
        self._own = slice(shares[ranks.rank].start, shares[ranks.rank].stop)
        precision = torch.float64 if limits_of(probs.device).float64 else probs.dtype
        self._log_weights = torch.zeros(probs.shape, dtype=precision, device=probs.device)
        self.n_visited = 0

    @property
    def own_probs(self) -> Tensor:
        """See `DynamicVB`."""
        return self.probs[self._own]

    def all_reduce(self, sums: Tensor) -> Tensor:
        """See `DynamicVB`."""
        return self._ranks.total(sums)

    def exchange(self) -> None:
        """See `DynamicVB`."""
        self._ranks.spread_rows(self.probs, self._shares)

    def __call__(self, noise_scale: float, *, damping: float = 0.0, n_ahead: int = 0) -> float:
        """Pass once; see `DynamicVB`."""
        # Of the other processes' items it is not known yet how they were extrapolated.
        self.exchange()
        class_logs = expected_log(self.classes, axis=0)
        feedback = ItemFeedback.of(self.probs, self._fixed) if n_ahead else None
        self._log_weights.zero_()
        for block in self._blocks:
            confusion = self._scan_block(block, noise_scale, self._stage)
            if feedback is not None:
                block.likelihood.add_feedback(confusion, feedback.position, feedback.effects)
            block.likelihood.add_to_items(block.likelihood.logs(confusion), self._log_weights)
        self._ranks.sum_rows(self._log_weights, self._shares)
        previous = self.own_probs.clone() if n_ahead else self.own_probs
        change = self._ranks.largest(self._update_own(class_logs, damping))
        if feedback is not None:
            feedback = feedback._replace(effects=self._ranks.total(feedback.effects))
            feedback.lead(self.own_probs, previous, n_ahead=n_ahead, change=change, first=self._own.start)
        return change

    def _update_own(self, class_logs: Tensor, damping: float) -> float:
        """Update the class probabilities of own items from their log weights, and return the largest change."""
        change = 0.0
        for first in range(self._own.start, self._own.stop, ITEMS_TOGETHER):
            rows = slice(first, min(first + ITEMS_TOGETHER, self._own.stop))
            probs = self.probs[rows]
            # eq:DynVB_lnqstar_ti, with several steps for repeated answers ("Duplicate Classifications").
            updated = item_posteriors((class_logs + self._log_weights[rows]).to(probs.dtype))
            updated = torch.where(self._fixed[rows, None], probs, updated)
            change = max(change, float((updated - probs).abs().max()))
            probs.copy_(torch.lerp(probs, updated, 1 - damping) if damping > 0 else updated)
        return change

    def confusion(self, noise_scale: float) -> Tensor:
        """See `DynamicVB`; a file may hold the result."""
        return self.confusion_and_last_states(noise_scale)[0]

    def confusion_and_last_states(self, noise_scale: float) -> tuple[Tensor, LastStates]:
        """See `DynamicVB`; a file may hold the first result."""
        rows, parts = None, []
        for block in self._blocks:
            self.n_visited += len(block.steps.item)
            own, last = block.scan.with_last_states(self.probs, noise_scale=noise_scale, stage=self._stage)
            rows = self._blocks.rows_for_all(*own.shape[1:]) if rows is None else rows
            rows[block.rows] = own.to(rows)
            self._blocks.release(block.rows)
            parts.append(last)
        assert rows is not None  # noqa: S101 - there is a block at least
        return rows, LastStates(*(torch.cat(columns) for columns in zip(*parts, strict=True)))

    def scores(self, noise_scale: float, confusion: Tensor) -> tuple[float, float]:
        """See `DynamicVB`."""
        sums = torch.zeros(2, dtype=torch.float64)
        for block in self._blocks:
            own = confusion[block.rows].to(block.steps.weight)
            logs = block.likelihood.logs(own)
            predicted = self._scan_block(block, noise_scale, "predicted")
            own_sums = block.likelihood.predictive(predicted, logs, self.probs, self._fixed)
            sums += torch.tensor(own_sums, dtype=torch.float64)
            self._blocks.release(block.rows)
        left_out, expected = self._ranks.total(sums).tolist()
        return left_out, expected + self._class_terms()

    def published_bound(self, noise_scale: float, *, floor: float) -> float:
        """See `DynamicVB`."""
        own = sum(
            self._printed_terms(block.steps, block.scan, block.likelihood, noise_scale, floor) for block in self._blocks
        )
        return float(self._ranks.total(torch.tensor([own], dtype=torch.float64))) + self._class_terms()

    def _scan_block(self, block: StepBlock, noise_scale: float, stage: Stage) -> Tensor:
        self.n_visited += len(block.steps.item)
        return block.scan(self.probs, noise_scale=noise_scale, stage=stage)

    def _class_terms(self) -> float:
        class_logs = expected_log(self.classes, axis=0)
        divergence = dirichlet_divergence(most_precise(self.classes), self._class_prior, axis=0)
        entropy = 0.0
        for first in range(0, len(self.probs), ITEMS_TOGETHER):
            probs = self.probs[first : first + ITEMS_TOGETHER]
            entropy += float(total(torch.special.entr(probs) + probs * class_logs))
        return entropy - float(divergence)

    @property
    def _n_steps(self) -> int:
        return int(self._ranks.total(self._blocks.starts[-1:].cpu()))

    def _choose_part(self, prior: Tensor) -> _Part:
        counts = [own.cpu() for own in self._ranks.gather(self._blocks.starts.diff())]
        before = sum(map(len, counts[: self._ranks.rank]))
        every = torch.cat(counts)
        volunteers, lengths = torch.arange(len(every)), every
        if int(every.sum()) > MAX_CHOICE_STEPS:
            volunteers, lengths = draw_volunteers(every, n_steps=MAX_CHOICE_STEPS)
        is_own = (volunteers >= before) & (volunteers < before + len(counts[self._ranks.rank]))
        own, own_lengths = volunteers[is_own] - before, lengths[is_own]
        steps = self._blocks.first_steps(own, own_lengths)
        index = (self._blocks.starts.cpu()[own] - steps.starts[:-1].cpu()).repeat_interleave(own_lengths)
        index += torch.arange(len(index))
        own_prior = prior if len(prior) == 1 else prior[own.to(prior.device)]
        # All processes have the sample, so that all of them take the same decisions.
        parts = self._ranks.gather((*steps[1:5], own_prior))
        columns = [torch.cat(column) for column in zip(*parts, strict=True)]
        starts = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to(steps.starts.device)
        sample = Steps(starts, *columns[:-1])
        kernels = self._blocks.kernels(sample, prior if len(prior) == 1 else columns[-1])
        return _Part(index, sample, *kernels)

    def _logs_of(self, part: _Part, noise_scale: float) -> Tensor:
        index = part.chosen
        assert index is not None  # noqa: S101 - `_choose_part` sets it
        logs = []
        for block in self._blocks:
            own = index[(index >= block.rows.start) & (index < block.rows.stop)] - block.rows.start
            every = block.likelihood.logs(self._scan_block(block, noise_scale, self._stage))
            logs.append(every[own.to(every.device)])
        return torch.cat(self._ranks.gather(torch.cat(logs)))

    def _scorer_of_all(self, noise_scale: float, prior: Tensor) -> Callable[[float], float]:
        def score(other_scale: float) -> float:
            own = 0.0
            for block in self._blocks:
                logs = block.likelihood.logs(self._scan_block(block, noise_scale, self._stage))
                scan = block.scan.with_steps(block.steps, prior if len(prior) == 1 else prior[block.volunteers])
                predicted = scan(self.probs, noise_scale=other_scale, stage="predicted")
                self.n_visited += len(predicted)
                own += block.likelihood.predictive(predicted, logs, self.probs, self._fixed)[0]
            return float(self._ranks.total(torch.tensor([own], dtype=torch.float64)))

        return score

    def _predictive_scores(
        self, scan: Scan, likelihood: Likelihood, noise_scale: float, logs: Tensor
    ) -> tuple[float, float]:
        # Processes may have other numbers of threads, whose sums are rounded otherwise.
        return self._ranks.from_first(super()._predictive_scores(scan, likelihood, noise_scale, logs))
