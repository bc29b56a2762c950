"""# Two misprints, corrected

Dynamic IBCC follows the log odds `w` that a volunteer says "whale" to items without and with one. The exact posterior
is the joint Gaussian of all steps. The printed equations are far from it; the corrected ones are equal to it.
"""

# %% A volunteer learns to recognise whales. We know with 85 % certainty whether an item shows one.
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from crowdgraph.tensors import Steps, filter_states, smooth_states

n, drift, eye, h = 40, 0.05, np.eye(2), np.array([[0.85, 0.15], [0.15, 0.85]] * 20)
yes = np.random.default_rng(0).random(n) < np.where(h[:, 1] > 0.5, np.linspace(0.1, 1, n), 0.2)


def observe(t: int, h: np.ndarray, w: np.ndarray, cov: np.ndarray) -> tuple[float, float, float]:
    """Return the variance r of the log odds h @ w, how far the answer shifts them, and the part g of r it removes."""
    eta, r = h @ w, h @ cov @ h
    a, b = (1 + np.exp(eta)) / r + yes[t], (1 + np.exp(-eta)) / r + 1 - yes[t]
    return r, np.log(a / b) - eta, 1 - (1 / a + 1 / b) / r


# %% Exact: an answer observes h @ w with variance r (1 - g) / g, which updates all steps at once.
w, cov = np.zeros(2 * n), np.kron(2 + drift * np.minimum.outer(*2 * [np.arange(1, n + 1)]), eye)
for t, row in enumerate((np.eye(n)[:, :, None] * h).reshape(n, -1)):
    r, shift, g = observe(t, row, w, cov)
    gain = cov @ row / r * g  # r + r (1 - g) / g = r / g
    w, cov = w + gain * shift / g, cov - np.outer(gain, row @ cov)
states = {"exact": np.stack([w, cov.diagonal()], axis=1)[1::2], "as printed": np.empty((n, 2))}
# %% As printed: 1 - r' / r multiplies the entire covariance, and the smoother has the full gain and no transpose.
w, cov, past, back, spread = np.zeros(2), 2 * eye, [], np.zeros(2), np.zeros((2, 2))
for t in range(n):
    cov = cov + drift * eye
    r, shift, g = observe(t, h[t], w, cov)
    factor = eye - np.outer(cov @ h[t] / r, h[t])
    w, cov = w + cov @ h[t] / r * shift, factor @ cov * g
    past.append((w, cov, factor, h[t] * shift / r, np.outer(h[t], h[t]) * g / r))
for t, (w, cov, factor, residual, precision) in reversed(list(enumerate(past))):
    states["as printed"][t] = (w - cov @ back)[1], (cov - cov @ spread @ cov)[1, 1]
    back, spread = factor @ back - residual, factor @ spread @ factor.T + precision
# %% Corrected, as in crowdgraph: the published model, without the misprints.
steps = Steps(*map(torch.from_numpy, (np.array([0, n]), np.arange(n), yes * 1, np.ones(n), np.full(n, drift))))
prior, truth = torch.ones(1, 2, 2).double(), torch.from_numpy(h)
mean, cov = smooth_states(steps, filter_states(steps, prior, probs=truth, noise_scale=0, published=True))
states["corrected"] = np.stack([mean[:, 1, 1], cov[:, 1, 1, 1]], axis=1)
# %% Bands are two standard deviations: the printed equations soon learn nothing more.
ax = Figure((7, 4), layout="constrained").subplots()
for (name, state), colour in zip(states.items(), ["#BBBBBB", "#D55E00", "#0072B2"], strict=True):
    mean, width = state[:, 0], 2 * np.sqrt(state[:, 1])
    ax.fill_between(range(n), mean - width, mean + width, color=colour, alpha=0.15, linewidth=0)
    ax.plot(mean, "--" if name == "corrected" else "-", color=colour, linewidth=5 if name == "exact" else 2, label=name)
    print(f"{name}: at most {np.abs(state - states['exact']).max():.2g} from exact")
ax.set_title("Log odds of “whale” for a whale, smoothed, step by step")
ax.legend(frameon=False)
Path("demo").mkdir(exist_ok=True)
ax.figure.savefig("demo/corrected_equations.png", dpi=150)
