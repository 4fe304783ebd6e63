"""Shared parts of the scripts of evidence."""
