"""Whether a speed found by work and duration is right, and its cost.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/wps.py [--quick] [--seed N] [--only a,b]

Every draw is default_rng([seed, section, row, repetition]). A round of work w lasts overhead + w /
speed, plus noise of one of seven kinds. Sizes are as in the default schedule: its 50 rounds of a
quick result last 1.2 s in the mean. The `real` section wants a machine that does nothing else.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import special

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.model import Code, RoundPlan
from benchrigor.model.series import Floats
from benchrigor.stats import fit_wps
from benchrigor.stats.least_squares import coefficient_errors, regress
from benchrigor.workloads import CommandWorkload, RoundRecorder
from shared.processes import Draw, ar1
from shared.running import Bar, Interval, Run, Script, interval, of, tally

script = Script(__doc__)
SEED = 20261205
SESSIONS, SEQUENTIAL, COST, REAL = 71, 72, 74, 77
SPEED = 1e8
MEAN_S, TOP_S = 1.2, 2.4
"""Mean and longest round of a quick result in 60 s."""
MOST_ROUNDS, ROUNDS = 400, 40
HELD = Bar(0.92)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A workload, by its overhead over the mean round, and the range of work of a session."""

    share: float = 0.0
    work: tuple[float, float | None] = (0, 10**12)

    @property
    def overhead_s(self) -> float:
        """Seconds that each round adds."""
        return self.share * MEAN_S

    def duration(self, noise: str, index: int, work: float, draw: float) -> float:
        """Return how long a round takes; never less than a tenth of its work's own time."""
        work_s = work / SPEED
        found = self.overhead_s + work_s + NOISES[noise][1](self, index, work_s, draw)
        return max(found, 0.1 * work_s)


def normal(rng: np.random.Generator, n: int) -> Floats:
    """Return independent noise of variance 1."""
    return rng.standard_normal(n)


def draw_skewed(rng: np.random.Generator, n: int) -> Floats:
    """Return lognormal noise about 0, of variance 4.7."""
    return rng.lognormal(0.0, 1.0, n) - math.exp(0.5)


def persistent(rng: np.random.Generator, n: int) -> Floats:
    """Return AR(1) noise with coefficient 0.7."""
    return ar1(rng, n, 0.7)


def added(_case: Case, _index: int, _work_s: float, draw: float) -> float:
    """Return noise of 5 % of the mean round, whatever the work."""
    return 0.05 * MEAN_S * draw


def in_proportion(case: Case, _index: int, work_s: float, draw: float) -> float:
    """Return noise of 5 % of the round."""
    return 0.05 * (case.overhead_s + work_s) * draw


def drifting(case: Case, index: int, _work_s: float, draw: float) -> float:
    """Return an overhead that rises by half of itself in 40 rounds, and a little noise."""
    return case.overhead_s * 0.5 * index / 40 + 0.02 * MEAN_S * draw


def fanning(_case: Case, _index: int, work_s: float, draw: float) -> float:
    """Return noise that grows with the square of the work, to 8 % of the longest round."""
    return 0.08 * work_s * (work_s / TOP_S) * draw


NOISES: dict[str, tuple[Draw, Callable[[Case, int, float, float], float]]] = {
    "additive": (normal, added),
    "multiplicative": (normal, in_proportion),
    "skewed": (draw_skewed, added),
    "AR(1) 0.7 additive": (persistent, added),
    "AR(1) 0.7 multiplicative": (persistent, in_proportion),
    "drifting overhead": (normal, drifting),
    "fanning": (normal, fanning),
}
"""Draws, and what becomes of them."""
CASES = {
    "no overhead": Case(),
    "overhead 5 %": Case(share=0.05),
    # The schedule leaves out work that takes less than the overhead, and lets rounds grow to four
    # times the shortest: an overhead is then a fifth of the mean round at most.
    "overhead 20 %": Case(share=0.3),
    "overhead 30 %, range ends": Case(share=0.3, work=(0, int(SPEED * MEAN_S * (1.4 - 0.3)))),
    "overhead 5 %, given range": Case(share=0.05, work=(0.2 * SPEED, 2.0 * SPEED)),
}
PAIRS = [*product(CASES, NOISES)]
NO_DRIFT = ("no overhead", "drifting overhead")


