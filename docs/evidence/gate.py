"""Results of a gate, their cost, and how often they are wrong.

    python docs/evidence/gate.py [--quick] [--seed N] [--only race,tools] [--repetitions N]

Every draw is default_rng([seed, run]). All sections but race are on this machine: make sure that it
does nothing else. The section tools needs hyperfine and go; public fetches two repositories, and
needs what their tests import: attrs, typing-extensions, mdurl and pytest-benchmark.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchrigor.gate import Block, Pass, Ratios, Sources, measure_gate
from benchrigor.model import Headway, Metric, Turn, Verdict
from benchrigor.session.engine import Engine
from benchrigor.session.schedules import LEAST_BLOCKS, Race
from benchrigor.stats.series.interval import student_t
from shared.running import Run, Script

script = Script(__doc__)
SEED, MARGIN, SIDES = 20370614, 0.02, ("old", "new", "copy")
TIME = Metric(name="time", unit="s")
PLANTED = 0.05
CHANGES = (Verdict.WORSE, Verdict.BETTER)
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]


class Drawn:
    """A suite of simulated benchmarks, ten of them slower: noise between processes, and costs."""

    def __init__(self, rng: np.random.Generator, count: int) -> None:
        self.rng, self.names = rng, [f"test_{index}" for index in range(count)]
        self.sds, self.costs = self.drawn(0.005, 0.08), self.drawn(0.05, 5.0)
        self.slower = set(rng.choice(self.names, max(count // 20, 1), replace=False).tolist())
        self.clock_s = 0.0

    def drawn(self, low: float, high: float) -> dict[str, float]:
        """Draw a figure for each benchmark, log-uniform."""
        logs = self.rng.uniform(math.log(low), math.log(high), len(self.names))
        return dict(zip(self.names, np.exp(logs).tolist(), strict=True))

    def log_of(self, name: str, role: str) -> float:
        """Draw the logarithm of a time in one process."""
        planted = math.log1p(PLANTED) if role == "new" and name in self.slower else 0.0
        return planted + float(self.rng.normal(0.0, self.sds[name]))

    def carry_out(self, turn: Turn) -> Block:
        """Run the processes of a block."""
        names, passes, since_s = turn.names or self.names, {}, self.clock_s
        for role in turn.order:
            values = {name: math.exp(self.log_of(name, role)) for name in names}
            durations = {name: self.costs[name] for name in names}
            elapsed_s = sum(durations.values())
            self.clock_s += elapsed_s
            metrics = dict.fromkeys(names, TIME)
            passes[role] = Pass(
                elapsed_s=elapsed_s, values=values, metrics=metrics, durations=durations
            )
        elapsed_ns = round((self.clock_s - since_s) * 1e9)
        return Block(plan=turn.plan, passes=passes, elapsed_ns=elapsed_ns)


def equal_blocks(state: Mapping[str, Headway], _: int) -> Sequence[str]:
    """Choose all benchmarks."""
    return [*state]


def equal_times(state: Mapping[str, Headway], blocks: int) -> Sequence[str]:
    """Choose the benchmark that took least time so far."""
    if blocks < LEAST_BLOCKS:
        return [*state]
    return [min(state, key=lambda name: state[name].busy_s)]


def time_until_known(seed: int, count: int, choose: Callable[..., Sequence[str]] | None) -> float:
    """Return the time until .8 of the half-widths are reached, by a race unless one is given."""
    suite, race = Drawn(np.random.default_rng([seed, 0]), count), Race(SIDES, seed)
    logs: dict[str, list[float]] = {name: [] for name in suite.names}
    state = {name: Headway() for name in suite.names}
    reached, elapsed_s, blocks = set[str](), 0.0, 0
    while len(reached) < 0.8 * count:
        turn = race.next(state) if choose is None else None
        names = (turn and turn.names) or suite.names if choose is None else choose(state, blocks)
        blocks += 1
        for name in names:
            logs[name].append(suite.log_of(name, "new") - suite.log_of(name, "old"))
            elapsed_s += 2.0 * suite.costs[name]
            n, width = len(logs[name]), None
            if n >= LEAST_BLOCKS:
                reach = student_t(n - 1.0, 0.95) * float(np.std(logs[name], ddof=1)) / math.sqrt(n)
                width = reach / (MARGIN / 2.0)
            narrow = state[name].narrow + 1 if width is not None and width <= 1.0 else 0
            state[name] = Headway(
                turns=n, busy_s=2.0 * n * suite.costs[name], width=width, narrow=narrow
            )
            if narrow >= 2:
                reached.add(name)
    return elapsed_s


@script.section("A race: its time to narrow intervals, and its verdicts", seed=SEED)
def race(run: Run) -> None:
    """Print them next to equal blocks and equal times, for 200 tests, ten of them 5 % slower."""
    count, seeds = (60, 2) if run.quick else (200, run.runs(5, 2))
    run.heading("seed", "race, h", "blocks", "times", "found", "false of all found")
    found = discoveries = false = planted = 0
    ratios = []
    for index in range(seeds):
        seed = run.seed + index
        taken = [
            time_until_known(seed, count, schedule)
            for schedule in (None, equal_blocks, equal_times)
        ]
        suite = Drawn(np.random.default_rng([seed, 1]), count)
        engine = Engine(Ratios(margin=MARGIN, budget_s=40.0 * taken[0], seed=seed))
        while (turn := engine.ask()) is not None:
            engine.tell(suite.carry_out(turn))
        verdicts = engine.result().family.verdicts
        called = {name for name, verdict in verdicts.items() if verdict in CHANGES}
        hits = {name for name in called & suite.slower if verdicts[name] == Verdict.WORSE}
        found, planted = found + len(hits), planted + len(suite.slower)
        discoveries, false = discoveries + len(called), false + len(called - hits)
        ratios.append([taken[0] / spent_s for spent_s in taken[1:]])
        run.row(
            seed, *(round(spent_s / 3600, 2) for spent_s in taken), len(hits), len(called - hits)
        )
    of_blocks, of_times = np.max(ratios, axis=0).tolist()
    run.say(f"worst of equal blocks {of_blocks:.2f}: {run.bar('of blocks', of_blocks, '<=', 0.25)}")
    run.say(f"worst of equal times {of_times:.2f}: {run.bar('of times', of_times, '<=', 0.33)}")
    run.say(f"found {found} of {planted}: {run.bar('found', found / planted, '>=', 0.8)}")
    share = false / max(discoveries, 1)
    run.say(f"false {false} of {discoveries}: {run.bar('false', share, '<=', 0.05)}")


SUITE = """
import json, re, pytest, lib
DATA = {str(key): [key, {"a": key * 0.5}] for key in range(60)}
TEXT = json.dumps(DATA)
WORDS = ("alpha beta " * 40).split()
CASES = {
    "dumps": lambda: json.dumps(DATA), "loads": lambda: json.loads(TEXT),
    "sort": lambda: sorted(WORDS), "join": lambda: ",".join(WORDS),
    "sum": lambda: sum(range(2_000)), "squares": lambda: [i * i for i in range(800)],
    "split": lambda: TEXT.split(","), "sub": lambda: re.sub("[0-9]+", "n", TEXT),
    "dict": lambda: dict.fromkeys(range(800)), "set": lambda: set(WORDS) | {1, 2},
    "format": lambda: [f"{i:>8.2f}" for i in range(200)],
}
@pytest.mark.parametrize("name", CASES)
def test_case(bench, name): bench(CASES[name])
def test_planted(bench): bench(lib.work)
"""
WORK = "def work():\n    return sum(i * i for i in range({}))\n"


@contextmanager
def project(old: str, new: str, **files: str) -> Iterator[Path]:
    """Make a repository, and go there: a file lib.py of two revisions, and others."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        git = partial(subprocess.run, cwd=folder, check=True, capture_output=True)
        git([*GIT, "init", "-q"])
        for name, text in files.items():
            (folder / name.replace("__", ".")).write_text(text)
        for text in (old, new):
            (folder / "lib.py").write_text(text)
            git([*GIT, "add", "."])
            git([*GIT, "commit", "-qm", "x", "--allow-empty"])
        with moved_to(folder):
            yield folder


