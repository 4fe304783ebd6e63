"""A suite as a command: one run in one side is one process, and gives each benchmark a number."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, STDOUT
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput
from benchrigor.formats.recognition import TOOLS, Result, results_in
from benchrigor.gate.sides import Side, is_pytest
from benchrigor.model import Metric, RunRecord
from benchrigor.model.codec import is_there
from benchrigor.model.machine import reference_s
from benchrigor.model.metric import A_DURATION
from benchrigor.model.text import no_number
from benchrigor.safe_text import escaped
from benchrigor.session.stored_runs import paced_by as conditions_of_pace
from benchrigor.storage.user_settings import defaults
from benchrigor.units import Quantity
from benchrigor.workloads.processes.command_line import CommandLine
from benchrigor.workloads.processes.running import shown
from benchrigor.workloads.worktrees import marked_folder

_FILTER = "{filter}"
_ALL = "."  # a regular expression that every name fits
_HELP_S = 60.0
_FEWEST = 5  # readings of a call, of pytest-benchmark
_PLUGIN = "benchrigor_gate_side"
_PASSED, _FAILED, _NONE = 0, 1, 5  # exit codes of pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one run of the command gave in one side: a number for each benchmark, and its metric.

    ``references`` are mean times of the reference, where it was timed in between, ``paced_by`` the
    machines and interpreters that did. ``failed`` are tests, ``durations`` their seconds.
    """

    elapsed_s: float
    values: Mapping[str, float]
    metrics: Mapping[str, Metric]
    references: Mapping[str, float] = field(default_factory=dict)
    paced_by: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)  # why a benchmark has no number
    durations: Mapping[str, float] = field(default_factory=dict)

    def spent_s(self, name: str) -> float:
        """Return the time of a benchmark; an equal part of the whole if the tool does not say."""
        return self.durations.get(test_of(name), self.elapsed_s / max(len(self.values), 1))


def test_of(name: str) -> str:
    """Return the test that a measurement is of, if it is not its first."""
    return re.sub(r" #\d+$", "", name)


class Suite:
    """A command with results in a file, or in its output.

    Parameters
    ----------
    words
        The command. ``{filter}`` in it is replaced by a regular expression for names.
    results
        The file or folder of results in the side; None for the output of the command.
    """

    def __init__(self, words: Sequence[str], *, results: str | None = None) -> None:
        self._results = results
        self.can_choose = any(_FILTER in word for word in words)
        if results is not None and (Path(results).is_absolute() or ".." in Path(results).parts):
            raise InvalidInput(
                f"--results is {results}, expected a path in the folder of each side"
            )

    def run(
        self,
        side: Side,
        names: Collection[str] | None,
        *,
        share_s: float,  # noqa: ARG002  # calls of other tools take the time that they take
        limit_s: float,
    ) -> Pass:
        """Run the command once.

        WorkloadFailed when it fails, takes longer than ``limit_s``, or gives no results.
        """
        words = [word.replace(_FILTER, self._chosen(names)) for word in side.words]
        place = None if self._results is None else side.folder / self._results
        if place is not None and is_there(place):  # each run removes its own
            raise InvalidInput(
                f"{place} is there already, expected no results before the command runs: remove "
                "it, or name another file"
            )
        try:
            elapsed_s, text = run_in(side, words, limit_s=limit_s, wanted=place)
            found = _read(place, place.name) if place else _printed(text, shown(words))
        finally:
            if place is not None:
                remove(place)
        return Pass(elapsed_s=elapsed_s, **figures_of(found))

    @staticmethod
    def _chosen(names: Collection[str] | None) -> str:
        """Return an expression for names; tests of Go are chosen by the part before a slash."""
        if names is None:
            return _ALL
        if all(name.startswith("Benchmark") for name in names):
            names = {re.sub(r"-\d+$", "", name.partition("/")[0]) for name in names}
        return f"^({'|'.join(re.escape(name) for name in sorted(names))})$"