class Ran(NamedTuple):
    """Work and duration of the rounds that count, the analysis, whether it stopped by itself."""

    work: Floats
    duration_s: Floats
    analysis: Any
    satisfied: bool


def session(
    case: Case, noise: str, rng: np.random.Generator, *, target: float | None = None
) -> Ran:
    """Ask and tell a session until 40 rounds count, or to its target."""
    draws = NOISES[noise][0](rng, MOST_ROUNDS)
    options = br.Options(
        target=target or 1e-12,
        work=case.work,
        analysis="wps",
        budget_s=math.inf,
        max_rounds=MOST_ROUNDS,
    )
    running = br.Session(options, seed=int(rng.integers(2**32)))
    while (plan := running.ask()) is not None:
        assert plan.work is not None
        duration = case.duration(noise, plan.index, plan.work, float(draws[plan.index]))
        elapsed_ns = math.ceil(duration * 1e9)
        running.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, readings={"time": duration}))
        assert running.progress is not None
        if target is None and running.progress.analyses[0].n_kept >= ROUNDS:
            running.request_stop()
    record = running.result()
    (analysis,) = record.analyses
    counts = np.ones(len(record.rounds), dtype=bool)
    counts[list(analysis.left_out)] = False
    return Ran(
        np.array([float(done.plan.work or 0.0) for done in record.rounds])[counts],
        np.array([done.duration_s for done in record.rounds])[counts],
        analysis,
        record.decision is not None and record.decision.reason == "satisfied",
    )


def from_slope(slope: float, error: float, freedom: float, unit: float = 1.0) -> Interval | None:
    """Turn the Student interval of a slope over into one of a speed; None if it reaches 0."""
    reach = float(special.stdtrit(freedom, 0.975)) * error
    if slope <= reach:
        return None
    return interval(unit / (slope + reach), unit / (slope - reach), SPEED)


def plain(work: Floats, duration_s: Floats) -> Interval | None:
    """Return the interval of ordinary least squares."""
    centred = work - work.mean()
    square, freedom = float(centred @ centred), work.size - 2
    slope = float(centred @ duration_s) / square
    rest = duration_s - duration_s.mean() - slope * centred
    return from_slope(slope, math.sqrt(float(rest @ rest) / freedom / square), freedom)


class Outcome(NamedTuple):
    """Figures of one session, relative to the truth."""

    speed: Interval | None
    plain: Interval | None
    off: float
    origin: float
    """By how much a line through the origin is off."""
    is_bent: bool


def outcome(seed: int, row: int, repetition: int) -> Outcome:
    """Run one session, and do other arithmetic on its rounds."""
    case, noise = PAIRS[row]
    ran = session(CASES[case], noise, np.random.default_rng([seed, SESSIONS, row, repetition]))
    found = ran.analysis.estimate
    return Outcome(
        of(found, SPEED),
        plain(ran.work, ran.duration_s),
        math.nan if found is None else found.value / SPEED - 1.0,
        float(ran.work @ ran.work) / float(ran.work @ ran.duration_s) / SPEED - 1.0,
        any(notice.code is Code.NOT_LINEAR for notice in ran.analysis.notices),
    )


