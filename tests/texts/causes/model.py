"""Texts about comparisons, states, plans and track records; refusals of their parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from simulated.estimates import estimated
from tests.model.known import AT, PILOT, STATUS
from tests.texts.causes.report_work import work
from tests.texts.causes.session_runs import file
from tests.texts.rendering import tried

import benchrigor as br
from benchrigor import model
from benchrigor.model import Notice, Options, Round, RoundPlan, SegmentProfile
from benchrigor.stats import compare
from benchrigor.stats.planning import track_record

INF = float("inf")
BASE = replace(compare([1.0, 1.1] * 5, [1.0, 1.1] * 5), margin=0.01, notices=())
TIMES: dict[str, Any] = {"names": ("json", "orjson"), "readings_in": "s"}
WHY = Notice.of(model.Code.NO_STABLE_PHASE, "no level", way_="{rises} " * 29)
WEEKS = tuple(f"results of the {which} week of may.jtl" for which in ("first", "third"))
OPEN = {"verdict": br.Verdict.UNDECIDED}
DIFFERENCE, MEDIAN = estimated(0.01, -0.01, 0.02), estimated(2.11, 1.15, 2.5)
RISE, SMALL = (1.031, 1.02, 1.042), (1.0083, 0.9959, 1.0207)
COMPARED: tuple[tuple[tuple[float, ...], dict[str, Any]], ...] = (
    *((RISE, names) for names in (TIMES, {"names": (), "readings_in": ""})),
    (RISE, {"readings_in": "req/s", "direction": br.Direction.HIGHER}),
    ((1 / 12.2, 1 / 12.3, 1 / 12.1), {"verdict": br.Verdict.BETTER}),
    *((ratio, {}) for ratio in ((1.5, 1.45, 1.56), (0.7, 0.69, 0.71), (1.49, 1.4, 1.6))),
    *((ratio, {}) for ratio in ((1234.5, 1200.0, 1300.0), (5.1, 1.1, INF), (0.2, 0.0, 0.9))),
    ((1.001, 0.996, 1.006), {"verdict": br.Verdict.EQUIVALENT}),
    *((ratio, OPEN) for ratio in (SMALL, (1.0083, 1.0009, 1.0157), (1.0, 1.0, 1.0))),
    *((ratio, OPEN) for ratio in ((1.6, 0.9, 2.4), (0.5, 0.0, 1.25))),
    ((6.6, 3.3, INF), {**OPEN, "margin": 0.0}),
    (SMALL, {**OPEN, "names": WEEKS, "scope": "these two runs"}),
    ((), {"ratio": estimated(*RISE, confidence=0.99)}),
    *(
        (SMALL, {**OPEN, "names": names, "median_ratio": MEDIAN})
        for names in (TIMES["names"], WEEKS)
    ),
    *(((), {**OPEN, "difference": DIFFERENCE, "readings_in": unit}) for unit in ("", "s")),
    ((), {"difference": None, "p_value": None, "notices": (WHY,)}),
)


def compared(ratio: tuple[float, ...], changes: dict[str, Any]) -> str:
    """Return the texts about a ratio, by default of times that are worse."""
    found = estimated(*ratio) if ratio else None
    return str(replace(BASE, **{"ratio": found, "verdict": br.Verdict.WORSE, **TIMES, **changes}))


PAIRS = [(estimated(1.0, 0.9, 1.1), estimated(value, value - 0.1, value + 0.1)) for value in (1, 2)]


def profile(text: str | bytes) -> SegmentProfile:
    """Load the file of a profile, below its title unless it has bytes."""
    title = b"# benchrigor segment profile: 1\n"
    Path("run.csv").write_bytes(text if isinstance(text, bytes) else title + text.encode())
    return SegmentProfile.load("run.csv")


PROFILES: tuple[str | bytes, ...] = (
    *(b"", b"\xff\xfe\x00", b"a,b\n1,2\n", b"# benchrigor segment profile: 2\nduration_s\n1\n"),
    *("", "duration_s\n", "nominal:x\n1\n", "duration_s,x\n1,2\n", "duration_s,delay:\n1,2\n"),
    *("duration_s,delay:x,delay: x\n1,2,3\n", "# run: a\nduration_s,nominal:x\n1,a\n\n2\n"),
    *('duration_s,nominal:x\n1,"a,b"\nfast,c\n', "duration_s\nnan\n", "duration_s\n1\n1_000\n"),
    *('duration_s,nominal:x\n1,a\n2,"b\n3,c\n', 'duration_s,nominal:x\n1,"2"3\n'),
    *('duration_s,"nominal:x\n', "duration_s,nominal:x\n\n1,2,3\n"),
    "duration_s\n" + "1\n" * 70_000 + "x\n",
    "duration_s,nominal:x\n" + "1,2\n" * 70_000 + "1\n",
    *("duration_s\n1\n-2\n", "# process: one\nduration_s\n1\n", "# process: 3\nduration_s\n1\n"),
    'duration_s\n"' + "1" * 200_000 + "\n",
)
RECORDS = (
    *("{", "[]", "1", '{"schema": 1, "name": "x"}', '{"schema": 1, "options": 3}'),
    '{"schema": 1, "rounds": [{"elapsed_ns": "soon"}]}',
    *('{"schema": 1, "rounds": 7}', '{"schema": 1, "seed": 1e999}'),
    f'{{"schema": 1, "options": {"[" * 900}{"]" * 900}}}',
)
OPTIONS: tuple[dict[str, Any], ...] = (
    *({"autocorrelation_limit": wrong} for wrong in (0.0, 1.0, -0.1, float("nan"), "low", True)),
    *({"trim": wrong} for wrong in ("some", 0.5, -0.1, 1.0, (0.1,), (0.9, 0.1), (0.1,) * 3)),
    *({"trim": wrong} for wrong in (None, True, float("nan"))),
    {"analysis": "wps", "trim": "none"},
    *({"detector": "pelt", **more} for more in ({"trim": "none"}, {"trim": 0.1})),
    {"detector": "pelt", "analysis": "wps"},
    *({"quick_s": 0.0}, {"quick_s": INF}, {"quick_rounds": 9}, {"quick_rounds": 20.5}),
    *({"max_rounds": 0}, {"max_rounds": 10**5000}),
    *({"min_seconds": wrong} for wrong in (-0.1, float("nan"), INF, "1", True)),
)
UNITS = ("req/s,lower,higher", "req/s,fast", "ms,±1%,±2%", "ms,±0")
BESIDE: dict[str, Any] = {
    "starts_ns": ([2**70] * 5, np.full(5, 2**63, np.uint64), [0.0, 1e30, 2e30, 3e30, 4e30], [1]),
    "delays": ([0, 0, -1, 0, 0], {"steal": [0]}, "abc"),
    "references": ([1, 0, 1, 1, 1], {}, model.References(stops=[9], seconds={"interpreter": [1]})),
}


def beside(**given: Any) -> Round:
    """Return a round of five readings next to which this stands."""
    unit_readings = {"time": [0.1] * 5}
    return Round(
        plan=RoundPlan(index=0, readings=5), elapsed_ns=1, unit_readings=unit_readings, **given
    )


def reading(text: str) -> object:
    """Load a record from a file."""
    Path("run.json").write_text(text)
    return model.RunRecord.load("run.json")


CAUSES: dict[str, Callable[[], object]] = {
    "two sides": lambda: [compared(*row) for row in COMPARED],
    "additions of a round of work": lambda: [
        str(work(overhead=estimated(*ends)))
        for ends in (
            *((0.0121, 0.011, 0.013), (-0.0121, -0.013, -0.011), (0.001, -0.002, 0.004)),
            *((-0.001, -0.004, 0.002), (1e-17, 1e-17, 1e-17)),
        )
    ],
    "a state": lambda: [STATUS, model.Health(samples=(), at=AT)],
    "samples that are not there": lambda: tried(STATUS.value, "memory free", "?"),
    "a plan": lambda: [
        str(replace(PILOT, name="sort", unit="s", seconds=14.8, pilot_seconds=6.2)),
        str(replace(PILOT, margin=0.0, power_now=1.0)),
    ],
    "times of plans": lambda: [
        str(replace(PILOT, seconds=seconds)).splitlines()[2]
        for seconds in (0.0123, 119.0, 120.0, 7_199.0, 7_200.0, 172_799.0, 172_800.0, 1e8)
    ],
    "track records": lambda: [
        str(track_record(PAIRS[:1] * right + PAIRS[1:] * wrong, host=host))
        for right, wrong, host in (
            *((218, 22, None), (1, 1, None), (1, 0, None), (200, 0, None), (239, 1, None)),
            *((5, 5, None), (19, 1, "ci-3")),
        )
    ],
    "no segment profile": lambda: tried(profile, *PROFILES),
    "segments that do not fit": lambda: SegmentProfile(
        duration_s=[1.0, -2.0],
        computation={"work": [1.0]},
        delays={"steal": [0.0, -1.0]},
        evidence={"faults": [0.0, np.nan]},
        nominal={"label": "ab", "tags": [["a"], ["b"]], "x": [1.0, np.inf], "y": ["a"]},
        process=2,
        processes=2,
    ),
    "no record": lambda: tried(reading, *RECORDS),
    "no statistic": lambda: tried(
        model.quantile_named,
        *("p0", "p100", "P10", "p.5", "p10%", "p10\n", "", 5, None, True, b"p10"),
    ),
    "options that do not fit": lambda: tried(Options, *OPTIONS),
    "units that contradict themselves": lambda: tried(
        partial(file, "a"), *(({"name": "x", "value": 1.0, "unit": unit},) for unit in UNITS)
    ),
    "what stands next to readings": lambda: tried(
        beside, *({name: wrong} for name, several in BESIDE.items() for wrong in several)
    ),
    "parts of a round": lambda: tried(
        Round,
        *(
            {"plan": RoundPlan(index=0), "elapsed_ns": 1, name: None}
            for name in ("unit_readings", "readings", "facts", "weights", "notices", "plan")
        ),
        {"plan": RoundPlan(index=0), "elapsed_ns": 10**400},
    ),
}
