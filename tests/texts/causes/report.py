"""Texts about a run: its line, its page, all that is known of it, and how that came about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from simulated.paced import paced

import benchrigor as br
from benchrigor.model import (
    Code,
    Decision,
    Metric,
    Notice,
    Options,
    Reason,
    RunRecord,
    StopReason,
)
from benchrigor.report import explain, render
from benchrigor.report.fact import page_of, page_of_facts
from benchrigor.report.facts.reading_facts import explain_reading
from benchrigor.report.tables import facts_of_runs
from benchrigor.testing import FakeClock, StepWarmUp, SyntheticWorkload

Draw = Callable[[int], np.ndarray]
TIME = Metric(name="time", unit="s")
RATE = Metric(name="rate", unit="B/s", direction="higher", averaging="harmonic")  # type: ignore[arg-type]


def synthetic(**given: object) -> RunRecord:
    """Run what warms up."""
    clock = FakeClock()
    options = Options(**{"target": 0.01, "budget_s": 30.0, **given})  # type: ignore[arg-type]
    workload = SyntheticWorkload(
        mean=0.001,
        cv=0.1,
        warm_up=StepWarmUp(amplitude=2.0, length=80),
        restarted=options.rounds == "restarted",
        seed=1,
        clock=clock,
    )
    record = br.Session(options, seed=1, clock=clock, name="synthetic").run(workload)
    return replace(record, provenance=None)


def told(draw: Draw, metric: Metric = TIME, inner_loop: int = 1, **given: object) -> RunRecord:
    """Return the record of a session with drawn readings."""
    session = br.Session(Options(**given), (metric,), name="told", seed=1)  # type: ignore[arg-type]
    while (plan := session.ask()) is not None:
        values = {metric.name: draw(plan.readings)}
        facts = {"inner_loop": inner_loop}
        taken_ns = plan.readings * 1_000_000
        session.tell(br.Round(plan=plan, elapsed_ns=taken_ns, unit_readings=values, facts=facts))
    return replace(session.result(), provenance=None)


def bimodal(scale: float = 1e-3) -> Draw:
    """Draw times of two levels."""
    rng = np.random.default_rng(1)
    return lambda n: scale * (np.where(rng.random(n) < 0.7, 1.07, 1.9) + rng.normal(0.0, 0.02, n))


def steady() -> Draw:
    """Draw times of one level."""
    rng = np.random.default_rng(1)
    return lambda n: rng.normal(100.0, 10.0, n)


def autocorrelated() -> Draw:
    """Draw times that resemble the one before."""
    rng = np.random.default_rng(2)
    return lambda n: 100.0 + np.repeat(rng.normal(0.0, 10.0, n // 5 + 1), 5)[:n]


def fresh_starts() -> Draw:
    """Draw the times of one start, with its level and its warm-up."""
    rng = np.random.default_rng(3)
    return lambda n: (
        rng.normal(100.0, 3.0) + rng.normal(0.0, 1.0, n) + np.where(np.arange(n) < 60, 50, 0)
    )


def few(*seconds: float) -> RunRecord:
    """Return a run of restarted rounds of a reading each."""
    session = br.Session(Options(target=0.02, rounds="restarted", max_rounds=len(seconds)), seed=1)
    for reading_s in seconds:
        taken = np.array([reading_s])
        session.tell(br.Round(plan=session.ask(), elapsed_ns=1, unit_readings={"time": taken}))
    return replace(session.result(), provenance=None)


def ended(reason: StopReason | None, *notices: Notice, name: str = "sort") -> RunRecord:
    """Return a run without a number, that ended so."""
    record = synthetic(max_rounds=1, budget_readings=3)
    refusal = Notice.of(Code.TOO_FEW_READINGS, n=1, wanted_=2)
    analysis = replace(record.analyses[0], n=3, notices=(refusal, *notices))
    decision = None if reason is None else Decision(stop=True, reason=reason)
    return replace(record, name=name, analyses=(analysis,), decision=decision)


def missed(reason: StopReason) -> str:
    """Return the page of a run that ended so before its target."""
    few = Notice.of(Code.FEW_INVOCATIONS, invocations=6, wanted=10)
    short = Notice.of(Code.NOT_CONVERGED)
    record = synthetic(target=1e-5, budget_readings=200)
    return page_of(
        replace(
            record,
            decision=Decision(stop=True, reason=reason),
            session_notices=(few, short),
            analyses=tuple(replace(analysis, notices=()) for analysis in record.analyses),
        )
    )


def run_under_pressure(**facts: float) -> RunRecord:
    """Return a run with facts of the machine in its rounds, a fifth of them in the second one."""
    record = synthetic(max_rounds=3, target=None)
    one, two, three = record.rounds
    told = {f"machine: {name}": value for name, value in facts.items()}
    one = replace(one, facts={**one.facts, "machine: span_s": 1.0, **told})
    less = {name: value / 5.0 for name, value in told.items()}
    two = replace(two, facts={**two.facts, "machine: span_s": 3.0, **less})
    three = replace(three, facts={**three.facts, "machine: span_s": 90.0})
    return replace(record, rounds=(one, two, three))


RECORDS: dict[str, Callable[[], RunRecord]] = {
    "satisfied": synthetic,
    "out of budget": lambda: synthetic(target=1e-5, budget_readings=2000),
    "restarted": lambda: synthetic(rounds="restarted"),
    "restarted, of the median": lambda: synthetic(rounds="restarted", statistic="median"),
    "nothing measured": lambda: replace(br.Session(seed=1).result(), provenance=None),
    "one reading": lambda: synthetic(max_rounds=1, budget_readings=1),
    "modes, of averages": lambda: told(bimodal(), inner_loop=8),
    "the median of averages": lambda: told(bimodal(), statistic="median", inner_loop=8),
    "a rate": lambda: told(bimodal(1e3), RATE),
    "a quantile": lambda: told(steady(), statistic="p10", target=0.05),
    "a harmonic mean": lambda: told(steady(), RATE, target=0.05),
    "subsessions": lambda: told(autocorrelated(), method="subsessions", target=0.05),
    "invocations": lambda: told(fresh_starts(), rounds="restarted", target=0.05),
    "the published method": lambda: told(
        fresh_starts(), rounds="restarted", detector="edm", target=0.05
    ),
    "few that hardly differ": lambda: few(1.0, 1.001, 1.002, 1.003, 1.004),
    "a changing pace": paced,
    "full pace": lambda: paced(slow=1.003),
    "waiting": lambda: paced(delay=0.2),
    "pieces": lambda: paced(pieces=4, budget_readings=None, budget_s=0.8),
    "no references": lambda: paced(references=False),
    "a reference that does not fit": lambda: paced(sensitivity=0.1),
    "a median, at full pace": lambda: paced(statistic="median"),
    "pressure": lambda: run_under_pressure(
        **{"pressure cpu some": 30.0, "pressure io some": 2.0, "pressure io full": 1.1}
    ),
    "hardly any pressure": lambda: run_under_pressure(**{"pressure cpu some": 0.9}),
}


def all_of(record: RunRecord) -> Iterator[str]:
    """Yield all that is said of a run."""
    yield from (str(record), page_of(record), render(record), explain(record))


CAUSES: dict[str, Callable[[], object]] = {
    name: lambda made=made: all_of(made())  # type: ignore[misc]
    for name, made in RECORDS.items()
}


def reason_given(reason: Reason, counts: int = 0) -> str:
    """Return why a reading counts, or does not."""
    record = synthetic()
    (analysis,) = record.analyses
    selection = br.Selection(reason=[reason], count=[counts], length=[analysis.n])
    record = replace(record, analyses=(replace(analysis, selection=selection),))
    return str(explain_reading(record, 3)["sentence"])


CAUSES |= {f"why a reading counts: {why.word}": partial(reason_given, why) for why in Reason}
CAUSES["why a reading counts twice"] = partial(reason_given, Reason.KEPT, 2)
CAUSES |= {f"missed, {reason}": partial(missed, reason) for reason in StopReason}
CAUSES |= {
    "a page of five metrics": lambda: page_of(
        replace(few(1.0, 1.1), analyses=few(1.0, 1.1).analyses * 5)
    ),
    "a table of endings": lambda: page_of_facts(
        facts_of_runs([ended(reason, name=f"{reason}") for reason in (*StopReason, None)])
    ),
    "a table of what has no number": lambda: page_of_facts(
        facts_of_runs(
            [
                ended(
                    StopReason.TIME_BUDGET,
                    Notice.of(Code.NOT_CONVERGED),
                    Notice.of(
                        Code.HARDLY_UNDISTURBED, undisturbed=1, taken=9, noun_="reading", lost_=0.5
                    ),
                    Notice.of(Code.COARSE_CLOCK, "zeros", n=9),
                    Notice.of(Code.NO_STABLE_PHASE, "levels"),
                ),
                synthetic(),
            ]
        )
    ),
    "a table of medians and means": lambda: page_of_facts(
        facts_of_runs([RECORDS["the median of averages"](), RECORDS["a rate"]()])
    ),
    "a table at full pace": lambda: page_of_facts(
        facts_of_runs([paced(), paced(references=False)])
    ),
    "a narrow table": lambda: page_of_facts(
        facts_of_runs([synthetic(), ended(StopReason.STOP_REQUESTED)])
    ).at(40),
}
