"""The analysis of a run that was cut off, made from its rounds."""

from __future__ import annotations

from dataclasses import replace

from benchrigor.model import RunRecord
from benchrigor.session.engine import Engine

__all__ = ["retraced"]


def retraced(record: RunRecord) -> RunRecord:
    """Analyse the rounds of a run that was cut off before its result was written down.

    A record with a decision comes back as it is.
    """
    if record.decision is not None or not record.rounds:
        return record
    engine = Engine(
        record.options,
        record.metrics or None,
        seed=record.seed,
        name=record.name,
        subject=record.subject,
    )
    for finished in record.rounds:
        engine.replay(finished)
    return replace(engine.result(), provenance=record.provenance, run_id=record.run_id)
