"""Good requests: those that keep all conditions, such as response<200ms and first-byte<50ms.

The metric of a `Limit` on their share consists of these conditions. Its value is the share of
requests that violate a condition: 100 % less the share of good requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import refuse
from benchrigor.model.metric import quantile_named
from benchrigor.units import positive_seconds_of, share_of

RESPONSE, FIRST_BYTE, CHUNK_GAP = "response", "first-byte", "chunk-gap"
_OF = (RESPONSE, FIRST_BYTE, CHUNK_GAP)
_AND, _BELOW = re.compile(r"\s+and\s+"), re.compile(r"\s*([^\s<]+)\s*<\s*([^\s<=].*?)\s*")
_ARE_CONDITIONS = re.compile(rf"\s*({'|'.join(_OF)})\s*<")
_DIGITS = 12  # of the difference to 100 %


def conditions_of(metric: str) -> Mapping[str, float]:
    """Return the upper limits of times of a good request in seconds; empty for other metrics.

    Raises
    ------
    InvalidInput
        When a text begins like conditions and is not valid, with all problems.

    Examples
    --------
    >>> conditions_of("response<200ms and first-byte<50ms")
    {'response': 0.2, 'first-byte': 0.05}
    >>> conditions_of("p99")
    {}
    """
    if not _ARE_CONDITIONS.match(metric):
        return {}
    return {of: positive_seconds_of(time, bare_s=None) for of, time in _read(metric, None).items()}


def read_slo(text: str) -> tuple[str, float]:
    """Return metric and greatest value of a limit from a text such as response<200ms: 99%.

    With a share of 99 %, p99<200ms means response<200ms: both are equivalent.

    Raises
    ------
    InvalidInput
        With all problems.

    Examples
    --------
    >>> read_slo("p99 < 200ms and first-byte<50ms: 99%")
    ('response<200ms and first-byte<50ms', 0.01)
    """
    conditions, colon, percentage = text.rpartition(":")
    problems, share = [], None
    if not colon:
        conditions = text
        problems.append(f"--slo {text!r} has no share of good requests, expected ': 99%' behind it")
    else:
        try:
            share = share_of(percentage)
        except ValueError as error:
            problems.append(f"--slo {text!r}: {error}")
    if share is not None and not 0.0 < share < 1.0:
        problems.append(
            f"--slo {text!r}: the share is {100.0 * share:.10g}%, expected above 0% and below 100%"
        )
    try:
        found = _read(conditions, share)
    except InvalidInput as error:
        problems += [f"--slo {text!r}: {problem}" for problem in error.problems]
    refuse(problems)
    missing = round(1.0 - (share or 0.0), _DIGITS)
    return " and ".join(f"{of}<{time}" for of, time in found.items()), missing


def _read(conditions: str, share: float | None) -> dict[str, str]:
    """Return the times of conditions as they are written."""
    found: dict[str, str] = {}
    problems: list[str] = []
    for condition in _AND.split(conditions):
        read = _BELOW.fullmatch(condition)
        if read is None:
            problems.append(
                f"{condition.strip()!r} is no condition, expected one as response<200ms"
            )
            continue
        of, time = RESPONSE if _is_quantile(read[1], share) else read[1], read[2]
        problems += _wrong_condition(of, time, share)
        if of in found:
            problems.append(f"{of} is limited twice, expected one time of each")
        found[of] = time
    refuse(problems)
    return found


def _is_quantile(of: str, share: float | None) -> bool:
    """Return whether a word is the quantile that is equivalent to a share of requests."""
    try:
        q = quantile_named(of)
    except InvalidInput:
        return False
    return q is not None and share is not None and abs(q - share) < 10.0**-_DIGITS


def _wrong_condition(of: str, time: str, share: float | None) -> Iterator[str]:
    if of not in _OF:
        same = "" if share is None else f", or p{100.0 * share:.10g}, which means response"
        yield f"{of!r} is no time of a request, expected {', '.join(_OF)}{same}"
    try:
        positive_seconds_of(time, bare_s=None)
    except ValueError as error:
        yield f"{of}: {error}"