@script.section("Coverage, width and bias of the speed, and lines said to be bent", seed=SEED)
def coverage(run: Run) -> None:
    """Print what sessions find when 40 rounds count; the bias has a bar where overhead is fixed."""
    quick = {
        ("overhead 5 %", "additive"),
        ("overhead 5 %", "AR(1) 0.7 multiplicative"),
        ("overhead 30 %, range ends", "additive"),
    }
    columns = ("held", "bar", "over plain width", "bar", "bias", "bar", "origin", "bent", "bar")
    run.heading("workload", "noise", *columns)
    for row, (case, noise) in enumerate(PAIRS):
        # An overhead of 0 does not drift.
        if (case, noise) not in quick if run.quick else row == PAIRS.index(NO_DRIFT):
            continue
        found = run.repeated(partial(outcome, run.seed, row), run.runs(600, 30))
        label, held = f"{case}, {noise}", tally(session.speed for session in found)
        both = [(o.speed.half_width, o.plain.half_width) for o in found if o.speed and o.plain]
        ours, theirs = np.mean(both, axis=0)
        wider, off = float(ours / theirs), np.array([session.off for session in found])
        off = off[np.isfinite(off)]
        least = abs(float(off.mean())) - run.z * float(off.std(ddof=1)) / math.sqrt(off.size)
        bent = tally(session.is_bent for session in found)
        width = run.bar(f"{label}, width", wider, "<=", 1.2) if noise == "additive" else "none"
        biased = case != "no overhead" and noise != "drifting overhead"
        straight = noise in ("additive", "multiplicative")
        run.row(
            *(case, noise, held, run.judged(label, HELD, held), f"{wider:.3f}", width),
            f"{off.mean():+.2%}",
            run.bar(f"{label}, bias beyond chance", least, "<=", 0.005) if biased else "none",
            f"{np.mean([each.origin for each in found]):+.1%}",
            *(bent, run.judged(f"{label}, bent", Bar(0.0, 0.02) if straight else None, bent)),
        )


STOPS = (("overhead 5 %", 0.05), ("overhead 20 %", 0.05), ("overhead 5 %", 0.02))


def run_to_target(
    seed: int, noise: str, stop: int, repetition: int
) -> tuple[Interval | None, bool]:
    """Run one session to its target."""
    (case, target), number = STOPS[stop], list(NOISES).index(noise)
    rng = np.random.default_rng([seed, SEQUENTIAL, number + len(NOISES) * stop, repetition])
    ran = session(CASES[case], noise, rng, target=target)
    return of(ran.analysis.estimate, SPEED), ran.satisfied


@script.section("Sessions that stop at a target", seed=SEED)
def sequential(run: Run) -> None:
    """Print the coverage of the sessions that stopped, within 400 rounds."""
    run.heading("workload, target", "noise", "stopped", "held", "bar")
    noises = ("AR(1) 0.7 additive",) if run.quick else NOISES
    for (stop, (case, target)), noise in product(enumerate(STOPS[: 1 if run.quick else 3]), noises):
        runs = run.runs(200 if target == 0.02 else 600, 30)
        found = run.repeated(partial(run_to_target, run.seed, noise, stop), runs)
        ended = [session for session, satisfied in found if satisfied]
        held, name = tally(ended or [False]), f"{case}, {target:.0%}"
        verdict = run.judged(f"{name}, {noise}", HELD, held)
        run.row(name, noise, f"{len(ended)} of {runs}", held, verdict)


def beyond(share: float, low_s: float) -> Case:
    """Return what the schedule does beyond a warm-up that is faster than the stable phase."""
    high_s = 2.0 * (1.0 - share) * MEAN_S - low_s
    return Case(share=share, work=(int(low_s * SPEED), int(high_s * SPEED)))


DESIGNS = {
    "from 0, overhead 20 %": Case(share=0.2),
    "from 0, overhead 30 %": Case(share=0.3),
    "schedule, overhead -20 %": beyond(-0.2, 0.4),
    "schedule, overhead -30 %": beyond(-0.3, 0.5),
    "schedule, overhead 20 %": Case(share=0.3),
    "schedule, overhead 25 %, range ends": Case(share=0.25, work=(0, int(1.25 * MEAN_S * SPEED))),
    "schedule, overhead 30 %, range ends": Case(share=0.3, work=(0, int(1.1 * MEAN_S * SPEED))),
}
PAID = [*product(DESIGNS, ("additive", "multiplicative"))]


def bisecting(n: int) -> Floats:
    """Return 1/2, 1/4, 3/4, 1/8 ... : the order of van der Corput."""
    digits = (np.arange(1, n + 1)[:, None] >> np.arange(n.bit_length())) & 1
    return np.asarray(digits @ 0.5 ** np.arange(1, n.bit_length() + 1))


