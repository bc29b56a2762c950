"""Networks over time: small multiples in which everybody stays in place."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer, check_seed
from crowdgraph.core._text import quantity
from crowdgraph.core.communities import Membership
from crowdgraph.core.result import check_ids
from crowdgraph.errors import ParameterError
from crowdgraph.messages import with_article
from crowdgraph.plot._panels import MAX_LISTED, as_axes_list, moment_names
from crowdgraph.plot._style import GREY, PALE, check_kind, colours, is_kind, new_figure, plain_text
from crowdgraph.plot.network import _draw_links, _draw_volunteers, strongest_links, volunteer_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crowdgraph.core.communities import Communities
    from crowdgraph.core.community_track import CommunityTrack
    from crowdgraph.core.network import VolunteerNetwork
    from crowdgraph.core.network_track import NetworkTrack

__all__ = ["network_over_time"]

# More panels than this are too small, or a figure too large, to compare.
MAX_PANELS = 12
# The width and height of a panel in inches, and what its dots are scaled by: it is smaller than a plot of one network.
PANEL_SIZE = (2.6, 2.7)
DOT_SCALE = 0.12
# The colour of those who are absent, and of the frames.
FAINT = "#DDDDDD"
# Dots of fewer volunteers than this do not grow any more; see `network`.
FEW_VOLUNTEERS = 160


@plain_text
def network_over_time(
    networks: NetworkTrack,
    communities: CommunityTrack | Communities | None = None,
    *,
    layout: Literal["auto", "force", "spectral"] | ArrayLike = "auto",
    neighbours: int = 5,
    columns: int = 3,
    seed: int | None = 0,
    axes: Sequence[Axes] | None = None,
) -> tuple[Axes, ...]:
    """Plot networks over time: a panel for each snapshot, in which everybody stands in the same place.

    The layout is that of all snapshots together. Volunteers have the colours of their communities, which keep their
    numbers from panel to panel; those who are not in the network of a snapshot are pale dots. Of more than twelve
    snapshots, twelve that are spread evenly over the track are drawn. Otherwise the panels are as `network`.

    Parameters
    ----------
    networks
        The networks, from `crowdgraph.dynamics.networks_over_time`.
    communities
        The communities over time: each panel shows those of the last snapshot that had no more responses. Or
        communities that do not change.
    layout
        As for `network`; positions are those of ``networks.ids``, of shape (V, 2).
    neighbours
        How many of each volunteer's strongest links to draw.
    columns
        How many panels stand side by side; 1 or 2 for a narrow page or a phone.
    seed
        The same seed gives the same positions.
    axes
        The axes to draw on, one for each panel; a new figure if left out.

    Returns
    -------
    tuple of Axes
        One for each panel; ``axes[0].figure`` is the figure.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> networks = cg.dynamics.networks_over_time(graph, counts=[2_000, 3_000, 4_000])
    >>> [ax.get_title(loc="left").splitlines()[0] for ax in cg.plot.network_over_time(networks)]
    ['2,000 responses', '3,000 responses', '4,000 responses']
    """
    check_kind(networks, "NetworkTrack", "crowdgraph.dynamics.networks_over_time(graph, counts=[...])")
    check_integer("neighbours", neighbours)
    check_integer("columns", columns)
    check_seed(seed)
    if not any(len(one) for one in networks):
        raise ParameterError(f"The networks {networks.method!r} have no volunteers, so there is nothing to draw.")
    memberships = _memberships(networks, communities)
    shown = np.unique(np.linspace(0, len(networks) - 1, min(len(networks), MAX_PANELS)).round().astype(np.int64))
    panels, is_new = _panels(axes, len(shown), int(columns))
    union = networks.union()
    positions = volunteer_positions(union, strongest_links(union, 2 * int(neighbours)), layout, seed)
    ever = np.unique(np.concatenate([networks.table.codes(one.ids) for one in networks]))
    for ax, index, name in zip(panels, shown.tolist(), np.array(moment_names(networks))[shown], strict=True):
        codes = networks.table.codes(networks[index].ids)
        absent = np.setdiff1d(ever, codes)
        # The number of all volunteers decides on the size of dots, so that they do not shrink from panel to panel.
        scale = DOT_SCALE * max(len(codes), FEW_VOLUNTEERS) / max(len(ever), FEW_VOLUNTEERS)
        if len(codes):
            _draw_links(ax, positions[codes], strongest_links(networks[index], int(neighbours)), memberships[index])
            _draw_volunteers(ax, networks[index], positions[codes], memberships[index], scale=scale)
        x, y = positions[absent].T
        ax.scatter(x, y, s=4, color=PALE, edgecolors=FAINT, linewidths=0.4, zorder=0)
        ax.set_title(f"{name}\n{quantity(len(codes), 'volunteer')}", loc="left", fontsize="small")
        _set_limits(ax, positions[ever])
    _add_legend(panels, [memberships[index] for index in shown.tolist()], below=is_new)
    return tuple(panels)


def _panels(axes: Any, n_panels: int, columns: int) -> tuple[list[Axes], bool]:
    """Return a panel for each snapshot, and whether they are those of a new figure."""
    if axes is not None:
        panels = as_axes_list(axes)
        if len(panels) != n_panels:
            raise ParameterError(f"There are {n_panels} snapshots to draw; got {len(panels)} axes.")
        return panels, False
    n_columns = min(columns, n_panels)
    n_rows = ceil(n_panels / n_columns)
    figure = new_figure(figsize=(PANEL_SIZE[0] * n_columns, PANEL_SIZE[1] * n_rows + 0.6), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for spare in grid[n_panels:]:
        spare.remove()
    return list(grid[:n_panels]), True


def _set_limits(ax: Axes, positions: Array) -> None:
    """Show the same part of the plane in every panel."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    margin = 0.05 * np.maximum(high - low, 1e-9)
    ax.set(xlim=(low[0] - margin[0], high[0] + margin[0]), ylim=(low[1] - margin[1], high[1] + margin[1]))
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, color=FAINT)


