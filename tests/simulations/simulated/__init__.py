"""Data with known truth, drawn from generators that a test seeds."""
