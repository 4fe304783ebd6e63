"""Recorded series of what stages did: reading them, writing them, and their rates."""
