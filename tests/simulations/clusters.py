"""Clusters of Dask on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def cluster_of(names: Sequence[str], resources: dict[str, float] | None = None) -> Any:
    """Return a cluster with a worker for each name, which starts another one when it is killed."""
    from distributed import Nanny, Scheduler, SpecCluster  # noqa: PLC0415  # slow to load

    given = {"host": 1} if resources is None else resources
    options = {"resources": given, "nthreads": 2, "dashboard": False}
    return SpecCluster(
        workers={name: {"cls": Nanny, "options": {**options, "name": name}} for name in names},
        scheduler={"cls": Scheduler, "options": {"dashboard_address": ":0", "port": 0}},
        silence_logs=50,
    )
