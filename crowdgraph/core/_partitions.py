"""Read communities that other programs or people found: mappings, lists of sets, clusterings, arrays and tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set, ValuesView
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, id_array, is_null, object_array, plain, to_list
from crowdgraph.core._modularity import hard_modularity_of, modularity_of
from crowdgraph.core._text import quantity
from crowdgraph.core.communities import Communities, largest_first, main_community
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.result import unique_ids
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import (
    AlignmentError,
    ColumnError,
    CrowdGraphWarning,
    IdError,
    InputError,
    ParameterError,
    check_choice,
    warn,
)
from crowdgraph.messages import quote, suggestion, with_article

# How far the sum of a volunteer's shares may be from one.
TOLERANCE = 1e-6
# Where igraph's vertices have their names.
VERTEX_IDS = ("name", "id")
# A list of these is a list of communities, each with its members.
GROUP_KINDS = (Set, list, tuple, np.ndarray, ValuesView)


class Shares(NamedTuple):
    """How much volunteers belong to communities that have names.

    Attributes
    ----------
    ids
        The volunteers.
    values
        Their shares, of shape (V, K); rows of zeros for volunteers of no community.
    names
        The names of the communities.
    """

    ids: list[Any]
    values: Array
    names: list[Any]


def is_partition(labels: object) -> bool:
    """Return whether something divides volunteers into communities and names them: a mapping, sets or a clustering."""
    if isinstance(labels, Mapping) or hasattr(labels, "membership") or _has_communities(labels):
        return True
    return isinstance(labels, list | tuple | ValuesView) and all(isinstance(group, Set) for group in labels)


def _has_communities(labels: object) -> bool:
    """Return whether something lists communities, as clusterings of cdlib do."""
    return isinstance(getattr(labels, "communities", None), list | tuple)


def build_communities(
    shares: Shares,
    *,
    network: VolunteerNetwork | None,
    ids: Iterable[Hashable] | None,
    strangers: str,
    method: str,
    params: Mapping[str, Any] | None,
) -> Communities:
    """Return communities of a network's volunteers, of `ids`, or of the volunteers that the shares name."""
    check_choice("strangers", strangers, ("error", "drop"))
    everybody = unique_ids(shares.ids if ids is None else ids, kind="volunteer") if network is None else network.ids
    table, owner = NodeTable("volunteer", everybody), "ids=" if network is None else "the network"
    shares = _without_strangers(shares, table, owner=owner, strangers=strangers)
    participation = np.zeros((len(everybody), len(shares.names)))
    participation[table.codes(shares.ids)] = shares.values
    _report_missed(shares, everybody, owner=owner)
    order = _occupied_order(participation, shares.names)
    participation = participation[:, order]
    settings = {**(params or {}), "names": tuple(shares.names[k] for k in order)}
    measures = _in_network(participation, network)
    return Communities(ids=everybody, participation=participation, method=method, params=settings, **measures)


def _in_network(participation: Array, network: VolunteerNetwork | None) -> dict[str, Any]:
    """Return what communities take from a network, as those that a detector finds in it."""
    if network is None:
        return {}
    weights, strength = network.weights, network.strength
    return {
        "modularity": hard_modularity_of(weights, strength, main_community(participation)),
        "soft_modularity": modularity_of(weights, strength, participation),
        "support": network.support,
        "confusion": None if network.model is None else network.model.confusion,
    }


def _without_strangers(shares: Shares, table: NodeTable, *, owner: str, strangers: str) -> Shares:
    known = np.array([volunteer in table for volunteer in shares.ids], dtype=bool)
    if known.all():
        return shares
    names = [volunteer for volunteer, is_known in zip(shares.ids, known, strict=True) if not is_known]
    text = f"{quantity(len(names), 'volunteer')} of the communities not in {owner} ({quote(names, most=3)})"
    if strangers == "error":
        raise AlignmentError(
            f"There {'is' if len(names) == 1 else 'are'} {text}.{_type_hint(names, table)} Correct the ids, or pass "
            "strangers='drop' to leave these volunteers out."
        )
    warn(f"Left out {text}.", CrowdGraphWarning)
    ids = [volunteer for volunteer, is_known in zip(shares.ids, known, strict=True) if is_known]
    return shares._replace(ids=ids, values=shares.values[known])


def _type_hint(strangers: list[Any], table: NodeTable) -> str:
    """Return a sentence if a stranger is known under an id of another type, such as 1 for "1"."""
    by_text = {str(volunteer): volunteer for volunteer in table.ids.tolist()}
    for stranger in strangers:
        if (other := by_text.get(str(stranger))) is not None:
            return f" {stranger!r} is {with_article(type(stranger))}; there is {other!r}, {with_article(type(other))}."
    return ""


