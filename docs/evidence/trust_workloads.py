# ruff: noqa: E501  # each line is a program
"""Functions and commands that misbehave: does a run of them end in time, and say what happened.

Each is measured for a second, functions in this process and in fresh ones. A run ends well if it
ends in time with an exit code of the house, without a traceback of ours, prints at most a megabyte,
leaves no process behind that it does not name, and its store can still be read.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from coverage_tables import Setting, heading, row
from trust_trials import done_trials, ended_run, start

from benchrigor.errors import BenchrigorError
from benchrigor.storage import Journal

BUDGET_S = 1.0
SLACK_S = 3.0
BUSY_S = 5.0  # later still, where the quick version runs beside other checks
HANG_S = 8.0  # a call that never returns: three budgets and 5 s
CODES = {0, 2, 3, 4, 5, 6, 130}
LIMIT_S = 40.0

HEAD = """
import asyncio, atexit, ctypes, gc, multiprocessing, os, random, resource, signal, socket
import sqlite3, subprocess, sys, threading, time, warnings
calls = 0
def count():
    global calls
    calls += 1
    time.sleep(0.002)
    return calls
class Odd(BaseException):
    pass
class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")
"""
FUNCTIONS = {
    "raises at once": "raise ValueError('no')",
    "raises later": "if count() > 90: raise ValueError('no')",
    "raises now and then": "if count() % 7 == 0: raise ValueError('no')",
    "raises KeyboardInterrupt": "if count() > 9: raise KeyboardInterrupt",
    "raises SystemExit": "if count() > 9: sys.exit(7)",
    "raises SystemExit 0": "if count() > 9: sys.exit(0)",
    "raises a BaseException of its own": "if count() > 9: raise Odd('odd')",
    "raises GeneratorExit": "if count() > 9: raise GeneratorExit",
    "raises CancelledError": "if count() > 9: raise asyncio.CancelledError",
    "raises StopIteration": "if count() > 9: raise StopIteration",
    "raises MemoryError": "if count() > 9: raise MemoryError",
    "raises RecursionError": "def again(): again()\n    if count() > 9: again()",
    "raises a group": "if count() > 9: raise ExceptionGroup('two', [ValueError(1), OSError(2)])",
    "raises what has no words": "if count() > 9: raise Mute",
    "raises terminal escapes": "if count() > 9: raise ValueError('\\x1b[2J\\nbenchrigor: fine')",
    "raises what is no UTF-8": "if count() > 9: raise ValueError('\\udcff')",
    "raises very many words": "if count() > 9: raise ValueError('x' * 10**7)",
    "raises in a thread": "threading.Thread(target=lambda: 1 / 0).start(); count()",
    "exits at once": "os._exit(0)",
    "exits later": "if count() > 9: os._exit(0)",
    "exits with 3": "if count() > 9: os._exit(3)",
    "aborts": "if count() > 9: os.abort()",
    "kills itself": "if count() > 9: os.kill(os.getpid(), signal.SIGKILL)",
    "crashes": "if count() > 9: ctypes.string_at(0)",
    "is asked to end by itself": "if count() > 9: os.kill(os.getpid(), signal.SIGTERM)",
    "hangs at once": "while True: pass",
    "hangs later": "while count() > 9: pass",
    "sleeps for ever": "time.sleep(10_000)",
    "sleeps for ever later": "if count() > 9: time.sleep(10_000)",
    "waits for a lock for ever": "if count() > 9: lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "waits for a socket": "a, b = socket.socketpair(); a.recv(1) if count() > 9 else None",
    "takes longer than the budget": "time.sleep(1.5)",
    "takes long at first": "time.sleep(2.0 if calls == 0 else 0.001); count()",
    "catches all, and goes on": "for _ in range(3):\n        try: time.sleep(10_000)\n        except BaseException: pass",
    "prints very much": "print('x' * 100_000); count()",
    "prints terminal escapes": "print('\\x1b[2J'); count()",
    "prints to stderr": "print('oh', file=sys.stderr) if count() % 50 == 0 else None",
    "closes its output": "sys.stdout.close() if count() == 1 else None",
    "closes descriptor 1": "os.close(1) if count() == 1 else None",
    "closes all descriptors": "os.closerange(3, 200) if count() == 1 else None",
    "has no output": "sys.stdout = None; count()",
    "removes its folder": "os.makedirs('gone', exist_ok=True) if count() == 1 else None; os.chdir('gone') if calls == 1 else None; os.rmdir('../gone') if calls == 1 else None",
    "clears its environment": "os.environ.clear(); count()",
    "ignores signals": "signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN); count()",
    "takes the alarm signal": "signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 0.01); count()",
    "leaves a thread": "threading.Thread(target=time.sleep, args=(10_000,)).start() if count() == 1 else None",
    "leaves a daemon thread": "threading.Thread(target=time.sleep, args=(10_000,), daemon=True).start(); count()",
    "leaves a process": "subprocess.Popen(['sleep', '1000']) if count() == 1 else None",
    "leaves a process in a session of its own": "subprocess.Popen(['sleep', '1000'], start_new_session=True) if count() == 1 else None",
    "forks": "pid = os.fork() if count() == 1 else 1\n    if pid == 0: time.sleep(1000)",
    "forks, and both return": "os.fork() if count() == 5 else None",
    "leaves a pool": "global pool\n    pool = multiprocessing.get_context('fork').Pool(2) if count() == 1 else pool",
    "raises at exit": "atexit.register(lambda: 1 / 0) if count() == 1 else None",
    "hangs at exit": "atexit.register(time.sleep, 10_000) if count() == 1 else None",
    "counts nothing": "gc.disable(); gc.freeze(); count()",
    "traces": "sys.settrace(lambda *_: None); count()",
    "limits recursion": "sys.setrecursionlimit(60 + 0 * count())",
    "forgets its module": "sys.modules.pop(__name__, None); count()",
    "turns the clock back": "time.perf_counter_ns = time.monotonic_ns = lambda: 10**9 - count()",
    "makes warnings errors": "warnings.simplefilter('error'); count()",
    "leaks memory": "leaked.append(bytearray(10**5)); count()",
    "leaks descriptors": "leaked.append(os.open('/dev/null', os.O_RDONLY)); time.sleep(0.0001)",
    "limits its files": "resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4)); count()",
    "limits its memory": "resource.setrlimit(resource.RLIMIT_AS, (2**28, 2**28)); count()",
    "locks its store": "global held\n    held = sqlite3.connect('runs.sqlite'); held.execute('BEGIN IMMEDIATE'); count()",
    "removes its store": "os.path.exists('runs.sqlite') and os.unlink('runs.sqlite'); count()",
    "measures inside": "import benchrigor\n    benchrigor.measure(count, budget_s=0.1)",
}
"""What each function does in a call."""

ASYNC = {
    "async, raises": "if count() > 9: raise ValueError('no')",
    "async, never ends": "await asyncio.sleep(10_000)",
    "async, is cancelled": "asyncio.current_task().cancel() if count() > 9 else None; await asyncio.sleep(0)",
    "async, leaves tasks": "asyncio.ensure_future(asyncio.sleep(10_000)); await asyncio.sleep(0.001)",
}
PARTLY = "'t:ms=regex:took ([0-9.]+)'"
COMMANDS = {
    "fails": ("sh -c 'exit 77'", ""),
    "fails now and then": ("sh -c 'test $(($(date +%N | sed s/^0*//) % 3)) -gt 0'", ""),
    "is not there": ("./no-such-program", ""),
    "cannot be run": ("./notes.txt", ""),
    "is a folder": ("./", ""),
    "crashes": ("sh -c 'kill -SEGV $$'", ""),
    "kills itself": ("sh -c 'kill -KILL $$'", ""),
    "stops itself": ("sh -c 'kill -STOP $$'", ""),
    "asks us to end": ("sh -c 'kill -TERM $PPID; sleep 10'", ""),
    "interrupts us": ("sh -c 'kill -INT $PPID; sleep 0.1'", ""),
    "never ends": ("sleep 10000", ""),
    "ignores the request to end": ("sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'", ""),
    "leaves a child": ("sh -c 'sleep 1000 & sleep 0.01'", ""),
    "leaves a daemon": ("sh -c 'setsid sleep 1000 & sleep 0.01'", ""),
    "leaves one that ignores all": (
        "sh -c '(trap \"\" TERM HUP INT; sleep 1000) & sleep 0.01'",
        "",
    ),
    "starts many": ("sh -c 'for i in 1 2 3 4 5 6 7 8 9; do sleep 100 & done; sleep 0.01'", ""),
    "holds our output open": ("sh -c 'sleep 1000 >&2 & echo took 5 ms'", PARTLY),
    "prints without end": ("yes 'took 5 ms'", PARTLY),
    "prints without end or lines": ("sh -c 'while :; do printf x; done'", PARTLY),
    "prints zeros": ("head -c 100000000 /dev/zero", PARTLY),
    "prints noise": ("head -c 10000000 /dev/urandom", PARTLY),
    "prints nothing": ("true", PARTLY),
    "prints no number": ("echo took nan ms", PARTLY),
    "prints a long number": (f"echo took {'9' * 400} ms", PARTLY),
    "prints negative times": ("echo took -5 ms", "'t:ms=regex:took (.*) ms'"),
    "prints terminal escapes": ("printf 'took 5 \\033[2J ms'", PARTLY),
    "complains without end": ("sh -c 'yes no >&2'", ""),
    "complains and fails": ("sh -c 'head -c 10000000 /dev/urandom >&2; exit 1'", ""),
    "reads its input": ("cat", ""),
    "removes its folder": ("sh -c 'cd .. && sleep 0.01'", ""),
    "is its own streams": ("sh -c 'exec >&- 2>&-; sleep 0.01'", ""),
    "has a very long word": (f"true {'x' * 100_000}", ""),
}
"""Each command, and what is read of its output."""


def workloads(setting: Setting) -> None:
    """Print how runs of them end."""
    kinds = {
        "in process": [*FUNCTIONS, *ASYNC],
        "fresh": [*FUNCTIONS, *ASYNC],
        "command": [*COMMANDS],
    }
    names = [f"{kind}/{name}" for kind, several in kinds.items() for name in several]
    names = names[::18] if setting.quick else names
    found = done_trials(setting, "workloads", names, measured)
    for trial in found.values():
        if trial["late_s"] > (BUSY_S if setting.quick else 0.0):
            trial["why"] += f"; {trial['late_s']:.1f} s too late"
    heading(["", "runs", "slowest beyond its bound", "ended badly"])
    for kind in kinds:
        rows = {name: trial for name, trial in found.items() if name.startswith(f"{kind}/")}
        if rows:
            late = max(trial["late_s"] for trial in rows.values())
            faults = [name for name, trial in rows.items() if trial["why"]]
            met = setting.verdict(f"workloads {kind}", not faults)
            row(kind, len(rows), f"{late:.1f} s", len(faults), met)
    for name, trial in found.items():
        if trial["why"]:
            print(f"\n{name}: {trial['why']}")


def measured(name: str) -> dict[str, Any]:
    """Measure one of them for a second, and return what is wrong with how that ended."""
    kind, _, what = name.partition("/")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "notes.txt").write_text("no program")
        if kind == "command":
            command, picked = COMMANDS[what]
            options = shlex.split(f"--read {picked}") if picked else []
            words = [*options, "--", *shlex.split(command)]
            bound_s = BUDGET_S + SLACK_S
        else:
            body, begin = FUNCTIONS.get(what), "def"
            if body is None:
                body, begin = ASYNC[what], "async def"
            (folder / "job.py").write_text(
                f"{HEAD}leaked, pool = [], None\n{begin} work():\n    {body}\n"
            )
            words = ["--fresh" if kind == "fresh" else "--in-process", "job:work"]
            is_hang = any(
                word in what for word in ("hang", "for ever", "waits", "never ends", "catches")
            )
            call_s = (
                2.0 if "long" in what else 5.0 if "locks" in what else 0.0
            )  # it waits for itself
            bound_s = HANG_S + SLACK_S if is_hang else BUDGET_S + call_s + SLACK_S
        argv = (
            "-m",
            "benchrigor",
            "run",
            "--budget",
            f"{BUDGET_S:g}",
            "--max-rounds",
            "200",
            *words,
        )
        run = start(argv, folder, {"BENCHRIGOR_STORE": str(folder / "runs.sqlite")})
        took_s, left = ended_run(run, LIMIT_S)
        late_s = (LIMIT_S if took_s is None else took_s) - bound_s
        why = _wrong(
            folder, run.process.returncode, left, may_signal="ask" in what or "interrupts" in what
        )
        return {"late_s": late_s, "code": run.process.returncode, "why": "; ".join(why)}


def _wrong(folder: Path, code: int, left: list[int], *, may_signal: bool) -> list[str]:
    """Return what is wrong with how a run ended."""
    why, stderr = [], (folder / "stderr").read_text(errors="replace")
    if code not in CODES and not (may_signal and code in {143, -15, 130, -2}):
        why.append(f"exit code {code}, stderr ends with {stderr[-200:]!r}")
    if "/benchrigor/" in stderr and "Traceback" in stderr:
        why.append(f"a traceback of ours: {stderr[-300:]!r}")
    size = sum((folder / file).stat().st_size for file in ("stdout", "stderr"))
    if size > 10**6:
        why.append(f"printed {size:,} bytes")
    if "\x1b" in stderr + (folder / "stdout").read_text(errors="replace"):
        why.append("terminal escapes are printed as they came")
    if left and "still running: sleep 1000" not in stderr:  # in sessions of their own, and named
        why.append(f"{len(left)} processes left")
    if (store := folder / "runs.sqlite").exists():
        try:
            with Journal(store) as journal:
                for run in journal.runs():
                    journal.load(run["run_id"])
        except BenchrigorError as error:
            why.append(f"the store cannot be read: {error}")
    return why


if __name__ == "__main__":
    print(measured(sys.argv[1]))
