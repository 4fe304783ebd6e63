"""What recording segments costs a program, and what the estimate costs afterwards."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
from coverage_speed import by_turns
from coverage_tables import Setting, heading, row
from interference_programs import INSIDE
from interference_real import busy

import benchrigor as br
from benchrigor.interference import segments
from benchrigor.stats import profile_interference

__all__ = ["overhead", "speed"]

OVERHEAD, SPEED = 89, 90
BARS = {100: 0.01, 1000: 0.04}
"""Most that recording may add to the wall time, by segments per second."""
TURNS_OF_RUNS, RUN_S = 20, 1.0
CALLS_BY_TURNS = 1_500
BLOCK = bytes(range(256)) * 16
Work = Callable[[int], object]
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


def checksums(n: int) -> None:
    """Do work that takes as long whatever surrounds it, unlike a loop of bytecode."""
    for _ in range(n):
        zlib.crc32(BLOCK)


def plain(work: Work, n: int, times: int) -> None:
    """Run the program as it is."""
    for _ in range(n):
        work(times)


def bracketed(work: Work, n: int, times: int) -> None:
    """Run the same within a ``with`` that does nothing: what differs is not the recorder's."""
    for _ in range(n):
        with nullcontext():
            work(times)


def recorded(work: Work, n: int, times: int) -> None:
    """Run the same, each call a segment; opening and closing the recording counts."""
    with segments() as recorder:
        for _ in range(n):
            with recorder.segment("loop"):
                work(times)


def seconds(function: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


WAYS_TO_RUN = (plain, bracketed, recorded)
WORKS: dict[str, Work] = {"checksums": checksums, "bytecode": busy}


def in_turn(key: tuple[int, ...], work: Work, rate: int, turns: int) -> list[list[float]]:
    """Return wall times of each of `WAYS_TO_RUN`, turn by turn in random order."""
    rng, times = np.random.default_rng(key), times_for(work, rate)
    calls = [partial(each, work, round(RUN_S * rate), times) for each in WAYS_TO_RUN]
    calls[-1]()  # the first recording loads what it needs
    walls: list[list[float]] = [[], [], []]
    for _ in range(turns):
        for each in rng.permutation(len(calls)).tolist():
            walls[each].append(seconds(calls[each]))
    return walls


def times_for(work: Work, rate: int) -> int:
    """Return how often work has to be done for so many calls to take a second."""
    trial = 20_000 if work is checksums else 1_000_000
    return round(trial / rate / min(seconds(partial(work, trial)) for _ in range(5)))


def interleaved(
    key: tuple[int, ...], work: Work, rate: int, calls: int
) -> tuple[list[float], list[float]]:
    """Return wall times of single calls without and with a segment around them, in random order."""
    rng, times = np.random.default_rng(key), times_for(work, rate)
    walls: tuple[list[float], list[float]] = ([], [])
    with segments() as recorder:
        for each in np.tile([0, 1], calls)[rng.permutation(2 * calls)].tolist():
            start = time.perf_counter()
            if each:
                with recorder.segment("loop"):
                    work(times)
            else:
                work(times)
            walls[each].append(time.perf_counter() - start)
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
    turns = setting.runs(TURNS_OF_RUNS, 3)
    print(f"{turns} runs of {RUN_S:g} s each way in random order: median over median, and the 95 %")
    print(
        "interval of the ratio of means. Loops of bytecode are shown without a bar: how fast they"
    )
    print("run depends on what surrounds them, as the `with` that does nothing shows.\n")
    heading(["work", "segments a second", "empty with", "recording", "bar", "interval"])
    for number, (name, work) in enumerate(WORKS.items()):
        for rate, most in BARS.items():
            walls = in_turn((setting.seed, OVERHEAD, number, rate), work, rate, turns)
            bare, empty, full = (float(np.median(each)) for each in walls)
            verdict = "none"
            if work is checksums:
                what = f"recording at {rate} a second, runs"
                verdict = f"{most:.0%}: {setting.verdict(what, full / bare - 1.0 <= most)}"
            shares = [f"{each / bare - 1.0:+.2%}" for each in (empty, full)]
            row(name, rate, *shares, verdict, interval(walls[0], walls[2]))
    _single_calls(setting)
    _empty_segments(setting)


def _single_calls(setting: Setting) -> None:
    calls = setting.runs(CALLS_BY_TURNS, 20)
    print(f"\nSingle calls with and without a segment around them, {calls} of each in random order")
    print("within one run, medians: whole runs cannot tell where a machine's speed wanders.\n")
    heading(["work", "segments a second", "without", "with", "adds", "bar"])
    for number, (name, work) in enumerate(WORKS.items()):
        for rate, most in BARS.items():
            key = (setting.seed, OVERHEAD, len(WORKS) + number, rate)
            low, high = (float(np.median(each)) for each in interleaved(key, work, rate, calls))
            what = f"recording {name} at {rate} a second, calls"
            verdict = setting.verdict(what, high / low - 1.0 <= most)
            shown = [f"{each * 1e3:.3f} ms" for each in (low, high)]
            row(name, rate, *shown, f"{high / low - 1.0:+.2%}", f"{most:.0%}: {verdict}")


def _empty_segments(setting: Setting) -> None:
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
