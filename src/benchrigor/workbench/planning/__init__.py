"""Policies without I/O: they choose the next trial or sample, and when to stop."""
