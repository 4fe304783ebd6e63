"""What recording segments costs a program, and what the estimate costs afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from coverage_speed import by_turns
from coverage_tables import Setting, heading, row
from interference_programs import INSIDE
from interference_real import busy

import benchrigor as br
from benchrigor.instrument import segments
from benchrigor.stats import profile_interference

__all__ = ["overhead", "speed"]

OVERHEAD, SPEED = 89, 90
BARS = {100: 0.01, 1000: 0.04}
"""Most that recording may add to the wall time, by segments per second."""
PAIRS, RUN_S = 15, 3.0
BOUNDARIES, TURNS = 20_000, 7
MILLION, MOST_SORTS, CALLS = 1_000_000, 8.0, 9
SPLITS = INSIDE["nominal splits"]
LABEL, BYTES = ({name: SPLITS.nominal[name]} for name in ("label", "bytes"))
COUNTS = {f"count {index}": (0, 1 + index, 2, 0) for index in range(8)}
WITH = {
    "one feature": (INSIDE["one feature"], True),
    "two features": (INSIDE["two features"], True),
    "one feature and one nominal column": (replace(SPLITS, nominal=BYTES), True),
    "a label in words": (replace(SPLITS, nominal=LABEL), False),
    "8 nominal columns": (replace(SPLITS, nominal=COUNTS), False),
    "a label and 8 columns": (replace(SPLITS, nominal=LABEL | COUNTS), False),
}
"""Programs by what their segments have, and whether the bar is on them."""


def plain(n: int, loops: int) -> None:
    """Run the program as it is."""
    for _ in range(n):
        busy(loops)


def recorded(n: int, loops: int) -> None:
    """Run the same, each loop a segment; opening and closing the recording counts."""
    with segments() as recorder:
        for _ in range(n):
            with recorder.segment("loop"):
                busy(loops)


def seconds(function: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def paired(key: tuple[int, ...], rate: int, pairs: int) -> tuple[list[float], list[float]]:
    """Return wall times without and with recording, pair by pair in random order."""
    rng = np.random.default_rng(key)
    trial = 1_000_000
    loops = round(trial / rate / min(seconds(partial(busy, trial)) for _ in range(5)))
    both = [partial(each, round(RUN_S * rate), loops) for each in (plain, recorded)]
    both[1]()  # the first recording loads what it needs
    walls: tuple[list[float], list[float]] = ([], [])
    for _ in range(pairs):
        for each in rng.permutation(2).tolist():
            walls[each].append(seconds(both[each]))
    return walls


def _with(n: int) -> None:
    with segments() as recorder:
        for _ in range(n):
            with recorder.segment("loop"):
                pass


def _cut(n: int) -> None:
    with segments() as recorder:
        for _ in range(n):
            recorder.cut("loop")


def _over(n: int) -> None:
    with segments() as recorder:
        for _ in recorder.over(range(n), "loop"):
            pass


def _bare(n: int) -> None:
    for _ in range(n):
        pass


WAYS = {"segment": _with, "cut": _cut, "over": _over}


def interval(without: list[float], with_: list[float]) -> str:
    """Return how sure the ratio of both is, pair by pair."""
    try:
        ratio = br.stats.compare(without, with_, paired=True).ratio
    except br.NotEstimable:
        ratio = None
    return "none" if ratio is None else f"{ratio.low - 1.0:+.2%} to {ratio.high - 1.0:+.2%}"


def overhead(setting: Setting) -> None:
    """Print what recording adds, from whole runs and from empty segments."""
    pairs = setting.runs(PAIRS, 3)
    print(f"{pairs} pairs of runs of {RUN_S:g} s, without and with recording, in random order:")
    print("median over median, and the 95 % interval of the ratio of means.\n")
    heading(["segments a second", "without", "with", "adds", "bar", "interval"])
    for rate, most in BARS.items():
        without, with_ = paired((setting.seed, OVERHEAD, rate), rate, pairs)
        low, high = float(np.median(without)), float(np.median(with_))
        verdict = setting.verdict(f"recording at {rate} a second, runs", high / low - 1.0 <= most)
        row(
            rate,
            f"{low:.3f} s",
            f"{high:.3f} s",
            f"{high / low - 1.0:+.2%}",
            f"{most:.0%}: {verdict}",
            interval(without, with_),
        )
    print(f"\n{BOUNDARIES:,} empty segments, least of {TURNS} turns, minus an empty loop:\n")
    heading(["recorded by", "a segment", *(f"at {each} a second" for each in BARS)])
    calls = [partial(each, BOUNDARIES) for each in (_bare, *WAYS.values())]
    bare_s, *rest = by_turns(TURNS, *calls)
    for name, total_s in zip(WAYS, rest, strict=True):
        each_s = (total_s - bare_s) / BOUNDARIES
        shares = [
            f"{each_s * rate:.2%} of {most:.0%}: "
            f"{setting.verdict(f'{name} at {rate} a second, direct', each_s * rate <= most)}"
            for rate, most in BARS.items()
        ]
        row(name, f"{each_s * 1e6:.1f} us", *shares)


def speed(setting: Setting) -> None:
    """Print what a million segments take, over sorting their durations."""
    rng = np.random.default_rng([setting.seed, SPEED])
    print(f"{MILLION:,} segments, 20 % of the time lost; least of {CALLS} calls by turns. Rows")
    print("without a bar are for information; they have measured delay as well, as recorded.\n")
    heading(["segments with", "estimate", "numpy.sort", "ratio", "bar"])
    for name, (program, has_bar) in WITH.items():
        profile = program.run(rng, program.classes(rng, MILLION), level=0.2, hit=0.1).profile
        if not has_bar:
            waited_s = 1e-4 * (rng.random(MILLION) < 0.01)
            profile = replace(profile, delays={"run queue": waited_s})
        estimating = partial(profile_interference, profile)
        ours, sort = by_turns(CALLS, estimating, partial(np.sort, profile.duration_s))
        bar = "none"
        if has_bar:
            verdict = setting.verdict(f"a million segments, {name}", ours <= MOST_SORTS * sort)
            bar = f"{MOST_SORTS:g} x: {verdict}"
        row(name, f"{ours * 1e3:.0f} ms", f"{sort * 1e3:.1f} ms", f"{ours / sort:.1f} x", bar)
