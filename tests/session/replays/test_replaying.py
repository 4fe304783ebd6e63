import math
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simulated.series import noise

import benchrigor as br
from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Metric, Notice, Replay, Ruling
from benchrigor.session import replay
from benchrigor.session.replays.rulings import BUILT_IN
from benchrigor.stats import RupturesDetector, detect_changes, estimate_mean, merge_subsessions
from benchrigor.testing import FakeClock, StepWarmUp, SyntheticWorkload


def only(replayed: Replay) -> Ruling:
    (ruling,) = replayed.rulings
    return ruling


def measured(n: int, **given: object) -> br.RunRecord:
    """A session that takes so many readings (or rounds), whatever it finds."""
    restarted = given.get("rounds") == "restarted"
    clock = FakeClock()
    workload = SyntheticWorkload(
        mean=0.001,
        cv=0.12,
        warm_up=StepWarmUp(amplitude=2.0, length=80),
        restarted=restarted,
        between_cv=0.02 if restarted else 0.0,
        seed=1,
        clock=clock,
    )
    limit = {"max_rounds": n} if restarted else {"budget_readings": n}
    wanted = br.Options(**{"target": 1e-9, "budget_s": 60.0, **given, **limit})  # type: ignore[arg-type]
    return br.Session(wanted, seed=1, clock=clock, name="synthetic").run(workload)


def by_round(
    values: np.ndarray, options: br.Options, metric: Metric, *, endless: bool = False
) -> br.RunRecord:
    """A session that is told one reading a round."""
    rules = () if endless else None
    session = br.Session(options, (metric,), seed=1, name="by round", rules=rules)
    for value in values:
        plan = session.ask()
        if plan is None:
            break
        session.tell(br.Round(plan=plan, elapsed_ns=1, readings={metric.name: float(value)}))
    return session.result()


def three(values: object) -> int:
    return 3


def of_two(values: object, target: object) -> None: ...


# What a session did


@pytest.mark.slow
@pytest.mark.parametrize("rounds", ["continuous", "restarted"])
def test_a_session_replayed_stops_where_it_did_and_says_the_same(rounds: str) -> None:
    long = measured(6000 if rounds == "continuous" else 60, rounds=rounds)
    target = 0.01
    options = br.Options(target=target, rounds=rounds)
    ruling = only(replay(long, judges=["benchrigor"], target=target))
    assert ruling.stopped is not None
    again = measured(6000 if rounds == "continuous" else 60, rounds=rounds, target=target)
    assert again.decision is not None
    assert again.decision.reason == "satisfied"
    assert ruling.stopped == (
        again.readings().size if options.rounds == "continuous" else len(again.rounds)
    )
    found = again.estimate()
    assert found is not None
    assert ruling.estimate == found


@pytest.mark.slow
def test_rounds_of_one_reading_are_replayed_round_by_round() -> None:
    metric, values = Metric(name="rate", unit="1/s"), noise(200, cv=0.2)
    stopped = by_round(values, br.Options(target=0.03), metric)
    assert stopped.decision is not None
    whole = by_round(values, br.Options(target=1e-9), metric)
    shown = replay(whole, target=0.03)
    assert shown.counted_in == "round"
    assert shown.rulings[0].stopped == len(stopped.rounds) < 200
    assert shown.rulings[0].estimate == stopped.estimate()
    assert shown.unit == "1/s"


@pytest.mark.slow
def test_a_run_brings_its_own_wishes_and_its_budgets_do_not_count() -> None:
    record = measured(900, target=0.02, confidence=0.9, statistic="p10", preset="quick")
    shown = replay(record, judges=["benchrigor"])
    assert (shown.target, shown.confidence, shown.n) == (0.02, 0.9, 900)
    ours = only(shown)
    assert ours.final is not None
    assert ours.final.confidence == 0.9
    assert ours.final.method == "order statistics"
    limited = br.Options(target=0.05, budget_readings=30, max_rounds=1, readings_per_round=7)
    free = replay(noise(2000), judges=[("limited", limited), "benchrigor"])
    assert free.rulings[0].stopped == free.rulings[1].stopped == 750


@pytest.mark.slow
def test_a_metric_is_chosen_by_name_and_judged_as_the_one_that_counts() -> None:
    metrics = (Metric(name="time", unit="s"), Metric(name="size", unit="B", must_satisfy=False))
    session = br.Session(br.Options(target=1e-9), metrics, seed=1)
    both = {"time": noise(1000), "size": noise(1000, seed=2) * 1e6}
    plan = session.ask()
    assert plan is not None
    session.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings=both))
    shown = replay(session.result(), target=0.05, metric="size", judges=["benchrigor"])
    assert shown.unit == "B"
    assert only(shown).stopped == 750
    with pytest.raises(InvalidInput, match="'speed' is unknown"):
        replay(session.result(), metric="speed")


