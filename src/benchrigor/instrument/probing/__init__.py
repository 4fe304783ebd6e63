"""Probes: timers that stay in a program, and what is read from them while it runs."""
