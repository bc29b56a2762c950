"""Networks of volunteers: who behaves alike, who works on the same items, and who errs together; and their contacts."""

from typing import TYPE_CHECKING, Any

from crowdgraph.core._other_names import missing_from_module
from crowdgraph.networks.contact_list import Contacts, contacts
from crowdgraph.networks.error_correlation import error_correlation
from crowdgraph.networks.error_pairs import ErrorPairs, error_pairs
from crowdgraph.networks.pi_similarity import pi_similarity
from crowdgraph.networks.task_cooccurrence import task_cooccurrence

__all__ = [
    "Contacts",
    "ErrorPairs",
    "contacts",
    "error_correlation",
    "error_pairs",
    "pi_similarity",
    "task_cooccurrence",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        raise missing_from_module(__name__, name)


def __dir__() -> list[str]:
    return __all__
