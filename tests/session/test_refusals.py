"""Whatever refuses a number says why, and shows what was observed all the same."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from tests.session.telling import TIME, engine_of, recorded, tell

import benchrigor as br
from benchrigor.model import ChangePoints, Code, Delays, Metric, Options, RunRecord
from benchrigor.report import explain, render
from benchrigor.session import read_results
from benchrigor.session.replays import record_of_pairs
from benchrigor.testing import FakeClock

SPEED = Metric(name="speed", unit="B/s")


def noise(n: int, seed: int = 1, cv: float = 0.01) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).lognormal(0.0, cv, n))


def of_work(work: object, duration_s: object) -> RunRecord:
    return record_of_pairs(work, duration_s, Options(), SPEED, name="gzip")  # type: ignore[arg-type]


def rising(n: int) -> np.ndarray:
    return 1e-3 * np.linspace(1.2, 3.4, n) * noise(n)


def persistent() -> np.ndarray:
    return 2.0 + np.cumsum(np.random.default_rng(1).normal(0.0, 0.01, 300))


def by_failing_detector() -> RunRecord:
    def broken(series: Any) -> ChangePoints:
        raise ZeroDivisionError("oh")

    session = br.Session(Options(), (TIME,), detector=broken, seed=1)
    tell(session, {"elapsed_ns": 10**6, "unit_readings": {"time": 1e-3 * noise(40)}})
    return session.result()


def by_rejecting_detector() -> RunRecord:
    def many(series: Any) -> ChangePoints:
        indices = tuple(range(1, series.size))
        return ChangePoints(indices=indices, n=series.size, level=None, inflation=1.0)

    engine = engine_of(Options(rounds="restarted"), (TIME,), detector=many, seed=1)
    for seed in range(3):
        readings = {"time": rising(60) * (1.0 + seed)}
        tell(engine, {"elapsed_ns": 10**6, "unit_readings": readings})
    return engine.result()


def by_red_rounds() -> RunRecord:
    session = br.Session(Options(red_rounds="repeat"), seed=1)
    stolen = Delays(stops=[20], seconds={"steal": [0.01]})
    for _ in range(3):
        readings = {"time": 1e-3 * noise(20)}
        tell(session, {"elapsed_ns": 10**9, "unit_readings": readings, "delays": stolen})
    return session.result()


def by_short_work() -> RunRecord:
    clock = FakeClock()
    with pytest.raises(br.BenchrigorError) as caught:
        br.measure(lambda n: clock.advance(int(n)), work=(1, 100), clock=clock, seed=1)
    assert isinstance(caught.value.record, RunRecord)
    return caught.value.record


RECORDS: dict[str, tuple[Code, Callable[[], RunRecord]]] = {
    "one reading": (Code.TOO_FEW_READINGS, lambda: recorded([30.0])),
    "two rounds of work": (Code.TOO_FEW_READINGS, lambda: of_work([1e6, 2e6], [1.0, 2.1])),
    "rising": (Code.NO_STABLE_PHASE, lambda: recorded(rising(2000))),
    "rising in all rounds": (Code.NO_STABLE_PHASE, lambda: recorded(*[rising(100)] * 12)),
    "subsessions": (
        Code.STILL_CORRELATED,
        lambda: recorded(persistent(), method="subsessions", trim="none"),
    ),
    "alike work": (
        Code.NO_SPEED,
        lambda: of_work([1.0e6, 1.1e6, 1.2e6] * 5, np.resize([1.0, 2.0, 3.0, 1.5], 15)),
    ),
    "wide rates": (
        Code.TOO_WIDE,
        lambda: recorded([1.0, 30.0], metric=Metric(name="rate", unit="req/s")),
    ),
    "wide times": (Code.TOO_WIDE, lambda: recorded([0.1, 0.15, 0.87])),
    "times of 0": (Code.COARSE_CLOCK, lambda: recorded(np.zeros(50))),
    "far quantile": (Code.FEW_IN_TAIL, lambda: recorded(noise(60), statistic="p99")),
    "rejected rounds": (Code.NO_STABLE_PHASE, by_rejecting_detector),
    "broken detector": (Code.DETECTOR_FAILED, by_failing_detector),
    "red rounds": (Code.RED_ROUNDS, by_red_rounds),
    "short work": (Code.WORK_TOO_SHORT, by_short_work),
}


def sentence_of(record: RunRecord, code: Code) -> str:
    refusals = (each for each in record.notices if each.severity == "refusal")
    (sentence,) = {each.sentence for each in refusals if each.code is code}
    return sentence


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_without_a_number_shows_why_and_what_was_observed(name: str) -> None:
    code, make = RECORDS[name]
    record = make()
    (analysis,) = record.analyses
    assert analysis.estimate is None
    refusal = sentence_of(record, code)
    assert analysis.observed is not None
    for text in (render(record), explain(record)):
        assert refusal in " ".join(text.split())
    again = RunRecord.from_dict(record.to_dict())
    assert again.analyses[0].observed == record.analyses[0].observed


def without_readings(**given: object) -> RunRecord:
    session = br.Session(Options(max_rounds=1, budget_s=10.0), (TIME,), seed=1)
    tell(session, {"elapsed_ns": 10**6, **given})
    return session.result()


def cut_before_a_reading() -> RunRecord:
    return without_readings(elapsed_ns=10**10, cut=True)


def test_a_run_without_readings_gives_figures_where_it_had_no_time() -> None:
    (analysis,) = cut_before_a_reading().analyses
    assert analysis.notices[0].evidence == {"metric": "time", "rounds": 1, "seconds": 10.0}
    (analysis,) = without_readings().analyses
    assert analysis.notices[0].evidence == {"metric": "time"}


def only_means() -> RunRecord:
    """Read the means of hyperfine."""
    command = {"command": "sleep 0.1", "mean": 0.1003, "stddev": 0.0012}
    with TemporaryDirectory() as folder:
        path = Path(folder, "hyperfine.json")
        path.write_text(json.dumps({"results": [command]}))
        (record,) = read_results(path)
    return record


BARE: dict[str, tuple[Code, Callable[[], RunRecord]]] = {
    "work in no time": (Code.COARSE_CLOCK, lambda: of_work([1e6, 2e6, 3e6, 4e6], [0.0] * 4)),
    "no raw readings": (Code.NO_RAW_READINGS, only_means),
    "no reading": (Code.NO_DATA, without_readings),
    "no time": (Code.NO_DATA, cut_before_a_reading),
}


PAGE = Path(__file__).parents[2] / "docs" / "codes.md"


@pytest.mark.parametrize("name", [*RECORDS, *BARE])
def test_the_page_of_codes_shows_the_sentence_but_for_its_figures(name: str) -> None:
    code, make = {**RECORDS, **BARE}[name]
    sentence = re.sub(r"<function \S+ at \S+>", "DETECTOR", sentence_of(make(), code))
    (row,) = (
        line
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.endswith(f"`session/test_refusals.py`: {name} |")
    )
    _, shown_code, shown, *_ = (each.strip() for each in row.split("|"))
    assert shown_code == f"`{code}`"
    assert re.sub(r"-?[\d.]+\d", "#", shown) == re.sub(r"-?[\d.]+\d", "#", sentence)
