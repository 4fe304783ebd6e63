"""What generators of load, servers and hosts say when they are refused, or cannot work."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import click.testing
from tests.texts.rendering import run

from benchrigor import Limit, LoadTrial
from benchrigor.testing import FakeExecutor
from benchrigor.workbench.executors import LocalExecutor
from benchrigor.workbench.loadgen import HttpRequest, HttpRequests, LoadCommand, OpenLoop
from benchrigor.workbench.maps.life_cycle import LifeCycle, Server
from benchrigor.workbench.on_host import HostLock, Job, Outcome, Token
from benchrigor.workbench.pool import Pool
from benchrigor.workloads import Pick

TRIAL = LoadTrial(id=0, load=200.0, duration_s=30.0)
MEAN = [Limit(metric="mean", at_most=1.0)]
SLO = Limit(metric="response<1s and first-byte<10ms", at_most=0.05)
NOBODY = "http://127.0.0.1:9/"
MINE = Token(owner="a", number=1)
WRK = "  Latency     1.00us\n  833071 requests in 1.25ms, 4.65MB read\n"
FORTIO = (
    "Ended after 30.01s : 6000 calls. qps=199.9\n"
    "Aggregated Function Time : count 6000 avg 0.0025 +/- 0.001 min 0.0003 max 0.03\n"
    "Code 200 : 6000 (100.0 %)\nAll done 6000 calls (plus 4 warmup) 2.500 ms avg, 199.9 qps\n"
)
MAP = """[factors.size]
levels = [1, 2]
[design]
kind = "full"
[response]
function = "answers:rate"
direction = "higher"
[hosts]
names = ["elm"]
"""


async def alone() -> None:
    """Send nothing."""


def requests(url: str = NOBODY, **options: Any) -> HttpRequests:
    """Return requests of a kind."""
    return HttpRequests(kinds=[HttpRequest(url=url, **options)])


def offer_load(
    text: str, *words: str, trial: LoadTrial = TRIAL, picks: Sequence[str] = ()
) -> object:
    """Offer a load by a program that prints a text."""
    command = ["sh", "-c", f"printf %s '{text}'", *words, "{load}"]
    return LoadCommand(command, [Pick.parse(pick) for pick in picks]).offer(trial)


def serve(lasting_s: float = 60.0, **steps: Any) -> object:
    """Run the steps of a server."""
    life = LifeCycle(timeouts=dict.fromkeys(("configure", "ready", "stop"), lasting_s), **steps)
    with Server(life, {"a": 1}):
        return "it was ready"


def lock_both(first: HostLock, second: HostLock) -> None:
    """Take a lock, and another."""
    first.take()
    second.take()


def lock(owner: str = "a", number: int = 1, at_s: float = 1000.0, **given: Any) -> HostLock:
    """Return a lock of a host."""
    own = {"host": "elm", "machine": "m", "boot": "today", "folder": Path(), **given}
    return HostLock(token=Token(owner=owner, number=number), now_s=lambda: at_s, **own)


def run_in_pool(*outcomes: Outcome, call: str = "builtins:dict", n: int = 1) -> object:
    """Return what becomes of a job on hosts for which this comes of attempts."""
    left = iter(outcomes)
    executor = FakeExecutor(["elm", "oak"], instead=lambda _: next(left, None))
    with Pool(executor, owner="a") as pool:
        done = [pool.submit(call, {}).result() for _ in range(n)][-1]
        return done.failure, *(
            re.sub("after [^:]*", "after TIME", str(x)) for x in (*done.earlier, done)
        )


def on_host(*prefix: str, limit_s: float | None = None) -> object:
    """Return why a job on a host with a prefix is lost."""
    executor = LocalExecutor(["elm"], prefix=prefix)
    job = Job(call="builtins:dict", arguments={}, host="elm", token=MINE, lock_folder=".")
    outcome = executor.run("elm", job)
    executor.close()
    return f"{outcome.kind}: {outcome.failure}"


def mapped(*outcomes: Outcome) -> click.testing.Result:
    """Measure a map on a host for which this comes of attempts."""
    left = iter(outcomes)
    executor = FakeExecutor(["elm"], instead=lambda _: next(left))
    made = "benchrigor.workbench.maps.map_run.executor_for"
    answers = "def rate(size):\n    return size\n"
    sys.modules.pop("answers", None)  # of somebody else
    with mock.patch(made, return_value=executor):
        return run("map", "map.toml", files={"map.toml": MAP, "answers.py": answers})


REQUESTS: list[Mapping[str, Any]] = [
    {"url": "127.0.0.1:80"},
    {"url": "http://x", "weight": 0},
    {"url": "http://x", "status": 99},
    {"url": "http://x", "headers": {"a": 1}},
    {"url": "http://x", "method": ""},
]
LOOPS: list[Mapping[str, Any]] = [
    {"arrivals": "ramp"},
    {"timeout_s": 0},
    {"timeout_s": 0.5},
    {"timeout_s": 0.5, "limits": [SLO]},
]
COMMANDS: list[Sequence[str]] = [
    ["wrk", "-c{load}", "URL"],
    ["hey", "-c", "{load}", "URL"],
    ["wrk2", "-R100"],
    ["mine", "{load}"],
]

CAUSES: dict[str, Callable[[], object]] = {
    "no kinds of requests": partial(HttpRequests, kinds=[]),
    "nobody listens": lambda: OpenLoop(requests(), MEAN).check(),
    "more requests than fit into memory": lambda: OpenLoop(requests(), MEAN).offer(
        LoadTrial(id=0, load=1e300, duration_s=1.0)
    ),
    "times that requests do not report": lambda: OpenLoop(alone, [SLO]).check(),
    "a program that is not there": lambda: LoadCommand(
        ["no-such-program-at-all", "wrk2", "{load}"]
    ).offer(TRIAL),
    "a program that fails": lambda: LoadCommand(
        ["sh", "-c", "echo oh >&2; exit 1", "wrk2", "{load}"]
    ).offer(TRIAL),
    "a program that prints nothing": lambda: offer_load("", "wrk2"),
    "a program that sent for too short a time": lambda: offer_load(
        WRK, "wrk2", trial=LoadTrial(id=0, load=100.0, duration_s=1.0)
    ),
    "a program that ignores its rate": lambda: offer_load(
        FORTIO, "fortio", trial=LoadTrial(id=0, load=100.0, duration_s=30.0)
    ),
    "a program that got no answer": lambda: offer_load(
        "  Latency     0.00us    0.00us\n  0 requests in 1.00s", "wrk2"
    ),
    "all that is wrong with a server": lambda: LifeCycle(
        ready="x",
        port=0,
    ),
    "a server without a sign that it is ready": lambda: LifeCycle(start=["server"]),
    "a server that dies at once": lambda: serve(
        start=["sh", "-c", "echo bad token=hunter2 >&2; exit 3"], ready=NOBODY
    ),
    "a server that cannot be started": lambda: serve(start=["no-such-server"], ready=NOBODY),
    "a daemon without a stop": lambda: serve(start=["true"], ready=NOBODY),
    "a server that never becomes ready": lambda: serve(0.05, start=["sleep", "60"], ready=NOBODY),
    "a step that fails": lambda: serve(configure=["sh", "-c", "echo the disk is full; exit 7"]),
    "a step that takes too long": lambda: serve(0.01, configure=["sleep", "60"]),
    "a host that works for somebody else": lambda: lock_both(lock(), lock("b", at_s=1059.0)),
    "an old token of the same owner": lambda: lock_both(lock(number=2), lock()),
    "two names of one machine": lambda: lock_both(lock(), lock(host="oak")),
    "a lock that cannot be written": lambda: (
        Path("file").touch(),
        lock(folder=Path("file")).take(),
    ),
    "a disturbed job": lambda: run_in_pool(
        Outcome(disturbed="others used 1.0 processors"), Outcome(disturbed="others used 2.0")
    ),
    "a job that fails by itself": lambda: run_in_pool(call="math:sqrt"),
    "a job that is lost twice": lambda: run_in_pool(*[Outcome(kind="lost", failure="gone")] * 2),
    "a host that works for others": lambda: run_in_pool(
        Outcome(kind="busy", failure="elm works for b")
    ),
    "a later job of the same owner": lambda: run_in_pool(Outcome(kind="late", failure="later")),
    "no host is left": lambda: run_in_pool(*[Outcome(kind="lost", failure="gone")] * 4, n=3),
    "a process that dies": lambda: on_host("sh", "-c", "echo {host} is away >&2; exit 3"),
    "a command that is not there": lambda: on_host("/nowhere/ssh", "{host}"),
    "a host that is not fit for a map": lambda: mapped(
        Outcome(kind="refused", failure="elm has benchrigor 9.9, expected 0.1.0 as here")
    ),
}
CAUSES |= {f"HttpRequest, {wrong}": partial(HttpRequest, **wrong) for wrong in REQUESTS}
CAUSES |= {
    f"OpenLoop, {wrong}": partial(OpenLoop, requests(), **{"limits": MEAN, **wrong})
    for wrong in LOOPS
}
CAUSES |= {f"LoadCommand, {' '.join(wrong)}": partial(LoadCommand, wrong) for wrong in COMMANDS}
