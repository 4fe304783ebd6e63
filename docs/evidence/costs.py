"""What benchrigor itself costs: readings, starts, `tell`, the plugin, verbs and probes.

    [BEFORE=REVISION] python docs/evidence/costs.py [--quick] [--seed N] [--only starts,probes]

Everything is real and on this machine: make sure that it does nothing else.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.instrument import Probe, ProbeRegistry
from benchrigor.machine.delays import RunDelay
from benchrigor.model import RoundPlan
from benchrigor.stats.series.undisturbed import groups_of
from benchrigor.workloads import CallableWorkload, InterpreterWorkload, RoundRecorder
from benchrigor.workloads.processes.command_line import INHERITED
from benchrigor.workloads.worktrees import worktrees
from shared.running import Run, Script

script = Script(__doc__)
READINGS, LOAD = 100_000, -3.5


def empty() -> None:
    """Do nothing."""


def by_hand() -> list[int]:
    """Time an empty function as a careful hand would, the clock bound to a local name."""
    now, readings = time.perf_counter_ns, []
    for _ in range(READINGS):
        start = now()
        empty()
        stop = now()
        readings.append(stop - start)
    return readings


def record_afresh() -> None:
    """Do the same with a fresh workload, first call and judging of the clock included."""
    plan, recorder = RoundPlan(index=0, readings=READINGS), RoundRecorder()
    CallableWorkload(empty, clock=WallClock(), inner=1).run(plan, recorder)
    recorder.finish(plan, elapsed_ns=0)


def short() -> None:
    """Take about 40 ns."""
    abs(LOAD), abs(LOAD)


def added_ns(calls: int = 2_000) -> float:
    """Return the cost of a reading as of `bench` to a short call, next to a loop by hand."""

    def loop() -> None:
        for _ in repeat(None, calls):
            short()

    plan, recorder = RoundPlan(index=0, readings=300), RoundRecorder()
    CallableWorkload(short, clock=WallClock()).run(plan, recorder)
    readings_s = recorder.finish(plan, elapsed_ns=0).unit_readings["time"]
    by_hand_s = [spent_s(loop) / calls for _ in range(300)]
    return float(1e9 * (np.median(readings_s) - np.median(by_hand_s)))


ROWS = [{"id": key, "name": str(key) * 3, "tags": [key] * 5} for key in range(60)]
NUMBERS = [random.Random(index).random() for index in range(2_000)]
TEXT = " ".join(map(str, NUMBERS))
WORK: dict[str, Callable[[], object]] = {
    "json dumps": lambda: json.dumps(ROWS),
    "sort": lambda: sorted(NUMBERS),
    "re": lambda: re.findall(r"\d+\.(\d)7", TEXT),
    "dict": lambda: {index: index * 2 for index in range(1_000)},
    "format": lambda: [f"{index:05d} {index / 3:.3f}" for index in range(300)],
    "zlib": lambda: zlib.compress(TEXT.encode()),
    "copy 200 KB": lambda: bytes(200_000)[1:],
}


def with_reference(name: str, pairs: int, rng: random.Random) -> float:
    """Return by how much readings are longer with the reference in turn, in pairs of rounds.

    The mean of undisturbed readings counts, trimmed: the pace changes within a pair, either way.
    """
    clock, meter = WallClock(), RunDelay()
    workloads = [
        CallableWorkload(WORK[name], clock=clock, meter=meter if meter.available else None)
        for _ in range(2)
    ]
    workloads[True].take_turns()
    ratios = []
    for pair in range(pairs + 3):
        means = [math.nan, math.nan]
        for is_on in rng.sample([False, True], 2):
            recorder = RoundRecorder()
            plan = RoundPlan(index=2 * pair + is_on, readings=1_000_000, seconds=0.02)
            workloads[is_on].run(plan, recorder)
            finished = recorder.finish(plan, elapsed_ns=0)
            values = finished.unit_readings["time"]
            groups = groups_of(finished.delays, values)
            kept = values[~np.repeat(groups.are_hit, groups.sizes)]
            means[is_on] = float(kept.mean()) if kept.size else math.nan
        ratios.append(math.log(means[True] / means[False]))
    kept = np.sort([ratio for ratio in ratios[3:] if math.isfinite(ratio)])
    cut = len(kept) // 10
    return float(kept[cut : len(kept) - cut].mean())


@script.section("What recording and the reference do to readings", seed=20270307)
def readings(run: Run) -> None:
    """Print recording over a loop by hand, and readings with the reference over without."""
    both = [(spent_s(by_hand), spent_s(record_afresh)) for _ in range(9)]
    hand, workload = map(min, zip(*both, strict=True))
    run.say(
        f"over by hand: {workload / hand:.2f}, {run.bar('recording', workload / hand, '<=', 1.3)}"
    )
    added = statistics.median(added_ns() for _ in range(run.runs(30, 9)))
    run.say(f"added to a call of 40 ns: {added:.2f} ns, {run.bar('bench', added, '<=', 2.0)}")
    rng, pairs = random.Random(run.seed), run.runs(300, 20)
    found = {name: with_reference(name, pairs, rng) for name in WORK}
    for name, change in found.items():
        run.say(f"{name}: {change:+.2%} with the reference")
    middle = abs(statistics.median(found.values()))
    run.say(f"median: {run.bar('reference', middle, '<=', 0.02 if run.quick else 0.005)}")


HEAVY = ["numpy", "scipy", "statsmodels", "ruptures", "pyperf", "matplotlib", "pandas", "asyncio"]
JOB = """
import os, sys
def nothing(): pass
def first(): os.kill(os.getppid(), 9)
def told():
    with open("loaded", "w") as file: file.write(" ".join(sys.modules))
