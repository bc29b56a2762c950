"""Read graphs from tables and files, and convert or write graphs and networks."""