def test_a_run_that_was_cut_off_is_replayed_too() -> None:
    session = br.Session(seed=1)
    plan = session.ask()
    assert plan is not None
    session.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings={"time": noise(800)}))
    assert only(replay(session.result(), judges=["benchrigor"])).stopped == 750


def test_a_run_without_readings_is_refused() -> None:
    with pytest.raises(InvalidInput, match="holds no readings"):
        replay(br.Session(seed=1, name="nothing").result())


# Plain t


def first_narrow(values: np.ndarray, target: float, confidence: float) -> int | None:
    for n in range(5, values.size + 1):
        some = values[:n]
        reach = stats.t.ppf((1.0 + confidence) / 2.0, n - 1) * stats.sem(some)
        if reach <= target * abs(some.mean()):
            return n
    return None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("target", "confidence"), [(0.05, 0.95), (0.01, 0.99), (0.002, 0.8)])
def test_plain_t_stops_where_scipy_first_has_it_narrow(
    seed: int, target: float, confidence: float
) -> None:
    values = noise(300, seed=seed, phi=0.5, cv=0.1)
    ruling = only(replay(values, judges=["plain t"], target=target, confidence=confidence))
    assert ruling.stopped == first_narrow(values, target, confidence)
    some = values if ruling.stopped is None else values[: ruling.stopped]
    said = ruling.final if ruling.stopped is None else ruling.estimate
    low, high = stats.t.interval(confidence, some.size - 1, loc=some.mean(), scale=stats.sem(some))
    assert said is not None
    assert (said.low, said.high) == pytest.approx((low, high), rel=1e-12)
    assert said.method == "plain t"


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    factor=st.floats(1e-12, 1e12),
    target=st.floats(0.003, 0.2),
)
def test_plain_t_does_not_depend_on_the_unit(seed: int, factor: float, target: float) -> None:
    values = noise(300, seed=seed)
    one, other = (
        only(replay(each, judges=["plain t"], target=target)) for each in (values, values * factor)
    )
    assert one.stopped == other.stopped


@pytest.mark.slow
def test_plain_t_looks_at_a_million_readings_in_less_than_a_second() -> None:
    values = noise(1_000_000, cv=0.5)
    started = time.process_time()
    late = only(replay(values, judges=["plain t"], target=0.00099))
    never = only(replay(values, judges=["plain t"], target=0.0009))
    assert time.process_time() - started < 2.0
    assert late.stopped is not None
    assert late.stopped > 500_000
    assert never.stopped is None


@pytest.mark.slow
def test_an_absolute_width_stops_every_rule() -> None:
    metric = Metric(name="gain", absolute_half_width=0.02)
    options = br.Options(target=None)
    record = by_round(noise(300, cv=0.1) - 1.0, options, metric, endless=True)
    shown = replay(record)
    assert shown.target is None
    assert [each.stopped is not None for each in shown.rulings] == [True] * 3
    for each in shown.rulings:
        assert each.estimate is not None
        assert each.estimate.half_width <= 0.02


@pytest.mark.parametrize("judge", ["plain t", "subsessions"])
def test_rules_for_means_refuse_quantiles(judge: str) -> None:
    ruling = only(replay(measured(900, statistic="p10"), judges=[judge]))
    assert (ruling.stopped, ruling.estimate, ruling.final) == (None, None, None)
    assert "p10 is wanted" in ruling.sentence


@pytest.mark.slow
def test_plain_t_refuses_harmonic_means() -> None:
    metric = Metric(name="rate", unit="B/s", averaging="harmonic")
    record = by_round(noise(200, cv=0.2), br.Options(target=1e-9), metric)
    ours, merged, plain = replay(record).rulings
    assert "a harmonic mean is wanted" in plain.sentence
    assert ours.final is not None
    assert ours.final.value == pytest.approx(stats.hmean(record.readings()), rel=0.01)
    assert ours.final.value < 0.98 * record.readings().mean()
    assert merged.final is not None
    assert merged.final.method == "subsessions, harmonic"


# Rules of one's own


def test_subsessions_say_what_merging_says() -> None:
    values = noise(3000, phi=0.8)
    ruling = only(replay(values, judges=["subsessions"], target=0.02))
    assert ruling.stopped is not None
    some = values[: ruling.stopped]
    assert merge_subsessions(some).size is not None
    assert ruling.estimate is not None
    assert ruling.estimate.method == "subsessions"


