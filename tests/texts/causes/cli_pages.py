"""Texts while a run goes on, and of verbs about files and records of runs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import click.testing
import numpy as np
from simulated.estimates import estimated
from tests.texts.causes.cli import DATA
from tests.texts.rendering import run

import benchrigor as br
from benchrigor.cli.output import LiveLine
from benchrigor.model import Analysis, Estimate, Metric, Options, Progress, Width
from benchrigor.model.analysis import Kind
from benchrigor.stats import compare
from benchrigor.testing import FakeClock
from benchrigor.workloads import CommandWorkload

TIME = Metric(name="time", unit="s")
SPEED = Metric(name="speed", unit="B/s", direction="higher")  # type: ignore[arg-type]
BESIDE = replace(SPEED, must_satisfy=False)
ROUGH = estimated(0.00321, 0.0031, 0.00332, n=12, n_effective=12.0, method="provisional")
FIRST = estimated(5.0, -math.inf, math.inf, n=1, n_effective=1.0, method="provisional")
RATE = estimated(23.4e6, 21.9e6, 25.7e6, n=12, n_effective=12.0, method="wps")


def live(*analyses: Analysis, options: Options | None = None, **given: object) -> list[str]:
    """Return the line that is shown while a run goes on."""
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
    line = LiveLine(lines.append)
    if options is not None:
        line.follow("parse", options)
    widths = [
        Width(metric=analysis.metric, estimate=analysis.estimate)
        for analysis in analyses
        if analysis.metric.must_satisfy
    ]
    line(Progress(analyses=analyses, widths=tuple(widths), **progress))  # type: ignore[arg-type]
    return lines


def of_work(metric: Metric = SPEED, estimate: Estimate | None = RATE) -> Analysis:
    """Return the analysis of a speed."""
    return Analysis(metric=metric, kind=Kind.WORK, n=12, estimate=estimate)


def of_time(estimate: Estimate | None = ROUGH) -> Analysis:
    """Return the analysis of times."""
    return Analysis(metric=TIME, kind=Kind.UNIT_READINGS, n=12, estimate=estimate)


def rows(values: np.ndarray) -> str:
    """Return the lines of a file."""
    return "".join(f"{float(value)!r}\n" for value in values)


def series(level: float, seed: int, n: int = 300, cv: float = 0.02) -> str:
    """Return the lines of a file around a level."""
    return rows(level * np.random.default_rng(seed).normal(1.0, cv, n))


def modes(seed: int) -> str:
    """Return the lines of a file of two modes."""
    noise = np.random.default_rng(seed).lognormal(0.0, 0.03, 40)
    return rows(np.resize([12.0, 750.0, 12.0], 40) * noise)


def lines_of_one_pair() -> str:
    """Return the lines of a file in which one pair carries the interval."""
    values = np.random.default_rng(1).lognormal(0.0, 0.05, 20)
    values[7] *= 100.0
    return rows(values)


def jmeter(level: float, failed: int) -> str:
    """Return a file of requests; some of them failed."""
    times = np.random.default_rng(1).normal(level, level / 20, 80)
    told = (
        f"{1795200000000 + index},{seconds:.0f},home,{503 if index < failed else 200},"
        f"{'false' if index < failed else 'true'}"
        for index, seconds in enumerate(times)
    )
    return "\n".join(["timeStamp,elapsed,label,responseCode,success", *told, ""])


def suite(factor: float, *names: str) -> str:
    """Return a file of benchmarks."""
    results = [
        {"command": name, "times": (factor * np.random.default_rng(k).normal(1, 0.02, 30)).tolist()}
        for k, name in enumerate(names)
    ]
    return json.dumps({"results": results})


FILES = {
    "old.csv": series(1.0, 1),
    "new.csv": series(1.05, 2),
    "same.csv": series(1.0, 3),
    "some.csv": series(1.0, 4, n=40),
    "modes.csv": modes(1),
    "other.csv": modes(2),
    "carried.csv": lines_of_one_pair(),
    "twenty.csv": rows(np.random.default_rng(2).lognormal(0.0, 0.05, 20)),
    "errors.csv": "0\n1\n3\n2\n" * 20,
    "none.csv": "0\n" * 80,
    "good.result": jmeter(400.0, 0),
    "some.result": jmeter(380.0, 24),
    "fail.result": jmeter(20.0, 80),
    "old.json": suite(1.0, "parse", "render", "gone"),
    "new.json": suite(1.1, "parse", "render", "added"),
    "same.json": suite(1.0, "parse", "render", "gone"),
    "known.csv": "10\n" * 30 + "30\n" * 130 + "10\n" * 30,
    "go.txt": "pkg: p\nBenchmarkA-8 10 3 ns/op\nBenchmarkA-8 10 5 ns/op\nPASS\n" * 3,
}
PYPERF = (DATA / "pyperf-2.11.0.json").read_text(encoding="utf-8")
FILES |= {
    f"{host}.json": PYPERF.replace('"hostname":"vm"', f'"hostname":"{host}"') for host in "ab"
}
FILES |= {file: (DATA / file).read_text() for file in ("hyperfine.csv", "hyperfine.json")}
LINES = """
compare a.json b.json --same-machine
compare hyperfine.csv hyperfine.json --details
convert hyperfine.csv out.csv
compare old.csv new.csv --unit ms
compare old.csv new.csv --unit ms --details
compare old.csv same.csv --unit ms --margin 5%
compare old.csv same.csv --unit ms --paired --margin 0
compare new.csv old.csv same.csv --unit ms
compare new.csv old.csv same.csv --unit ms --details
compare new.csv some.csv twenty.csv --details
compare modes.csv other.csv --unit ms
compare modes.csv other.csv old.csv --unit ms
compare carried.csv twenty.csv --paired --details
compare errors.csv none.csv --unit errors --direction lower
compare old.csv new.csv --unit ms --markdown -
compare good.result some.result
compare good.result some.result --markdown -
compare good.result fail.result
compare old.json new.json
compare old.json new.json same.json
compare old.json new.json --details
analyze old.csv --unit ms --explain
analyze old.csv --unit ms --explain --trim 10%
analyze old.csv --unit ms --explain --method subsessions
analyze modes.csv --unit ms
analyze errors.csv --unit req/s --explain
analyze some.result
analyze go.txt
analyze some.csv --statistic p99
explain some.result
plan some.result
changes some.result
changes known.csv --detector edm
plan some.csv --unit ms --change 2% --margin 1% --power 90%
convert some.result out.csv
convert some.result out.json
convert fail.result out.csv
convert old.json out.json
""".strip().splitlines()


def of_files(*words: str) -> click.testing.Result:
    """Return the answer of a verb to files."""
    return run(*words, files=FILES)


def rough(estimate: Estimate) -> Width:
    """Return a rough figure of times."""
    return Width(metric=TIME, estimate=estimate)


CAUSES: dict[str, Callable[[], object]] = {
    line: lambda line=line: of_files(*line.split())  # type: ignore[misc]
    for line in LINES
}
CAUSES |= {
    "live, a speed": lambda: live(of_work()),
    "live, a speed and its cost": lambda: live(of_work(), readings_needed=30),
    "live, before there is a speed": lambda: live(of_work(estimate=None)),
    "live, times": lambda: live(of_time(RATE)),
    "live, times beside a speed": lambda: live(of_work(BESIDE), of_time(RATE)),
    "live, a rough figure": lambda: live(of_time(None), provisional=rough(ROUGH)),
    "live, one reading": lambda: live(provisional=rough(FIRST), readings=1),
    "live, a name and a target": lambda: live(
        of_time(), options=Options(target=0.02), readings=1234, readings_needed=4000
    ),
    "live, between pieces": lambda: live(
        options=Options(pieces=6), fresh=False, name="parse", piece=1, waiting_s=83.2
    ),
    "a ratio that no float holds": lambda: compare([5e-324] * 40, [1.0, 2.0] * 20).notices,
    "ratios of pairs that no float holds": lambda: compare(
        [1.0, 5e-324, 1.0], [1.0, 1.0, 1.0], paired=True
    ),
    "a number of rounds that no float holds": lambda: br.Options(max_rounds=10**400),
    "words of a shell in a program": lambda: CommandWorkload("a && b", clock=FakeClock()),
    "words of a shell in a hook": lambda: CommandWorkload(
        ["true"], hooks={"setup": "make x"}, clock=FakeClock()
    ),
}
