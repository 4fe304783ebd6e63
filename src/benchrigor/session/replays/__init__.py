"""Recorded readings, analysed again."""
