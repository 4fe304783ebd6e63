"""What users are refused at doors of all kinds, where no other page shows it."""

from __future__ import annotations

import asyncio
import os
import pickle
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import click.testing
import numpy as np
from tests.texts.rendering import run, tried

import benchrigor as br
from benchrigor import instrument
from benchrigor.clocks import WallClock
from benchrigor.model import Delays
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock
from benchrigor.workloads import InterpreterWorkload

COMMAND = '{{"command": "{} {}", "times": [1.0, 1.1, 1.2, 1.05]}}'
FILES = {
    "times.csv": "time\n1\n2\n3\n4\n5\n6\n",
    "counts.csv": "share\n9/10\n8/10\n",
    "empty.csv": ",,\n,,\n",
    "uneven.json": '{"time": [1.0, 2.0], "of": [1.0]}',
    "vegeta.csv": "1700000000000000000,200,1000000,0,0,,,0\n" * 3,
    "jmh.json": '[{"jmhVersion": "1", "benchmark": "a.b", "mode": "sample", "primaryMetric": '
    '{"scoreUnit": "s/op", "rawDataHistogram": [[[5]]]}}]',
    "jmeter.csv": "timeStamp,elapsed,label,success,elapsed\n1,2,a,true,3\n",
    "one.json": f'{{"results": [{COMMAND.format("sleep", 1)}]}}',
    "first.json": f'{{"results": [{COMMAND.format("sleep", 1)}, {COMMAND.format("sleep", 2)}]}}',
    "second.json": f'{{"results": [{COMMAND.format("wait", 1)}, {COMMAND.format("wait", 2)}]}}',
}
LINES = """
changes counts.csv
commands -L a {many} -L b {many} true
explain times.csv
analyze empty.csv
analyze uneven.json --column time --round of
analyze times.csv --where time
analyze times.csv --where time=9
analyze vegeta.csv
analyze jmh.json
analyze jmeter.csv
compare first.json second.json
compare first.json second.json --filter (
compare first.json second.json --filter nothing
interference one.json
""".strip().splitlines()
MANY = ",".join(map(str, range(200)))


def of_files(line: str) -> click.testing.Result:
    """Return the answer of a verb to the files."""
    return run(*shlex.split(line.format(many=MANY)), files=FILES)


class Stuck:
    """What travels to no other process."""

    def __reduce__(self) -> str:
        raise TypeError("it stays here")


def of_arrays() -> Iterator[object]:
    """Give values that are not numbers at every index."""
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    yield from tried(br.stats.estimate_mean, masked, [10**400, 1])
    yield from tried(lambda seconds: Delays(stops=[1], seconds=seconds), [0.1])


class Wrong(WallClock):
    """A clock that goes back at each reading."""

    def __init__(self, step_ns: int) -> None:
        self._times_ns = count(10**9, step_ns)
        super().__init__()

    def now_ns(self) -> int:
        """Return the next time."""
        return next(self._times_ns)


def of_places() -> Iterator[object]:
    """List runs from a folder that is gone."""
    Path("gone").mkdir()
    os.chdir("gone")
    Path.cwd().rmdir()
    yield run("run", "true")


def of_kept() -> Iterator[object]:
    """Take up runs of a program, and runs that need a secret; compare speeds by medians."""
    clock, store = FakeClock(), os.environ["BENCHRIGOR_STORE"]
    session = br.Session(br.Options(max_rounds=2), seed=1, store=store)
    record = session.run(lambda: None)
    yield run("resume", record.run_id, "--max-rounds", 9)
    run("run", "--max-rounds", 1, "--", "true", "--password", "x")
    (hidden,) = (stored for stored in Journal(store).runs() if stored["name"] != record.name)
    yield run("resume", hidden["run_id"], "--max-rounds", 9)
    speeds = [
        br.measure(lambda n: clock.advance(int(n) * 10**6), work=(1, 1000), name=name, clock=clock)
        for name in ("one", "other")
    ]
    yield from tried(lambda statistic: br.compare_runs(*speeds, statistic=statistic), "median")


def of_probes() -> Iterator[object]:
    """Ask probes the impossible."""
    probe = instrument.probe("refused")
    try:
        pickle.dumps(probe)
    except TypeError as error:
        yield str(error)
    hub = instrument.Hub({"a": "localhost:1"})
    hub.close()
    yield from tried(lambda _: hub.pull(), 1)


def of_stores() -> Iterator[object]:
    """Name a run by the start of all ids."""
    with Journal("runs.sqlite") as journal:
        for seed in range(2):
            br.Session(br.Options(max_rounds=1), seed=seed, store=journal).run(lambda: None)
        yield from tried(journal.load, "")


CAUSES: dict[str, Callable[[], object]] = {
    **{line: partial(of_files, line) for line in LINES},
    "arrays": of_arrays,
    "clocks": lambda: tried(Wrong, -1),
    "a folder that is gone": of_places,
    "runs": of_kept,
    "stores": of_stores,
    "probes and hubs": of_probes,
    "arguments of another interpreter": lambda: tried(
        lambda args: InterpreterWorkload("os:getpid", args=args), {"args": (Stuck(),)}
    ),
    "a coroutine outside of a loop": lambda: tried(
        lambda seconds: br.measure_async(partial(asyncio.sleep, seconds)).send(None), 0
    ),
}
