"""User code that must type-check under mypy --strict."""

import queue

import numpy as np

import benchrigor as br
from benchrigor import stats
from benchrigor.protocols import Detector
from benchrigor.queues import ServiceRateEstimator, Tap
from benchrigor.testing import FakeClock, SyntheticWorkload


def headline() -> str:
    record: br.RunRecord = br.measure(lambda: sum(range(10)), target=0.1, budget_s=1.0)
    estimate: br.Estimate | None = record.estimate()
    return "nothing" if estimate is None else f"{estimate.value:.3g} {estimate.low:.3g}"


def wrapped(values: list[float]) -> br.RunRecord:
    session = br.Session(br.Options(target=0.05), [br.Metric(name="time", unit="s")], seed=1)
    while (plan := session.ask()) is not None:
        decision: br.Decision = session.tell(
            br.Round(plan=plan, elapsed_ns=1, readings={"time": values[plan.index]})
        )
        if decision.stop:
            break
    return session.result()


def stepwise() -> br.RunRecord:
    clock = FakeClock()
    return br.Session(clock=clock).run(SyntheticWorkload(seed=1, clock=clock))


def arithmetic() -> tuple[float, int | None, tuple[int, ...]]:
    found = stats.estimate_mean([1.0, 2.0, 3.0], confidence=0.9)
    merged = stats.merge_subsessions([1, 2, 3], mean="harmonic")
    return found.half_width, merged.size, stats.detect_changes([1.0]).indices


def verdict(old: br.RunRecord, new: br.RunRecord) -> bool:
    return br.compare_runs(old, new, margin=0.02).verdict is br.Verdict.BETTER


def my_rule(progress: br.Progress) -> br.Decision | None:
    done = progress.rounds > 3
    return br.Decision(stop=True, reason=br.StopReason.ROUND_LIMIT) if done else None


def with_rule() -> br.Session:
    return br.Session(rules=[my_rule, *br.default_rules(br.Options())])


class MyEstimator:
    def fit(self, signal: np.ndarray) -> "MyEstimator":
        return self

    def predict(self, pen: float) -> list[int]:
        return []


def with_estimator() -> tuple[br.Session, br.Session, tuple[int, ...]]:
    detector: Detector = stats.detect_changes
    bare = br.Session(detector=MyEstimator())
    return bare, br.Session(detector=detector), detector([1.0, 2.0]).indices


def compress(size: float) -> bytes:
    return bytes(int(size))


def varied_work() -> tuple[br.RunRecord, br.Session, float | None]:
    record = br.measure(compress, work=(1_000, 10**9), budget_s=3.0)
    session = br.Session(
        br.Options(analysis="wps", work=(0, None), work_order="random", short_round_s=0.1),
        next_work=lambda plan: None if plan.index else 100,
    )
    fit: br.WpsFit = stats.fit_wps([1, 2, 4], [0.1, 0.2, 0.4], estimator="robust")
    return record, session, None if fit.speed is None else fit.speed.value


def one_run(reference: br.SegmentProfile) -> tuple[float, bool, str]:
    with br.segments("run.csv", program="solver") as recorder:
        for step in recorder.over(range(3), "step"):
            recorder.count("cells", step)
    found: br.Interference = recorder.interference(reference)
    same = stats.estimate_interference(
        [1.0, 2.0], {"flops": [1, 2]}, nominal={"label": ["a", "b"]}, delay_s=[0.0, 0.1]
    )
    record = br.measure(lambda: None)
    lost = 0.0 if record.interference is None else record.interference.total_percent
    return lost, found.light == "red", str(same)


def several_runs(profiles: list[br.SegmentProfile]) -> br.Estimate:
    return stats.composite_profile(profiles).duration


def queued_stage() -> tuple[float | None, str]:
    est = ServiceRateEstimator("busy-time", period_s=None, guards=True, servers=2, target=0.05)
    est.tell(41, 0.05, 0.012, cpu_s=0.03, delay_s=0.001)
    est.tell_many([41, 44], 0.05, [0.012, 0.009], blocked=[True, True])
    rate: br.ServiceRate = est.rates[-1]
    reason = "" if rate.reason is None else str(rate.reason)
    return None if rate.estimate is None else rate.estimate.value, reason


def tapped() -> int:
    with Tap(queue.Queue[int](maxsize=8), name="work", servers=2) as tap:
        tap.queue.put(1)
        with tap.grown(4):
            counts = tap.tail.read()
    return sum(each.items for each in counts)
