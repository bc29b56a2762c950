"""The interfaces of other libraries, with crowdgraph's models inside."""

from crowdgraph.compat import crowdkit

__all__ = ["crowdkit"]


def __dir__() -> list[str]:
    return __all__
