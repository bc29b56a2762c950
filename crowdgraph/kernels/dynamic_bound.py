"""The prior of every step in the lower bound that the paper prints for DynIBCC (erratum 3)."""

from __future__ import annotations

import torch
from torch import Tensor

from crowdgraph.tensors.dynibcc import MAX_LOG_ODDS, Rounds, prior_counts

__all__ = ["step_priors"]


def step_priors(starts: Tensor, prior: Tensor, confusion: Tensor, *, noise: Tensor) -> Tensor:
    r"""Return the Dirichlet prior of the confusion at every step, given the step before it, of shape (S, J, L).

    It is :math:`\bar\alpha_{\tau, jl} = (1 + e^{\eta_{\tau-1, jl}}) / q_{\tau, l}`, with the log odds
    :math:`\eta_{\tau-1, jl} = \ln (\pi_{\tau-1, jl} / \sum_{m \ne l} \pi_{\tau-1, jm})` at the mean of the Dirichlet of
    the volunteer's previous step ("DynIBCC Joint and Posterior Distributions"). At the first step it is `prior`.

    Parameters
    ----------
    starts
        Where each volunteer's steps begin, of shape (K + 1,).
    prior
        Dirichlet rows of the confusion before the first step, of shape (1 or K, J, L).
    confusion
        The Dirichlet of the confusion at every step, of shape (S, J, L).
    noise
        The noise that log odds gain before each step, of shape (S, L), above zero.
    """
    previous = Rounds(starts).before(confusion, prior)
    hits, misses = prior_counts(previous)
    log_odds = torch.log(hits / misses).clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS)
    walked = ((1 + torch.exp(log_odds)) / noise[..., None]).transpose(-1, -2)
    is_first = torch.zeros(len(confusion), dtype=torch.bool, device=confusion.device)
    is_first[starts[:-1][starts.diff() > 0]] = True
    return torch.where(is_first[:, None, None], previous, walked)
