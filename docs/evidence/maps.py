"""What maps predict of configurations that they did not measure, and which one is best on hosts.

    python docs/evidence/maps.py [--quick] [--seed N] [--only adaptive,choice] [--repetitions N]

Everything is simulated but the section real; every measured peak is known to 2.5 %.
"""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from benchrigor.model import Estimate
from benchrigor.model.series import Floats
from benchrigor.storage import Journal
from benchrigor.testing import FakeExecutor
from benchrigor.workbench.designs import Factor, MapSample, Measured, Point, Space
from benchrigor.workbench.on_host import Job, Outcome
from benchrigor.workbench.planning.best_choice import BestChoice, Choice
from benchrigor.workbench.planning.surface_map import SurfaceMap
from benchrigor.workbench.pool import Pool
from benchrigor.workbench.surface import Surface, fit_surface
from shared.running import Bar, Run, Script
from shared.servers import search, server_of

script = Script(__doc__)
SEED, CHOICES = 20380412, 20391127
ERROR = 0.025  # relative standard deviation of a measured peak
Rng = np.random.Generator

# --- file servers with a known peak in each configuration

DAEMONS = (1, 2, 4, 8, 16, 32, 64, 100)
SMALL = Space([Factor("disks", levels=[1, 2, 3, 4]), Factor("nfsds", levels=DAEMONS, scale="log2")])
LARGE = Space([*SMALL.factors, Factor("fs", levels=["ext4", "xfs"])])
# Rates at which disks (one of them, and the power of their number), a daemon and the processors
# are saturated, the cost of contention for each daemon, and how sharply limits meet.
WORKLOADS = {
    "database": (215.0, 0.92, 70.0, 2500.0, 0.0012, 2.5),
    "web": (1500.0, 0.55, 190.0, 2600.0, 0.0008, 2.0),
    "mail": (190.0, 0.9, 900.0, 6000.0, 0.0006, 1.5),
}
KINDS = (*WORKLOADS, "tilted", "64 points", "moved")
FARTHEST = math.log(4.0)  # how far a limit of a moved surface lies from that of its workload


def space_of(kind: str) -> Space:
    """Return the factors of a kind of map."""
    return LARGE if kind == "64 points" else SMALL


def tilted(rates: Sequence[float] | Floats, slopes: Floats) -> Floats:
    """Return the peaks of the grid, with a slope over each factor."""
    disk, power, daemon, most, contention, sharpness = map(float, rates)
    grid = SMALL.grid()
    disks, daemons = (np.array([float(p[name]) for p in grid]) for name in ("disks", "nfsds"))
    limits = np.array([disk * disks**power, daemon * daemons, np.full(len(grid), most)])
    together = (limits**-sharpness).sum(axis=0) ** (-1.0 / sharpness)
    tilt = np.exp(SMALL.coordinates(grid) @ slopes)
    return np.asarray(together / (1.0 + contention * daemons) * tilt)


def peaks_of(kind: str, rng: Rng) -> Floats:
    """Return the peak of each configuration of the grid.

    A workload has fixed peaks. "tilted" changes its rates at random, and adds a random slope over
    each factor; "64 points" has two such surfaces, one for each file system. "moved" makes limits
    up to four times faster or slower, contention up to 16 times more costly.
    """
    if kind in WORKLOADS:
        return tilted(WORKLOADS[kind], np.zeros(2))
    rates = np.array(WORKLOADS[[*WORKLOADS][int(rng.integers(len(WORKLOADS)))]])
    if kind == "moved":
        faster = np.exp(rng.uniform(-FARTHEST, FARTHEST, 3))
        worse = np.exp(rng.uniform(0.0, [2.0 * FARTHEST, FARTHEST]))
        return tilted(rates * [faster[0], 1.0, *faster[1:], *worse], np.zeros(2))
    rates = rates * np.exp(rng.normal(0.0, 0.25, 6))
    slopes = rng.normal(0.0, 0.15, 2)
    if kind == "tilted":
        return tilted(rates, slopes)
    other = rates * np.exp(rng.normal(0.0, 0.15, 6))
    both = tilted(rates, slopes), tilted(other, slopes + rng.normal(0.0, 0.1, 2))
    return np.column_stack(both).ravel()  # the last factor varies most often


