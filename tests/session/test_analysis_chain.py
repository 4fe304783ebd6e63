"""Sessions on quantiles, harmonic means, merged readings and invocations."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from benchrigor import stats
from benchrigor.model import Code, Decision, Metric, Options, Progress, Round, RunRecord, StopReason
from benchrigor.session import Engine, default_rules
from benchrigor.stats import estimate_mean

Draw = Callable[[int], np.ndarray]

SATISFIED = Decision(stop=True, reason=StopReason.SATISFIED)
SIGMA = 0.5
RATE = Metric(name="rate", averaging="harmonic", direction="higher")  # type: ignore[arg-type]


def told(
    engine: Engine,
    draw: Draw,
    facts: Mapping[str, int] | None = None,
    size: int | None = None,
) -> RunRecord:
    """Tell unit readings, ``size`` a round, until the engine has enough."""
    name = "rate" if RATE in engine.result().metrics else "time"
    for _ in range(300):
        plan = engine.ask()
        if plan is None:
            return engine.result()
        values = {name: draw(size or plan.readings)}
        elapsed_ns = (size or plan.readings) * 1000
        engine.tell(
            Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings=values, facts=facts or {})
        )
    raise AssertionError("the session did not end")


def lognormal(seed: int = 1) -> Draw:
    rng = np.random.default_rng(seed)
    return lambda n: rng.lognormal(0.0, SIGMA, n)


def steady(seed: int = 1) -> Draw:
    rng = np.random.default_rng(seed)
    return lambda n: rng.normal(1.0, 0.1, n)


def bimodal(seed: int = 1) -> Draw:
    rng = np.random.default_rng(seed)
    return lambda n: np.where(rng.random(n) < 0.7, 1.0, 1.9) + rng.normal(0.0, 0.03, n)


def invocations(levels: Callable[[int], float], seed: int = 1) -> Draw:
    """Rounds with levels of their own and a warm-up that none of them shows the end of."""
    rng, index = np.random.default_rng(seed), count()

    def fresh_start(n: int) -> np.ndarray:
        warm_up = 0.2 * np.exp(-np.arange(n) / 30.0)
        return levels(next(index)) + warm_up + rng.normal(0.0, 0.01, n)

    return fresh_start


def few_slow(index: int) -> float:
    return 2.0 if index % 5 == 0 else 1.0


def codes(notices: object) -> list[Code]:
    return [notice.code for notice in notices]  # type: ignore[attr-defined]


def test_the_width_of_a_quantile_is_half_of_its_interval_and_not_its_longer_side() -> None:
    first = Options(statistic="p90", target=0.04, max_rounds=2)
    found = told(Engine(first), lognormal(), size=500).estimate()
    assert found is not None
    width = found.relative_half_width
    longer = max(found.high - found.value, found.value - found.low) / found.value
    assert width > 0.04  # the cut is the same for all targets from there on
    assert longer > 1.02 * width
    wide, narrow = (
        told(Engine(Options(statistic="p90", target=target)), lognormal(), size=500)
        for target in ((width + longer) / 2.0, 0.99 * width)
    )
    assert wide.decision == narrow.decision == SATISFIED
    assert wide.readings().size == 1000 < narrow.readings().size


def test_a_tail_with_few_readings_gives_no_number_and_the_session_goes_on() -> None:
    looks = []

    def note(progress: Progress) -> None:
        if progress.fresh:
            (analysis,) = progress.analyses
            looks.append((analysis.n, analysis.estimate, codes(analysis.notices)))

    options = Options(statistic="p99", target=0.2)
    record = told(Engine(options, rules=[note, *default_rules(options)]), lognormal())
    assert looks[0] == (500, None, [Code.FEW_IN_TAIL])
    assert len(looks) > 1
    assert record.decision == SATISFIED
    assert record.estimate() is not None


@pytest.mark.parametrize(("statistic", "warned"), [("median", True), ("mean", False)])
def test_quantiles_of_averages_carry_a_warning_and_means_do_not(
    statistic: str, *, warned: bool
) -> None:
    record = told(Engine(Options(statistic=statistic)), steady(), {"inner_loop": 8})
    analysis, estimate = record.analysis(), record.estimate()
    assert analysis is not None
    assert estimate is not None
    assert (Code.BATCHED in codes(estimate.notices)) is warned
    assert codes(record.notices).count(Code.BATCHED) == warned
    for described in (analysis.typical, analysis.floor):
        assert described is not None
        assert [each.evidence for each in described.notices] == [{"calls": 8}]


def test_a_median_over_invocations_is_the_mean_of_their_medians() -> None:
    options = Options(rounds="restarted", statistic="median", target=0.3)
    record = told(Engine(options), invocations(few_slow))
    analysis, estimate = record.analysis(), record.estimate()
    assert analysis is not None
    assert estimate is not None
    medians = [
        np.median(each.unit_readings["time"][phase.start : phase.stop])
        for each, phase in zip(record.rounds, analysis.phases, strict=True)
    ]
    assert estimate.value == pytest.approx(np.mean(medians), abs=1e-3)  # and not 1.0 of them all
    assert (estimate.method, estimate.n) == ("invocation means", 15)
    error = float(np.std(medians, ddof=1)) / 15**0.5
    assert estimate.half_width == pytest.approx(2.145 * error, rel=0.01)  # t with 14 degrees


def test_where_more_is_better_the_floor_is_the_ninetieth_percentile() -> None:
    metric = Metric(name="time", direction="higher")  # type: ignore[arg-type]
    analysis = told(Engine(Options(), [metric]), bimodal()).analysis()
    assert analysis is not None
    assert analysis.floor is not None
    assert analysis.floor.value == pytest.approx(1.9, abs=0.03)


def test_quantiles_of_rounds_too_short_for_them_are_warned_of() -> None:
    options = Options(rounds="restarted", statistic="p99", max_rounds=10)
    record = told(Engine(options), invocations(few_slow), size=300)
    assert Code.FEW_IN_TAIL in codes(record.notices)


def test_modes_are_noted_beside_a_mean_and_not_beside_a_median() -> None:
    said = {
        statistic: codes(told(Engine(Options(statistic=statistic)), bimodal()).notices)
        for statistic in ("mean", "median")
    }
    assert Code.SEVERAL_MODES in said["mean"]
    assert Code.SEVERAL_MODES not in said["median"]


def autoregressive(n: int, seed: int = 1) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0.0, 0.1, n)
    values = np.empty(n)
    level = 0.0
    for index, each in enumerate(noise.tolist()):
        level = 0.8 * level + each
        values[index] = 10.0 + level
    return values


@pytest.mark.parametrize("method", ["subsessions", "long-run-variance"])
def test_subsessions_are_merged_up_to_the_limit_asked_for(method: str) -> None:
    series, found = autoregressive(4000), {}
    for limit in (0.05, 0.5):
        engine = Engine(
            Options(method=method, autocorrelation_limit=limit),
            recorded=True,
        )
        plan = engine.ask()
        assert plan is not None
        engine.tell(Round(plan=plan, elapsed_ns=1, unit_readings={"time": series}))
        (analysis,) = engine.result().analyses
        assert analysis.subsessions is not None
        assert abs(analysis.subsessions.autocorrelation) <= analysis.subsessions.limit == limit
        found[limit] = (analysis.subsessions.size, analysis.fits[0].batch)
    (narrow, _), (wide, _) = found[0.05], found[0.5]
    assert narrow > wide
    if method == "subsessions":
        assert [size == batch for size, batch in found.values()] == [True, True]
        estimate = estimate_mean(series, method=method, autocorrelation_limit=0.5)
        merged = estimate_mean(series, method=method, autocorrelation_limit=0.05)
        assert estimate.half_width < merged.half_width


def warming_up(n: int, seed: int = 1) -> np.ndarray:
    """A warm-up of a tenth, which detection finds."""
    return np.where(np.arange(n) < n // 10, 2.0, 1.0) + np.random.default_rng(seed).normal(
        0.0, 0.05, n
    )


@pytest.mark.parametrize(
    ("trim", "start", "stop"),
    [("none", 0, 1000), (0.1, 100, 900), ((0.29, 0.0), 290, 1000), ((0.0, 0.005), 0, 995)],
)
def test_what_is_cut_is_what_was_asked_for_at_every_door(trim: Any, start: int, stop: int) -> None:
    series = 4.0 + warming_up(1000)
    options = Options(trim=trim, target=1e-6, max_rounds=4)
    running = Engine(options)
    for part in np.split(series, 4):
        plan = running.ask()
        assert plan is not None
        running.tell(Round(plan=plan, elapsed_ns=1000, unit_readings={"time": part}))
    whole = Engine(options, recorded=True)
    plan = whole.ask()
    assert plan is not None
    whole.tell(Round(plan=plan, elapsed_ns=1000, unit_readings={"time": series}))
    for analysis in (running.result().analyses[0], whole.result().analyses[0]):
        (phase,) = analysis.phases
        assert (phase.start, phase.stop, phase.reason.name) == (start, stop, "AS_ASKED")
        assert (analysis.n, analysis.n_kept) == (1000, stop - start)
        assert analysis.estimate is not None
        kept = estimate_mean(series[start:stop])
        assert (analysis.estimate.low, analysis.estimate.high) == (kept.low, kept.high)
        found = {Code.SHORT_RUN, Code.MOVED_ON, Code.NO_STABLE_PHASE}
        assert not found & set(codes(analysis.notices))


@pytest.mark.parametrize("trim", ["none", (0.0, 0.3)])
def test_a_session_that_cuts_as_asked_can_be_satisfied(trim: Any) -> None:
    record = told(Engine(Options(trim=trim, target=0.05)), steady(seed=2))
    assert record.decision == SATISFIED
    assert record.analyses[0].n < 1000


def test_every_restarted_round_is_cut_by_the_same_share() -> None:
    rng = np.random.default_rng(5)
    rounds = [rng.normal(1.0, 0.1, n) for n in (50, 80, 120, 7, 3, 60, 60, 60, 60, 60)]
    options = Options(rounds="restarted", trim=(0.2, 0.1), target=1e-6, max_rounds=10)
    engine = Engine(options)
    for each in rounds:
        plan = engine.ask()
        assert plan is not None
        engine.tell(Round(plan=plan, elapsed_ns=1000, unit_readings={"time": each}))
    (analysis,) = engine.result().analyses
    assert [(each.start, each.stop) for each in analysis.phases[:5]] == [
        (10, 45), (16, 72), (24, 108), (1, 7), (0, 3),
    ]  # fmt: skip
    kept = [each[p.start : p.stop] for each, p in zip(rounds, analysis.phases, strict=True)]
    assert analysis.estimate == replace(
        stats.estimate_invocations(kept),
        notices=analysis.estimate.notices,  # type: ignore[union-attr]
    )
