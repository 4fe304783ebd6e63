"""A run in progress, with its rounds so far, which are written into a store if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from benchrigor.errors import BenchrigorError
from benchrigor.model import (
    Analysis,
    Decision,
    Round,
    RunRecord,
    StopReason,
)
from benchrigor.protocols import Store


class KeptRun:
    """A run that gets its rounds one by one.

    Parameters
    ----------
    kind
        Of its subject; it identifies such runs.
    subject
        The facts that a later process needs to continue, by name.
    store
        The store of rounds; None without one.
    fields
        Further fields of its record: name, metrics, options, provenance.

    Examples
    --------
    >>> from benchrigor.model import Options, RoundPlan
    >>> run = KeptRun("peak", {}, None, name="a server", metrics=(), options=Options())
    >>> run.add(Round(plan=RoundPlan(index=0), elapsed_ns=1, readings={}))
    >>> len(run.record().rounds), run.run_id
    (1, None)
    """

    def __init__(
        self, kind: str, subject: Mapping[str, Any] | None, store: Store | None, **fields: Any
    ) -> None:
        facts = {"kind": kind, **(subject or {})}
        self._header = RunRecord(seed=0, rounds=(), analyses=(), subject=facts, **fields)
        self._store, self.rounds = store, list[Round]()
        self.run_id: str | None = None

    def take_up(self, record: RunRecord) -> None:
        """Continue a stored run."""
        self._header = replace(self._header, subject=record.subject, provenance=record.provenance)
        self.rounds, self.run_id = list(record.rounds), record.run_id

    def begin(self) -> str | None:
        """Open the run in the store, once, and return its id; None without a store."""
        if self._store is not None and self.run_id is None:
            self.run_id = self._store.begin(self._header)
        return self.run_id

    def add(self, finished: Round) -> None:
        """Add and store a round."""
        self.rounds.append(finished)
        if self._store is not None and self.run_id is not None:
            self._store.append(self.run_id, finished)

    def finish(self, record: RunRecord) -> None:
        """Close the run in the store; ``record`` is the whole run."""
        if self._store is not None and self.run_id is not None:
            self._store.finish(self.run_id, record)

    def record(self, *analyses: Analysis, reason: StopReason | None = None) -> RunRecord:
        """Return the run so far, with analyses of its rounds, and the reason if it is over."""
        return replace(
            self._header,
            rounds=tuple(self.rounds),
            analyses=analyses,
            decision=None if reason is None else Decision(stop=True, reason=reason),
            run_id=self.run_id,
        )


@contextmanager
def keep_record(record: Callable[[], RunRecord]) -> Iterator[None]:
    """Attach the run so far to errors and Ctrl-C, as their ``record``."""
    try:
        yield
    except (BenchrigorError, KeyboardInterrupt) as error:
        error.record = record()  # type: ignore[union-attr]
        raise
