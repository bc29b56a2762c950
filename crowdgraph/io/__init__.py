"""Doors in and out: tables, files, networkx, igraph and torch."""
