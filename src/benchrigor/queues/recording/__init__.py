"""Recorded periods of stages: reading them, writing them, and their rates."""