def test_nothing(): pass
"""
CLICK = "import click; click.command()(lambda: click.echo('a line'))()"


def spent_ms(call: Callable[[], object]) -> tuple[float, float]:
    """Return the processor time of the processes that a call starts, and how long it takes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    call()
    stop, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return cpu_s * 1e3, (stop - start) * 1e3


@script.section("What imports, verbs, the plugin and fresh interpreters cost", seed=20310211)
def starts(run: Run) -> None:
    """Print least processor times, ratios of medians in turn, and what heavy modules are loaded."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "test_job.py").write_text(JOB)

        def python(*words: str) -> Callable[[], object]:
            argv = [sys.executable, *words]
            return partial(subprocess.run, argv, cwd=place, capture_output=True, check=False)

        def start_of(target: str, *, paced: bool = False) -> Callable[[], object]:
            workload = InterpreterWorkload(f"test_job:{target}", cwd=place)
            if paced:
                workload.take_turns()
            plan = RoundPlan(index=0, readings=1, seed=0)
            return lambda: workload.run(plan, RoundRecorder())

        pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
        environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
        bare = partial(subprocess.run, [sys.executable, "-c", "pass"], env=environment, check=True)
        verb = (str(Path(sys.executable).with_name("benchrigor")),)
        calls: dict[str, Callable[[], object]] = {
            "bare": bare,
            "import benchrigor": python("-c", "import benchrigor"),
            "pytest": python(*pytest, "-p", "no:benchrigor"),
            "pytest, plugin unused": python(*pytest),
            "a line of click": python("-c", CLICK),
            "--version": python(*verb, "--version"),
            "--help": python(*verb, "--help"),
            "numpy, click, psutil": python("-c", "import numpy, click, psutil"),
            "run to the first call": python(*verb, "run", "--no-store", "test_job:first"),
            "a fresh interpreter": start_of("nothing"),
            "one with the reference": start_of("nothing", paced=True),
        }
        found = [[spent_ms(call) for call in calls.values()] for _ in range(run.runs(20, 5))]
        least, middle = np.min(found, axis=0), np.median(found, axis=0).round(1)
        spent, taken = (dict(zip(calls, times, strict=True)) for times in (least[:, 0], middle))
        slack = 2.0 if run.quick else 1.0
        for name, base, most in (
            ("import benchrigor", "bare", 5.0),
            ("pytest, plugin unused", "pytest", 15.0),
            ("--help", None, 100.0),
            ("a fresh interpreter", "bare", 15.0),
            ("one with the reference", "bare", 15.0),
        ):
            above = spent[name] - (spent[base] if base else 0.0)
            run.say(f"{name}: {above:.1f} ms, {run.bar(name, above, '<=', slack * most)}")
        for name, base, most in (
            ("--version", "a line of click", 1.5),
            ("run to the first call", "numpy, click, psutil", 1.15),
        ):
            cpu, ratio = taken[name] / taken[base]
            run.say(f"{name}: {taken[name]} ms of CPU and in all, of {base} {taken[base]}")
            run.say(f"times {cpu:.2f} and {ratio:.2f}: {run.bar(name, ratio, '<=', slack * most)}")
        code = f"import sys, benchrigor.pytest_plugin; print(*{{*{HEAVY}}} & {{*sys.modules}})"
        loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
        start_of("told")()
        loaded += {*HEAVY, "benchrigor"} & {*(Path(place) / "loaded").read_text().split()}
    run.say(f"heavy: {loaded}, {run.bar('heavy modules', len(loaded), '==', 0)}")


DRIVEN = """
import sys, time
from benchrigor.cli.exits import left_clean
from benchrigor.clocks import WallClock
from benchrigor.machine.delays import RunDelay
from benchrigor.model import RoundPlan
from benchrigor.workloads import CommandWorkload, InterpreterWorkload, RoundRecorder
clock, plan = WallClock(), RoundPlan(index=0, readings=1, seed=0)
with left_clean():
    for line in sys.stdin:
        if line == "fresh\\n":
            workload = InterpreterWorkload("platform:python_version")
        else:
            workload = CommandWorkload(["true"], clock=clock, meter=RunDelay())
        began = time.perf_counter()
        workload.run(plan, RoundRecorder())
        print(time.perf_counter() - began, flush=True)