def _report_missed(shares: Shares, everybody: Array, *, owner: str) -> None:
    """Warn of volunteers that the communities do not mention."""
    mentioned = set(shares.ids)
    missed = [volunteer for volunteer in everybody.tolist() if volunteer not in mentioned]
    if missed:
        warn(
            f"The communities miss {quantity(len(missed), 'volunteer')} of {len(everybody):,} in {owner} "
            f"({quote(missed, most=3)}); they belong to none.",
            CrowdGraphWarning,
        )


def _occupied_order(participation: Array, names: list[Any]) -> list[int]:
    """Return the communities that have members, the largest first; warn of others."""
    occupied = participation.sum(axis=0) > 0
    if not occupied.all():
        empty = [name for name, has_members in zip(names, occupied, strict=True) if not has_members]
        several = "communities" if len(empty) > 1 else "community"
        warn(f"Left out {len(empty):,} {several} without members ({quote(empty, most=3)}).", CrowdGraphWarning)
    columns = np.flatnonzero(occupied)
    return [int(k) for k in columns[largest_first(participation[:, columns])]]


# Hard communities


def read_labels(
    labels: Any, *, network: VolunteerNetwork | None, ids: Iterable[Hashable] | None, names: Iterable[Hashable] | None
) -> Shares:
    """Read hard communities in any of the forms that `Communities.from_labels` takes."""
    if hasattr(labels, "membership"):
        return _from_clustering(labels, network=network, ids=ids, names=names)
    if _has_communities(labels):
        return _from_groups(labels.communities, names)
    labels = _series_mapping(labels)
    if hasattr(labels, "columns"):
        return _from_label_table(labels, names)
    if isinstance(labels, Mapping):
        return _from_pairs(labels.keys(), list(labels.values()), names)
    values = _iterable_list(labels)
    if values and all(isinstance(value, GROUP_KINDS) for value in values):
        return _from_rows_or_groups(labels, values, names)
    return _from_pairs(_row_ids(len(values), network=network, ids=ids), values, names)


def _from_rows_or_groups(labels: object, values: list[Any], names: Iterable[Hashable] | None) -> Shares:
    if isinstance(labels, np.ndarray):
        raise ParameterError(
            f"labels= is an array of shape {labels.shape}; give one community for each volunteer, of shape (V,), or "
            "pass shares of shape (V, K) to Communities.from_memberships."
        )
    return _from_groups(values, names)


def _series_mapping(values: Any) -> Any:
    """Return a pandas series as a mapping of its index; anything else as it is."""
    is_series = hasattr(values, "to_dict") and hasattr(values, "index") and not hasattr(values, "columns")
    if not is_series:
        return values
    if not values.index.is_unique:
        raise IdError("The index of the series names some volunteers twice; name each volunteer once.")
    return values.to_dict()


