"""The extension point of the workbench: a generator of load for a server."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from benchrigor.workbench.data import LoadResult, LoadTrial


@runtime_checkable
class LoadGenerator(Protocol):
    """Offers a load to a server.

    Laws: the mean rate is the load of the trial; response times count from the scheduled time of a
    request; failed requests are counted.
    """

    def offer(self, trial: LoadTrial) -> LoadResult:
        """Carry out a trial."""
