"""Requests of load generators, grouped by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchrigor.formats.fields import TIME, one_series, scale, warn_of_failures
from benchrigor.model.recorded import Recorded
from benchrigor.model.series import short

Request = tuple[str, float, str]  # name, time, error; none if it is empty


def by_name(
    requests: Iterable[Request], tool: str, *, seconds: float, place: str
) -> Iterator[Recorded]:
    """Return a series of times per name; failed requests count, and a Notice says so."""
    grouped: dict[str, list[Request]] = {}
    for request in requests:
        grouped.setdefault(request[0], []).append(request)
    for name, several in grouped.items():
        errors = [error for _, _, error in several if error]
        times = scale([time for _, time, _ in several], seconds, f"{place} {name}")
        yield Recorded(
            name=name,
            metrics=(TIME,),
            rounds=one_series(TIME, times),
            tool=tool,
            notices=warn_of_failures(
                len(errors), len(several), f"such as by {short(errors[0])}" if errors else ""
            ),
        )
