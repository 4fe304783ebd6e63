"""Readings of probes, a hub's views of nodes, and advice."""
