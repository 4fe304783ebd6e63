"""One campaign: asks a planner, has its plans carried out, and keeps what comes of them.

A search for a peak, a map and a choice are carried out in this way. Their results are rounds of a
run, which a later process takes up.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ParamSpec, Protocol

from benchrigor.errors import BenchrigorError
from benchrigor.model import Analysis, Decision, Round, RoundPlan, RunRecord, StopReason, codec
from benchrigor.model.analysis import Kind
from benchrigor.protocols import Store
from benchrigor.workbench.on_host import Outcome

A = ParamSpec("A")
Submit = Callable[[Any], Future[Outcome]]


class Carried(Protocol):
    """A planner, and the state that a campaign keeps of it."""

    def ask(self) -> Any | None:
        """Return the next plan, or None as long as others are under way."""

    def tell(self, plan: Any, outcome: Any, spent_s: float, /) -> Round | None:
        """Take the outcome of a plan; return the round to keep, None for nothing."""

    def result(self) -> Any:
        """Return the result so far."""

    def estimates(self) -> Iterable[Mapping[str, Any]]:
        """Return the state of each metric so far: fields of its `Analysis`."""

    def summary(self) -> Mapping[str, Any]:
        """Return the parts of the result to store, by name, as its rounds do not show them."""
        return {}

    def reason(self) -> StopReason:
        """Return why it asks for no further plan."""


class Campaign:
    """Carries out a planner; its results are rounds, which a store keeps one by one.

    Parameters
    ----------
    carried
        The planner.
    kind
        Of the subject of the run; it identifies such runs.
    subject
        The facts that a later process needs to continue, by name.
    store
        The store of rounds; None without one.
    now_ns
        A clock, for a deadline.
    fields
        Further fields of the record: name, metrics, options, provenance.
    """

    def __init__(
        self,
        carried: Carried,
        kind: str,
        subject: Mapping[str, Any],
        store: Store | None,
        *,
        now_ns: Callable[[], int] = time.perf_counter_ns,
        **fields: Any,
    ) -> None:
        facts = {"kind": kind, **subject}
        self._header = RunRecord(seed=0, rounds=(), analyses=(), subject=facts, **fields)
        self._carried, self._store, self._now_ns = carried, store, now_ns
        self._decision: Decision | None = None
        self.rounds = list[Round]()
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

    def carry_out(
        self,
        submit: Submit,
        *,
        read: Callable[[Any, Outcome], Any] = lambda _, outcome: outcome.value,
        at_once: int = 1,
        deadline_s: float = float("inf"),
        after: Callable[[], object] = lambda: None,
    ) -> Any:
        """Have plans carried out until the planner asks for no further one; return the result.

        ``submit`` begins a plan, up to ``at_once`` together; no plan begins after ``deadline_s``.
        ``read`` makes the answer to a plan of its `Outcome`.
        ``after`` is called when a result is kept. Of plans that end together, those that raise come
        last. Errors and Ctrl-C have the run so far as ``record``.
        """
        self.begin()
        late_ns = self._now_ns() + 1e9 * deadline_s
        running: dict[Future[Outcome], Any] = {}
        try:
            while True:
                while (
                    len(running) < at_once
                    and self._now_ns() < late_ns
                    and (plan := self._carried.ask()) is not None
                ):
                    running[submit(plan)] = plan
                if not running:
                    break
                ended = wait(running, return_when=FIRST_COMPLETED).done
                for future in sorted(ended, key=lambda future: future.exception() is not None):
                    plan, outcome = running.pop(future), future.result()
                    finished = self._carried.tell(plan, read(plan, outcome), outcome.spent_s)
                    if finished is not None:
                        self._keep(finished)
                        after()
        except (BenchrigorError, KeyboardInterrupt) as error:
            error.record = self.record()  # type: ignore[union-attr]
            raise
        reason = self._carried.reason()
        if reason is StopReason.EXHAUSTED and self._now_ns() >= late_ns:
            reason = StopReason.TIME_BUDGET
        self._decision = Decision(stop=True, reason=reason)
        if self._store is not None and self.run_id is not None:
            self._store.finish(self.run_id, self.record())
        return self._carried.result()

    def _keep(self, finished: Round) -> None:
        self.rounds.append(finished)
        if self._store is not None and self.run_id is not None:
            self._store.append(self.run_id, finished)

    def record(self) -> RunRecord:
        """Return the run so far, with the decision once it is over."""
        how: dict[str, Any] = {"kind": Kind.READINGS, "n": len(self.rounds)}
        summary = {} if self._decision is None else self._carried.summary()
        return replace(
            self._header,
            subject={**self._header.subject, **summary},
            rounds=tuple(self.rounds),
            analyses=tuple(Analysis(**how, **estimate) for estimate in self._carried.estimates()),
            decision=self._decision,
            run_id=self.run_id,
        )


def round_of(
    index: int,
    cost_s: float,
    facts: Mapping[str, Any],
    readings: Mapping[str, float] = MappingProxyType({}),
    **plan: Any,
) -> Round:
    """Return the result of a plan as it is stored: facts by the codec, as `fact_in` reads them."""
    texts = {
        name: value if isinstance(value, str) else json.dumps(codec.encode(value))
        for name, value in facts.items()
        if value
    }
    asked, elapsed_ns = RoundPlan(index=index, **plan), round(cost_s * 1e9)
    return Round(plan=asked, elapsed_ns=elapsed_ns, readings=readings, facts=texts)


def fact_in(finished: Round, name: str) -> Any:
    """Return a fact of a round as plain data; an empty list if it has none."""
    return json.loads(str(finished.facts.get(name, "[]")))


@contextmanager
def telling_what_was_cut(campaign: Campaign, tell: Callable[[], object]) -> Iterator[None]:
    """Report the result so far if an error or Ctrl-C ends a campaign."""
    try:
        yield
    except (BenchrigorError, KeyboardInterrupt):
        if campaign.rounds:
            tell()
        raise


def here(measure: Callable[A, object]) -> Callable[A, Future[Outcome]]:
    """Return a function that has a plan carried out here, and returns a finished future."""

    def submit(*plan: A.args, **how: A.kwargs) -> Future[Outcome]:
        future, begun_s = Future[Outcome](), time.monotonic()
        value = measure(*plan, **how)
        future.set_result(Outcome(value=value, spent_s=time.monotonic() - begun_s))
        return future

    return submit
