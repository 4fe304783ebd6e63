"""A sampler of a machine's state that a test sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchrigor.model import Sample
from benchrigor.testing.clock import FakeClock


class FakeSampler:
    """Reports the values that a test sets; a `protocols.Sampler`.

    Parameters
    ----------
    values
        By name, None for an unknown one; a test may change them.
    name
        Its name for itself.
    clock, cost_s
        Moves on by that many seconds whenever a sample is taken.

    Examples
    --------
    >>> sampler = FakeSampler({"memory available share": 50.0})
    >>> sampler.values["memory available share"] = 3.0
    >>> print(*sampler.sample())
    memory available share: 3
    """

    def __init__(
        self,
        values: Mapping[str, float | str | None],
        *,
        name: str = "fake",
        clock: FakeClock | None = None,
        cost_s: float = 0.0,
    ) -> None:
        self.values = dict(values)
        self._name, self._clock, self._cost_s = name, clock or FakeClock(), cost_s

    def describe(self) -> str:
        """Return its name."""
        return self._name

    def sample(self) -> Iterator[Sample]:
        """Yield the values as they are set now."""
        self._clock.advance(round(self._cost_s * 1e9))
        for name, value in self.values.items():
            yield Sample(name, value, reason="a test hides it" if value is None else "")
