"""What people read about probes, batches and nodes."""

import json
import math
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from tests.instrument.nodes.made_nodes import agent_of, ask, http, server, telling
from tests.simulations.simulated.estimates import estimated
from tests.texts.rendering import run, tried

from benchrigor.instrument import Hub, Probe, ProbeRegistry, probe_module
from benchrigor.model import Kernel, Notice, ProbeReading
from benchrigor.report import render_probes
from benchrigor.stats import advise_batching, partition_kernels

# Probes


def asked(**given: Any) -> Probe:
    registry = ProbeRegistry()
    registry.probe("parse", clock="cpu", deadline_s=4e-6)
    return registry.probe(**{"name": "assign", **given})


def misuse() -> Iterator[object]:
    probe = asked()
    yield from tried(probe.stop, ("soon",))
    yield from tried(setattr, (probe, "on", "off"))
    yield from tried(probe, (Probe,), (3,))
    yield from tried(probe_module, (json, "red"), ("json",), (json, 3))


def reading(name: str, count: int, total_s: float, **figures: Any) -> ProbeReading:
    absent: dict[str, Any] = dict.fromkeys(
        ("min_s", "max_s", "mean_s", "variance_s2", "p50_s", "p99_s")
    )
    known = {"self_s": total_s, "samples": 0, "samples_lost": 0, "rejected": 0, "own_cost_s": 5e-7}
    given = {**absent, **known, **figures}
    return ProbeReading(name=name, clock="wall", count=count, total_s=total_s, **given)


def table(*readings: ProbeReading, notices: tuple[Notice, ...] = (), **given: Any) -> str:
    by_name = {reading.name: reading for reading in readings}
    empty = ProbeRegistry().read()
    return render_probes(replace(empty, readings=by_name, elapsed_s=30.0, notices=notices), **given)


def busy_probes() -> Iterator[Notice]:
    """Texts about probes, without the share that they took."""
    registry = ProbeRegistry()
    often = registry.probe("often")
    for _ in range(2_000):
        often.stop(often.start())
    for notice in registry.read().notices:
        yield replace(notice, sentence=re.sub("[0-9.]+%", "N%", notice.sentence))


K_MEANS = (
    reading("init", 1, 9887e-6 + 5e-7),
    reading("init.work", 1, 9829e-6),
    reading("assign", 2_024_251, 22.307 + 2_024_251 * 5e-7),
    reading("assign.work", 2_024_251, 14.069),
    reading("print", 11, 4.2e-3),
    reading("never", 0, 0.0),
)
LOSSY = reading("x" * 90, 5, 1.0, p50_s=0.1, p99_s=0.9, samples=3, samples_lost=2, rejected=4)


def kernels_with(*dispatch_us: float) -> Iterator[str]:
    """Kernels of 1 us of work and 0.5 us of what probes cost."""
    for dispatch in dispatch_us:
        whole = reading("kernel", 1000, 1000 * (1.0 + 0.5 + dispatch) * 1e-6)
        yield table(whole, reading("kernel.work", 1000, 1000e-6)).splitlines()[1]


# Batches and partitions


def advise(*given: tuple[Any, Any, int]) -> Iterator[str]:
    for dispatch, work, instances in given:
        kernel = Kernel(name="a", instances=instances, dispatch_s=dispatch, work_s=work)
        yield str(advise_batching([kernel])[0])


def partition(**given: Any) -> str:
    known = {"times": {"a": 1.0, "b": 1.0}, "traffic": {}, "nodes": {"x": 1.0}}
    return str(partition_kernels(**{**known, **given}))


# Nodes


def refused_settings() -> Iterator[object]:
    with agent_of() as agent:
        for asked in ({"hot": {"hold_s": -1}}, {"busy": {}}, 3):
            yield ask(f"{agent.url}/config", {"thresholds": asked})[1]["error"]
        for body in ([], b"{"):
            yield ask(f"{agent.url}/config", body)[1]["error"].partition(":")[0]


def answered(*fields: dict[str, Any]) -> Iterator[str]:
    """Why answers of a node are not taken."""
    for field in fields:
        turns = iter([telling(), telling(**{"sequence": 2, **field})])
        with (
            server(lambda asked, turns=turns: next(turns)(asked)) as place,
            Hub([place], timeout_s=15.0) as hub,
        ):
            hub.pull()
            yield hub.pull()[0].reason


STATE = {"cpu busy": 41.6, "load 1 min": 1.26, "memory available": 4.2e9, "pressure io some": 12}
STATUS, LYING = (
    {"at": "", "samples": [{"name": name, "value": value} for name, value in values.items()]}
    for values in (
        {**STATE, "pressure cpu some": 3.0, "pressure memory some": None},
        dict.fromkeys(STATE, -1e140),
    )
)
ALARMS = [{"code": f"a{i}", "sentence": "It is hot.", "since": "now"} for i in range(8)]
NODES = (
    telling(7200.5, node="m1", status=STATUS, age_s=90.0),
    telling(-10.0 * 86_400.0, node="m2", age_s=None, alarms=ALARMS),
    telling(-250.0 * 86_400.0, node="m3", status=LYING, age_s=1e300, alarms=ALARMS[:5]),
    http(b"\x1b[2J\n\a" + b"x" * 500, b"401 Unauthorized"),
)


