"""Several things measured in turn, piece by piece."""
