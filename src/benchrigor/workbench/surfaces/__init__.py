"""Surfaces: how a response depends on the configuration and the workload."""
