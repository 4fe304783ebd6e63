"""What a result says of a workload or a hook that failed, or gave nothing."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from benchrigor.errors import BenchrigorError, InvalidInput
from benchrigor.model import Analysis, Code, Kind, Metric, Notice

__all__ = [
    "check_seed",
    "draw_seed",
    "failed_hook",
    "failed_workload",
    "no_data",
    "nothing_of",
    "too_short",
]


def failed_workload(error: BenchrigorError) -> Notice:
    """Say what ended the measuring, in its first line."""
    return Notice.warning(
        Code.WORKLOAD_FAILED, str(error).splitlines()[0], error=type(error).__name__
    )


def failed_hook(name: str, error: Exception) -> Notice:
    """Say which hook raised what."""
    return Notice.warning(
        Code.HOOK_FAILED,
        f"The hook {name} raised {type(error).__name__}: {error}",
        hook=name,
        error=type(error).__name__,
    )


def too_short(error: BenchrigorError) -> Notice:
    """Say that no amount of work makes a round long enough."""
    return Notice.refusal(Code.WORK_TOO_SHORT, str(error))


def no_data(sentence: str, metric: str | None = None) -> Notice:
    """Say that there is nothing to estimate from."""
    return Notice.refusal(Code.NO_DATA, sentence, metric=metric)


def nothing_of(metric: Metric) -> Analysis:
    """Return the analysis of a metric that no round gave."""
    notice = no_data(f"No round gave a reading for {metric.name!r}.", metric.name)
    return Analysis(metric=metric, kind=Kind.READINGS, n=0, notices=(notice,))


def draw_seed() -> int:
    """Return a seed that the system's own entropy gives."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def check_seed(seed: object) -> int:
    """Return the seed, or raise InvalidInput unless it is a whole number of 0 or more."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InvalidInput(f"seed is {seed!r}, expected a whole number of 0 or more")
    return int(seed)
