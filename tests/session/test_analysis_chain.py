"""Sessions on quantiles, harmonic means, merged readings and invocations."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.session.telling import (
    TIME,
    Draw,
    codes,
    engine_of,
    following,
    number,
    reason,
    recorded,
    told,
    units,
)

from benchrigor.model import Code, Options, Progress, RunRecord, StopReason
from benchrigor.session import default_rules
from benchrigor.stats import estimate_mean
from benchrigor.units import Direction


def measured(draw: Draw, *, size: int | None = None, **options: Any) -> RunRecord:
    """Tell unit readings, ``size`` a round, until the engine has enough."""
    return told(engine_of(Options(**options)), units(draw, size=size, reading_s=1e-6))


def lognormal(seed: int = 1) -> Draw:
    rng = np.random.default_rng(seed)
    return lambda n: rng.lognormal(0.0, 0.5, n)


def bimodal(seed: int = 1) -> Draw:
    rng = np.random.default_rng(seed)
    return lambda n: np.where(rng.random(n) < 0.7, 1.0, 1.9) + rng.normal(0.0, 0.03, n)


def test_the_width_of_a_quantile_is_half_of_its_interval_and_not_its_longer_side() -> None:
    p90: dict[str, Any] = {"statistic": "p90", "size": 500}
    found = number(measured(lognormal(), **p90, target=0.04, max_rounds=2))
    width = found.relative_half_width
    longer = max(found.high - found.value, found.value - found.low) / found.value
    assert width > 0.04  # the cut is the same for all targets from there on
    assert longer > 1.02 * width
    targets = (width + longer) / 2.0, 0.99 * width
    wide, narrow = (measured(lognormal(), **p90, target=target) for target in targets)
    assert reason(wide) is reason(narrow) is StopReason.SATISFIED
    assert wide.readings().size == 1000 < narrow.readings().size


def test_a_tail_with_few_readings_gives_no_number_and_the_session_goes_on() -> None:
    looks = []

    def note(progress: Progress) -> None:
        if progress.fresh:
            (analysis,) = progress.analyses
            looks.append((analysis.n, analysis.estimate, codes(analysis)))

    options = Options(statistic="p99", target=0.2)
    record = told(engine_of(options, rules=[note, *default_rules(options)]), units(lognormal()))
    assert looks[0] == (500, None, [Code.FEW_IN_TAIL])
    assert len(looks) > 1
    assert reason(record) is StopReason.SATISFIED
    assert record.estimate() is not None


def test_where_more_is_better_the_floor_is_the_ninetieth_percentile() -> None:
    metric = replace(TIME, direction=Direction.HIGHER)
    (analysis,) = told(engine_of(Options(), [metric]), units(bimodal())).analyses
    assert analysis.floor is not None
    assert analysis.floor.value == pytest.approx(1.9, abs=0.03)


def warming_up(n: int) -> np.ndarray:
    """Return a warm-up of a tenth, which detection finds."""
    levels = np.where(np.arange(n) < n // 10, 2.0, 1.0)
    return levels + np.random.default_rng(1).normal(0.0, 0.05, n)


@pytest.mark.parametrize(
    ("trim", "start", "stop"),
    [("none", 0, 1000), (0.1, 100, 900), ((0.29, 0.0), 290, 1000), ((0.0, 0.005), 0, 995)],
)
def test_what_is_cut_is_what_was_asked_for_at_every_door(trim: Any, start: int, stop: int) -> None:
    series = 4.0 + warming_up(1000)
    options: dict[str, Any] = {"trim": trim, "target": 1e-6, "max_rounds": 4}
    running = measured(following(series), size=250, **options)
    for (analysis,) in (running.analyses, recorded(series, **options).analyses):
        (phase,) = analysis.phases
        assert (phase.start, phase.stop, phase.reason.name) == (start, stop, "AS_ASKED")
        assert (analysis.n, analysis.n_kept) == (1000, stop - start)
        assert analysis.estimate is not None
        kept = estimate_mean(series[start:stop])
        assert (analysis.estimate.low, analysis.estimate.high) == (kept.low, kept.high)
        assert not {Code.SHORT_RUN, Code.MOVED_ON, Code.NO_STABLE_PHASE} & {*codes(analysis)}
