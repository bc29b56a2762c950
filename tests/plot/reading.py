"""Read what a plot shows from its matplotlib artists."""

import numpy as np
from matplotlib.colors import to_hex


def hexes(colours):
    """Return colours as upper-case hex codes."""
    return [to_hex(colour).upper() for colour in colours]


def legend(ax):
    """Return the texts of the legend."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


def texts(ax):
    """Return the texts within the axes."""
    return [text.get_text() for text in ax.texts]


def titles(axes):
    """Return the left titles, each in one line."""
    return [" ".join(ax.get_title(loc="left").split()) for ax in axes]


def heights(ax):
    """Return the heights of the bars."""
    return np.array([patch.get_height() for patch in ax.patches])


def centres(ax):
    """Return the horizontal centres of the bars."""
    return np.array([patch.get_x() + patch.get_width() / 2 for patch in ax.patches])


def shares(ax, points):
    """Return the shares of the three labels at points of a triangle, of shape (points, 3)."""
    corners = np.stack([ax.transProjection.transform(corner) for corner in np.eye(3)])
    return np.linalg.solve(np.vstack([corners.T, np.ones(3)]), np.column_stack([points, np.ones(len(points))]).T).T


def line_shares(line):
    """Return the shares of the three labels along a line in a triangle, of shape (points, 3)."""
    return shares(line.axes, line.get_xydata())


def mean_by_hand(track, snapshot, k):
    """Return the mean confusion of a community, each volunteer by participation."""
    groups = track[snapshot]
    matrices = groups.confusion.mean
    weights = groups.participation[:, k]
    return sum(weight * matrix for weight, matrix in zip(weights, matrices, strict=True)) / weights.sum()


def overlapping(figure, candidates):
    """Return the texts that cover others, once they are drawn."""
    figure.draw_without_rendering()
    boxes = [
        (text.get_text(), text.get_window_extent()) for text in candidates if text.get_text() and text.get_visible()
    ]
    return [
        (one, other)
        for index, (one, box) in enumerate(boxes)
        for other, second in boxes[index + 1 :]
        if box.shrunk(0.9, 0.7).overlaps(second.shrunk(0.9, 0.7))
    ]
