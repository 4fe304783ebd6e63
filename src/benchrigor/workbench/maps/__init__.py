"""Carries out maps: their file, the life cycle of the server, and stored samples."""
