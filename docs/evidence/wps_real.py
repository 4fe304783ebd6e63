"""Real workloads: the speed of a session beside a long direct measurement, by turns with it.

Compressing the beginning of a text with gzip, by wall time and by the processor time that the
shell reports; writing a file block by block, each made durable before the next (fsync), by a
function of this process, and by `dd`; the same in memory, without a disk. After every few rounds
of a session two direct runs follow, one of its largest amount and one of an eighth: their
difference in work over the difference of their mean times is the speed without what a run adds. So
both see the same machine. Before each writing to disk there is a pause: virtual disks are throttled
when they are written to without rest.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from coverage_tables import Setting, heading, row

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.model import RoundPlan
from benchrigor.protocols import Workload
from benchrigor.workloads import AmountWorkload, CommandWorkload, Pick, RoundRecorder

__all__ = ["real"]

REAL = 77
REPETITIONS = 5
MOST = 0.03
TEXT, WRITTEN = 64_000_000, 16_000_000
LEAST = 40
"""Largest over smallest amount of a session's rounds."""
BLOCK = 1 << 18
REST_S = 0.05
MEMORY = Path("/dev/shm")
"""Where files are kept in memory, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A workload of various amounts.

    Parameters
    ----------
    workload
        What is measured.
    high
        Largest amount of a session's rounds, and that of the long direct runs.
    rounds, every
        Rounds of a session, the more the noisier they are, and after how many of them direct runs
        follow.
    clear
        Called before each run, outside the time that counts.
    """

    workload: Workload
    high: int
    rounds: int
    every: int
    clear: Callable[[], object]

    def seconds(self, work: int) -> float:
        """Run it once, without a session."""
        self.clear()
        plan, recorder = RoundPlan(index=0, work=work), RoundRecorder()
        self.workload.run(plan, recorder)
        return recorder.finish(plan, elapsed_ns=0).duration_s


def write_text(rng: np.random.Generator, path: Path) -> None:
    """Write words of a few thousand, the common ones often, the same mixture everywhere."""
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    lengths = rng.integers(2, 10, 5_000).tolist()
    words = [f"{''.join(rng.choice(letters, length))} ".encode() for length in lengths]
    shares = 1.0 / np.arange(1, len(words) + 1)
    with path.open("wb") as file:
        while file.tell() < TEXT:
            drawn = rng.choice(len(words), 200_000, p=shares / shares.sum())
            file.write(b"".join(words[each] for each in drawn.tolist()))


def write_durably(path: Path, work: int) -> None:
    """Write so many random bytes, every block made durable before the next."""
    block = _random_block()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        for start in range(0, work, BLOCK):
            os.write(descriptor, block[: min(BLOCK, work - start)])
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _random_block() -> memoryview:
    return memoryview(np.random.default_rng(REAL).bytes(BLOCK))


def tasks(folder: Path) -> dict[str, Task]:
    """Return the workloads; files are in the folder."""
    clock = WallClock()
    text, out = folder / "text", folder / "out"
    compress = f"head -c {{work}} {text} | gzip -c > /dev/null"
    by_processor = f"TIMEFORMAT=%U; {{ time {{ {compress}; }}; }} 2>&1"
    copy = f"head -c {{work}} {text} | dd of={out} bs=256K iflag=fullblock oflag=dsync"
    compressing = partial(Task, high=TEXT, rounds=48, every=4, clear=int)
    clear = partial(cleared, out)
    writing = partial(Task, high=WRITTEN, rounds=400, every=2, clear=clear)
    picked = [Pick.parse("time=regex:(.+)")]
    command = partial(CommandWorkload, clock=clock)
    function = partial(AmountWorkload, clock=clock)
    found = {
        "gzip": compressing(workload=command(["sh", "-c", compress])),
        "gzip, processor time": compressing(
            workload=command(["bash", "-c", by_processor], picks=picked)
        ),
        "durable writing, function": writing(workload=function(partial(write_durably, out))),
        "durable writing, command": writing(workload=command(["sh", "-c", copy])),
    }
    if MEMORY.is_dir():
        inside = MEMORY / f"{folder.name}.out"
        found["writing to memory, function"] = Task(
            workload=function(partial(write_durably, inside)),
            high=WRITTEN,
            rounds=400,
            every=2,
            clear=partial(inside.unlink, missing_ok=True),
        )
    return found


