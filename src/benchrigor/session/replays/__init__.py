"""Recorded readings, replayed under other rules."""