def test_a_function_of_the_readings_is_looked_at_when_a_session_looks() -> None:
    looks = []

    def mine(values: np.ndarray) -> Estimate:
        looks.append(values.size)
        return estimate_mean(values)

    ruling = only(replay(noise(2000, phi=0.9), judges=[("mine", mine)], target=0.008))
    assert looks[0] == 2000  # what it says of all
    assert looks[1:] == [500, 750, 1125, 1688]
    assert ruling.stopped is None
    assert ruling.final == estimate_mean(noise(2000, phi=0.9))
    stopping = only(replay(noise(2000, phi=0.9), judges=[("mine", mine)], target=0.05))
    assert stopping.estimate == estimate_mean(noise(2000, phi=0.9)[: stopping.stopped])


def test_a_function_of_the_readings_stops_where_two_looks_in_a_row_agree() -> None:
    values = noise(2000, cv=0.02)
    values[500:750] += 0.009  # so that the second look lies outside the first interval
    values[750:] += 0.003

    def refusing(some: np.ndarray) -> Estimate:
        if some.size == 750:
            raise NotEstimable(Notice.refusal(Code.NO_STABLE_PHASE, "not now"))
        return estimate_mean(some)

    judges = [
        ("mine", estimate_mean),
        ("session", br.Options(trim="none")),
        ("refusing", refusing),
    ]
    mine, session, other = replay(values, judges=judges, target=0.1).rulings
    assert mine.stopped == session.stopped == 1125
    assert other.stopped == 1688  # a look without a number agrees with none
    assert only(replay(noise(2000, cv=0.02), judges=[judges[0]], target=0.1)).stopped == 750


def test_a_function_that_refuses_is_quoted() -> None:
    def mine(values: np.ndarray) -> Estimate:
        return estimate_mean(values, trim=True)

    steps = noise(1200) + np.repeat(np.arange(12.0), 100)
    ruling = only(replay(steps, judges=[("mine", mine)]))
    assert (ruling.stopped, ruling.final) == (None, None)
    assert ruling.sentence.startswith("No steady level: it rises from 1 to 12")


def no_change(values: object) -> br.ChangePoints:
    """A detector that sees nothing."""
    found = detect_changes(values)
    return replace(found, indices=(), level=None)


@pytest.mark.slow
def test_a_detector_makes_a_session_that_cuts_by_it() -> None:
    import ruptures  # noqa: PLC0415  # a second, for this test only

    values = noise(1500)
    values[:300] += 1.0
    rules = {
        "blind": no_change,
        "own": detect_changes,
        "kernel": ruptures.KernelCPD(kernel="linear", min_size=10),
        "adapted": RupturesDetector(ruptures.KernelCPD(kernel="linear", min_size=10)),
    }
    said = {each.name: each.final for each in replay(values, judges=list(rules.items())).rulings}
    assert all(found is not None for found in said.values())
    means = {name: found.value for name, found in said.items() if found is not None}
    assert abs(means["blind"] - 1.0) > 0.03
    for name in ("own", "kernel", "adapted"):
        assert means[name] == pytest.approx(1.0, abs=0.015)


def test_a_detector_that_fails_is_quoted_and_the_others_go_on() -> None:
    class Broken:
        def fit(self, signal: object) -> object:
            raise RuntimeError("no such luck")

        def predict(self, pen: float) -> object:
            raise AssertionError

    broken, ours = replay(noise(900), judges=[("broken", Broken()), "benchrigor"]).rulings
    assert "no such luck" in broken.sentence
    assert broken.final is None
    assert ours.stopped == 750


@pytest.mark.slow
def test_rules_that_know_one_series_refuse_rounds_that_were_restarted() -> None:
    record = measured(12, rounds="restarted")
    judges = [
        "plain t",
        ("function", estimate_mean),
        ("blind", no_change),
        ("detector", detect_changes),
        "subsessions",
    ]
    *refused, blind, by_detector, merged = replay(record, judges=judges).rulings
    for each in refused:
        assert (each.stopped, each.final) == (None, None)
        assert "takes one series only" in each.sentence
        assert "12 rounds" in each.sentence
    for each in (by_detector, merged):
        assert each.final is not None
        assert each.final.n == 12
        assert each.final.value == pytest.approx(0.001, rel=0.03)
    assert blind.final is not None
    assert abs(blind.final.value - 0.001) > 0.00004


# Whether it held


def test_what_held_agrees_with_what_came_later_given_both_errors() -> None:
    values = noise(1500)
    values[750:] += 0.03
    ours = only(replay(values, judges=["benchrigor"], target=0.02))
    assert ours.stopped == 750
    assert ours.later is not None
    assert ours.later.value == pytest.approx(values[750:].mean(), rel=1e-9)
    assert ours.held is False
    assert only(replay(noise(1500), judges=["benchrigor"], target=0.02)).held is True


