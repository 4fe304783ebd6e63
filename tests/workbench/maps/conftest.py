"""Maps from files in a folder of their own, and what stands there in place of hosts and servers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchrigor import LoadResult, LoadTrial
from benchrigor.errors import WorkloadFailed
from benchrigor.storage import Journal
from benchrigor.testing import FakeExecutor, SimulatedServer
from benchrigor.workbench.on_host import Job, Outcome

ANSWERS = """
import os, time

def rate(threads):
    with open("calls", "a") as calls:
        calls.write(f"{threads} {os.getpid()}\\n")
    if threads == 4 and os.path.exists("broken"):
        raise RuntimeError("no 4")
    if threads == 4 and os.path.exists("interrupted"):
        os.remove("interrupted")
        raise KeyboardInterrupt
    return 100.0 * threads, 99.0 * threads, 101.0 * threads

def slowly(threads):
    time.sleep(0.05)
    return rate(threads)
"""


class MapFolder:
    """The current folder, with a function that is mapped, and the runs that maps store there."""

    def __init__(self, path: Path, cli: Callable[..., Any]) -> None:
        self.path, self._cli = path, cli
        self.journal = Journal(path / "runs.sqlite")
        (path / "answers.py").write_text(ANSWERS)

    def write(self, text: str) -> str:
        """Write the file of a map; return its name."""
        (self.path / "map.toml").write_text(text)
        return "map.toml"

    def map(self, text: str, *words: object) -> Any:
        """Measure the map of a file; return what the command line does."""
        return self._cli("map", self.write(text), *words)

    def explained(self, run_id: str = "") -> dict[str, Any]:
        """Return all that is known of a stored map or choice."""
        found: dict[str, Any] = json.loads(
            self._cli("explain", *filter(None, [run_id]), "--json").stdout
        )
        return found

    @property
    def whole(self) -> dict[str, Any]:
        """The stored run of the map, or of the choice after it: not of a sample."""
        return next(each for each in self.journal.runs() if "of map" not in each["name"])

    def touch(self, name: str) -> None:
        """Let the function do something else."""
        (self.path / name).touch()

    def lines(self, name: str = "calls") -> list[str]:
        """Return the first words of the lines of a file."""
        path = self.path / name
        return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def folder(cli: Any, store: Path, monkeypatch: pytest.MonkeyPatch) -> MapFolder:
    monkeypatch.delitem(sys.modules, "answers", raising=False)
    return MapFolder(store.parent, cli)


class Offering:
    """Offers the loads of searches for the peaks of a map: by thread a server serves 200 a second.

    ``ends`` has what happens at the end of the search for a peak, by its number.
    """

    def __init__(self) -> None:
        self.loads: list[tuple[str, float]] = []
        self.ends: dict[int, Callable[[], None]] = {}
        self.senders: Any = None
        self.answer: Callable[[LoadTrial], LoadResult] | None = None
        self.most = 9_999.0
        self._closed = 0

    def __call__(self, described: Any, _limits: object, *, senders: Any, **_: object) -> Any:
        self.senders = senders
        words = described.get("words") or described["requests"][0]["url"].split("/")
        return OfferedTo(words[-1], self)

    def check(self, threads: str) -> None:
        if threads == "0":
            raise WorkloadFailed("nobody listens")

    def count_closed(self) -> None:
        self._closed += 1
        self.ends.pop(self._closed, lambda: None)()


class OfferedTo:
    """Offers the loads of one search: those of several hosts run at the same time."""

    def __init__(self, threads: str, told: Offering) -> None:
        self._threads, self._told = threads, told
        self._server = SimulatedServer(200.0 * float(threads))

    def check(self) -> None:
        self._told.check(self._threads)

    def offer(self, trial: LoadTrial) -> LoadResult:
        told = self._told
        told.loads.append((self._threads, trial.load))
        if told.most < len(told.loads):
            told.most = 9_999.0
            raise KeyboardInterrupt
        return (told.answer or self._server.offer)(trial)

    def close(self) -> None:
        self._told.count_closed()


@pytest.fixture
def offering(monkeypatch: pytest.MonkeyPatch) -> Offering:
    """Offer loads to simulated servers."""
    found = Offering()
    monkeypatch.setattr("benchrigor.workbench.peak_run.generator_of", found)
    return found


class Hosts(list[FakeExecutor]):
    """What runs jobs, and what is called with each job."""

    instead: Callable[[Job], Outcome | None] = staticmethod(lambda _: None)


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    """Hosts that are threads of this process, as often as some are asked for; the first ones first.

    ``instead`` is called with each job.
    """
    made = Hosts()

    def executor_for(table: Any) -> FakeExecutor:
        made.append(FakeExecutor(table.names, instead=made.instead))
        return made[-1]

    monkeypatch.setattr("benchrigor.workbench.maps.map_run.executor_for", executor_for)
    return made