class PytestSuite:
    """A suite of pytest with the fixtures ``bench`` or ``benchmark``; each process gets a share."""

    can_choose = True

    def __init__(self, folder: Path) -> None:
        self._known: dict[tuple[str, ...], str] = {}  # by command, the help of its pytest
        self._folder = folder
        source = Path(__file__).with_name("side_plugin.py")
        shutil.copyfile(source, folder / f"{_PLUGIN}.py")

    def run(
        self, side: Side, names: Collection[str] | None, *, share_s: float, limit_s: float
    ) -> Pass:
        """Run the tests once, or those that are named; ``share_s`` is the time of each call."""
        folder = self._folder
        with TemporaryDirectory(dir=folder) as place:
            files = ("asked", "report", "bench", "benchmark", "cache")
            asked, told, own, rival, cache = (Path(place) / name for name in files)
            tests = None if names is None else [*map(test_of, names)]
            asked.write_text(json.dumps({"tests": tests, "told": str(told)}))
            words = [*side.words, *self._options(side, share_s, own, rival, cache)]
            path = filter(None, [str(folder), side.env.get("PYTHONPATH")])
            env = {"BENCHRIGOR_GATE": str(asked), "PYTHONPATH": os.pathsep.join(path)}
            accepted = (_PASSED, _FAILED, _NONE)
            given: Any = {"limit_s": limit_s, "env": env, "accepted": accepted, "wanted": told}
            given["stdout"] = STDOUT  # where pytest says what it cannot import
            elapsed_s, _ = run_in(side, words, **given)
            seen = json.loads(told.read_text())
            side.check_imports(seen["modules"])
            # Some versions of pytest-benchmark leave an empty file when no test used its fixture.
            filled = [file for file in (own, rival) if file.exists() and file.stat().st_size]
            found = [each for file in filled for each in _read(file, file.name)]
            return Pass(
                elapsed_s=elapsed_s,
                **figures_of(found),
                failed=seen["failed"],
                durations=seen["durations"],
            )

    def _options(
        self, side: Side, share_s: float, own: Path, rival: Path, cache: Path
    ) -> list[str]:
        """Return the options that this pytest knows of those that a gate needs.

        Tests run one by one, none by how it ended before, no coverage is taken, and each call gets
        its share of the time.
        """
        if side.words not in self._known:
            self._known[side.words] = _help_of(side)
        known = self._known[side.words]
        if not {"--bench-json", "--benchmark-json"} & {*known.split()}:
            raise InvalidInput(
                f"{shown(side.words)} has neither benchrigor nor pytest-benchmark, expected one of "
                "them where the tests run: pip install benchrigor"
            )
        wanted = {
            "cache_dir": ["-o", f"cache_dir={cache}"],
            "--numprocesses": ["-n", "0"],
            "--no-cov": ["--no-cov"],
            "--bench-json": [f"--bench-json={own}", f"--bench-budget={share_s:g}"],
            "--benchmark-json": [
                f"--benchmark-json={rival}",
                "--benchmark-enable",
                f"--benchmark-max-time={share_s:g}",
                f"--benchmark-min-rounds={_FEWEST}",
            ],
        }
        options = [word for flag, words in wanted.items() if flag in known for word in words]
        if "--bench-store" in known and defaults(side.folder).get("store"):
            options.append(f"--bench-store={own}.sqlite")  # not in that of the project
        if "--bench-json" in known and "--benchmark-json" not in known:
            options.append("--bench-take-benchmark")
        return ["-p", _PLUGIN, "--maxfail=0", "-q", *options]


def _help_of(side: Side) -> str:
    """Return the help of a side's pytest, which names the options of its plugins."""
    return run_in(side, [*side.words, "--help"], limit_s=_HELP_S)[1].replace("=", " ")