def test_too_little_after_the_stop_tells_nothing() -> None:
    for extra, estimated, known in (
        (0, False, False),
        (29, False, False),
        (30, True, False),
        (300, True, True),
    ):
        ruling = only(replay(noise(750 + extra), judges=["benchrigor"]))
        assert ruling.stopped == 750
        assert (ruling.held is not None) is known
        assert (ruling.later is not None) is estimated
    never = only(replay(noise(900), judges=["benchrigor"], target=1e-6))
    assert (never.stopped, never.later, never.held) == (None, None, None)


def test_agreement_with_anything_is_no_agreement() -> None:
    short = replay(noise(780), judges=["benchrigor"])
    assert "cannot tell" in str(short).splitlines()[1 + 1]
    assert "over twice as wide" in " ".join(str(short).split())
    longer = replay(noise(1_500), judges=["benchrigor"])
    assert only(longer).held is True
    assert "cannot tell" not in str(longer)
    values = noise(780)
    values[750:] += 0.5
    assert only(replay(values, judges=["benchrigor"])).held is False


@pytest.mark.slow
def test_later_rounds_are_counted_as_invocations() -> None:
    record = measured(30, rounds="restarted")
    ruling = only(replay(record, judges=["benchrigor"], target=0.05))
    assert ruling.stopped == 15
    assert ruling.later is not None
    assert ruling.estimate is not None
    sides = [
        (each.value, (each.standard_error or 0.0) * math.sqrt(each.n), each.n)
        for each in (ruling.estimate, ruling.later)
    ]
    assert sides[1][2] == 15
    chance = stats.ttest_ind_from_stats(*sides[0], *sides[1], equal_var=False).pvalue
    assert ruling.held is bool(chance >= 0.05)


# Words


def test_the_table_fits_and_loses_no_word() -> None:
    long = "a rule with a name that is much longer than anything that a table could hold " * 2
    record = measured(900)
    shown = replay(
        record,
        judges=["benchrigor", "plain t", (long, estimate_mean), ("none", br.Options())],
        target=0.05,
    )
    lines = str(shown).splitlines()
    assert lines[0] == "synthetic: 900 readings replayed, half-width wanted 5%"
    assert max(map(len, lines)) <= 79
    assert " ".join(long.split()) in " ".join(str(shown).split())
    assert lines[1].split() == ["rule", "would", "stop", "at", "estimate", "later"]


def test_what_would_have_gone_on_says_so() -> None:
    shown = replay(noise(600), judges=["benchrigor"], target=1e-6)
    _, _, first, second, *why = str(shown).splitlines()
    assert first.split() == ["benchrigor", "not", "yet"]
    assert second.split()[:2] == ["in", "all"]
    assert "It would go on: the half-width is" in why[0]


# What cannot be worked with


@pytest.mark.parametrize(
    ("judges", "message"),
    [
        ([], "judges is"),
        ("plain t", "judges is 'plain t'"),
        (["plain"], r"judges\[0\] is 'plain', expected 'benchrigor'"),
        ([("", estimate_mean)], r"judges\[0\]"),
        ([("mine", 3)], r"judges\[0\]"),
        ([("mine", br.Options)], r"judges\[0\]"),
        ([("mine", of_two)], r"judges\[0\]"),
        (["plain t", ("plain t", estimate_mean)], "'plain t' is given twice"),
        ([("mine", three)], "judge 'mine' returned 3"),
    ],
)
def test_a_judge_that_is_none_is_named(judges: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        replay(noise(50), judges=judges)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("readings", "wishes", "message"),
    [
        ([1.0, float("nan")], {}, r"readings\[1\] is nan"),
        ([[1.0, 2.0]], {}, "two dimensions"),
        ([1.0, 2.0], {"target": 0.0}, "target is 0.0"),
        ([1.0, 2.0], {"confidence": 1.0}, "confidence is 1.0"),
    ],
)
def test_readings_and_wishes_are_checked(
    readings: list[object], wishes: dict[str, float], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        replay(readings, **wishes)  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9])
def test_a_few_readings_are_judged_by_all_that_are_built_in(n: int) -> None:
    shown = replay(noise(n))
    assert [each.name for each in shown.rulings] == list(BUILT_IN)
    for each in shown.rulings:
        assert each.stopped is not None or each.sentence
    assert (shown.rulings[0].final is None) == (n < 2)


@pytest.mark.slow
def test_a_replay_comes_out_the_same_each_time() -> None:
    record = measured(900)
    assert replay(record, target=0.05) == replay(record, target=0.05)
