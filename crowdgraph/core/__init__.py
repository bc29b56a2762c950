"""The graph, and the results that annotate it."""
