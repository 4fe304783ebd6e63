"""Counters of the ends of queues, in memory that processes share."""