def _memberships(networks: NetworkTrack, communities: Any) -> list[Membership | None]:
    """Return the community and the participation of the volunteers of each network; None where nothing is known."""
    if communities is None:
        return [None] * len(networks)
    if is_kind(communities, "Communities"):
        return [
            _membership(one, communities.table, communities.assignment, communities.participation) for one in networks
        ]
    if not is_kind(communities, "CommunityTrack"):
        raise ParameterError(
            f"communities= takes a CommunityTrack or Communities; got {with_article(type(communities))}. Make some "
            "with crowdgraph.dynamics.over_time(graph, counts=[...])."
        )
    # Before the first snapshot of the communities, nobody belongs to any.
    nobody = np.full((1, len(communities.ids)), -1), np.zeros((1, len(communities.ids), communities.n_communities_ever))
    assignment = np.concatenate([communities.assignment, nobody[0]])
    participation = np.concatenate([communities.participation, nobody[1]])
    indices = np.searchsorted(communities.counts, networks.counts, side="right") - 1
    return [
        _membership(one, communities.table, assignment[index], participation[index])
        for one, index in zip(networks, indices.tolist(), strict=True)
    ]


def _membership(network: VolunteerNetwork, table: Any, assignment: Array, participation: Array) -> Membership:
    check_ids(
        network.ids,
        table,
        lacking="The communities lack {} of the networks' volunteers",
        hint="Find the communities in the same graph.",
    )
    codes = table.codes(network.ids)
    return Membership(assignment[codes], participation[codes])


def _add_legend(panels: list[Axes], memberships: list[Membership | None], *, below: bool) -> None:
    """Name the communities that are drawn, below the panels of a new figure or in the last panel."""
    drawn = np.unique(np.concatenate([np.zeros(0, int), *(one.assignment for one in memberships if one is not None)]))
    if not len(drawn) or np.count_nonzero(drawn >= 0) > MAX_LISTED:
        return
    hues = colours(range(int(drawn.max()) + 1))
    handles = [
        Line2D([], [], color=hues[k] if k >= 0 else PALE, markeredgecolor=hues[k] if k >= 0 else GREY, marker="o",
               linestyle="none", markersize=6, label=str(k) if k >= 0 else "none")
        for k in [*drawn[drawn >= 0].tolist(), *drawn[drawn < 0].tolist()]
    ]  # fmt: skip
    figure: Any = panels[0].figure
    options: dict[str, Any] = {"handles": handles, "frameon": False, "fontsize": "small", "title": "community"}
    if below:
        per_row = max(2, int(figure.get_figwidth() / 0.75))
        figure.legend(loc="outside lower center", ncols=min(len(handles), per_row), **options)
    else:
        panels[-1].legend(**options)
