"""Reading the state of a machine: each sampler is guarded and timed; counters become rates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from benchrigor.machine.kernel_files import Unavailable
from benchrigor.model import Sample
from benchrigor.protocols import Clock, Sampler

FIRST = "first reading"


def reason_of(error: Exception) -> str:
    """Say why something could not be read."""
    return str(error) if isinstance(error, Unavailable) else f"cannot be read: {error!r}"


def sample_of(name: str, unit: str, read: Callable[[], float | str]) -> Sample:
    """Return the value that a function reads, or why it cannot."""
    try:
        return Sample(name, read(), unit)
    except Exception as error:  # noqa: BLE001 - a driver may raise anything; the others are read
        return Sample(name, None, unit, reason_of(error))


class GuardedSampler:
    """Makes a sampler of a function that yields samples, and may raise anything.

    Parameters
    ----------
    name
        Its name for itself.
    read
        Yields samples; what came before it raised counts.
    names
        Samples that there always are, "a, b": those that do not come have the reason.
    only
        Whether all other samples are left out.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], Iterable[Sample]],
        names: str = "",
        *,
        only: bool = False,
    ) -> None:
        self._name, self._read, self._only = name, read, only
        self._names = names.split(", ") if names else []

    def describe(self) -> str:
        """Return its name."""
        return self._name

    def sample(self) -> list[Sample]:
        """Return the samples; no exception escapes."""
        found: dict[str, Sample] = {}
        missing, reason = self._names, "this system does not say"
        try:
            for sample in self._read():
                if sample.name in self._names or not self._only:
                    found[sample.name] = sample
        except Exception as error:  # noqa: BLE001 - a kernel or a driver may do anything
            missing, reason = missing or [self._name], reason_of(error)
        return [
            *found.values(),
            *(Sample(name, None, reason=reason) for name in missing if name not in found),
        ]


def sample_all(samplers: Iterable[Sampler], clock: Clock) -> dict[str, Any]:
    """Ask all samplers, and return the fields that every state has: samples, at, cost_s."""
    samples: list[Sample] = []
    cost_s = {}
    for sampler in samplers:
        began_ns = clock.now_ns()
        samples += sampler.sample()
        cost_s[sampler.describe()] = (clock.now_ns() - began_ns) / 1e9
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"samples": tuple(samples), "at": at, "cost_s": cost_s}


class Counters:
    """The last totals of one sampler and their time, for rates."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_ns, self._last = 0, dict[Any, float]()

    def rises(self, totals: Mapping[Any, float]) -> tuple[float, dict[Any, float]]:
        """Return the seconds since the last totals, and the rises of the totals.

        New totals are left out. A first reading raises `Unavailable`.
        """
        before_ns, self._last_ns = self._last_ns, self._clock.now_ns()
        before, self._last = self._last, dict(totals)
        rises = {key: total - before[key] for key, total in totals.items() if key in before}
        if not rises:
            raise Unavailable(FIRST)
        if self._last_ns <= before_ns:
            raise Unavailable("no time has passed since the last reading")
        return (self._last_ns - before_ns) / 1e9, rises

    def rates(self, totals: Mapping[str, float], unit: str) -> Iterator[Sample]:
        """Yield the rises of the totals per second since the last reading."""
        span_s, rises = self.rises(totals)
        for name in totals:
            rise = rises.get(name, -1.0)
            if rise >= 0.0:
                yield Sample(name, rise / span_s, unit)
            else:
                yield Sample(name, None, unit, "the counter went back" if name in rises else FIRST)
