"""Whether anything is lost, left over or believed although it is damaged, whatever happens.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/trust.py [--quick] [--seed N] [--only a,b]

Processes that store rounds are killed, stores damaged, inputs made at random, signals sent. Needs
Linux, for /proc.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import click
import click.testing
import numpy as np

import benchrigor as br
from benchrigor import stats
from benchrigor.cli import main as command_line
from benchrigor.cli.exits import ExitCode
from benchrigor.cli.measuring_verbs import amounts
from benchrigor.cli.options import SHARE, WITH_UNIT, Typed
from benchrigor.cli.verb_help import VERBS
from benchrigor.errors import BenchrigorError
from benchrigor.machine import read_thresholds
from benchrigor.model import codec
from benchrigor.model.metric import describe_metric, quantile_named
from benchrigor.report import explain, render
from benchrigor.session import Session
from benchrigor.settings import SETTINGS
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, SimulatedServer, SyntheticWorkload
from benchrigor.workbench import PeakRun, PeakSearch
from benchrigor.workbench.maps.map_run import is_map
from benchrigor.workbench.peak_run import KIND as PEAK
from benchrigor.workloads.processes.picking import Pick
from shared.running import Run, Script
from shared.watching import TooSlow, within

script = Script(__doc__)
SEED = 20361127
Trial = dict[str, Any]
"""Counts by their kind, and why they are not 0."""


def trials(run: Run, names: Iterable[str], carry_out: Callable[[str], Trial]) -> dict[str, Trial]:
    """Carry out trials, several at once, and return what came of each, by name."""
    asked = list(names)
    with ThreadPoolExecutor(run.jobs) as pool:
        return dict(zip(asked, pool.map(carry_out, asked), strict=True))


def show(
    run: Run, found: Mapping[str, Trial], columns: Sequence[str], faults: Sequence[str]
) -> None:
    """Print sums by what stands before the slash of a name, and why trials failed."""
    run.heading("of", "trials", *columns, "bar")
    for kind in dict.fromkeys(name.partition("/")[0] for name in found):
        rows = [count for name, count in found.items() if name.partition("/")[0] == kind]
        sums = {column: sum(row.get(column, 0) for row in rows) for column in columns}
        figure = sum(sums[fault] for fault in faults)
        run.row(kind, len(rows), *sums.values(), run.bar(f"faults of {kind}", figure, "==", 0))
    for name, trial in found.items():
        if trial["why"]:
            run.say(f"\n{name}: {trial['why']}")


class Started(NamedTuple):
    """A process that was started for a trial, and the mark of all its processes."""

    process: subprocess.Popen[str]
    mark: str

    def others(self) -> list[int]:
        """Return its living processes but for the one that was started."""
        wanted, found = f"{MARK}={self.mark}".encode(), []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                environment = (place / "environ").read_bytes().split(b"\0")
                state = (place / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if wanted in environment and state not in "ZX" and int(place.name) != self.process.pid:
                found.append(int(place.name))
        return found

    def ended(self, seconds: float) -> tuple[float, list[int]]:
        """Wait for its end, up to a limit; return how long it took, and the rest.

        The rest after a second is ended.
        """
        began = time.monotonic()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        took = time.monotonic() - began
        until = time.monotonic() + 1.0
        while (left := self.others()) and time.monotonic() < until:
            time.sleep(0.02)
        for number in left:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        return took, left


MARK = "BENCHRIGOR_TRUST_MARK"
"""Variable by which the processes of a trial are recognised, whatever session they are in."""


def start(argv: Sequence[str], folder: Path, store: Path) -> Started:
    """Start a process in a folder; its output goes to files there."""
    mark = uuid.uuid4().hex
    given = {"XDG_DATA_HOME": str(folder), MARK: mark, "BENCHRIGOR_STORE": str(store)}
    with (folder / "stdout").open("w") as stdout, (folder / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, *argv],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, **given},
            start_new_session=True,
            text=True,
        )
    return Started(process, mark)


# --- processes that are killed

REPORTING = """
import os, sys
from benchrigor.storage import Journal
append = Journal.append
def reported(self, run_id, finished):
    append(self, run_id, finished)
    with open("reported", "ab", 0) as file:
        file.write(f"{run_id} {finished.plan.index}\\n".encode())
