"""The table of Dawid and Skene (1979): 45 patients, graded by five clinicians, one of whom saw each three times."""

from __future__ import annotations

from crowdgraph.core.graph import CrowdGraph

__all__ = ["dawid_skene_1979"]

# A word for each patient: the three grades of clinician 1, then those of clinicians 2 to 5.
GRADES = """
1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223 2322223 4444444 2223343 1111111 2223212 1211111
1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111 2322222 1111111 1111111 1121121
1111111 3333233 1111111 2222222 2223232 4334343 2212232 2323233 3333432 1111111 1111111 1212111 2322222 1211111 2222222
"""
CLINICIANS = "1112345"


def dawid_skene_1979() -> CrowdGraph:
    """Return who graded how fit each patient is for a general anaesthetic, from 1 to 4."""
    rows = [
        (clinician, str(patient), int(grade))
        for patient, grades in enumerate(GRADES.split(), start=1)
        for clinician, grade in zip(CLINICIANS, grades, strict=True)
    ]
    clinicians, patients, grades = zip(*rows, strict=True)
    return CrowdGraph.from_responses(
        {"volunteer": [*clinicians], "item": [*patients], "label": [*grades]}, labels=[1, 2, 3, 4]
    )
