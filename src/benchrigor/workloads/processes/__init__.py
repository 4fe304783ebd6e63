"""Processes that a workload starts: their end, and how long they waited."""
