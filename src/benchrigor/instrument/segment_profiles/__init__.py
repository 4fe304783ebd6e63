"""Segments of a Python program, recorded while it runs."""