"""
BEFORE = os.environ.get("BEFORE", "HEAD")
IDLE = 2_000


@contextmanager
def idle_processes(count: int) -> Iterator[None]:
    """Have so many more processes on this machine, which sleep."""
    words = ["sh", "-c", f"for i in $(seq {count}); do sleep 10000 & done; echo; wait"]
    shell: Any = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True)
    with shell:
        shell.stdout.readline()
        try:
            yield
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


@contextmanager
def driven(tree: Path) -> Iterator[Callable[[str], float]]:
    """Give what has a process with that source carry out a round, and returns its seconds."""
    how: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    env = {**os.environ, "PYTHONPATH": str(tree / "src")}
    process: Any = subprocess.Popen([sys.executable, "-c", DRIVEN], env=env, **how)
    with process:

        def round_s(what: str) -> float:
            process.stdin.write(f"{what}\n")
            process.stdin.flush()
            return float(process.stdout.readline())

        yield round_s


@script.section("Rounds of processes beside idle ones, before and now by turns", seed=1)
def beside(run: Run) -> None:
    """Print how long rounds take now, next to the revision that the variable BEFORE names."""
    run.heading("round", "idle processes", "before ms", "now ms", "ratio", "from", "to", "bar")
    with worktrees([BEFORE]) as (before,), ExitStack() as stack:
        trees = (before.top, Path(__file__).parents[2])
        sides = [stack.enter_context(driven(tree)) for tree in trees]
        for idle in (0, IDLE):
            with idle_processes(idle):
                for what in ("fresh", "true"):
                    found = np.empty((run.runs(200, 10) + 3, 2))
                    for turn, took_s in enumerate(found):
                        for side in (0, 1) if turn % 2 else (1, 0):
                            took_s[side] = sides[side](what)
                    found = found[3:]  # the first ones load modules that all need
                    middle = np.median(found, axis=0) * 1e3
                    drawn = run.rng(idle).integers(len(found), size=(1_000, len(found)))
                    again = np.median(found[drawn], axis=1)
                    low, high = np.quantile(again[:, 1] / again[:, 0], [0.025, 0.975])
                    ratio = middle[1] / middle[0]
                    verdict = run.bar(f"{what} beside {idle}", low, "<=", 1.0)
                    figures = (*middle.round(2), *(f"{end:.3f}" for end in (ratio, low, high)))
                    run.row(what, idle, *figures, verdict)


@script.section("How much of a session of 30 s passes inside", seed=1)
def tell(run: Run) -> None:
    """Print the time inside `ask`, `tell` and `result`, journal included, of 30 rounds."""
    with tempfile.TemporaryDirectory() as place:
        for n in (400, 1_000, 100_000, *(() if run.quick else (1_000_000,))):
            rng = np.random.default_rng(n)
            series = rng.lognormal(0.0, 0.3, n) * 30.0 / n
            series[: n // 10] *= 1.0 + 2.0 * np.exp(-np.arange(n // 10) / (n / 40))
            chunks = iter(np.array_split(series, 30))
            options = br.Options(target=1e-9, preset="quick", budget_s=math.inf, max_rounds=30)
            session, start = br.Session(options, seed=1, store=f"{place}/{n}"), time.perf_counter()
            while (plan := session.ask()) is not None:
                values = {"time": next(chunks)}
                session.tell(br.Round(plan=plan, elapsed_ns=10**9, unit_readings=values))
            session.result()
            share = (time.perf_counter() - start) / 30.0
            most = 0.06 if run.quick else 0.02
            if n > 400:  # the first one loads modules that all need
                run.say(f"{n:,}: {share:.2%}, {run.bar(f'inside, {n:,}', share, '<=', most)}")


PIECES = {
    "loop": "for i in range(20): i * i",
    "adding": "sum(range(300))",
    "sorting": "sorted(NUMBERS)",
    "mapping": "{i: i for i in range(40)}",
    "text": "' '.join(WORDS).upper().split()",
    "numerals": "[str(i) for i in range(20)]",
    "parsing": "json.loads(TEXT)",
    "writing": "json.dumps(TABLE)",
    "matching": "PATTERN.findall(LINE)",
    "hashing": "hashlib.sha256(BYTES).digest()",
    "packing": "zlib.compress(BYTES[:2000], 1)",
    "floats": "[math.sqrt(x) for x in range(40)]",
}
HEAD = """
import hashlib, json, math, re, zlib
NUMBERS = [7919 * i % 1009 for i in range(100)]
WORDS = [f"word{i}" for i in range(60)]
TABLE = {w: [1, 2.5, None] for w in WORDS[:10]}
TEXT, LINE, BYTES = json.dumps(TABLE), " ".join(WORDS), bytes(range(256)) * 20
PATTERN = re.compile("[a-z]+[0-9]")
"""


def write_suite(folder: Path, planted: str | None) -> None:
    """Write a module and its tests; the planted function does 15 % more."""
    functions, tests = [HEAD], ["import work\n"]
    for name, piece in PIECES.items():
        times = round(200 * (1.15 if name == planted else 1.0))
        functions.append(f"def {name}():\n    for _ in range({times}):\n        {piece}\n")
        tests.append(f"def test_{name}(bench):\n    bench(work.{name})\n")
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src" / "work.py").write_text("\n\n".join(functions))
    (folder / "test_work.py").write_text("\n\n".join(tests))
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = src\n")


def changes_in(planted: str | None, options: Sequence[str]) -> dict[str, str]:
    """Run a suite against its last commit, and return the verdicts that call a change."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder, None)
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "before"]):
            subprocess.run([*git, *words], cwd=folder, check=True, capture_output=True)
        write_suite(folder, planted)
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        argv += ["--bench-against=HEAD", "--bench-json=all.json", *options]
        subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
        verdicts = json.loads((folder / "all.json").read_text())["against"]["verdicts"]
        assert len(verdicts) == len(PIECES)
        return {test: told for test, told in verdicts.items() if told in ("worse", "better")}