def measure(points: Mapping[int, Point], peaks: Floats, rng: Rng) -> list[Measured]:
    """Measure the peaks of some points of the grid, by their index."""
    found = []
    for index, point in points.items():
        value = float(peaks[index]) * math.exp(rng.normal(0.0, ERROR))
        estimate = Estimate(
            value=value,
            low=value * (1.0 - 1.96 * ERROR),
            high=value * (1.0 + 1.96 * ERROR),
            confidence=0.95,
            n=10,
            n_effective=10.0,
            method="simulated",
            standard_error=ERROR * value,
        )
        sample = MapSample(id=index, point=point)
        found.append(Measured(sample=sample, estimates={"peak": estimate}))
    return found


def spread(space: Space, n: int, rng: Rng) -> list[int]:
    """Choose points of the grid that lie far apart: the best of ten greedy choices."""
    grid, best, most = space.grid(), list[int](), (-1.0, 0.0)
    apart = np.array([space.distances(grid, point) for point in grid])
    for _ in range(10):
        chosen = [int(rng.integers(len(apart)))]
        while len(chosen) < n:
            nearest = apart[:, chosen].min(axis=1)
            chosen.append(int(rng.choice(np.flatnonzero(nearest >= nearest.max() - 1e-9))))
        among = apart[np.ix_(chosen, chosen)] + 9.0 * np.eye(n)
        worth = (float(among.min()), -float(np.sum(among**-4.0)))
        if worth > most:
            best, most = chosen, worth
    return best


class Mapped(NamedTuple):
    """A map: mean absolute error, share of unmeasured points held, regret, and if that is held."""

    error: float
    held: float
    regret: float
    is_regret_held: bool


def mapped(seed: int, kind: str, n: int, number: int) -> Mapped:
    """Let a map choose n samples, all of them, and compare its answers with the truth."""
    rng = np.random.default_rng([seed, 31, KINDS.index(kind), n, number])
    space, peaks = space_of(kind), peaks_of(kind, rng)
    grid = space.grid()
    planner = SurfaceMap(space.factors, samples=n, target=1e-3, seed=number + 1)
    while (sample := planner.ask()) is not None:
        (found,) = measure({grid.index(sample.point): sample.point}, peaks, rng)
        planner.tell(sample, found.estimates)
    surface: Surface = planner.result()
    measured = {space.key(sample.sample.point) for sample in surface.samples}
    left = [at for at, point in enumerate(grid) if space.key(point) not in measured]
    predicted = [surface.predict(grid[at]) for at in left]
    held = [
        prediction.low <= peaks[at] <= prediction.high
        for prediction, at in zip(predicted, left, strict=True)
    ]
    best = surface.best()
    lost = 1.0 - float(peaks[grid.index(best.point)] / peaks.max())
    error = float(np.mean(np.abs(np.exp(surface.predictions(grid)[0]) / peaks - 1.0)))
    return Mapped(error, float(np.mean(held)), lost, lost <= best.regret.high)


def mean_in(run: Run, name: str, values: Sequence[float], low: float, high: float) -> str:
    """Judge a mean over maps; of a quick run its interval counts."""
    mean, reach = float(np.mean(values)), 0.0
    if run.quick:
        reach = run.z * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    met = mean - reach <= high and mean + reach >= low
    return f"{mean:.4f}, {run.verdict(name, mean, f'{low:g} to {high:g}', met=met)}"


def print_maps(run: Run, kinds: Sequence[str], full: int, quick: int) -> None:
    """Print errors and coverage by kind and number of samples, and judge all together."""
    run.heading("map", "samples", "error", "unmeasured held")
    every: list[Mapped] = []
    twelve: list[Mapped] = []
    for kind in kinds:
        for n in (12, 20) if kind == "64 points" else (8, 12):
            found = run.repeated(partial(mapped, run.seed, kind, n), run.runs(full, quick))
            every += found
            twelve += found if n == 12 or kind == "moved" else []
            name, errors = f"{kind}, {n}", [outcome.error for outcome in found]
            shown = f"{np.mean(errors):.4f}"
            if kind in KINDS[:4]:
                shown = mean_in(run, f"error, {name}", errors, 0.0, 0.05 if n == 8 else 0.035)
            low = 0.0 if kind == "moved" else 0.88
            run.row(
                kind, n, shown, mean_in(run, f"held, {name}", [e.held for e in found], low, 1.0)
            )
    run.say(f"\nheld, all: {mean_in(run, 'held, all', [each.held for each in every], 0.92, 0.98)}")
    run.share("regret of 5 % at most", Bar(0.90), [outcome.regret <= 0.05 for outcome in twelve])
    run.share("regret held", Bar(0.92), [outcome.is_regret_held for outcome in twelve])