def _iterable_list(values: Any) -> list[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ParameterError(
            "labels= takes a mapping from volunteers to communities, a list of sets of volunteers, a clustering of "
            f"igraph or cdlib, a table, or an array; got {with_article(type(values))}."
        )
    return to_list(values) if isinstance(values, np.ndarray) and values.ndim == 1 else list(values)


def _row_ids(
    n_rows: int, *, network: VolunteerNetwork | None, ids: Iterable[Hashable] | None, what: str = "labels"
) -> list[Any]:
    """Return whom the rows of an array belong to: `ids`, or the network's volunteers."""
    if ids is None and network is None:
        raise ParameterError(
            f"An array of {what} does not say whose they are; pass ids=[...] in the order of its rows, or network=."
        )
    volunteers: list[Any] = id_array(network.ids if ids is None else ids).tolist()  # type: ignore[union-attr]
    if len(volunteers) != n_rows:
        raise AlignmentError(
            f"There are {what} for {n_rows:,} volunteers, and {len(volunteers):,} volunteers in "
            f"{'the network' if ids is None else 'ids='}; give one row for each."
        )
    return volunteers


def _from_clustering(
    clustering: Any,
    *,
    network: VolunteerNetwork | None,
    ids: Iterable[Hashable] | None,
    names: Iterable[Hashable] | None,
) -> Shares:
    """Read a clustering of igraph, whose vertices may have names, or a cover."""
    membership = list(clustering.membership)
    graph = getattr(clustering, "graph", None)
    if ids is None and graph is not None:
        attribute = next((name for name in VERTEX_IDS if name in graph.vs.attributes()), None)
        ids = None if attribute is None else graph.vs[attribute]
    volunteers = _row_ids(len(membership), network=network, ids=ids, what="communities")
    rows = [row if isinstance(row, list | tuple) else [row] for row in membership]
    n_groups = max(chain.from_iterable(rows), default=-1) + 1
    groups: list[list[Any]] = [[] for _ in range(n_groups)]
    for volunteer, row in zip(volunteers, rows, strict=True):
        for k in row:
            groups[k].append(volunteer)
    return _from_groups(groups, names)


def _from_groups(groups: Iterable[Any], names: Iterable[Hashable] | None) -> Shares:
    """Give each volunteer equal shares of the communities that list them."""
    members = [_members(group) for group in groups]
    ids = list(dict.fromkeys(chain.from_iterable(members)))
    code_of = {volunteer: code for code, volunteer in enumerate(ids)}
    values = np.zeros((len(ids), len(members)))
    for k, group in enumerate(members):
        values[[code_of[volunteer] for volunteer in group], k] = 1
    return Shares(ids, values / values.sum(axis=1, keepdims=True), _group_names(names, len(members)))


def _members(group: Iterable[Any]) -> list[Any]:
    """Return the ids of a group; those of a set are sorted, since its own order changes from run to run."""
    ids = [_volunteer_id(volunteer) for volunteer in group]
    if not isinstance(group, set | frozenset):
        return ids
    try:
        return sorted(ids)
    except TypeError:
        return sorted(ids, key=repr)


def _group_names(names: Iterable[Hashable] | None, n_groups: int) -> list[Any]:
    """Return the names of communities, which are their positions unless the user names them."""
    chosen = list(range(n_groups)) if names is None else [plain(name) for name in names]
    if len(chosen) != n_groups or len(set(chosen)) < n_groups:
        raise ParameterError(
            f"names= has {len(set(chosen)):,} different names for {n_groups:,} communities; name each once, in their "
            "order."
        )
    return chosen


def _volunteer_id(value: Any) -> Any:
    value = plain(value)
    if not isinstance(value, Hashable) or is_null(value):
        raise IdError(f"{value!r} cannot be the id of a volunteer; use text, numbers or tuples.")
    return value


def _from_pairs(ids: Iterable[Any], labels: list[Any], names: Iterable[Hashable] | None) -> Shares:
    """Read the community of each volunteer: None, NaN and -1 stand for none."""
    if names is not None:
        raise ParameterError("names= is for communities without names, such as a list of sets; here labels name them.")
    volunteers = [_volunteer_id(volunteer) for volunteer in ids]
    _check_unique(volunteers)
    chosen = [_label(label) for label in labels]
    distinct = list(dict.fromkeys(label for label in chosen if label is not None))
    number = {label: k for k, label in enumerate(distinct)}
    values = np.zeros((len(volunteers), len(distinct)))
    for row, label in enumerate(chosen):
        if label is not None:
            values[row, number[label]] = 1
    return Shares(volunteers, values, distinct)


def _check_unique(volunteers: list[Any]) -> None:
    twice = [volunteer for volunteer, count in Counter(volunteers).items() if count > 1]
    if twice:
        raise IdError(f"Some volunteers have several rows ({quote(twice, most=3)}); give one row for each.")


def _label(label: Any) -> Any:
    """Return the name of a community, or None for those of no community."""
    label = plain(label)
    if is_null(label) or (type(label) is int and label == -1):
        return None
    if isinstance(label, GROUP_KINDS) and not isinstance(label, tuple | frozenset):
        raise ParameterError(
            f"A community is named by text or a number; got {label!r:.60}. If these are the members of a community, "
            "pass list(groups.values()) with names=list(groups); if a volunteer is in several communities, use "
            "Communities.from_memberships."
        )
    if not isinstance(label, Hashable):
        raise ParameterError(f"A community is named by text or a number; got {with_article(type(label))}.")
    return label


def _from_label_table(table: Any, names: Iterable[Hashable] | None) -> Shares:
    columns = _table_columns(table)
    return _from_pairs(_table_column(columns, "volunteer"), _table_column(columns, "community"), names)


def _table_columns(table: Any) -> dict[str, list[Any]]:
    from crowdgraph.io._columns import attribute_array, frame_columns

    return {name: to_list(attribute_array(column)) for name, column in frame_columns(table).items()}


def _table_column(columns: Mapping[str, list[Any]], name: str) -> list[Any]:
    if name not in columns:
        raise ColumnError(
            f"The table has no column {name!r}; it has {quote(columns)}.{suggestion(name, list(columns))} Rename the "
            "column, or pass a mapping from volunteers."
        )
    return columns[name]


# Soft communities


def read_memberships(
    memberships: Any,
    *,
    network: VolunteerNetwork | None,
    ids: Iterable[Hashable] | None,
    names: Iterable[Hashable] | None,
    normalise: bool,
) -> Shares:
    """Read soft communities in any of the forms that `Communities.from_memberships` takes."""
    if hasattr(memberships, "columns"):
        shares = _from_share_table(memberships, ids)
    elif isinstance(memberships, Mapping):
        shares = _from_share_mapping(memberships)
    else:
        values = _share_array(memberships)
        volunteers = _row_ids(len(values), network=network, ids=ids, what="memberships")
        shares = Shares(volunteers, values, list(range(values.shape[1])))
    if names is not None:
        shares = shares._replace(names=_group_names(names, len(shares.names)))
    _check_unique(shares.ids)
    return shares._replace(values=_checked_shares(shares, normalise=normalise))


def _from_share_table(table: Any, ids: Iterable[Hashable] | None) -> Shares:
    """Read the columns of a table as shares, but for those of volunteers and their assignment."""
    columns = _table_columns(table)
    if ids is None and "volunteer" not in columns:
        raise ColumnError(
            f"The table has no column 'volunteer'; it has {quote(columns)}. Add it (of pandas, reset_index(names="
            "'volunteer')), or pass ids=[...] in the order of the rows."
        )
    names = [name for name in columns if name not in ("volunteer", "community")]
    values = _share_array(np.column_stack([object_array(columns[name]) for name in names]) if names else [[]])
    volunteers = columns["volunteer"] if ids is None else _row_ids(len(values), network=None, ids=ids, what="shares")
    return Shares([_volunteer_id(volunteer) for volunteer in volunteers], values, [_share_name(name) for name in names])


def _share_name(column: str) -> str | int:
    """Return the community of a column: the number, where the column is one of `Communities.to_frame`."""
    number = re.fullmatch(r"participation\[(\d+)\]", column)
    return column if number is None else int(number[1])


def _from_share_mapping(memberships: Mapping[Any, Any]) -> Shares:
    volunteers = [_volunteer_id(volunteer) for volunteer in memberships]
    rows = list(memberships.values())
    if all(isinstance(row, Mapping) for row in rows):
        names = list(dict.fromkeys(plain(name) for row in rows for name in row))
        by_name = [{plain(name): share for name, share in row.items()} for row in rows]
        table = [[row.get(name, 0.0) for name in names] for row in by_name]
        return Shares(volunteers, _share_array(table).reshape(len(rows), len(names)), names)
    if not all(isinstance(row, Sequence | np.ndarray) and not isinstance(row, str) for row in rows):
        raise ParameterError(
            "memberships= maps each volunteer to the shares of all communities, as a mapping or a sequence; got "
            f"{next(row for row in rows if isinstance(row, str) or not isinstance(row, Sequence | Mapping))!r:.60}."
        )
    values = _share_array(rows)
    return Shares(volunteers, values, list(range(values.shape[1])))


def _share_array(rows: Any) -> Array:
    try:
        values = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Memberships must be numbers, as many for each volunteer: {error}. Give a share of each community, 0 for "
            "those to which a volunteer does not belong."
        ) from error
    if values.ndim != 2 and values.size:
        raise InputError(f"Memberships have shape {values.shape}; expected volunteers and communities, (V, K).")
    return values if values.ndim == 2 else values.reshape(len(values), 0)


def _checked_shares(shares: Shares, *, normalise: bool) -> Array:
    """Return shares that sum to one, or to zero for volunteers of no community."""
    values = shares.values
    for wrong, words in ((~np.isfinite(values), "not finite"), (values < 0, "negative")):
        if wrong.any():
            volunteers = [shares.ids[row] for row in np.flatnonzero(wrong.any(axis=1))]
            raise InputError(f"Some shares are {words}: those of {quote(volunteers, most=3)}. Shares are from 0 to 1.")
    sums = values.sum(axis=1)
    if normalise:
        return np.asarray(values / np.where(sums > 0, sums, 1.0)[:, None])
    off = np.flatnonzero((np.abs(sums - 1) > TOLERANCE) & (sums > 0))
    if len(off):
        raise InputError(
            f"The shares of {quantity(len(off), 'volunteer')} do not sum to one: those of {shares.ids[off[0]]!r} sum "
            f"to {sums[off[0]]:g}. Correct them, or pass normalise=True to divide them by their sum."
        )
    return values
