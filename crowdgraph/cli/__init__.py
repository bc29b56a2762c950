"""The ``crowdgraph`` command: thin, every subcommand is a call that a user could make in Python."""

from crowdgraph.cli.app import app, main

__all__ = ["app", "main"]
