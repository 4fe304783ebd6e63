"""Keeping runs: a journal in one SQLite file, append only, that survives a kill."""

from __future__ import annotations

from benchrigor.storage.journal import Journal, default_path

__all__ = ["Journal", "default_path"]
