"""What probes have counted, and the table of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReading(OneLine):
    """The events of a probe, since its registry began or since a reader's last reset.

    Attributes
    ----------
    name, clock
        Of the probe; the clock is "wall", or "cpu" for the processor time of the thread.
    count, total_s
        Events that ended, and the sum of their durations.
    self_s
        The total less what nested events took (see `benchrigor.instrument.Probe`).
    min_s, max_s, mean_s
        Of the durations; None without any.
    variance_s2
        Sample variance of the durations, with n - 1; None below two.
    p50_s, p99_s
        Quantiles of the raw samples, within 1% of the value; None if none are kept.
    samples, samples_lost
        Durations that the quantiles are of, a random sample of all, and those not in it.
    rejected
        Events that cannot be: below 0 s, longer than the probe exists, or with a token that is no
        whole number.
    own_cost_s
        What an event of the probe itself takes, calibrated in this process: of the dearest form
        that the probe was used in.
    deadline_s, missed
        The deadline of events, None without one; and the number that took longer.
    """

    name: str
    clock: str
    count: int
    total_s: float
    self_s: float
    min_s: float | None
    max_s: float | None
    mean_s: float | None
    variance_s2: float | None
    p50_s: float | None
    p99_s: float | None
    samples: int
    samples_lost: int
    rejected: int
    own_cost_s: float
    deadline_s: float | None = None
    missed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReadings(OneLine, Mapping[str, ProbeReading]):
    """The readings of all probes of a registry by name, in the order in which they came.

    Attributes
    ----------
    readings
        By name.
    elapsed_s
        Wall time that they are of.
    notices
        What their reader must know.
    """

    readings: Mapping[str, ProbeReading]
    elapsed_s: float
    notices: tuple[Notice, ...] = ()

    def __getitem__(self, name: str) -> ProbeReading:
        return self.readings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.readings)

    def __len__(self) -> int:
        return len(self.readings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRow(OneLine):
    """A kernel in the table of probes.

    Attributes
    ----------
    kernel, instances
        Name of its probe, and how often it ran.
    dispatch_s, work_s
        Mean time of an instance before and after its work, without what probes cost, and in it;
        None without a probe of its work.
    mean_s, total_s
        Mean and sum of whole instances.
    share
        Share of the self times of all kernels.
    dispatch_share
        Share of dispatch in the sum of both; None without a probe of its work.
    batch
        Whether that is above the bound, so that larger units of work would pay.
    own_cost_s
        What the probes themselves take for an instance.
    """

    kernel: str
    instances: int
    dispatch_s: float | None
    work_s: float | None
    mean_s: float
    total_s: float
    share: float
    dispatch_share: float | None
    batch: bool
    own_cost_s: float
