"""Ends a trial after the budget of a search is spent."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager

from benchrigor.model.options import LATEST
from benchrigor.workloads.processes.time_limits import Patience


class _Overtime(Patience):
    """Ends the code inside at the first check, two seconds after the time is up."""

    def _is_late(self) -> bool:
        return True


def ended_with_budget(left_s: float) -> AbstractContextManager[None]:
    """Raise CallOverran inside, two seconds after the seconds left of a budget have passed.

    `Patience` documents where it cannot interrupt.
    """
    is_limited = left_s < threading.TIMEOUT_MAX
    return _Overtime().kept(max(left_s, 0.0) / LATEST if is_limited else None)
