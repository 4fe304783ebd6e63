"""The gate: did a change make any benchmark of a suite slower? Both versions, in one session."""

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__, {"data": "Gate", "measuring": "measure_gate", "sides": "Sources"}
)