@script.section("Maps that choose their samples: errors, coverage, regret", seed=SEED)
def adaptive(run: Run) -> None:
    """Print them for five kinds of surfaces."""
    print_maps(run, ("tilted",) if run.quick else KINDS[:-1], 100, 4)


@script.section("Maps of surfaces whose limits meet anywhere", seed=SEED)
def moved(run: Run) -> None:
    """Print the same of these."""
    print_maps(run, KINDS[-1:], 48, 4)


def hours(seed: int, kind: str, policy: str, is_seeded: bool, most: int, number: int) -> float:
    """Search for the peak of each configuration, in the order of a full map; return the hours."""
    rng = np.random.default_rng([seed, 41, [*WORKLOADS].index(kind), number])
    grid, peaks = SMALL.grid(), peaks_of(kind, rng)
    typical = server_of("two in a row", rng)  # all configurations have its curve and noise
    options = {} if policy == "adaptive" else {"policy": policy, "accuracy": 0.10}
    planner, cost_s = SurfaceMap(SMALL.factors, design="full"), 0.0
    while (sample := planner.ask()) is not None and sample.id < most:
        server = replace(typical, peak=float(peaks[grid.index(sample.point)]))
        begin = (sample.seed_load if is_seeded else None) or 50.0
        found = search(server, seed_load=begin, **options)
        cost_s += found.cost_s
        planner.tell(sample, found.load)
    return cost_s / 3600.0


@script.section("All configurations by searches, seeded by their neighbours", seed=SEED)
def cost(run: Run) -> None:
    """Print hours by policy, and the order of published policies (Shivam et al., figure 8)."""
    kinds = ("database",) if run.quick else WORKLOADS
    policies = [("adaptive", True), ("binsearch", True), ("binsearch", False), ("linear", False)]
    most, runs = (8, 1) if run.quick else (99, run.runs(3, 1))
    for kind in kinds:
        trials = [partial(hours, run.seed, kind, *policy, most) for policy in policies]
        spent = [float(np.mean(run.repeated(t, runs))) for t in trials[: 2 if run.quick else 4]]
        run.say(f"{kind}: hours {', '.join(f'{each:.1f}' for each in spent)}")
        run.say(f"adaptive of binsearch: {run.bar(kind, spent[0] / spent[1], '<=', 0.25)}")
        if not run.quick:
            ratio = spent[3] / max(spent[1:3])
            run.say(f"linear over the others: {run.bar(f'{kind}, linear', ratio, '>=', 1.0)}")


# --- a real server

ROOT = Path(__file__).parents[2]
FILE = """
[factors.workers]
levels = [1, 2, 3, 4]
scale = "log2"
[factors.page]
levels = ["small", "large"]
workload = true
[design]
samples = 6
[server]
start = "{python} examples/map_server.py --port 8322 --workers {{workers}} --slower 3"
port = 8322
[response.peak]
url = "http://127.0.0.1:8322/{{page}}"
mean = "300ms"
min_load = 5
max_load = 800
budget = "{budget}"
"""


def true_peak(workers: int, page: str) -> float:
    """Return the load at which the mean response of M/M/c is at the limit (Erlang C)."""
    mean_s = 3.0 * {"small": 0.008, "large": 0.012}[page]

    def over(load: float) -> float:
        offered = load * mean_s
        idle = sum(offered**k / math.factorial(k) for k in range(workers))
        waits = offered**workers / math.factorial(workers) / (1.0 - offered / workers)
        return waits / (idle + waits) / (workers / mean_s - load) + mean_s - 0.3

    return float(brentq(over, 1e-6, workers / mean_s * (1.0 - 1e-9)))


