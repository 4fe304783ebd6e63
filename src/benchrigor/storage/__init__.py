"""Keeping runs: a journal in one SQLite file, append only, that survives a kill.

`Journal` implements the `benchrigor.protocols.Store` protocol; `default_path` is where it lies
unless somebody says otherwise.
"""

from __future__ import annotations

from benchrigor.storage.journal import Journal, default_path

__all__ = ["Journal", "default_path"]
