"""The golden fence: cases whose results are recorded, and what their results are held against.

Cases speak to the lobbies of benchrigor only, so that modules may move behind them.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from fence.cases import CASES

__all__ = ["CASES"]

for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
    import_module(f"fence.{path.stem}")  # which enters its cases
