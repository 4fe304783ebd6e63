"""The gate: did a change make any benchmark of a suite slower? Both versions, in one session.

Names are resolved on first use, so that a program imports only the names it needs.
"""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "result": "Gate",
        "measuring": "measure_gate",
        "ratios": "Block Ratios",
        "sides": "Side Sources",
        "suite": "Pass",
    },
)
__all__ = list(__dir__())
