"""Probes: timers that stay in a program, and their readings while it runs."""
