"""The live line of a running session."""

import pytest
from simulated.estimates import estimated

from benchrigor.cli.output import LiveLine
from benchrigor.model import Analysis, Kind, Metric, Progress

SPEED = Metric(name="speed", unit="B/s", direction="higher")  # type: ignore[arg-type]


def shown(*analyses: Analysis, **given: object) -> str:
    lines: list[str] = []
    progress = {
        "rounds": 12,
        "readings": 12,
        "rejected_rounds": 0,
        "elapsed_s": 9.0,
        "seconds_left": 31.0,
        "readings_needed": None,
        "stop_requested": False,
        "fresh": True,
        **given,
    }
    LiveLine(lines.append)(Progress(analyses=analyses, **progress))  # type: ignore[arg-type]
    (line,) = lines
    return line


def analysed(kind: Kind, metric: Metric = SPEED, *, known: bool = True) -> Analysis:
    found = estimated(23.4e6, 21.9e6, 25.7e6, n=12, n_effective=12.0, method="wps")
    return Analysis(metric=metric, kind=kind, n=12, estimate=found if known else None)


def test_the_speed_is_shown_while_it_is_refined() -> None:
    assert shown(analysed(Kind.WORK)) == (
        "12 rounds · about 23.4 MB/s, give or take 8.1% · at most 31 s"
    )
    assert shown(analysed(Kind.WORK), readings_needed=30) == (
        "12 rounds · about 23.4 MB/s, give or take 8.1% · about 30 to go · at most 31 s"
    )


def test_before_there_is_a_speed_only_rounds_are_counted() -> None:
    assert shown(analysed(Kind.WORK, known=False)) == "12 rounds · at most 31 s"


@pytest.mark.parametrize("beside", [(), (Kind.WORK,)])
def test_where_readings_decide_they_are_counted(beside: tuple[Kind, ...]) -> None:
    time = Metric(name="time", unit="s")
    optional = Metric(name="speed", unit="B/s", must_satisfy=False)
    others = [analysed(kind, optional) for kind in beside]
    assert shown(*others, analysed(Kind.UNIT_READINGS, time)) == (
        "12 rounds · 12 readings · half-width 8.12% · at most 31 s"
    )