Journal.append = reported
if sys.argv[1] == "python":
    import runpy
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
elif sys.argv[1] == "pytest":
    import pytest
    sys.exit(pytest.main(sys.argv[2:]))
else:
    from benchrigor.cli import main
    main()
"""
JOB = """
import asyncio, time
async def request():
    await asyncio.sleep(0.001)
def work():
    time.sleep(0.003)
def other():
    time.sleep(0.004)
def slowly(amount):
    time.sleep(0.1)
    return float(amount)
def test_work(bench):
    bench(work)
    bench.compare(work, other)
"""
PYTHON = """
import benchrigor as br
from job import other, work
br.measure_many({"work": work, "other": other}, store="runs.sqlite", budget_s=30, target=1e-6)
"""
MAP = f"""
[factors.amount]
levels = {[*range(1, 61)]}
[design]
kind = "full"
[response]
function = "job:slowly"
direction = "higher"
[hosts]
names = ["elm", "oak"]
"""
ENDLESS = "--budget 30 --target 1e-6"
MODES = {
    "function": f"run {ENDLESS} job:work",
    "fresh": f"run --fresh {ENDLESS} job:work",
    "command": f"run {ENDLESS} -- sleep 0.01",
    "timeit": f"timeit {ENDLESS} sum(range(99))",
    "commands": f"commands {ENDLESS} 'sleep 0.01' 'sleep 0.02'",
    "ab of functions": f"ab {ENDLESS} job:work job:other",
    "ab of commands": f"ab {ENDLESS} 'sleep 0.01' 'sleep 0.02'",
    "ab of fresh": f"ab --fresh {ENDLESS} job:work job:other",
    "peak": "peak --mean 100ms job:request",
    "pytest": "pytest --bench-save it --bench-budget 30 --bench-target 1e-6 job.py",
    "measure_many": "python many.py",
    "map on hosts": "map map.toml",
}
VICTIMS = ("itself", "a child", "all")
LIMIT_S = 30.0


def kill_mode(seed: int, name: str) -> Trial:
    """Start a mode, kill it, one of its processes or all, and return what became of its rounds."""
    mode, _, index = name.partition("/")
    # One number is that of streams, which are no more.
    place = [*MODES].index(mode) + ([*MODES].index(mode) >= 3)
    rng = np.random.default_rng([seed, place, int(index)])
    kind, delay_s = VICTIMS[int(rng.integers(len(VICTIMS)))], float(rng.uniform(0.0, 1.5))
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        files = {"job.py": JOB, "many.py": PYTHON, "reporting.py": REPORTING, "map.toml": MAP}
        for file, text in files.items():
            (folder / file).write_text(text)
        store = folder / (".benchrigor/it.sqlite" if mode == "pytest" else "runs.sqlite")
        run = start(("reporting.py", *shlex.split(MODES[mode])), folder, store)
        until = time.monotonic() + LIMIT_S
        while not (folder / "reported").exists() and time.monotonic() < until:
            if run.process.poll() is not None:
                break
            time.sleep(0.01)
        time.sleep(delay_s)
        children, itself, ended = run.others(), run.process.pid, run.process.poll()
        victims = {"itself": [itself], "a child": children[:1], "all": [itself, *children]}[kind]
        for number in victims or [itself]:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        if kind == "a child":
            time.sleep(0.2)
            run.process.send_signal(signal.SIGTERM)
        _, left = run.ended(LIMIT_S)
        # The child of a process that was killed is its own: nobody is left to end a command.
        is_ours = kind == "a child" or mode in {"fresh", "ab of fresh"}
        kept = rounds_kept(folder, store)
        if ended is not None:
            told = (folder / "stderr").read_text()[-300:]
            kept["why"] += f" It ended by itself with {ended}: {told}"
        return {"left running": len(left) * is_ours, **kept}


def rounds_kept(folder: Path, store: Path) -> Trial:
    """Compare the report with the store, and take each run up again."""
    file = folder / "reported"
    reported = set(file.read_text().splitlines()) if file.exists() else set()
    stored, stuck, why = Counter[str](), 0, ""
    with Journal(store) as journal:
        for listed in journal.runs():
            run_id = listed["run_id"]
            try:
                record = journal.load(run_id)
                stored.update(f"{run_id} {done.plan.index}" for done in record.rounds)
                if record.subject.get("kind") != PEAK and not is_map(record):
                    Session.resume(journal, run_id)
            except BenchrigorError as error:
                stuck, why = stuck + 1, f"{why} {error}"
    return {
        "rounds": len(reported),
        "lost": len(reported - stored.keys()),
        "twice": sum(n - 1 for n in stored.values()),
        "not taken up": stuck,
        "why": why,
    }


@script.section("Processes that are killed", seed=SEED)
def kills(run: Run) -> None:
    """Print runs that were lost, stored twice, or could not be taken up again."""
    names = [f"{mode}/{n}" for n in range(run.runs(1_000 // len(MODES), 1)) for mode in MODES]
    faults = ("lost", "twice", "not taken up", "left running")
    show(run, trials(run, names, partial(kill_mode, run.seed)), ("rounds", *faults), faults)


# --- stores that are damaged

PAGE = 4096
DAMAGES = (
    "a bit",
    "eight bits",
    "a page of zeros",
    "a page of noise",
    "a page of another",
    "an end",
)


def store_of(path: Path) -> bytes:
    """Make a store of finished runs, a comparison and a search for a peak; return its bytes."""
    with Journal(path) as journal:
        for seed in range(6):
            clock = FakeClock()
            options = br.Options(target=0.01, max_rounds=30)
            session = br.Session(options, name=f"run {seed}", seed=seed, store=journal, clock=clock)
            session.run(SyntheticWorkload(mean=1e-3, cv=0.05, seed=seed, clock=clock))
        clock = FakeClock()
        slow, fast = (partial(clock.advance, step) for step in (1_000_000, 1_100_000))
        br.measure_pair(slow, fast, store=journal, clock=clock, budget_s=0.5, seed=1)
        limit = br.Limit(metric="mean", at_most=0.04)
        kept = {"limits": codec.encode([limit]), "setup_s": 5.0}
        search = PeakSearch(limits=[limit], setup_s=5.0)
        PeakRun(search, name="a peak", options=kept, store=journal).carry_out(
            SimulatedServer(200.0)
        )
    return path.read_bytes()


def told_by(path: Path) -> dict[str, Any]:
    """Return all that a store holds: the list, and each run."""
    with Journal(path) as journal:
        listed = journal.runs()
        told: dict[str, Any] = {f"list {run['run_id']}": run for run in listed}
        return told | {r["run_id"]: codec.encode(journal.load(r["run_id"])) for r in listed}


def damage_store(whole: bytes, seed: int, name: str) -> bytes:
    """Damage the bytes of a store."""
    kind, _, index = name.partition("/")
    rng = np.random.default_rng([seed, DAMAGES.index(kind), int(index)])
    data = bytearray(whole)
    if kind == "an end":
        return bytes(data[: int(rng.integers(1, len(data)))])
    if kind in {"a bit", "eight bits"}:
        for at in rng.integers(len(data), size=1 if kind == "a bit" else 8):
            data[at] ^= 1 << int(rng.integers(8))
        return bytes(data)
    at, other = (PAGE * int(page) for page in rng.integers(len(data) // PAGE, size=2))
    noise = rng.bytes(PAGE)
    data[at : at + PAGE] = {
        "a page of zeros": bytes(PAGE),
        "a page of noise": noise,
        "a page of another": data[other : other + PAGE],
    }[kind]
    return bytes(data)


def compare_damaged(told: Mapping[str, Any], path: Path) -> Trial:
    """Return how much of a damaged store is the same, is refused, or differs without an error."""
    found, why = Counter[str](), ""
    listed: list[dict[str, Any]] | None = None
    with suppress(BenchrigorError), Journal(path) as journal:
        for key, before in told.items():
            now: Any = None
            try:
                if not key.startswith("list "):
                    now = codec.encode(journal.load(key))
                else:
                    listed = journal.runs() if listed is None else listed
                    now = next((run for run in listed if run["run_id"] == key[5:]), None)
                refused = key.startswith("list ") and now is not None and "damage" in now
            except BenchrigorError:
                refused = True
            except Exception as error:  # noqa: BLE001  # which is what is looked for
                found["tracebacks"] += 1
                why += f" {key}: {type(error).__name__}: {error}"
                continue
            what = "errors" if refused else "unchanged" if now == before else "silently different"
            found[what] += 1
            if what == "silently different":
                why += f" {key} differs: {before!s:.200} is now {now!s:.200}"
    return {**found, "why": why}


@script.section("Stores that are damaged", seed=SEED)
def damage(run: Run) -> None:
    """Print what damaged stores return: the same, or an error."""
    names = [f"{kind}/{n}" for n in range(run.runs(167, 10)) for kind in DAMAGES]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        whole = store_of(folder / "whole.sqlite")
        told = told_by(folder / "whole.sqlite")

        def carry_out(name: str) -> Trial:
            path = folder / f"{name.replace('/', ' ')}.sqlite"
            path.write_bytes(damage_store(whole, run.seed, name))
            found = compare_damaged(told, path)
            for file in folder.glob(f"{path.name}*"):
                file.unlink()
            return found

        faults = ("silently different", "tracebacks")
        show(run, trials(run, names, carry_out), ("unchanged", "errors", *faults), faults)


# --- inputs that make no sense: a result, an error of benchrigor's own, or an exit code of its own

Fault = tuple[str, str]
Input = tuple[str, Callable[[], object]]

NUMBERS = ("0", "1", "2", "10", "0.5", "1e-300", "1e300", "1e154", "-1", "3.25", "1e-9", "0.1")
STRANGE = (
    *("", " ", "nan", "inf", "-inf", "1e400", "-1e400", "1e999%", "9" * 400, "-" + "9" * 5000),
    *("0." + "0" * 400 + "1", "1_000", "0x10", "1,5", "1.234,5", "٣", "½", "1e", "e5", "+5", "--"),
    *("1/0", "0/0", "3/4", "998/1000", "1/" + "9" * 400, "None", "null", "true", "NaN", "Infinity"),
    *("%", "5%", "5%%", "±2%", "100%", "2%", "1:2", "1:2:3", ":", "10%:5%", "auto", "none", ","),
    *("\x00", "\udcff", "\ud800", "\u2028", "\x1b[31m", "\n", "\r", "\t", "\ufeff", "µs", "é"),
    *("s", "ms", "/s", "B", "B/s", "req/s", "req/s,harmonic", "1", "lower", "share", "time", "µ"),
    *("1h", "1m30s", "5 ms", "1e400s", "1e-400s", "100", "0s", "p50", "p0", "p100", "p1e400"),
    *("mean", "p99", "median", "p" + "9" * 400, "{", "}", "{n}", "'", '"', "\\", "(", "(?P<", "["),
    *("*", "#", "0-3", "3-0", "0,1", "0-999999999999", "-", "a", "x" * 3000, "e" * 300),
)
# Verbs that measure get a program that is not there, or a statement that raises.
ABSENT = {
    "run": ("no-such-program",),
    "ab": ("no-such-program", "no-such-program 2"),
    "commands": ("no-such-program", "no-such-program {n}"),
    "peak": ("--p95", "50ms", "--", "no-such-program", "{load}"),
    "timeit": ("-s", "1/0", "pass"),
    "resume": ("no-such-run",),
    "watch": ("--once", "127.0.0.1:9", "no-such-host:x"),
}
LEFT_OUT = {"doctor", "agent"}  # which take seconds, or serve
WAITING = {"--over", "--watch", "--build", "--rev"}  # these run programs, or wait


def text(rng: random.Random) -> str:
    """Make a text that looks as expected, is strange, or both."""
    parts = [rng.choice(rng.choice((NUMBERS, STRANGE))) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    whole = rng.choice(("", "", ":", "=", ",", " ", "e", "%")).join(parts)
    if whole and rng.random() < 0.2:
        place = rng.randrange(len(whole))
        whole = (
            whole[:place]
            + chr(rng.choice((0, 37, 45, 46, 58, 233, 0x202E, 0xDCFF)))
            + whole[place:]
        )
    return whole


def number(rng: random.Random) -> float:
    """Make a number, of any size that a float has."""
    if rng.random() < 0.1:
        return rng.choice((0.0, float("nan"), float("inf"), -1.0, 5e-324, 1.7e308, 1e154, -1e154))
    exponent = rng.choice((0.0, 0.0, 0.0, rng.uniform(-320.0, 308.0)))
    sign = rng.choice((1.0, 1.0, 1.0, -1.0))
    return sign * rng.uniform(0.5, 2.0) * float(10.0**exponent)


def document(rng: random.Random, depth: int = 0) -> Any:
    """Make what JSON can hold."""
    kind = rng.random()
    if depth < 4 and kind < 0.3:
        return [document(rng, depth + 1) for _ in range(rng.randrange(6))]
    if depth < 4 and kind < 0.5:
        return {text(rng)[:40]: document(rng, depth + 1) for _ in range(rng.randrange(4))}
    return rng.choice((None, True, False, text(rng), number(rng), rng.randrange(99), 10**400, -1))


def in_json(rng: random.Random, of: Any) -> str:
    """Write a document as JSON, now and then damaged or nested deeply."""
    with suppress(ValueError):  # Python writes no whole number of thousands of digits
        written = json.dumps(of)
        chance = rng.random()
        if chance < 0.1:
            return written.replace(
                "1", rng.choice(("1e999", "9" * 400, "9" * 5000, "-0", "null")), 1
            )
        if chance < 0.15:
            return written[: rng.randrange(len(written) + 1)]
        if chance < 0.2:
            return rng.choice(("[", '{"a":', "[[1],")) * rng.choice((10, 2_000, 100_000)) + written
        return written
    return "[1]"


def table(rng: random.Random) -> str:
    """Write rows of cells, now and then of strange ones."""
    if rng.random() < 0.1:
        return rng.choice(
            (",", ",,", ";", "\t", '"', '""', "\n", ",\n1,", '"a\n', "\ufeff", "#", "0\n")
        )
    mark, width = rng.choice(",,,; \t"), rng.choice((1, 1, 2, 3))
    strange = rng.choice((0.0, 0.0, 0.02, 0.5))
    header = [mark.join(text(rng) if rng.random() < strange else f"c{n}" for n in range(width))]
    lines = header * rng.randrange(2)
    for _ in range(rng.choice((1, 2, 3, 12, 60))):
        cells = [
            text(rng) if rng.random() < strange else f"{number(rng):.6g}" for _ in range(width)
        ]
        lines.append(mark.join(cells))
    return rng.choice(("\n", "\n", "\r\n", "\r")).join(lines)


@cache
def record() -> dict[str, Any]:
    """Return a record as plain data, with values changed at random."""
    session = br.Session(br.Options(budget_readings=200), seed=1, name="synthetic")
    rng = np.random.default_rng(1)
    while (plan := session.ask()) is not None:
        readings = {"time": rng.normal(1.0, 0.1, min(plan.readings, 50))}
        session.tell(br.Round(plan=plan, elapsed_ns=10**9, unit_readings=readings))
    return session.result().to_dict()


def changed_record(rng: random.Random) -> Any:
    """Return a record in which some value is another one, or missing."""
    whole = json.loads(json.dumps(record()))
    for _ in range(rng.choice((1, 1, 2))):
        place: Any = whole
        while True:
            keys = [*place] if isinstance(place, dict) else [*range(len(place))]
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.9:
                place = place[key]
                continue
            if rng.random() < 0.15:
                del place[key]
            else:
                place[key] = rng.choice((document(rng, 3), number(rng), [], {}, "", 10**400, None))
            break
    return whole


def encoded(written: str) -> bytes:
    """Return bytes; some are not UTF-8."""
    return written.encode("utf-8", "replace" if "\ud800" in written else "surrogateescape")


def of_texts(rng: random.Random) -> Input:
    """Give a text to a parser of options."""
    parsers: dict[str, Callable[[str], object]] = {
        "share": lambda typed: SHARE.convert(typed, None, None),
        "trim": lambda typed: Typed("", SETTINGS["trim"].kind.read).convert(typed, None, None),
        "duration": lambda typed: WITH_UNIT.convert(typed, None, None),
        "time limit": lambda it: Typed("", SETTINGS["timeout_s"].kind.read).convert(it, None, None),
        "amounts": amounts,
        "statistic": quantile_named,
        "metric": lambda typed: describe_metric("x", typed),
        "pick": Pick.parse,
        "thresholds": lambda typed: read_thresholds(f"[hot]\nabove = {typed}\n"),
    }
    name, typed = rng.choice([*parsers]), text(rng)
    return f"{name} {typed!a}", lambda: parsers[name](typed)


def of_statistics(rng: random.Random) -> Input:
    """Give numbers of any size to the statistics."""
    size = rng.choice((0, 1, 2, 3, 8, 40, 80))
    series = [[number(rng) for _ in range(size)] for _ in range(2)]
    if rng.random() < 0.5:  # of one size each, far apart
        scales = [rng.choice((1e-300, 1e-150, 1e-9, 1.0, 1e150)) for _ in series]
        series = [[scale * rng.uniform(0.5, 1.5) for _ in range(size)] for scale in scales]
    first, second = series
    calls: dict[str, Callable[[], object]] = {
        "mean": lambda: stats.estimate_mean(first),
        "trimmed": lambda: stats.estimate_mean(first, trim=True),
        "invocations": lambda: stats.estimate_invocations(series),
        "quantile": lambda: stats.estimate_quantile(first, 0.9),
        "compare": lambda: str(stats.compare(first, second)),
        "paired": lambda: str(stats.compare(first, second, paired=True)),
        "phases": lambda: stats.find_stable_phase(first),
        "changes": lambda: stats.detect_changes(first),
        "line": lambda: stats.fit_wps(first, second),
        "power": lambda: str(stats.required_readings(stats.estimate_mean(first), 0.01)),
    }
    name = rng.choice([*calls])
    return f"statistics {name} {first} {second}", calls[name]


def of_records(rng: random.Random) -> Input:
    """Read a record that is damaged, and report it."""
    data = changed_record(rng)

    written = in_json(rng, data)

    def report() -> None:
        Path("record").write_bytes(encoded(written))
        read = br.RunRecord.load("record")
        str(read)
        render(read)
        explain(read)

    return f"record {written!a}", report


def of_verbs(rng: random.Random) -> Input:
    """Call a verb with files and options at random; many make sense."""
    name = rng.choice([verb for verb in VERBS if verb not in LEFT_OUT])
    verb = command_line.get_command(click.Context(command_line), name)
    assert verb is not None
    contents = [rng.choice((table, lambda own: in_json(own, document(own))))(rng) for _ in range(3)]
    if rng.random() < 0.3:
        contents[0] = in_json(rng, changed_record(rng))
    words: list[str] = [name]
    options = [
        parameter
        for parameter in verb.params
        if isinstance(parameter, click.Option) and not WAITING & {*parameter.opts}
    ]
    for option in rng.sample(options, min(len(options), rng.choice((0, 0, 1, 1, 2, 4)))):
        words.append(rng.choice(option.opts))
        values = () if option.is_flag else range(option.nargs)
        choices = getattr(option.type, "choices", ())
        words += [
            rng.choice(
                [*choices] if choices and rng.random() < 0.8 else [text(rng), "0", "c0", "2%"]
            )
            for _ in values
        ]
    files = [rng.choice(("file0", "file1", "file2")) for _ in range(rng.choice((1, 1, 2, 3)))]
    words += ABSENT.get(name, files if rng.random() < 0.95 else (text(rng),))
    # No word of a process has NUL or half a character.
    words = [word.lstrip("/").replace("\x00", "").replace("\ud800", "") for word in words]

    def call() -> None:
        for number, content in enumerate(contents):
            data = content.encode(
                "utf-8", "surrogateescape" if "\ud800" not in content else "replace"
            )
            Path(f"file{number}").write_bytes(data)
        ran = click.testing.CliRunner().invoke(command_line, words)
        if ran.exception is not None and not isinstance(ran.exception, SystemExit):
            raise ran.exception
        if ran.exit_code not in [*ExitCode]:
            raise AssertionError(f"exit code {ran.exit_code}: {ran.output}")

    return f"verb {words!a} {contents!a}", call


# Parsers of texts are quick, verbs take a hundred times as long.
INPUTS = {of_texts: 12, of_statistics: 5, of_records: 2, of_verbs: 5}


def fault_of(seed: int, index: int) -> Fault | None:
    """Make an input and use it; return it with a traceback where something else came of it."""
    rng = random.Random(f"{seed}:{index}")
    make = rng.choices([*INPUTS], [*INPUTS.values()])[0]
    described, call = make(rng)
    try:
        with within(10.0), warnings.catch_warnings():
            warnings.simplefilter("error")
            call()
    except (BenchrigorError, click.ClickException):
        return None
    except (Exception, TooSlow):  # noqa: BLE001 - what is looked for
        return described, traceback.format_exc()
    return None


def fuzz(seed: int, count: int) -> list[Fault]:
    """Use a number of inputs of a seed, in a folder of their own; return the faults."""
    here, store = Path.cwd(), {"BENCHRIGOR_STORE": "runs.sqlite"}
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, store):
        os.chdir(folder)
        try:
            return [fault for index in range(count) if (fault := fault_of(seed, index))]
        finally:
            os.chdir(here)


@script.section("Inputs that make no sense", seed=SEED)
def inputs(run: Run) -> None:
    """Print how many inputs made a fault, and each cause once; each batch has a process."""
    batch, count = (500, 3) if run.quick else (1_000, run.runs(100, 3))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(run.jobs, mp_context=context, max_tasks_per_child=1) as pool:
        found = pool.map(fuzz, range(run.seed, run.seed + count), [batch] * count)
        faults = [fault for several in found for fault in several]
    run.say(f"{batch * count:,} inputs: {run.bar('faults of inputs', len(faults), '==', 0)}")
    causes = {"".join(told.splitlines()[-3:]): (what, told) for what, told in faults}
    for what, told in causes.values():
        run.say(f"\n{what[:2000]}\n{told}")


# --- signals

SIGNALS = (
    *("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM"),
    *("SIGPROF", "SIGXCPU", "SIGPOLL", "SIGPWR", "SIGSTKFLT"),
)
FEW_SIGNALS = ("run/SIGHUP", "deaf/SIGQUIT", "peak/SIGTERM", "ab revisions/SIGINT", "fresh/SIGTERM")


@script.section("Signals, in every mode that measures", seed=SEED)
def signals(run: Run) -> None:
    """Print the leftovers of signals: processes, files, worktrees. Modes are the tests'."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "simulations"))
    signalled = import_module("signalled")

    def carry_out(name: str) -> Trial:
        mode, _, word = name.partition("/")
        number = signal.Signals[word]
        with tempfile.TemporaryDirectory() as folder:
            found = signalled.trial(mode, number, Path(folder))
        faults = {
            "another exit code": int(found.code not in signalled.expected_codes(mode, number)),
            "left running": len(found.left),
            "files left": len(found.files),
            "later than 3 s": int(found.seconds > 3.0),
        }
        told = f"exit code {found.code}, {found.seconds:.1f} s: {found.stderr[-300:]}"
        return {**faults, "why": told if any(faults.values()) else ""}

    every = [f"{mode}/{name}" for mode in signalled.MODES for name in SIGNALS]
    faults = ("another exit code", "left running", "files left", "later than 3 s")
    show(run, trials(run, FEW_SIGNALS if run.quick else every, carry_out), faults, faults)


if __name__ == "__main__":
    raise SystemExit(script.main())
