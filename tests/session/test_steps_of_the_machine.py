"""References along the readings tell steps that the machine made from those of the code."""

import numpy as np
import pytest

from benchrigor.model import Options, References, Round, RunRecord, StopReason
from benchrigor.session import Engine

PER_REFERENCE = 10


def levels(*parts: tuple[float, int]) -> np.ndarray:
    return np.repeat([level for level, _ in parts], [n for _, n in parts])


STEADY = levels((1.0, 2_000))


def measured(
    code: np.ndarray,
    machine: np.ndarray,
    *,
    ended: bool = True,
    sensitivity: float = 1.0,
    seed: int = 5,
) -> RunRecord:
    """Tell a session readings of code of these levels, on a machine of these paces."""
    rng = np.random.default_rng(seed)
    n = code.size
    values = 1e-3 * code * machine**sensitivity * rng.normal(1.0, 0.02, n)
    stops = np.arange(PER_REFERENCE, n + 1, PER_REFERENCE)
    seconds = 4e-6 * machine[stops - 1] * rng.normal(1.0, 0.02, stops.size)
    references = References(stops=stops, seconds={"interpreter": seconds})
    engine = Engine(Options(target=1e-6), seed=1)
    plan = engine.ask()
    assert plan is not None
    took_ns = int(values.sum() * 1e9)
    engine.tell(
        Round(plan=plan, elapsed_ns=took_ns, unit_readings={"time": values}, references=references)
    )
    engine.end(StopReason.EXHAUSTED if ended else StopReason.TIME_BUDGET)
    return engine.result()


MACHINE = {
    "slow at the start": (levels((1.5, 600), (1.0, 1_400)), True),
    "slow at the end": (levels((1.0, 1_400), (1.5, 600)), True),
    "slow at the end of what could go on": (levels((1.0, 1_400), (1.5, 600)), False),
    "slow for most of the time": (levels((1.0, 500), (1.5, 1_500)), True),
}


@pytest.mark.parametrize("name", MACHINE)
def test_a_step_of_the_machine_is_averaged_over_time(name: str) -> None:
    machine, ended = MACHINE[name]
    (analysis,) = measured(STEADY, machine, ended=ended).analyses
    (phase,) = analysis.phases
    assert (phase.reason.name, phase.start, phase.stop) == ("CHANGING_PACE", 0, 2_000)
    assert {part.label for part in phase.phases} == {"stable"}
    assert analysis.estimate is not None
    assert analysis.estimate.low < 1e-3 * machine.mean() < analysis.estimate.high


def test_a_step_of_the_code_is_a_warm_up() -> None:
    (analysis,) = measured(levels((1.5, 600), (1.0, 1_400)), STEADY).analyses
    assert analysis.phases[0].reason.name == "STABLE"
    assert analysis.estimate is not None
    assert analysis.estimate.value == pytest.approx(1e-3, rel=0.005)


def test_both_kinds_of_steps_are_told_apart() -> None:
    code, machine = levels((2.0, 300), (1.0, 1_300), (1.6, 400)), levels((1.4, 800), (1.0, 1_200))
    (analysis,) = measured(code, machine).analyses
    (phase,) = analysis.phases
    assert (phase.start, phase.stop) == (300, 1_600)
    assert phase.reason.name == "CHANGING_PACE"
    labels = [part.label for part in phase.phases]
    stable = ["stable", "stable"]
    assert labels == ["warm-up", *stable, "cool-down"]
    medians = [part.median for part in phase.phases]
    assert medians == pytest.approx([2.8e-3, 1.4e-3, 1.0e-3, 1.6e-3], rel=0.01)  # as measured


def test_work_that_does_not_follow_the_machine_has_steps_of_its_own() -> None:
    code, machine = levels((1.5, 600), (1.0, 1_400)), levels((1.0, 600), (1.5, 1_400))
    (analysis,) = measured(code, machine, sensitivity=0.0).analyses
    assert analysis.phases[0].reason.name == "STABLE"
    assert analysis.phases[0].start == pytest.approx(600, abs=3)
