"""Pseudonyms for volunteers, before anything is published: the key stays with the team, in a file of its own."""

from __future__ import annotations

import os
import secrets
from collections.abc import Hashable, Mapping
from os import PathLike, fspath
from pathlib import Path

import pyarrow as pa

from crowdgraph.core._arrays import id_array, lock
from crowdgraph.core._parameters import check_bool, check_instance
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.tables import NodeTable, ResponseTable
from crowdgraph.errors import InputError, ParameterError, StoreError
from crowdgraph.io._cells import write_csv
from crowdgraph.io._files import atomic_file, is_file
from crowdgraph.io.csv import csv_table
from crowdgraph.messages import Hint, quote

__all__ = ["pseudonymise"]

# What else of a response says who gave it.
NAMING_ATTRIBUTES = ("user_id", "user_ip")
COLUMNS = ("volunteer", "pseudonym")
# How the names of metadata begin that Zooniverse shows to nobody, such as where a rare animal was seen.
HIDDEN = ("#", "!", "//")


def pseudonymise(graph: CrowdGraph, *, key: str | PathLike[str], reuse: bool = False) -> CrowdGraph:
    """Return the graph with pseudonyms instead of the volunteers' names, and write who is who to a file.

    Pseudonyms are drawn at random, so that they say nothing without the key: keep that to yourself. What else says who
    gave a response (`user_id`, `user_ip`) is left out, as are results, which name volunteers, and
    attributes of items that Zooniverse shows to nobody, whose names begin with ``#``, ``!`` or ``//``.

    Parameters
    ----------
    graph
        The graph.
    key
        The file to write, CSV with the columns `volunteer` and `pseudonym`; only you may read it.
    reuse
        Whether to take the pseudonyms of a key that is there already, and add those of volunteers who are new.

    Examples
    --------
    >>> import crowdgraph as cg, pathlib, tempfile
    >>> key = pathlib.Path(tempfile.mkdtemp()) / "key.csv"
    >>> graph = cg.CrowdGraph.from_responses({"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": [1, 3]})
    >>> hidden = cg.pseudonymise(graph, key=key)
    >>> "anna" in hidden, len(hidden.volunteers), key.is_file()
    (False, 2, True)
    """
    check_instance("graph", graph, CrowdGraph)
    check_bool("reuse", reuse)
    known = _known(key) if reuse else {}
    if not reuse and Path(key).exists():
        raise StoreError(
            f"{fspath(key)!r} is there already, and with another key nobody could tell who was who.",
            hint=Hint(
                "Use its pseudonyms with reuse=True, or name another file.",
                cli="Use its pseudonyms with --reuse-pseudonyms, or name another file.",
            ),
        )
    names = [str(name) for name in graph.volunteers.ids.tolist()]
    if len(set(names)) < len(names):
        raise ParameterError(
            "Two volunteers are written alike, so a key could not tell them apart; rename one of them."
        )
    pseudonyms = {**known, **_drawn([name for name in names if name not in known], set(known.values()))}
    hidden = _renamed(graph, [pseudonyms[name] for name in names])
    if len(pseudonyms) > len(known) or not reuse:
        _write(pseudonyms, key)
    return hidden


def _drawn(names: list[str], taken: set[str]) -> dict[str, str]:
    """Return a pseudonym for each name, in random order, that nobody has yet."""
    pseudonyms: dict[str, str] = {}
    for name in names:
        pseudonym = ""
        while not pseudonym or pseudonym in taken:
            pseudonym = f"volunteer-{secrets.token_hex(4)}"
        taken.add(pseudonym)
        pseudonyms[name] = pseudonym
    return pseudonyms


def _renamed(graph: CrowdGraph, pseudonyms: list[str]) -> CrowdGraph:
    table, items, responses = graph.volunteers.table, graph.items.table, graph.responses.table
    shown = [name for name in items.attributes if not name.startswith(HIDDEN)]
    return CrowdGraph(
        NodeTable("volunteer", lock(id_array(pseudonyms)), dict(table.attributes)),
        NodeTable("item", items.ids, {name: items.attributes[name] for name in shown}),
        ResponseTable(
            volunteer=responses.volunteer,
            item=responses.item,
            label=responses.label,
            time=responses.time,
            clock=responses.clock,
            attributes={name: column for name, column in responses.attributes.items() if name not in NAMING_ATTRIBUTES},
        ),
        classes=graph.classes,
        labels=graph.labels,
        gold=graph.gold,
    )


def _known(key: str | PathLike[str]) -> dict[str, str]:
    """Return the pseudonyms of a key."""
    if not is_file(key):
        raise InputError(
            f"There is no key {fspath(key)!r}.",
            hint=Hint("Leave out reuse= to make one.", cli="Leave out --reuse-pseudonyms to make one."),
        )
    table = csv_table(key, text=COLUMNS)
    absent = [name for name in COLUMNS if name not in table.column_names]
    if absent:
        raise InputError(f"{fspath(key)!r} is no key of pseudonyms: it lacks the columns {quote(absent)}.")
    pairs = list(zip(*(table[name].to_pylist() for name in COLUMNS), strict=True))
    known = dict(pairs)
    if len(known) < len(pairs) or len(set(known.values())) < len(pairs) or None in known or None in known.values():
        raise InputError(f"{fspath(key)!r} is no key of pseudonyms: a name or a pseudonym is missing or repeats.")
    return known


def _write(pseudonyms: Mapping[Hashable, str] | Mapping[str, str], key: str | PathLike[str]) -> None:
    """Write who is who to a file that only its owner may read."""
    columns = zip(*sorted(pseudonyms.items(), key=lambda pair: pair[1]), strict=True)
    table = pa.table({name: pa.array(values, pa.string()) for name, values in zip(COLUMNS, columns, strict=True)})
    with atomic_file(key) as part:
        part.chmod(0o600)
        write_csv(table, os.fspath(part))