def watched() -> str:
    """The table of nodes, with their ports as they were given."""
    os.environ["COLUMNS"] = "100"
    with ExitStack() as stack:
        places = [stack.enter_context(server(node)) for node in NODES]
        for _ in range(5):  # on a machine that is busy some may be silent
            result = run("watch", "--once", *places)
            if "silent" not in result.stdout:
                break
    text = result.stdout
    for index, place in enumerate(places):
        text = text.replace(place.rpartition(":")[2], f"1000{index}")
    return text


CAUSES = {
    "names that are not valid": lambda: tried(
        ProbeRegistry().probe, ("",), ("x" * 201,), ("a\nb",), ("\ud800",), (None,), (b"a",)
    ),
    "options of a probe": lambda: tried(
        asked,
        {"name": "", "clock": "sun", "samples": -1},
        {"name": "parse", "clock": "wall"},
        {"name": "parse", "deadline_s": 1.0},
        {"samples": 1.5, "deadline_s": 0, "half_life_s": -1.0},
        {"half_life_s": 1.0},
    ),
    "probes and modules that are misused": misuse,
    "a table of probes": lambda: (table(*K_MEANS), table(*K_MEANS, batch_above=0.4)),
    "dispatch of a kernel": lambda: kernels_with(0.0, 0.2, 1.0),
    "samples, losses and notices of probes": lambda: table(LOSSY, notices=tuple(busy_probes())),
    "deadlines of probes": lambda: table(
        reading("frame", 200, 4.0, deadline_s=0.04, missed=3), reading("free", 5, 1.0)
    ),
    "probes without events": lambda: table(reading("never", 0, 0.0)),
    "a bound of dispatch": lambda: table(*K_MEANS, batch_above=1.0),
    "a kernel that is not valid": lambda: tried(
        lambda **given: Kernel(**{"name": "a", "instances": 1, "dispatch_s": 1.0, **given}),
        {"name": "", "instances": 0, "work_s": math.nan},
        {
            "dispatch_s": estimated(1.0, 0.5, 2.0, confidence=0.9),
            "work_s": estimated(1.0, 0.5, 2.0),
        },
    ),
    "advice on batches": lambda: advise(
        (4.07e-6, 6.95e-6, 2_024_251),
        (1.0, 9.0, 10**6),
        (1e-6, 0.0, 10**6),
        (1e-6, estimated(1e-6, -1e-6, 3e-6), 10**6),
        (8.0, 1.0, 8),
        (estimated(4.0, -1.0, 9.0), 9.0, 10**6),
    ),
    "kernels for no advice": lambda: tried(advise_batching, ([],), ("assign",), (["a"],)),
    "a bound for no advice": lambda: advise_batching([], bound=0.0),
    "a partition": lambda: partition(
        times=dict.fromkeys("abcdef", 0.5), nodes={"one": 1.0, "other": 1e-9}
    ),
    "a partition with long names": lambda: partition(
        times={**{f"kernel of a long name {i}": 1.0 for i in range(3)}, "k" * 90: 3.0},
        nodes={"n" * 90: 5.0, "other": 1.0},
    ),
    "a graph that is not valid": lambda: tried(
        partition,
        *(
            {"times": speeds}
            for speeds in ({}, [1.0], {"a": 0.0}, {"a": -1.0, "b": math.nan, 3: 1.0})
        ),
        *({"nodes": loads} for loads in ({}, {"x": 0.0, "y": math.inf})),
        *(
            {"traffic": traffic}
            for traffic in (None, {"ab": 1.0}, {("a", "z"): 1.0, ("a", "b"): -2.0})
        ),
        {"tolerance": 0.0, "seed": -1},
    ),
    "nodes that are not valid": lambda: tried(
        Hub, ([],), (["a:1", "http://a:1/"],), (["a:b"],), (["http://u:p@a:1"],), ([None],)
    ),
    "options of a hub": lambda: Hub(["a:1"], token="a-token\nof-two-lines", timeout_s=0.0),  # noqa: S106
    "an agent that cannot serve": lambda: tried(
        agent_of,
        *({"port": port} for port in (-1, "80")),
        *({"host": host} for host in ("0.0.0.0", "example.org", None)),
        {"token": "short", "config": "agent.json", "alarms": 3},
    ),
    "settings that an agent refuses": refused_settings,
    "answers that are not taken": lambda: answered(
        {"name": "other"}, {"sequence": 1}, {"age_s": -1.0}, {"node": ""}
    ),
    "nodes that are watched": watched,
    "no node to watch": lambda: (run("watch", "--once", "a:b"), run("watch")),
    "an agent that does not begin": lambda: (
        run("agent", "--host", "0.0.0.0"),
        run("agent", "--token-file", os.devnull),
        run("agent", "--thresholds", "wrong.toml", files={"wrong.toml": "[hot]\nhold_s = -1"}),
    ),
}
