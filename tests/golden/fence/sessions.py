"""Sessions of continuous rounds, asked and told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from shared_cases import analysed_again

import benchrigor as br
from benchrigor.model import ChangePoints, Decision, Metric, Options, Progress, StopReason
from benchrigor.session import Session, default_rules
from benchrigor.stats.changepoints.ruptures_adapter import RupturesDetector
from fence.cases import case
from fence.plain import attempted
from fence.readings import column, correlated, drifting, skewed, stepping, warming
from fence.telling import Tape, record_of, told

MANY = 20_000


@case
def session_of_a_warming_up_series() -> object:
    """Stops on the relative width, after the warm-up has faded."""
    return record_of(Tape(time=warming(MANY, seed=1)), target=0.005)


@case
def session_of_real_readings() -> object:
    """Is told 3000 recorded inserts, and stops where it has enough."""
    return record_of(Tape(time=column("recorded_inserts.csv")), target=0.05)


@case
def session_beside_a_busy_neighbour() -> object:
    """Is told heavy-tailed readings that never reach the target."""
    return record_of(Tape(time=column("encoding.csv", "busy")), target=0.01)


@case
def session_of_the_median() -> object:
    return record_of(Tape(time=skewed(MANY, seed=2)), target=0.02, statistic="median")


@case
def session_of_a_far_quantile() -> object:
    return record_of(Tape(time=skewed(MANY, seed=3)), target=0.05, statistic="p99")


@case
def session_of_a_quantile_of_real_readings() -> object:
    return record_of(Tape(time=column("encoding.csv", "quiet")), target=0.05, statistic="p90")


@case
def session_of_a_trimmed_mean() -> object:
    return record_of(Tape(time=skewed(MANY, seed=5)), target=0.02, statistic="trimmed 10%")


@case
def session_of_a_minimum() -> object:
    return record_of(Tape(time=skewed(MANY, seed=6)), budget_readings=1000, statistic="min")


@case
def session_by_subsessions() -> object:
    series = correlated(MANY, seed=4, phi=0.7)
    return record_of(Tape(time=series), target=0.01, method="subsessions")


@case
def session_quick() -> object:
    return record_of(Tape(time=correlated(MANY, seed=5)), target=0.05, preset="quick")


@case
def session_strict() -> object:
    return record_of(Tape(time=correlated(MANY, seed=6, phi=0.8)), target=0.01, preset="strict")


@case
def session_of_several_metrics() -> object:
    """Has a time, a rate with a harmonic mean and an absolute width, and one beside them."""
    metrics = (
        Metric(name="time", unit="s"),
        Metric(
            name="rate",
            unit="B/s",
            direction=br.Direction.HIGHER,
            averaging="harmonic",
            absolute_half_width=3.0,
        ),
        Metric(name="memory", unit="B", must_satisfy=False),
    )
    series = correlated(MANY, seed=7, phi=0.3, cv=0.1)
    memory = 1000.0 + 300.0 * stepping(MANY, seed=8, at=700)
    tape = Tape(time=series, rate=100.0 / series, memory=memory)
    return record_of(tape, metrics=metrics, target=0.01)


@case
def session_of_an_absolute_width_alone() -> object:
    metrics = (Metric(name="offset", absolute_half_width=0.004),)
    series = correlated(MANY, seed=9) - 1.0
    return record_of(Tape(offset=series), metrics=metrics, target=None)


@case
def session_without_a_stable_phase() -> object:
    """Grows all the time, until the budget of readings is spent."""
    return record_of(Tape(time=drifting(3000, seed=10)), budget_readings=1500)


@case
def session_of_two_modes() -> object:
    modes = np.random.default_rng(11).random(MANY) < 0.4
    return record_of(Tape(time=correlated(MANY, seed=11, cv=0.02) + 0.5 * modes), target=0.02)


@case
def session_out_of_time() -> object:
    return record_of(Tape(time=correlated(MANY, seed=12)), target=1e-4, budget_s=2.0)


@case
def session_out_of_readings() -> object:
    return record_of(Tape(time=correlated(MANY, seed=13)), target=1e-4, budget_readings=800)


@case
def session_of_few_readings() -> object:
    """Is cut short at 40 readings."""
    return record_of(Tape(time=correlated(40, seed=14)))


@case
def session_of_too_few_readings() -> object:
    return record_of(Tape(time=[1.0, 1.1, 0.9]))


@case
def session_of_constant_readings() -> object:
    return record_of(Tape(time=np.full(2000, 0.25)))


@case
def session_with_a_step_near_its_end() -> object:
    """Measures what is over when it ends."""
    series = stepping(1300, seed=15, at=1100)
    return record_of(Tape(time=series), target=1e-4, by=100)


@case
def session_of_persistent_readings() -> object:
    series = correlated(4000, seed=16, phi=0.995)
    return record_of(Tape(time=series), target=1e-4, budget_readings=4000)


def halves(values: npt.ArrayLike) -> ChangePoints:
    """Cut a series in the middle, whatever it holds."""
    n = np.size(values)
    return ChangePoints(indices=(n // 2,), n=n, level=None, inflation=1.5)


@case
def session_with_a_detector_of_ones_own() -> object:
    session = Session(Options(target=0.01, budget_s=60.0), seed=1, detector=halves)
    return told(session, Tape(time=stepping(MANY, seed=17, at=200)))


@case
def session_with_a_detector_that_fails() -> object:
    """Keeps its readings, and says why there are no phases."""

    def broken(_: npt.ArrayLike) -> ChangePoints:
        raise RuntimeError("no change points")

    session = Session(Options(), seed=1, detector=broken)
    refusal = attempted(told, session, Tape(time=correlated(MANY, seed=22)))
    return {"refusal": refusal, "record": session.result()}


class LargestJump:
    """A change-point estimator with the interface of ruptures: one cut, at the largest jump."""

    def fit(self, signal: npt.NDArray[np.float64]) -> LargestJump:
        """Take a signal of shape (n, 1)."""
        means = np.convolve(signal[:, 0], np.ones(20) / 20, mode="valid")
        self._cut = int(np.argmax(np.abs(means[20:] - means[:-20]))) + 20
        self._n = signal.shape[0]
        return self

    def predict(self, pen: float) -> Sequence[int]:  # as ruptures has it
        """Return the ends of both segments."""
        return [self._cut, self._n]


@case
def session_with_an_estimator_of_another_package() -> object:
    session = Session(Options(target=0.01), seed=1, detector=RupturesDetector(LargestJump()))
    return told(session, Tape(time=stepping(MANY, seed=18, at=150)))


@case
def session_with_rules_of_ones_own() -> object:
    """Stops at 300 readings, before any of the default rules would."""

    def enough(progress: Progress) -> Decision | None:
        wanted = progress.readings >= 300
        return Decision(stop=True, reason=StopReason.STOP_REQUESTED) if wanted else None

    options = Options(target=0.05)
    session = Session(options, seed=1, rules=[enough, *default_rules(options)])
    return told(session, Tape(time=correlated(MANY, seed=19)))


@case
def session_retraced() -> object:
    """Finds again what a run had found that was cut off."""
    engine = Session(Options(target=0.01, budget_readings=900), seed=1)
    tape = Tape(time=warming(900, seed=20))
    cut_off = engine.result()
    while (plan := engine.ask()) is not None and plan.index < 6:
        engine.tell(br.Round(plan=plan, elapsed_ns=1_000_000, **tape(plan).fields))
        cut_off = engine.result()
    return analysed_again(cut_off)


@case
def progress_of_a_session() -> object:
    """Tells how it stands after each round."""
    engine = Session(Options(target=0.003), seed=1)
    tape = Tape(time=warming(MANY, seed=21))
    standing = []
    while (plan := engine.ask()) is not None:
        engine.tell(br.Round(plan=plan, elapsed_ns=10**6 * plan.readings, **tape(plan).fields))
        now = engine.progress
        assert now is not None
        standing.append(
            {
                "readings": now.readings,
                "elapsed_s": now.elapsed_s,
                "seconds_left": now.seconds_left,
                "readings_needed": now.readings_needed,
                "fresh": now.fresh,
                "decision": now.decision,
            }
        )
    return standing
