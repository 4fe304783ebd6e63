"""Refusals of stores, and of reasons to stop."""

from collections.abc import Iterator

from tests.texts.rendering import tried

from benchrigor.model import Decision, Options, Round, RoundPlan, RunRecord
from benchrigor.storage import Journal
from benchrigor.testing import MemoryStore

HEADER = RunRecord(
    name="sort", options=Options(), metrics=(), seed=1, rounds=(), analyses=(), provenance=None
)
ROUND = Round(plan=RoundPlan(index=3), elapsed_ns=1, readings={"time": 1.0})


def stored_twice() -> Iterator[str]:
    """Return what either store says of a round that it has."""
    with Journal("runs.sqlite") as journal:
        for store in (journal, MemoryStore()):
            run_id = store.begin(HEADER)
            store.append(run_id, ROUND)
            yield from tried(store.append, (run_id, ROUND))


CAUSES = {
    "a round that is stored already": stored_twice,
    "not a reason to stop": lambda: tried(
        lambda reason: Decision(stop=True, reason=reason), None, "battery-low"
    ),
}