def run_in(
    side: Side,
    words: Sequence[str],
    *,
    limit_s: float,
    env: Mapping[str, str] | None = None,
    accepted: Collection[int] = (0,),
    wanted: Path | None = None,
    stdout: int = PIPE,
) -> tuple[float, str]:
    """Run a command in a side to its end, and return its seconds, and its output.

    WorkloadFailed if it fails, or ends without the results that are ``wanted``.
    """
    env = {**side.env, **(env or {})}
    line = CommandLine(words, cwd=side.folder, env=env, accept_exit=accepted)
    name = f"{shown(side.words)} in the {side.role} side, {side.label},"
    given: Any = {"name": name, "clock": WallClock(), "timeout_s": limit_s}
    with line.start(words, stdout=stdout, **given) as running:
        ended = running.wait()
        failure = f"{ended.failure}: does it hang?" if ended.limit_s else ended.failure
        if failure is None and wanted is not None and not wanted.exists():
            failure = f"ended without {wanted.name}, expected results there"
        if failure:
            raise ended.error(failure, name=name)
        text = running.printed.read().decode(errors="replace") if stdout == PIPE else ""
    return ended.elapsed_ns / 1e9, text


def figures_of(found: Sequence[Result]) -> dict[str, Any]:
    """Return what a process says of each benchmark, as fields of a `Pass`.

    A record of benchrigor has an estimate, of its stable phase; other tools give readings.
    """
    values, references = dict[str, float](), dict[str, float]()
    metrics, paced_by, without = dict[str, Metric](), dict[str, str](), dict[str, str]()
    for each in found:
        name = escaped(each.name)
        metric, value = _figure(each)
        if metric is None or value is None:
            without[name] = no_number(each.notices)
            continue
        values[name], metrics[name] = value, metric
        pace = each.analyses[0].pace if isinstance(each, RunRecord) else None
        if pace is not None:
            references[name] = reference_s(pace.full_s) / pace.mean
            paced_by[name] = str(conditions_of_pace(each.provenance, pace))
    return {
        "values": values,
        "metrics": metrics,
        "references": references,
        "paced_by": paced_by,
        "without": without,
    }


def _figure(found: Result) -> tuple[Metric | None, float | None]:
    if isinstance(found, RunRecord):
        analysis = found.analyses[0] if found.analyses else None
        if analysis is None:
            return None, None
        taken = found.readings()
        mean = float(taken.mean()) if taken.size else None
        return analysis.metric, analysis.estimate.value if analysis.estimate else mean
    metric = found.metrics[0]
    readings = [
        values
        for each in found.rounds
        for values in (each.unit_readings.get(metric.name), each.readings.get(metric.name))
        if values is not None
    ]
    taken = np.concatenate([np.atleast_1d(values) for values in readings] or [np.empty(0)])
    if metric.kind is Quantity.TIME and taken.size and taken.min() < 0.0:
        raise InvalidInput(f"{found.name} took {taken.min()} {metric.unit}, expected {A_DURATION}")
    return metric, float(taken.mean()) if taken.size else None


def _read(place: Path, name: str) -> list[Result]:
    """Return the benchmarks of a file or folder of results."""
    try:
        found = results_in(place)
    except InvalidInput as error:
        raise InvalidInput(str(error).replace(str(place), name)) from None
    if found is None:
        raise InvalidInput(
            f"{name} holds no results of a known tool ({', '.join(TOOLS)}): name the file that the "
            "command writes (--results)"
        )
    return found


def _printed(text: str, command: str) -> list[Result]:
    """Return the benchmarks that a command printed."""
    with TemporaryDirectory(prefix="benchrigor-gate-") as place:
        file = Path(place) / "output"
        file.write_text(text)
        return _read(file, f"what {command} prints")


def remove(place: Path) -> None:
    """Remove results that a run wrote."""
    if place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


@contextmanager
def suite_of(words: Sequence[str], results: str | None) -> Iterator[Suite | PytestSuite]:
    """Give what runs a command: a suite of pytest unless a file of results is named."""
    if results is not None or not is_pytest(words):
        yield Suite(words, results=results)
        return
    with marked_folder() as folder:
        yield PytestSuite(folder)