@contextmanager
def moved_to(folder: Path) -> Iterator[Path]:
    """Go to a folder for a while."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


@contextmanager
def neighbour(*, bursts: bool) -> Iterator[None]:
    """Keep a processor busy for half a second in every second, or do nothing."""
    half = "e = time.time() + .5\n while time.time() < e: pass\n time.sleep(.5)"
    code = f"import time\nwhile True:\n {half}"
    other = subprocess.Popen([sys.executable, "-c", code]) if bursts else None
    try:
        yield
    finally:
        if other is not None:
            other.kill()
            other.wait()


def pytest_gate(budget_s: float, seed: int) -> Any:
    """Run the gate over the suite of pytest of this folder."""
    words = (sys.executable, "-m", "pytest", "test_suite.py")
    sources = Sources(words=words, revisions=("HEAD~1", "HEAD"))
    return measure_gate(sources, budget_s=budget_s, seed=seed)


def calls_of(gate: Any) -> dict[str, Verdict]:
    """Return the changes that a gate calls, if its copies held."""
    if gate.is_advisory:
        return {}
    return {name: verdict for name, verdict in gate.family.verdicts.items() if verdict in CHANGES}


@script.section("The same code: false changes", seed=SEED + 10)
def same(run: Run) -> None:
    """Print how many gates of twelve benchmarks call anything, idle and next to a neighbour."""
    times = run.runs(40, 1)
    run.heading("machine", "gates", "call a change", "advisory", "spread", "visible change")
    for bursts in (False, True):
        files = {"test_suite__py": SUITE}
        with project(WORK.format(500), WORK.format(500), **files), neighbour(bursts=bursts):
            found = [pytest_gate(60.0, run.seed + index) for index in range(times)]
        wrong = sum(bool(calls_of(gate)) for gate in found)
        advisory = sum(gate.is_advisory for gate in found)
        spread, visible = (
            f"{np.median([getattr(each.null, name) for each in found]):.3f}"
            for name in ("ratio_spread", "visible_change")
        )
        where = "bursting neighbour" if bursts else "idle"
        run.row(where, times, wrong, advisory, spread, visible)
        run.say(f"{where}: {run.bar(where, wrong, '<=', 2)}")


@script.section("One test 10 % slower", seed=SEED + 20)
def slower(run: Run) -> None:
    """Print how many gates of 90 s find it, and what else they call."""
    times, found, others = run.runs(20, 1), 0, 0
    with project(WORK.format(500), WORK.format(550), test_suite__py=SUITE):
        for index in range(times):
            called = calls_of(pytest_gate(90.0, run.seed + index))
            found += called.pop("test_suite.py::test_planted", None) is Verdict.WORSE
            others += bool(called)
    run.say(f"found in {found} of {times}: {run.bar('found', found / times, '>=', 0.8)}")
    run.say(f"another change called in {others} of {times}")


GO_TEST = """package lib
import "testing"
func work(n int) int { s := 0; for i := 0; i < n; i++ { s += i*i ^ s }; return s }
var sink int
func BenchmarkWork(b *testing.B) { for i := 0; i < b.N; i++ { sink += work(LENGTH) } }
func BenchmarkOther(b *testing.B) { for i := 0; i < b.N; i++ { sink += work(9000) } }
"""


@script.section("Suites of other tools, as they are", seed=SEED + 30)
def tools(run: Run) -> None:
    """Print the result if one benchmark is 20 % slower."""
    python = f"{sys.executable} -S lib.py"
    hyperfine = ("hyperfine", "-N", "--runs", "5", "--export-json", "out.json", python)
    go = ("go", "test", "-run", "-", "-bench", "{filter}", "-benchtime", "50ms", "-count", "1")
    loop = "print(sum(i * i for i in range({})))\n"
    rows: Any = (
        ("hyperfine", hyperfine, "out.json", loop.format(1_000_000), loop.format(1_300_000), {}),
        ("go", go, None, "", "", {"go__mod": "module lib\n"}),
    )
    run.heading("tool", "verdicts")
    for tool, words, results, old, new, files in rows:
        if shutil.which(tool) is None:
            run.say(f"{tool} is not here")
            continue
        with project(old, new, **files) as folder:
            if tool == "go":
                commit_go(folder)
            sources = Sources(words=words, revisions=("HEAD~1", "HEAD"))
            gate = measure_gate(sources, results=results, budget_s=90.0, seed=run.seed)
        judged = gate.family.verdicts if gate.family else {}
        verdicts = {name: str(verdict) for name, verdict in judged.items()}
        run.row(tool, json.dumps(verdicts))
        worse = [*verdicts.values()].count("worse")
        run.say(f"{tool}: {run.bar(tool, worse, '==', 1)}")


def commit_go(folder: Path) -> None:
    """Commit two versions of a benchmark of Go."""
    for length in (10_000, 12_000):
        (folder / "work_test.go").write_text(GO_TEST.replace("LENGTH", str(length)))
        for words in (["add", "."], ["commit", "-qm", "x"]):
            subprocess.run([*GIT, *words], cwd=folder, check=True)


SUITES = os.environ.get("SUITES", "https://github.com")  # or a folder with copies of these
LOOP = "{0}for _ in range({1}):\n{0}    pass\n"
PUBLIC: Any = (  # repository, version, tests, file, before which line a loop is planted, how long
    (
        *("python-attrs/cattrs", "v26.1.0", "bench/test_attrs_nested.py"),
        *("src/cattrs/converters.py", "        res = []\n        for a in attrs:\n", 60),
    ),
    (
        *("executablebooks/markdown-it-py", "v4.2.0", "benchmarking/bench_core.py"),
        *("markdown_it/parser_inline.py", "            if state.level < maxNesting:\n", 150),
    ),
)


@script.section("Public suites of pytest-benchmark, as they are", seed=SEED + 40)
def public(run: Run) -> None:
    """Print the verdicts where no function differs, and where one has a loop more."""
    run.heading("suite", "loop", "verdicts", "copies held", "visible change")
    for repository, version, tests, *planted in PUBLIC:
        for is_planted in (False, True):
            with TemporaryDirectory() as place, moved_to(Path(place)) as folder:
                clone = ["clone", "-q", "--branch", version, f"{SUITES}/{repository}", "."]
                subprocess.run([*GIT, *clone], cwd=folder, check=True, capture_output=True)
                commit_loop(folder, *planted, is_planted=is_planted)
                words = (sys.executable, "-m", "pytest", tests)
                sources = Sources(words=words, revisions=("HEAD~1", "HEAD"))
                gate: Any = measure_gate(sources, budget_s=420.0, seed=run.seed)
            verdicts = [*gate.family.verdicts.values()]
            shown = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in sorted({*verdicts}))
            visible = f"{gate.null.visible_change:.2f}"
            run.row(f"{repository} {version}", is_planted, shown, not gate.is_advisory, visible)
            changes = len(calls_of(gate))
            bar: Any = (">=", 1) if is_planted else ("==", 0)
            name = f"{repository} {'with a loop' if is_planted else 'unchanged'}"
            run.say(f"{name}: {run.bar(name, changes, *bar)}")


def commit_loop(folder: Path, file: str, before: str, length: int, *, is_planted: bool) -> None:
    """Commit a loop before a line of a file, or nothing."""
    text = (folder / file).read_text()
    indent = before[: -len(before.lstrip())]
    loop = LOOP.format(indent, length) if is_planted else ""
    (folder / file).write_text(text.replace(before, loop + before, 1))
    subprocess.run([*GIT, "commit", "-qam", "x", "--allow-empty"], cwd=folder, check=True)


if __name__ == "__main__":
    raise SystemExit(script.main())