@script.section("A real server, killed once and taken up again", seed=SEED, quick=False)
def real(run: Run) -> None:
    """Print predictions of a map for configurations left out, and trials that were repeated."""
    with tempfile.TemporaryDirectory() as place:
        file, store = Path(place, "map.toml"), Path(place, "runs.sqlite")
        budget = "20s" if run.quick else "50s"
        file.write_text(FILE.format(python=sys.executable, budget=budget))
        benchrigor = [sys.executable, "-m", "benchrigor"]

        def trials() -> dict[str, int]:
            runs = Journal(store).runs()
            return {
                record["run_id"]: record["rounds"] for record in runs if "of map" in record["name"]
            }

        argv = [*benchrigor, "map", str(file), "--store", str(store)]
        with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL) as running:
            time.sleep(15.0 if run.quick else 90.0)
            running.send_signal(signal.SIGKILL)
        time.sleep(1.0)  # for the server to be gone
        before = trials()
        whole = next(stored for stored in Journal(store).runs() if "of map" not in stored["name"])
        argv = [*benchrigor, "resume", whole["run_id"], "--json", "--store", str(store)]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
        told: dict[str, Any] = json.loads(done.stdout)
        after = trials()
    repeated = sum(after[run_id] < n for run_id, n in before.items())
    run.say(f"trials repeated: {run.bar('repeated', repeated, '==', 0)}")
    lost = sum(not sample["estimates"] for sample in told["samples"])
    run.say(f"samples without a number: {run.bar('lost samples', lost, '==', 0)}")
    measured = [sample["sample"]["point"] for sample in told["samples"]]
    off = [0.0]
    for prediction in told["responses"]["peak"]["predictions"]:
        point = prediction["point"]
        error = (
            prediction["estimate"]["value"] / true_peak(int(point["workers"]), point["page"]) - 1.0
        )
        run.say(f"{point}, {'measured' if point in measured else 'left out'}: {error:+.1%}")
        off += [] if point in measured else [abs(error)]
    run.say(f"left out, most off: {run.bar('left out', max(off), '<=', 0.15)}")


# --- which configuration is best on several hosts


def carried_out(
    points: Sequence[Point], logs: Floats, rng: Rng, seed: int
) -> tuple[Choice, int, int]:
    """Choose, each answer with the noise of a measurement; return also trials and turns.

    The logarithms have a row for each host and a column for each of the points.
    """
    names = [f"host {number}" for number in range(len(logs))]
    planner, trials, turns = BestChoice(points, names, seed=seed), 0, 0
    while (turn := planner.ask()) is not None:
        own = logs[names.index(turn.host)]
        found = [math.exp(own[points.index(p)] + rng.normal(0.0, ERROR)) for p in turn.points]
        width = 1.96 * ERROR
        planner.tell(turn, [(x, x * (1.0 - width), x * (1.0 + width)) for x in found])
        trials, turns = trials + len(found), turns + 1
    return planner.result(), trials, turns


def with_hosts(mean: Floats, number: int, effect: float, rng: Rng) -> Floats:
    """Return logarithms on hosts, which differ by pace and in each configuration."""
    pace = rng.normal(0.0, 0.20, (number, 1))
    return np.asarray(mean + pace + rng.normal(0.0, effect, (number, len(mean))))


def chosen_of(seed: int, number: int) -> tuple[bool, float]:
    """Choose among the leading 8 of a map; return if it is near the best, and its cost."""
    rng = np.random.default_rng([seed, 1, 8, number])
    kind = KINDS[number % 5]
    space = space_of(kind)
    grid, known = space.grid(), np.log(peaks_of(kind, rng))
    logs = with_hosts(known, 4, 0.05, rng)
    n = 12 if len(grid) < 64 else 20
    samples = {at: grid[at] for at in spread(space, n, rng)}
    surface = fit_surface(space, measure(samples, np.exp(logs[0]), rng))
    leading = np.argsort(-surface.predictions(grid)[0])[:8]
    found, trials, turns = carried_out([grid[at] for at in leading], logs[:, leading], rng, number)
    mean = logs.mean(axis=0)
    near = float(mean.max() - mean[grid.index(found.point or {})]) <= -math.log(0.98)
    return near, (n + trials) / (len(grid) * turns)


@script.section("The choice among those that lead a map, on four hosts", seed=CHOICES)
def choice(run: Run) -> None:
    """Print how often it is near the best mean, and its cost over measuring all as often."""
    found = run.repeated(partial(chosen_of, run.seed), run.runs(200, 20))
    spent = float(np.mean([cost for _, cost in found]))
    run.share("within 2 %", Bar(0.95), [held for held, _ in found])
    run.say(f"mean cost {spent:.2f}, {run.bar('cost', spent, '<=', 0.5)}")


def verdict_of(seed: int, lead: float, case: tuple[int, int, float], number: int) -> bool:
    """Whether a verdict is wrong, or names a best among equals; the first is ahead by a lead."""
    n, several, effect = case
    key = [round(1000 * lead), n, several, round(1000 * effect)]
    rng, mean = np.random.default_rng([seed, 2, *key, number]), np.zeros(n)
    mean[0] = lead
    logs = with_hosts(mean, several, effect, rng)
    found, *_ = carried_out([{"of": index} for index in range(n)], logs, rng, number)
    if lead == 0.0:
        return found.verdict == "best"
    at = int((found.point or {})["of"])
    least = {"best": 0.0, "equivalent": -0.02, "undecided": -math.inf}[found.verdict]
    return bool(mean[at] < np.delete(mean, at).max() + least - 1e-12)


