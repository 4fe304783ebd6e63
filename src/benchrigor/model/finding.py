"""Findings of a doctor: whether a machine is fit to be measured on."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from benchrigor.control_characters import escaped
from benchrigor.model.notice import Code
from benchrigor.model.one_line import OneLine


class Fitness(enum.StrEnum):
    """Whether a machine is fit to be measured on, by one finding or by all of them."""

    OK = "ok"
    UNKNOWN = "unknown"
    DOUBTFUL = "doubtful"
    UNFIT = "unfit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(OneLine):
    """One thing that a doctor found.

    Parameters
    ----------
    name
        A stable name of the property.
    found
        Its value, or the reason why it is not known.
    verdict
        Whether that value is fit for measurements.
    advice
        The remedy if it is not; else empty.
    code
        The Notice that it leads to in a run, if any.

    Examples
    --------
    >>> print(Finding(name="turbo", found="off", verdict=Fitness.OK))
    turbo: off (ok)
    """

    name: str
    found: str
    verdict: Fitness
    advice: str = ""
    code: Code | None = None

    def __str__(self) -> str:
        code = f" [{self.code}]" if self.code else ""
        return escaped(
            f"{self.name}: {self.found} ({self.verdict}){self.advice and f': {self.advice}'}{code}"
        )


def verdict_of(findings: Iterable[Finding]) -> Fitness:
    """Return the worst verdict; unknown properties do not count.

    Examples
    --------
    >>> verdict_of([Finding(name="smt", found="not known", verdict=Fitness.UNKNOWN)])
    <Fitness.OK: 'ok'>
    """
    worst = max((_ORDER.index(finding.verdict) for finding in findings), default=0)
    return _ORDER[worst] if _ORDER[worst] is not Fitness.UNKNOWN else Fitness.OK


_ORDER = (Fitness.OK, Fitness.UNKNOWN, Fitness.DOUBTFUL, Fitness.UNFIT)
