"""Sessions on quantiles, harmonic means, merged readings and invocations."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import benchrigor as br
from benchrigor import stats
from benchrigor.model import Code, Decision, Metric, Options, Progress, Round, RunRecord, StopReason
from benchrigor.report import render
from benchrigor.session import Engine, default_rules
from benchrigor.stats import compare, estimate_mean, estimate_quantile, estimate_rate
from benchrigor.stats.phases.trimming import trimmed
from benchrigor.testing import FakeClock

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


@pytest.mark.parametrize(("statistic", "share"), [("median", 0.5), ("p10", 0.1), ("p90", 0.9)])
def test_a_session_finds_the_quantile_it_was_asked_for(statistic: str, share: float) -> None:
    record = told(Engine(Options(statistic=statistic, target=0.05)), lognormal())
    truth = float(np.exp(SIGMA * NormalDist().inv_cdf(share)))
    estimate = record.estimate()
    assert estimate is not None
    assert record.decision == SATISFIED
    assert estimate.method == "order statistics"
    assert estimate.value == pytest.approx(truth, rel=0.05)
    assert estimate.low < truth < estimate.high
    assert estimate.relative_half_width <= 0.05
    assert estimate.n_effective >= 100
    assert {estimate.low, estimate.high} <= set(record.readings().tolist())


@pytest.mark.slow
def test_a_quantile_waits_for_a_hundred_effective_readings_though_it_is_narrow() -> None:
    rng = np.random.default_rng(2)
    pattern = iter(np.repeat(rng.normal(1.0, 1e-3, 400), 20))  # worth a twentieth
    draw = lambda n: np.array([next(pattern) for _ in range(n)])  # noqa: E731
    record = told(Engine(Options(statistic="median", target=0.2)), draw)
    estimate = record.estimate()
    assert estimate is not None
    assert record.decision == SATISFIED
    assert estimate.n > 10 * estimate.n_effective >= 1000


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


def test_single_calls_are_measured_on_demand_and_carry_no_warning() -> None:
    records = {}
    for batch in (None, 1):
        clock = FakeClock()
        records[batch] = br.measure(
            lambda clock=clock: clock.advance(5_000),  # type: ignore[misc]
            statistic="median",
            batch=batch,
            clock=clock,
            seed=1,
        )
    assert records[None].facts["inner_loop"] != 1
    assert Code.BATCHED in codes(records[None].notices)
    assert records[1].facts["inner_loop"] == 1
    assert Code.BATCHED not in codes(records[1].notices)


@pytest.mark.slow
def test_a_rate_is_the_harmonic_mean_of_the_readings_that_were_kept() -> None:
    rng = np.random.default_rng(3)
    engine = Engine(Options(), [RATE])
    while (plan := engine.ask()) is not None:
        engine.tell(Round(plan=plan, elapsed_ns=1, readings={"rate": rng.normal(100.0, 20.0)}))
    record = engine.result()
    analysis, estimate = record.analysis(), record.estimate()
    assert analysis is not None
    assert estimate is not None
    expected = estimate_rate(trimmed(record.readings(), analysis.phases[0]))
    assert record.decision == SATISFIED
    assert estimate.method == expected.method == "long-run-variance, harmonic"
    assert (estimate.low, estimate.value, estimate.high) == pytest.approx(
        (expected.low, expected.value, expected.high), rel=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("rounds", ["continuous", "restarted"])
def test_unit_readings_of_rates_are_averaged_harmonically(rounds: str) -> None:
    rng = np.random.default_rng(4)
    draw = lambda n: np.where(rng.random(n) < 0.5, 50.0, 200.0)  # noqa: E731
    estimate = told(Engine(Options(rounds=rounds), [RATE]), draw).estimate()
    assert estimate is not None
    assert estimate.method.endswith(", harmonic")
    assert estimate.low < 80.0 < estimate.high  # the arithmetic mean is 125


@pytest.mark.parametrize(
    ("given", "phrase"),
    [
        ({"unit_readings": {"rate": [3.0, 0.0, 2.0]}}, r"rate\[1\] is 0\.0, expected more than 0"),
        ({"readings": {"rate": -1.0}}, r"rate\[0\] is -1\.0, expected more than 0"),
    ],
)
def test_a_rate_that_is_not_above_zero_is_named(given: dict[str, object], phrase: str) -> None:
    engine = Engine(metrics=[RATE])
    plan = engine.ask()
    assert plan is not None
    with pytest.raises(br.InvalidInput, match=phrase):
        engine.tell(Round(plan=plan, elapsed_ns=1, **given))  # type: ignore[arg-type]
    assert engine.ask() is plan


def test_merging_is_named_on_the_estimate_of_a_session_that_asked_for_it() -> None:
    shocks = np.random.default_rng(5)
    last = 0.0

    def autoregressive(n: int) -> np.ndarray:
        nonlocal last
        series = np.empty(n)
        for at, shock in enumerate(shocks.normal(0.0, 0.05, n)):
            series[at] = last = 0.7 * last + shock
        return 1.0 + series

    record = told(Engine(Options(method="subsessions")), autoregressive)
    analysis, estimate = record.analysis(), record.estimate()
    assert analysis is not None
    assert estimate is not None
    assert record.decision == SATISFIED
    assert estimate.method == "subsessions"
    (fit,) = analysis.fits
    assert fit.batch > 1
    assert fit.degrees_of_freedom == estimate.n // fit.batch - 1
    assert estimate.low < 1.0 < estimate.high


def test_a_walk_that_no_merging_decorrelates_has_no_number() -> None:
    walk = 10.0 + np.random.default_rng(6).normal(size=19).cumsum()
    options = Options(method="subsessions", max_rounds=1)
    record = told(Engine(options), lambda _: walk)
    assert record.estimate() is None
    assert Code.STILL_CORRELATED in codes(record.notices)


def test_merging_is_for_means_only() -> None:
    with pytest.raises(br.InvalidInput, match="statistic is 'median', expected 'mean': subsess"):
        Options(method="subsessions", statistic="median")


def test_restarted_rounds_are_cut_alike_and_their_variance_is_split() -> None:
    rng = np.random.default_rng(7)
    draw = invocations(lambda _: rng.normal(1.0, 0.02))
    analysis = told(Engine(Options(rounds="restarted", target=0.02)), draw).analysis()
    assert analysis is not None
    assert analysis.split is not None
    ((start, stop),) = {(phase.start, phase.stop) for phase in analysis.phases}
    assert start is not None
    assert 0.2 * np.exp(-start / 30.0) < 0.01  # less than the noise of a reading is left
    assert stop == 500
    assert analysis.split.invocations == len(analysis.phases) >= 10
    assert analysis.split.between**0.5 == pytest.approx(0.02, rel=0.6)
    assert analysis.split.within**0.5 == pytest.approx(0.01, rel=0.4)


def test_a_median_over_invocations_is_the_mean_of_their_medians() -> None:
    options = Options(rounds="restarted", statistic="median", target=0.3)
    record = told(Engine(options), invocations(few_slow))
    analysis, estimate = record.analysis(), record.estimate()
    assert analysis is not None
    assert estimate is not None
    medians = [
        np.median(trimmed(each.unit_readings["time"], phase))
        for each, phase in zip(record.rounds, analysis.phases, strict=True)
    ]
    assert estimate.value == pytest.approx(np.mean(medians), abs=1e-3)  # and not 1.0 of them all
    assert (estimate.method, estimate.n) == ("invocation means", 15)
    error = float(np.std(medians, ddof=1)) / 15**0.5
    assert estimate.half_width == pytest.approx(2.145 * error, rel=0.01)  # t with 14 degrees


def test_what_is_typical_and_the_modes_are_described_beside_the_mean() -> None:
    analysis = told(Engine(), bimodal()).analysis()
    assert analysis is not None
    assert analysis.typical is not None
    assert analysis.floor is not None
    assert [mode.value for mode in analysis.modes] == pytest.approx([1.0, 1.9], abs=0.01)
    assert [mode.share for mode in analysis.modes] == pytest.approx([0.7, 0.3], abs=0.06)
    assert analysis.typical.value == pytest.approx(1.0, abs=0.05)
    assert analysis.floor.value == pytest.approx(1.0 - 0.03 * 1.07, abs=0.01)  # p10 of p70
    assert analysis.typical.method == analysis.floor.method == "order statistics"


def test_where_more_is_better_the_floor_is_the_ninetieth_percentile() -> None:
    metric = Metric(name="time", direction="higher")  # type: ignore[arg-type]
    analysis = told(Engine(Options(), [metric]), bimodal()).analysis()
    assert analysis is not None
    assert analysis.floor is not None
    assert analysis.floor.value == pytest.approx(1.9, abs=0.03)


RECORDS: dict[str, Callable[[], RunRecord]] = {
    "batched median": lambda: told(
        Engine(Options(statistic="median")), steady(), {"inner_loop": 8}
    ),
    "harmonic": lambda: told(Engine(Options(), [RATE]), bimodal()),
    "subsessions": lambda: told(Engine(Options(method="subsessions")), steady()),
    "restarted": lambda: told(
        Engine(Options(rounds="restarted", target=0.3)), invocations(few_slow)
    ),
}


@pytest.mark.parametrize("name", RECORDS)
def test_all_that_was_found_survives_the_way_through_plain_data(name: str) -> None:
    record = RECORDS[name]()
    found = record.analysis()
    assert found is not None
    assert found.typical is not None
    assert bool(found.modes) is (found.split is None)
    again = RunRecord.from_dict(json.loads(json.dumps(record.to_dict(), allow_nan=False)))
    back = again.analysis()
    assert back is not None
    for field in ("metric", "typical", "floor", "modes", "split", "fits", "estimate"):
        assert getattr(back, field) == getattr(found, field)
    assert again.options == record.options
    assert again.to_dict() == record.to_dict()


def test_records_from_before_these_fields_still_load() -> None:
    data = told(Engine(), steady()).to_dict()
    del data["options"]["method"]
    for metric in (*data["metrics"], data["analyses"][0]["metric"]):
        del metric["averaging"]
    for field in ("typical", "floor", "modes", "split"):
        del data["analyses"][0][field]
    del data["analyses"][0]["fits"][0]["method"]
    record = RunRecord.from_dict(data)
    analysis = record.analysis()
    assert analysis is not None
    assert (analysis.typical, analysis.floor, analysis.split) == (None, None, None)
    assert analysis.modes == ()
    assert (record.options.method, analysis.fits[0].method) == ("long-run-variance",) * 2
    assert analysis.metric.averaging == "auto"
    assert "±" in str(record)


def test_one_restarted_round_speaks_of_one_invocation_whatever_is_estimated() -> None:
    for statistic in ("mean", "median"):
        options = Options(rounds="restarted", statistic=statistic, max_rounds=1)
        estimate = told(Engine(options), invocations(few_slow)).estimate()
        assert estimate is not None
        assert (estimate.n, estimate.n_effective) == (1, 1.0)
        assert Code.THIS_PROCESS_ONLY in codes(estimate.notices)


def test_quantiles_of_rounds_too_short_for_them_are_warned_of() -> None:
    options = Options(rounds="restarted", statistic="p99", max_rounds=10)
    record = told(Engine(options), invocations(few_slow), size=300)
    assert Code.FEW_IN_TAIL in codes(record.notices)


@pytest.mark.parametrize(
    "draw", [steady(), lognormal(), bimodal()], ids=["steady", "skewed", "two"]
)
@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_the_same_readings_give_the_same_number_through_every_door(
    draw: Draw, statistic: str
) -> None:
    series = draw(800)
    options = Options(statistic=statistic, max_rounds=1)
    q = None if statistic == "mean" else 0.5
    live, recorded = (
        told(Engine(options, recorded=each), lambda _: series) for each in (False, True)
    )
    side = compare(series, series, statistic=statistic, trim=True).baseline
    pure = (
        estimate_mean(series, trim=True) if q is None else estimate_quantile(series, q, trim=True)
    )
    ends = {
        (each.value, each.low, each.high, each.n_effective)
        for each in (live.estimate(), recorded.estimate(), side, pure)
        if each is not None
    }
    assert len(ends) == 1


def test_modes_are_noted_beside_a_mean_and_not_beside_a_median() -> None:
    said = {
        statistic: codes(told(Engine(Options(statistic=statistic)), bimodal()).notices)
        for statistic in ("mean", "median")
    }
    assert Code.SEVERAL_MODES in said["mean"]
    assert Code.SEVERAL_MODES not in said["median"]


@pytest.mark.slow
def test_rounds_without_a_steady_state_in_common_are_cut_each_for_itself() -> None:
    rng = np.random.default_rng(21)

    def uneven(n: int) -> np.ndarray:
        """Return a round that is slow for two fifths at its start, or for a third at its end."""
        slow = np.arange(n) < 0.4 * n if rng.random() < 0.5 else np.arange(n) >= 0.67 * n
        return rng.normal(1.0, 0.02) * (1.0 + 0.5 * slow) + 0.01 * rng.normal(size=n)

    options = Options(rounds="restarted", target=0.0001, max_rounds=40)
    record = told(Engine(options), uneven, size=300)
    estimate = record.estimate()
    assert estimate is not None
    assert estimate.value == pytest.approx(1.0, abs=0.02)  # with what is slow it would be 1.18
    starts = {phase.start for phase in record.analyses[0].phases}
    assert len(starts) > 1  # else all would be cut alike
    (said,) = [each for each in record.notices if each.code is Code.NO_STABLE_PHASE]
    assert said.severity == "warning"


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
        assert (phase.start, phase.stop, phase.reason) == (start, stop, "cut as asked")
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
    assert "of the readings" not in render(engine.result())
    assert "20% at the start and 10% at the end, as asked" in render(engine.result())


def test_a_detector_has_nothing_to_do_where_the_cut_is_given() -> None:
    with pytest.raises(br.InvalidInput, match="nothing is looked for"):
        Engine(Options(trim=0.1), detector=stats.detect_changes)
