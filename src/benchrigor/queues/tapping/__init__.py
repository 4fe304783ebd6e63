"""Counts the items of all kinds of sources, which keep their usual behaviour."""
