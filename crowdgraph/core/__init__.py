"""Everything a user holds: the graph and the results that annotate it. NumPy and SciPy only."""
