"""# Two misprints, corrected

Dynamic IBCC follows the log odds `w` that a volunteer says "whale" to items without and with one, step by step. Exact
is the joint Gaussian of all steps. The paper's equations as printed are far from it; corrected, they are equal to it.
"""

# %% A volunteer learns to tell whales. Whether an item shows one is known to 85 %.
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from crowdgraph.kernels.dglm import Steps, tensor_states

n, drift, eye, h = 40, 0.05, np.eye(2), np.array([[0.85, 0.15], [0.15, 0.85]] * 20)
yes = np.random.default_rng(0).random(n) < np.where(h[:, 1] > 0.5, np.linspace(0.1, 1, n), 0.2)


def answered(t: int, h: np.ndarray, w: np.ndarray, cov: np.ndarray) -> tuple[float, float, float]:
    """The variance of the answer's log odds h @ w, how far it moves them, and the part of the variance it takes."""
    eta, r = h @ w, h @ cov @ h
    a, b = (1 + np.exp(eta)) / r + yes[t], (1 + np.exp(-eta)) / r + 1 - yes[t]
    return r, np.log(a / b) - eta, 1 - (1 / a + 1 / b) / r


# %% Exact: an answer is an observation of h @ w with some variance, and tells something about all steps at once.
w, P = np.zeros(2 * n), np.kron(2 + drift * np.minimum.outer(*2 * [np.arange(1, n + 1)]), eye)
look, found = (np.eye(n)[:, :, None] * h).reshape(n, -1), np.empty((3, 2, n, 2))
for t in range(n):
    r, moved, g = answered(t, look[t], w, P)
    gain = P @ look[t] / (r + r * (1 - g) / g)
    w, P = w + gain * moved / g, P - np.outer(gain, look[t] @ P)
    found[0, 0, t] = w[2 * t + 1], P[2 * t + 1, 2 * t + 1]
found[0, 1] = np.stack([w, P.diagonal()], axis=1)[1::2]
# %% As printed: 1 - r' / r multiplies the whole covariance, and the smoother has the full gain and no transpose.
w, P, kept, adjoint, adjoints = np.zeros(2), 2 * eye, [], np.zeros(2), np.zeros((2, 2))
for t in range(n):
    r, moved, g = answered(t, h[t], w, P := P + drift * eye)
    C = eye - np.outer(P @ h[t] / r, h[t])
    kept.append((w := w + P @ h[t] / r * moved, P := C @ P * g, h[t] * moved / r, np.outer(h[t], h[t]) * g / r, C))
for t, (w, P, news, more, C) in reversed(list(enumerate(kept))):
    found[1, :, t] = [(w[1], P[1, 1]), ((w - P @ adjoint)[1], (P - P @ adjoints @ P)[1, 1])]
    adjoint, adjoints = C @ adjoint - news, C @ adjoints @ C.T + more
# %% Corrected, as in crowdgraph. Bands are two standard deviations: the printed equations soon learn nothing more.
looks = [("exact", "#BBBBBB", 5, "-"), ("as printed", "#D55E00", 2, "-"), ("corrected", "#0072B2", 1.5, "--")]
ones, prior, figure = torch.ones(n).double(), torch.ones(1, 2, 2).double(), Figure((9, 4.2), layout="constrained")
steps = Steps(torch.tensor([0, n]), torch.arange(n), torch.from_numpy(yes * 1), ones, drift * ones)
for part, (stage, ax) in enumerate(zip(("filtered", "smoothed"), figure.subplots(1, 2, sharey=True), strict=True)):
    states = tensor_states(steps, prior, torch.from_numpy(h), noise_scale=0, stage=stage, mixed=True)
    found[2, part] = np.stack([states.mean[:, 1, 1], states.covariance[:, 1, 1, 1]], axis=1)
    for (name, colour, width, style), (mean, variance) in zip(looks, found[:, part].swapaxes(1, 2), strict=True):
        low, high = mean + np.sqrt(variance) * [[-2], [2]]
        ax.plot(np.stack([mean, low, high], axis=1), style, color=colour, linewidth=width, label=[name, None, None])
        ax.fill_between(range(n), low, high, color=colour, alpha=0.1, linewidth=0)
        print(f"{stage}, {name}: at most {np.abs([mean, variance] - found[0, part].T).max():.2g} from exact")
    ax.set(title=f"{stage}: log odds of “whale” for a whale", xlabel="step")
ax.legend(frameon=False)
Path("demo").mkdir(exist_ok=True)
figure.savefig("demo/corrected_equations.png", dpi=150)
