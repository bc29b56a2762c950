"""Communities over time."""
