"""Recorded readings judged once more."""
