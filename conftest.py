"""Import packages as a whole before pytest imports single files, which would hide functions of the same name."""

import crowdgraph.networks  # noqa: F401
