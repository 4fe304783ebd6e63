"""The extension point of the workbench: what offers a load to a server."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from benchrigor.workbench.data import LoadResult, LoadTrial


@runtime_checkable
class LoadGenerator(Protocol):
    """Offers a load to a server.

    Laws: the mean rate is that of the trial; response times count from when a request was to be
    sent; failed requests are counted.
    """

    def offer(self, trial: LoadTrial) -> LoadResult:
        """Carry out a trial."""