@script.section("Suites of twelve tests against a revision", seed=35, quick=False)
def suites(run: Run) -> None:
    """Print in how many suites the planted change is found, and another one called a change."""
    rng, found, false, alarmed = run.rng(35), 0, 0, 0
    number, options = run.runs(20, 1), ["--bench-budget=3s"] * run.quick
    for _ in range(number):
        planted = str(rng.choice(list(PIECES)))
        changes = changes_in(planted, options)
        found += changes.pop(f"test_{planted}", "") == "worse"
        false += bool(changes)
        alarmed += bool(changes_in(None, options))
    run.say(f"15 % found: {run.bar('planted', found / number, '>=', 0.95)}")
    run.say(f"the same code: {run.bar('same code', alarmed / number, '<=', 0.05)}; beside {false}")


# --- probes

EVENTS = 20_000


def forms(probe: Probe) -> dict[str, Callable[[], object]]:  # noqa: C901  # written out
    """Return a loop for each way to use a probe, and of bare pairs of readings of the clock."""
    now, decorated = time.perf_counter_ns, probe(empty)

    def bare() -> None:
        for _ in repeat(None, EVENTS):
            now()
            now()

    def nothing() -> None:
        for _ in repeat(None, EVENTS):
            pass

    def call_empty() -> None:
        for _ in repeat(None, EVENTS):
            empty()

    def token() -> None:
        for _ in repeat(None, EVENTS):
            probe.stop(probe.start())

    def enter_probe() -> None:
        for _ in repeat(None, EVENTS):
            with probe:
                pass

    def again() -> None:
        for _ in repeat(None, EVENTS):
            with probe.again():
                pass

    def call_decorated() -> None:
        for _ in repeat(None, EVENTS):
            decorated()

    loops = (bare, nothing, call_empty, token, enter_probe, again, call_decorated)
    return {loop.__name__: loop for loop in loops}


