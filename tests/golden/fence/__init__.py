"""The golden fence: cases whose results are recorded, and what their results are held against.

Cases speak to the lobbies of benchrigor only, so that modules may move behind them.
"""

from __future__ import annotations

from fence import (
    changes,
    doors,
    estimates,
    files,
    interference,
    lines,
    measuring,
    paced,
    planning,
    rounds,
    sessions,
    sides,
    stages,
)
from fence.cases import CASES

__all__ = [
    "CASES",
    "changes",
    "doors",
    "estimates",
    "files",
    "interference",
    "lines",
    "measuring",
    "paced",
    "planning",
    "rounds",
    "sessions",
    "sides",
    "stages",
]