def paid(seed: int, row: int, repetition: int) -> tuple[Interval | None, Interval | None]:
    """Run rounds, and find the speed without and with the overhead known."""
    (name, noise), rng = PAID[row], np.random.default_rng([seed, COST, row, repetition])
    case = DESIGNS[name]
    if name.startswith("from 0"):
        work = 2.0 * (1.0 - case.share) * MEAN_S * SPEED * bisecting(ROUNDS)
        draws = NOISES[noise][0](rng, ROUNDS).tolist()
        pairs = enumerate(zip(work.tolist(), draws, strict=True))
        duration_s = np.array([case.duration(noise, index, *pair) for index, pair in pairs])
        found: br.Estimate | None = None
        try:
            found = fit_wps(work, duration_s).speed
        except br.NotEstimable:
            found = None
    else:
        work, duration_s, analysis, _ = session(case, noise, rng)
        found = analysis.estimate
    unit = float(work.max())
    fit = regress((work / unit)[:, None], duration_s - case.overhead_s)
    error = coefficient_errors(fit, [[1.0]])[0]
    known = from_slope(error.value, error.standard_error, error.degrees_of_freedom, unit)
    return of(found, SPEED), known


@script.section("What it costs not to know the overhead", seed=SEED)
def cost(run: Run) -> None:
    """Print the square of the ratio of the widths, which is the ratio of times to equal width."""
    run.heading("amounts", "noise", "unknown", "bar", "known", "time", "bar")
    for row, (name, noise) in enumerate(PAID):
        if run.quick and not name.startswith("from 0"):
            continue
        found = run.repeated(partial(paid, run.seed, row), run.runs(300, 60))
        unknown, known = map(tally, zip(*found, strict=True))
        times, label = (unknown.half_width / known.half_width) ** 2, f"{name}, {noise}"
        verdicts = run.judged(label, HELD, unknown), run.bar(f"{label}, time", times, "<=", 5.0)
        run.row(name, noise, unknown, verdicts[0], known, f"{times:.1f}", verdicts[1])


# --- real work, next to a long direct measurement by turns with it

TEXT = 64_000_000


def write_text(rng: np.random.Generator, path: Path) -> None:
    """Write words of a few thousand, the common ones often, the same mixture everywhere."""
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    lengths = rng.integers(2, 10, 5_000).tolist()
    words = [f"{''.join(rng.choice(letters, length))} ".encode() for length in lengths]
    shares = 1.0 / np.arange(1, len(words) + 1)
    with path.open("wb") as file:
        while file.tell() < TEXT:
            drawn = rng.choice(len(words), 200_000, p=shares / shares.sum())
            file.write(b"".join(words[index] for index in drawn.tolist()))


def compare_speeds(workload: CommandWorkload) -> float:
    """Run a session with direct runs of two amounts in between; return the ratio of both speeds."""
    short, direct = TEXT // 8, list[float]()

    def seconds(work: int) -> float:
        plan, recorder = RoundPlan(index=0, work=work), RoundRecorder()
        workload.run(plan, recorder)
        return recorder.finish(plan, elapsed_ns=0).duration_s

    def turn(finished: br.Round) -> None:
        if finished.plan.index % 4 == 3:
            first = -1 if len(direct) % 2 else 1  # neither of them always follows the other
            taken = [seconds(text) for text in (short, TEXT)[::first]][::first]
            direct.append(taken[1] - taken[0])

    limits = {"target": 1e-12, "budget_s": math.inf, "max_rounds": 48}
    options = br.Options(analysis="wps", work=(TEXT // 40, TEXT), **limits)  # type: ignore[arg-type]
    found = br.Session(options, seed=REAL, after_round=turn).run(workload).estimate()
    return math.nan if found is None else found.value * float(np.mean(direct)) / (TEXT - short)


@script.section("Compressing by gzip, next to direct measurement", seed=SEED, quick=False)
def real(run: Run) -> None:
    """Print by how much the speed of each session is off, and judge the mean."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder, "text")
        write_text(run.rng(REAL), path)
        argv = ["sh", "-c", f"head -c {{work}} {path} | gzip -c > /dev/null"]
        workload = CommandWorkload(argv, clock=WallClock())
        off = [compare_speeds(workload) - 1.0 for _ in range(run.runs(5, 1))]
    run.say(f"off by {', '.join(f'{each:+.1%}' for each in off)}")
    run.say(f"in the mean: {run.bar('real, gzip', abs(float(np.mean(off))), '<=', 0.03)}")


if __name__ == "__main__":
    raise SystemExit(script.main())
