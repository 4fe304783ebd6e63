"""Estimates of a peak from trials, and the required number and length of trials."""
