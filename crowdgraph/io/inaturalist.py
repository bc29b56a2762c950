"""Identifications of iNaturalist."""

from __future__ import annotations

from os import PathLike
from typing import Any

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.io._annotations import AnnotationLog, Malformed, member, read_text, time_of
from crowdgraph.io.frames import check_options

__all__ = ["read_inaturalist"]


def read_inaturalist(
    path: str | PathLike[str], *, malformed: Malformed = "error", gold: Any = None, **options: Any
) -> CrowdGraph:
    r"""Read a graph from identifications of iNaturalist, as its API returns them.

    The file holds what ``/v1/identifications`` returns, or ``/v1/observations``, whose observations have
    identifications; also as a plain array or JSON lines, so that pages can be put one after the other. Items are
    observations, volunteers are the logins of users, labels are the names of taxa, at the rank at which they were
    identified, and times are when identifications were created. Identifications that were withdrawn or hidden are left
    out with a warning that counts them.

    Parameters
    ----------
    path
        The file, plain or compressed.
    malformed, gold, **options
        As in `crowdgraph.read_label_studio`; gold is only what you give.

    Examples
    --------
    >>> import crowdgraph as cg, json, pathlib, tempfile
    >>> one = {"id": 9, "created_at": "2026-05-02T16:11:46-05:00", "current": True, "user": {"id": 1, "login": "anna"},
    ...        "taxon": {"id": 3, "name": "Turdus merula", "rank": "species"}, "observation": {"id": 77}}
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "identifications.json"
    >>> _ = path.write_text(json.dumps({"total_results": 1, "page": 1, "per_page": 200, "results": [one]}))
    >>> cg.read_inaturalist(path).responses[0].label
    'Turdus merula'
    """
    check_options(read_inaturalist, options)
    log = AnnotationLog(path, "inaturalist", malformed=malformed)

    def identification(record: dict[str, Any], item: Any) -> None:
        user, taxon = member(record, "user", dict), member(record, "taxon", dict)
        if record.get("current") is False:
            log.leave_out("were withdrawn")
        elif record.get("hidden"):
            log.leave_out("are hidden")
        else:
            log.add(
                user.get("login") or user.get("id"), item, {"taxon": member(taxon, "name", str)}, time=time_of(record)
            )

    def take(record: dict[str, Any]) -> None:
        if "results" in record:
            log.each(member(record, "results", list), take)
        elif "identifications" in record:
            parts = member(record, "identifications", list)
            log.each(parts, lambda part: identification(part, record.get("id")))
        else:
            identification(record, member(record, "observation", dict).get("id"))

    for record in log.records(read_text(path)):
        log.each([record], take)
    return log.graph(question=None, gold=gold, options=options)
