"""What it takes to watch 200 nodes, some of which hang and some of which lie.

    python docs/evidence/nodes.py            30 cycles
    python docs/evidence/nodes.py --quick    5 cycles, and no bar of time

The agents run in four processes of this machine, each with a status that costs nothing to read: on
200 machines each would pay for its own. A tenth of the addresses take a connection and never
answer; two more pass the questions on to another node, and its answers back. One cycle begins each
second. A hub with httpx in place of aiohttp asks the same agents the same, where it is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from benchrigor.instrument import Agent, Hub, Probe, ProbeRegistry
from benchrigor.instrument.data.node import NodeCondition, NodeView
from benchrigor.machine import StatusReader
from benchrigor.testing import FakeSampler

NODES, PROCESSES, HANGING, LYING = 200, 4, 20, 2
OUTPUT = Path(__file__).parent / "results" / "nodes.txt"
LINES: list[str] = []


def say(line: str) -> None:
    """Print a line, and keep it."""
    LINES.append(line)
    print(line, flush=True)


def probe_of(url: str) -> str:
    """Return the name of the probe that only the agent at a place has."""
    return f"only at {url}"


def count(probes: list[Probe]) -> None:
    """Let each probe have events in every part that a hub is told."""
    while True:
        for each in [*probes]:
            each.stop(each.start())
        time.sleep(0.1)


def serve(pipe: Connection, agents: int, *, hanging: int, lying: int) -> None:
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
        target = int(urls[0].rpartition(":")[2])
        asyncio.run(_pretend(pipe, urls, hanging, lying, target))


async def _pretend(
    pipe: Connection, urls: list[str], hanging: int, lying: int, target: int
) -> None:
    kept = set()  # asyncio keeps no task alive

    async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        kept.add(asyncio.current_task())
        with contextlib.suppress(asyncio.CancelledError):  # at the end
            while await reader.read(4096):
                pass

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)

        async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError):
                while part := await source.read(65_536):
                    sink.write(part)
                    await sink.drain()
            sink.close()

        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    servers = [
        await asyncio.start_server(each, "127.0.0.1", 0)
        for each in [hang] * hanging + [pass_on] * lying
    ]
    places = [f"http://127.0.0.1:{each.sockets[0].getsockname()[1]}" for each in servers]
    pipe.send((urls, places[:hanging], places[hanging:]))
    with contextlib.suppress(EOFError):
        await asyncio.to_thread(pipe.recv)


@contextlib.contextmanager
def nodes() -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Addresses of agents, of those that hang, and of those that lie."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    honest = NODES - HANGING - LYING
    for index in range(PROCESSES):
        here, there = context.Pipe()
        count = honest // PROCESSES + (index < honest % PROCESSES)
        ends = {"hanging": HANGING // PROCESSES, "lying": LYING if index == 0 else 0}
        process = context.Process(target=serve, args=(there, count), kwargs=ends)
        process.start()
        there.close()
        pipes.append(here)
        processes.append(process)
    try:
        found = [each.recv() for each in pipes]
        urls, hang, lie = ([url for each in found for url in each[i]] for i in range(3))
        yield urls, hang, lie
    finally:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.terminate()
            process.join()


def misattributed(views: tuple[NodeView, ...]) -> int:
    """Count answers that are taken as those of a node whose probe they do not have."""
    return sum(probe_of(each.address) not in each.report.probes for each in views if each.report)


def watched(cycles: int) -> bool:
    """Pull once a second; return whether all bars are met."""
    with nodes() as (urls, hang, lie), Hub([*urls, *hang, *lie]) as hub:
        hub.pull()  # connections are opened
        times, wrong, well = [], 0, []
        began_s, used_s = time.monotonic(), time.process_time()
        for cycle in range(cycles):
            time.sleep(max(0.0, began_s + cycle - time.monotonic()))
            start_s = time.monotonic()
            views = hub.pull()
            times.append(time.monotonic() - start_s)
            wrong += misattributed(views)
            well.append(sum(each.condition is NodeCondition.WELL for each in views))
        share = (time.process_time() - used_s) / (time.monotonic() - began_s)
        silent = sum(each.condition is NodeCondition.SILENT for each in views)
        twice = sum(each.condition is NodeCondition.TWICE for each in views)
        offsets = [each.offset_error_s for each in views if each.offset_error_s is not None]
        say(f"{len(urls)} agents, {len(hang)} addresses that hang, {len(lie)} that lie")
        say(f"cycles {cycles}: median {median(times):.3f} s, greatest {max(times):.3f} s (bar 1 s)")
        say(f"answers in a cycle: {min(well)} to {max(well)} of {len(urls)}")
        say(f"taken for another: {wrong} of {cycles * NODES} (bar 0)")
        say(f"at the end silent {silent}, the same node twice {twice}")
        say(f"the hub takes {share:.0%} of a core; clocks are known to {median(offsets):.1e} s")
        with_httpx(urls, cycles)
    return max(times) < 1.0 and wrong == 0


def with_httpx(urls: list[str], cycles: int) -> None:
    """Ask the agents at once, with httpx and with aiohttp."""
    try:
        import aiohttp  # noqa: PLC0415  # of an extra
        import httpx  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415  # of none
    except ImportError:
        say("httpx is not installed: not compared")
        return

    async def ask_httpx() -> list[float]:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        async with httpx.AsyncClient(limits=limits, timeout=30.0) as client:

            async def ask(url: str) -> None:
                (await client.get(url + "/report")).raise_for_status()

            return await _cycles(ask, urls, cycles)

    async def ask_aiohttp() -> list[float]:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def ask(url: str) -> None:
                async with session.get(url + "/report") as answer:
                    await answer.read()

            return await _cycles(ask, urls, cycles)

    took = {"aiohttp": asyncio.run(ask_aiohttp()), "httpx": asyncio.run(ask_httpx())}
    for name, times in took.items():
        say(f"{name}: {len(urls)} questions at once take {median(times):.3f} s of the processor")


async def _cycles(
    ask: Callable[[str], Awaitable[None]], urls: list[str], cycles: int
) -> list[float]:
    times = []
    for _ in range(cycles + 1):
        used_s = time.process_time()
        await asyncio.gather(*(ask(each) for each in urls))
        times.append(time.process_time() - used_s)
        await asyncio.sleep(0.5)
    return times[1:]  # the first opens connections


def main() -> None:
    """Measure, and keep what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    say(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start")
    met = watched(5 if quick else 30)
    say("all bars met" if met else "MISSED")
    if not quick:
        OUTPUT.write_text("\n".join(LINES) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