def is_predicted(seed: int, lead: float, several: int, number: int) -> bool:
    """Whether the prediction holds the ratio of two configurations on a further host."""
    rng = np.random.default_rng([seed, 3, round(1000 * lead), several, number])
    logs = with_hosts(np.array([lead, 0.0]), several, 0.05, rng)
    found, *_ = carried_out([{"of": 0}, {"of": 1}], logs, rng, number)
    at = int((found.point or {})["of"])
    further = np.array([lead, 0.0]) + rng.normal(0.0, math.hypot(0.05, ERROR / 2.0), 2)
    ratio = math.exp(further[at] - further[1 - at])
    return found.prediction is not None and found.prediction.low <= ratio <= found.prediction.high


@script.section("Verdicts of choices, and what they predict of a further host", seed=CHOICES)
def verdicts(run: Run) -> None:
    """Print verdicts that are wrong, and predictions that hold."""
    same = [*product((2, 3, 8), (4,), (0.0, 0.05)), (2, 8, 0.05), (8, 8, 0.05), (2, 1, 0.0)]
    ahead = [(2, 4, 0.05), (4, 4, 0.01), (4, 8, 0.01), (4, 8, 0.05), (4, 16, 0.05)]
    cases = [*product((0.0,), same), *product((0.10, 0.01), ahead)]
    rows = [
        (
            f"wrong: {lead:g} ahead, {case}",
            partial(verdict_of, run.seed, lead, case),
            Bar(0.0, 0.05),
        )
        for lead, case in cases[:: 6 if run.quick else 1]
    ]
    rows += [
        (
            f"predicted: {lead:g} ahead, {n} hosts",
            partial(is_predicted, run.seed, lead, n),
            Bar(0.93, 0.99),
        )
        for lead, n in product((0.2, 0.0), (4, 8))
    ]
    run.shares(rows, run.runs(400, 40), "share")


# --- a pool of hosts


def held_b(names: Sequence[str], trials: int) -> int:
    """Return the bytes that a pool holds when a number of trials are over."""
    tracemalloc.start()
    executor = FakeExecutor(names, instead=lambda _: Outcome(value=1))
    with Pool(executor, owner="a") as pool:
        for _ in range(trials // len(names)):
            for job in [pool.submit("builtins:dict", {}) for _ in names]:
                job.result()
            executor.log.clear()  # which tests look at
        held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held


@script.section("What a pool of hosts costs, and how long trials take together", seed=20390527)
def pool(run: Run) -> None:
    """Print processor time and memory a trial, and the makespan."""
    trials, names = run.runs(2_000, 400), [f"h{number}" for number in range(100)]
    with Pool(FakeExecutor(names, instead=lambda _: Outcome(value=1)), owner="a") as pool:
        begun_s = time.process_time()
        for job in [pool.submit("builtins:dict", {"n": number}) for number in range(trials)]:
            job.result()
        each_ms = 1e3 * (time.process_time() - begun_s) / trials
    run.say(f"controller: {each_ms:.2f} ms a trial, {run.bar('controller', each_ms, '<=', 5.0)}")
    few, many = (held_b(names, number) for number in (trials // 4, trials))
    grown = many - few
    run.say(f"memory: {grown / 1e3:+.1f} kB, {run.bar('memory', grown, '<=', 1e5)}")
    seconds = np.random.default_rng(run.seed).uniform(0.02, 0.2, run.runs(200, 60))

    def last(job: Job) -> Outcome:
        time.sleep(job.arguments["seconds"])
        return Outcome()

    with Pool(FakeExecutor(names[:10], instead=last), owner="a") as pool:
        begun_s = time.monotonic()
        for job in [
            pool.submit("builtins:dict", {"seconds": float(trial_s)}) for trial_s in seconds
        ]:
            job.result()
        ratio = (time.monotonic() - begun_s) / (float(seconds.sum()) / 10)
    most = 1.5 if run.quick else 1.2
    run.say(f"{ratio:.3f} times the sum over hosts, {run.bar('makespan', ratio, '<=', most)}")


if __name__ == "__main__":
    raise SystemExit(script.main())
