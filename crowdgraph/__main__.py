"""``python -m crowdgraph`` is the command ``crowdgraph``."""

from crowdgraph.cli import main

if __name__ == "__main__":
    main()
