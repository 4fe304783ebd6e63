"""Interference of a run: segments, groups, thresholds, traffic light."""
