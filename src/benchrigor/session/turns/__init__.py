"""Several things measured in turn, a piece of each at a time."""