@script.section("What an event of a probe costs, and adds to programs", seed=20330511)
def probes(run: Run) -> None:
    """Print medians of processor time in pairs of bare readings, and two programs."""
    slack = 1.5 if run.quick else 1.0
    for state, most in (
        ("on", {"token": 3.0, "held": 4.0, "again": 6.5, "wrapped": 4.5}),
        ("off", {"token": 0.8, "held": 1.6, "wrapped": 1.1}),
    ):
        loops = forms(ProbeRegistry(on=state == "on").probe("event"))
        rounds = [
            {name: spent_s(loop) for name, loop in loops.items()} for _ in range(run.runs(31, 7))
        ]
        for name, limit in most.items():
            rest = "called" if name == "wrapped" else "nothing"
            pairs = [(e[name] - e[rest]) / (e["bare"] - e["nothing"]) for e in rounds]
            verdict = run.bar(f"{name}, {state}", statistics.median(pairs), "<=", slack * limit)
            run.say(f"{name}, {state}: {statistics.median(pairs):.2f} pairs, {verdict}")
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    kmeans: Any = import_module("kmeans_probes")
    mjpeg: Any = import_module("mjpeg_probes")
    points = np.random.default_rng(run.seed).normal(size=(20_000, 2))
    programs: dict[str, Callable[[ProbeRegistry], object]] = {
        "k-means": lambda registry: kmeans.k_means(points, 8, 10, registry),
        "motion JPEG": lambda registry: mjpeg.encode(2, 352, 288, registry),
    }
    for name, program in programs.items():
        added = []
        for turn in range(run.runs(61, 9)):
            order = (True, False) if turn % 2 else (False, True)
            spent = {on: spent_s(partial(program, ProbeRegistry(on=on))) for on in order}
            added.append(spent[True] / spent[False] - 1.0)
        more = float(np.median(added))
        run.say(f"{name}: {more:+.2%}, {run.bar(name, more, '<=', 0.1 if run.quick else 0.01)}")


@script.section("Whether events of eight threads are lost, and what a probe holds", seed=20330511)
def exact(run: Run) -> None:
    """Print totals next to a reader that resets, and the memory of a probe that was used."""
    registry, events, counted = ProbeRegistry(), 20_000 if run.quick else 1_250_000, 0
    probe, reader = registry.probe("event"), registry.reader()

    def count() -> None:
        for _ in repeat(None, events):
            probe.stop(probe.start())

    workers = [threading.Thread(target=count) for _ in range(8)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        counted += reader.since_last()["event"].count
        time.sleep(0.001)
    counted += reader.since_last()["event"].count
    run.say(f"{8 * events:,} events: {run.bar('lost events', 8 * events - counted, '==', 0)}")
    registry = ProbeRegistry()
    tracemalloc.start()
    before, several = tracemalloc.get_traced_memory()[0], list[Probe]()
    for number in range(1_000):
        several.append(registry.probe(f"event {number}"))
        for _ in range(100):
            several[-1].stop(several[-1].start())
    held_b = (tracemalloc.get_traced_memory()[0] - before) / 1_000
    tracemalloc.stop()
    run.say(f"a probe takes {held_b:.0f} B, {run.bar('memory', held_b, '<=', 1_024)}")


def spent_s(call: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


if __name__ == "__main__":
    raise SystemExit(script.main())
