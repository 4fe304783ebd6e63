"""Whose turn is next, and how much of it: schedules, which see no ratio."""
