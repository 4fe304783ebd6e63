"""Surfaces: how an answer depends on the configuration and on the workload."""
