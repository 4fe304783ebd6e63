"""The cost of watching 200 nodes: some hang, and some lie.

    python docs/evidence/nodes.py [--quick]

The agents run in four processes of this machine, each with a status that costs nothing to read: on
200 machines each would pay for its own. A tenth of the addresses take a connection and never
answer; two more pass the questions on to another node, and its answers back. One cycle begins each
second.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from statistics import median

from benchrigor.instrument import Agent, Hub, Probe, ProbeRegistry
from benchrigor.instrument.data import NodeCondition
from benchrigor.machine import StatusReader
from benchrigor.testing import FakeSampler
from shared.running import Run, Script

script = Script(__doc__)
NODES, PROCESSES, HANGING, LYING = 200, 4, 20, 2


def probe_of(url: str) -> str:
    """Return the name of the probe that only the agent at a place has."""
    return f"only at {url}"


def count(probes: list[Probe]) -> None:
    """Let each probe have events in every part that a hub gets."""
    while True:
        for probe in [*probes]:
            probe.stop(probe.start())
        time.sleep(0.1)


def serve(pipe: Connection, agents: int, hanging: int, lying: int) -> None:
    """Run agents, and addresses that hang or lie, until the pipe closes."""
    with contextlib.ExitStack() as stack:
        urls, probes = [], list[Probe]()
        threading.Thread(target=count, args=(probes,), daemon=True).start()
        for _ in range(agents):
            registry = ProbeRegistry()
            values = dict.fromkeys((f"sample {index}" for index in range(60)), 1.5)
            reader = StatusReader(samplers=[FakeSampler(values)])
            agent = stack.enter_context(Agent(registry=registry, reader=reader))
            probes.append(registry.probe(probe_of(agent.url)))
            urls.append(agent.url)
        asyncio.run(pretend(pipe, urls, hanging, lying))


async def pretend(pipe: Connection, urls: list[str], hanging: int, lying: int) -> None:
    """Serve addresses that never answer, and such that pass all on to the first agent."""
    kept = set()  # asyncio keeps no task alive

    async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        kept.add(asyncio.current_task())
        with contextlib.suppress(asyncio.CancelledError):  # at the end
            while await reader.read(4096):
                pass

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while part := await source.read(65_536):
                sink.write(part)
                await sink.drain()
        sink.close()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = int(urls[0].rpartition(":")[2])
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    kinds = [hang] * hanging + [pass_on] * lying
    servers = [await asyncio.start_server(kind, "127.0.0.1", 0) for kind in kinds]
    others = [f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in servers]
    pipe.send([*urls, *others])
    with contextlib.suppress(EOFError):
        await asyncio.to_thread(pipe.recv)


@contextlib.contextmanager
def nodes() -> Iterator[list[str]]:
    """Addresses of agents, of such as hang, and of such as lie."""
    context = multiprocessing.get_context("spawn")
    pipes, processes, honest = [], [], NODES - HANGING - LYING
    for index in range(PROCESSES):
        here, there = context.Pipe()
        agents = honest // PROCESSES + (index < honest % PROCESSES)
        given = (there, agents, HANGING // PROCESSES, LYING if index == 0 else 0)
        processes.append(context.Process(target=serve, args=given))
        processes[-1].start()
        there.close()
        pipes.append(here)
    try:
        yield [url for pipe in pipes for url in pipe.recv()]
    finally:
        for pipe, process in zip(pipes, processes, strict=True):
            pipe.close()
            process.terminate()
            process.join()


@script.section("200 nodes, 20 of which hang and two of which pass on another's answers", seed=1)
def cycles(run: Run) -> None:
    """Pull once a second; print times, and answers that are taken for another's."""
    number = run.runs(30, 5)
    with nodes() as urls, Hub(urls) as hub:
        hub.pull()  # connections are opened
        times, wrong, well = [], 0, []
        began_s, used_s = time.monotonic(), time.process_time()
        for cycle in range(number):
            time.sleep(max(0.0, began_s + cycle - time.monotonic()))
            start_s = time.monotonic()
            views = hub.pull()
            times.append(time.monotonic() - start_s)
            wrong += sum(
                probe_of(view.address) not in view.report.probes for view in views if view.report
            )
            well.append(sum(view.condition is NodeCondition.WELL for view in views))
        share = (time.process_time() - used_s) / (time.monotonic() - began_s)
    verdict = "none" if run.quick else run.bar("greatest cycle", max(times), "<=", 1.0)
    run.say(f"a cycle takes {median(times):.3f} s, at most {max(times):.3f} s, {verdict}")
    run.say(f"well in a cycle: {min(well)} to {max(well)} of {NODES - HANGING - LYING}")
    run.say(f"taken for another: {wrong}, {run.bar('misattributed', wrong, '==', 0)}")
    run.say(f"the hub takes {share:.0%} of a processor")


if __name__ == "__main__":
    raise SystemExit(script.main())
