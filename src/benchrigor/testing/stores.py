"""A store in memory, for tests of whatever keeps runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchrigor.errors import StoreFailed
from benchrigor.model import Round, RunRecord


class MemoryStore:
    """Keeps runs as long as it lives; the ids count up from ``"run-1"``.

    It passes the same laws as the journal, apart from outliving its process.

    Examples
    --------
    >>> from benchrigor.model import Options, RoundPlan
    >>> store = MemoryStore()
    >>> run_id = store.begin(RunRecord(name="sort", options=Options(), metrics=(), seed=1,
    ...                                rounds=(), analyses=()))
    >>> store.append(run_id, Round(plan=RoundPlan(index=0), elapsed_ns=5, readings={"time": 5e-9}))
    >>> run_id, len(store.load(run_id).rounds)
    ('run-1', 1)
    """

    def __init__(self) -> None:
        self._headers: dict[str, RunRecord] = {}
        self._rounds: dict[str, dict[int, Round]] = {}
        self._results: dict[str, list[tuple[int, RunRecord]]] = {}

    def begin(self, header: RunRecord) -> str:
        """Open a run and return its id."""
        run_id = f"run-{len(self._headers) + 1}"
        self._headers[run_id] = header
        self._rounds[run_id] = {}
        self._results[run_id] = []
        return run_id

    def append(self, run_id: str, finished: Round) -> None:
        """Keep a finished round; StoreFailed if the run holds a round of that index."""
        rounds = self._rounds[self._full_id(run_id)]
        index = finished.plan.index
        if index in rounds:
            raise StoreFailed(f"round {index} of run {run_id} is stored already")
        rounds[index] = finished

    def finish(self, run_id: str, record: RunRecord) -> None:
        """Keep the result of a run, as of the rounds appended so far."""
        self._results[self._full_id(run_id)].append((len(self._rounds[run_id]), record))

    def runs(self, query: str = "") -> list[dict[str, Any]]:
        """List the runs with ``query`` in their id or name, newest first."""
        return [
            self._summary(run_id, header)
            for run_id, header in reversed(self._headers.items())
            if query in run_id or query in header.name
        ]

    def load(self, run_id: str) -> RunRecord:
        """Return the record of a run, finished or not."""
        rounds = self._rounds[self._full_id(run_id)]
        record = self._result(run_id) or self._headers[run_id]
        in_order = tuple(rounds[index] for index in sorted(rounds))
        return replace(record, rounds=in_order, run_id=run_id)

    def _full_id(self, run_id: str) -> str:
        if run_id not in self._headers:
            raise StoreFailed(f"no run {run_id!r}, expected one of {list(self._headers)}")
        return run_id

    def _result(self, run_id: str) -> RunRecord | None:
        """Return the latest result, unless a round was appended after it."""
        count, record = next(reversed(self._results[run_id]), (None, None))
        return record if count == len(self._rounds[run_id]) else None

    def _summary(self, run_id: str, header: RunRecord) -> dict[str, Any]:
        result = self._result(run_id)
        decision = result.decision if result else None
        return {
            "run_id": run_id,
            "name": header.name,
            "started_at": header.provenance.started_at if header.provenance else "",
            "commit": header.provenance.commit if header.provenance else None,
            "rounds": len(self._rounds[run_id]),
            "finished": result is not None,
            "reason": str(decision.reason) if decision and decision.reason else None,
            "headline": str(result) if result else "",
        }