def cleared(out: Path) -> None:
    """Remove what was written before, and let the disk rest."""
    out.unlink(missing_ok=True)
    time.sleep(REST_S)


def compared(task: Task) -> tuple[br.RunRecord, float, float]:
    """Run a session with direct runs in between; return both speeds, and the direct one's error."""
    direct: list[tuple[float, ...]] = []

    def by_turns(finished: br.Round) -> None:
        if (finished.plan.index + 1) % task.every == 0:
            amounts = [task.high // 8, task.high]
            turn = 1 - 2 * (len(direct) % 2)  # neither of them always follows the other
            direct.append(tuple([task.seconds(each) for each in amounts[::turn]][::turn]))

    session = br.Session(
        br.Options(
            analysis="wps",
            work=(task.high // LEAST, task.high),
            short_round_s=1e-4,
            target=1e-12,
            budget_s=math.inf,
            max_rounds=task.rounds,
        ),
        seed=REAL,
        before_round=lambda _plan: task.clear(),
        after_round=by_turns,
    )
    record = session.run(task.workload)
    taken = np.array([long - short for short, long in direct])
    speed = (task.high - task.high // 8) / float(taken.mean())
    return record, speed, float(taken.std(ddof=1) / taken.mean()) / math.sqrt(taken.size)


def real(setting: Setting) -> None:
    """Print every repetition, and judge the mean difference of each workload."""
    times = setting.repetitions or REPETITIONS
    print(f"{times} sessions each; bar on their mean difference. In brackets the standard error of")
    print("the direct speed.\n")
    columns = ["workload", "session, MB/s", "overhead", "rounds that count", "direct, MB/s"]
    heading([*columns, "difference", "direct within", "load", "Notices"])
    with tempfile.TemporaryDirectory(dir=".") as folder:
        write_text(np.random.default_rng([setting.seed, REAL]), Path(folder) / "text")
        measured = tasks(Path(folder))
        differences = {
            name: [_printed(name, *compared(task)) for _ in range(times)]
            for name, task in measured.items()
        }
        for task in measured.values():
            task.clear()
    print()
    heading(["workload", "mean difference", "standard error", "within 3 %", "bar"])
    for name, found in differences.items():
        mean = float(np.mean(found))
        verdict = setting.verdict(f"{name}, real", abs(mean) <= MOST)
        close = sum(abs(each) <= MOST for each in found)
        error = float(np.std(found, ddof=1)) / math.sqrt(times) if times > 1 else math.nan
        row(
            name,
            f"{mean:+.1%}",
            f"{error:.1%}",
            f"{close} of {len(found)}",
            f"within {MOST:.0%}: {verdict}",
        )


def _printed(name: str, record: br.RunRecord, direct: float, error: float) -> float:
    """Print one repetition; return the relative difference, NaN where there is no speed."""
    (analysis,) = record.analyses
    found, fit = record.estimate(), analysis.wps
    if found is None or fit is None:
        row(name, "none", "", analysis.n_kept, f"{direct / 1e6:.1f}", *4 * [""])
        return math.nan
    difference = found.value / direct - 1.0
    row(
        name,
        f"{found.value / 1e6:.1f} [{found.low / 1e6:.1f}, {found.high / 1e6:.1f}]",
        f"{fit.overhead.value * 1e3:.1f} ms",
        f"{analysis.n_kept} of {analysis.n}",
        f"{direct / 1e6:.1f} ({error:.1%})",
        f"{difference:+.1%}",
        "yes" if found.low <= direct <= found.high else "no",
        f"{os.getloadavg()[0]:.1f}",
        ", ".join(each.code for each in analysis.notices if each.code != "not-converged"),
    )
    return difference
