"""All that a run of pytest measures: kept, compared with a saved suite, written and shown."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from benchrigor.errors import BenchrigorError
from benchrigor.files import write_whole
from benchrigor.layout import Part, page, wrapped
from benchrigor.model import Comparison, RunRecord, Verdict, codec
from benchrigor.model.codec import is_there
from benchrigor.model.comparison import FAILING, Family
from benchrigor.pytest_plugin.marks import settings_of, unmeasured
from benchrigor.report.fact import page_of_facts
from benchrigor.report.tables import facts_of_runs
from benchrigor.storage import Journal
from benchrigor.storage.user_settings import defaults
from benchrigor.units import first_few, many, percent

if TYPE_CHECKING:
    from benchrigor.pytest_plugin.revision import Revision

T = TypeVar("T")

_MARGIN = 0.01
_COARSE = 0.1  # a smallest visible change that hides what people look for
_REPEATED = re.compile(r" #\d+$")  # the name of a second measurement of a test
_OPTION = re.compile(r"--(?=(?:batch|budget|fresh|statistic|target)\b)")  # also of the command line


class Benchmarked:
    """A test's settings for its measurements, with the names of pytest-benchmark.

    ``extra_info`` goes into ``--bench-json``. Members of a ``group`` are compared with the member
    that is its ``baseline``.
    """

    def __init__(self, node: pytest.Function) -> None:
        self._settings, self._ignored = settings_of(node)
        self.name, self.fullname = node.name, node.nodeid
        parameters = getattr(node, "callspec", None)
        self.params: dict[str, Any] | None = dict(parameters.params) if parameters else None
        self.param: str | None = parameters.id if parameters else None
        self.group: str | None = self._settings.pop("group", None)
        self.baseline: bool = self._settings.pop("baseline", False)
        self.margin: float = self._settings.pop("margin", _MARGIN)
        self.extra_info: dict[str, Any] = {}


class Suite:
    """The measurements of all fixtures in a run of pytest, and their use."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        self.is_fresh: bool = config.getoption("bench_fresh")
        self.records: list[tuple[Benchmarked, RunRecord]] = []
        self.compared: list[tuple[Benchmarked, str, Comparison]] = []
        self.unmeasured: list[str] = []  # since tests ran in parallel
        self.ignored: set[str] = set()  # keywords of markers
        self.inside: dict[str, str] = {}  # why what should be measured afresh was not, by name
        self._config = config
        self._family: Family | None = None  # against the saved suite
        self._verdicts: set[Verdict] = set()  # against it; undecided for what cannot be compared
        self._missing: dict[str, list[str]] = {}  # tests that only one side has
        self._failures: list[str] = []
        self._begins = False  # whether no suite is saved yet
        path = saved_at(config, "bench_save") or config.getoption("bench_store")
        path = path or defaults(self.root).get("store")
        self.store = None if path is None else Journal(path)
        self._is_parallel = hasattr(config, "workerinput")
        self.revision: Revision | None = None
        if config.getoption("bench_against") is not None:
            from benchrigor.pytest_plugin.revision import Revision  # noqa: PLC0415  # slow

            self.revision = Revision(config)
        self.revised: list[tuple[Benchmarked, str, Comparison]] = []  # from the revision to here

    @property
    def measures(self) -> bool:
        """Whether anything is measured: workers of pytest-xdist would disturb each other."""
        return not (self._is_parallel or self._config.getoption("bench_skip"))

    def skip(self, name: str) -> None:
        """Note that something was called once, and not measured."""
        if self._is_parallel and not self._config.getoption("bench_skip"):
            self.unmeasured.append(name)

    def keep_inside(self, name: str, why: str) -> None:
        """Note why something is measured in this process instead of a fresh one."""
        if self.is_fresh:
            self.inside[name] = why

    def finish(self, collected: Sequence[str] = ()) -> bool:
        """Compare with the saved suite and write the file; return whether that fails the run.

        ``collected`` are the tests of the run, with or without measurements.
        """
        path = saved_at(self._config, "bench_compare")
        if path is not None and self.records:
            self._compare(Journal(path), collected)
        if self.revision is not None:
            self._judge(self.revision)
        if target := self._config.getoption("bench_json"):
            write_whole(Path(target), json.dumps(self._plain(), allow_nan=False, default=str))
        fail_on = self._config.getoption("bench_fail_on")
        fail_on = fail_on or ("never" if self.revision is None else "worse")
        failing = FAILING[fail_on] & self._verdicts
        if failing:
            why = "slower" if Verdict.WORSE in failing else "undecided, or not compared"
            self._failures.append(f"The run fails: some are {why} (--bench-fail-on {fail_on}).")
        return bool(failing)

    def idle(self) -> str:
        """Return why nothing was compared; empty if something was, or a suite is saved first."""
        if self._family is not None or self._begins:
            return ""
        if self.unmeasured:
            return "tests that run in parallel are not measured: add -n 0"
        if self.records or (self.revision and self.revision.left_out):
            return "no benchmark has a counterpart to compare it with"
        return "nothing was measured"

    def lines(self) -> list[str]:
        """Return the report for the end of the run."""
        lines = list[Part]()
        if self.records:
            grouped = [
                (group, replace(record, name=label))
                for group, members in self._by_group().items()
                for label, (_, record) in members.items()
            ]
            groups, shown = zip(*grouped, strict=True)
            lines.append(
                page_of_facts(facts_of_runs(shown, groups=groups, worded=_with_pytest_options))
            )
        for name, comparison in self._comparisons().items():
            lines += wrapped(f"{name}: {_with_pytest_options(str(comparison))}", hanging=2)
        for group, family in self._groups().items():
            lines += ["", f"group {group}", str(family)]
        if self._family is not None:
            other = self._config.getoption("bench_against" if self.revision else "bench_compare")
            lines += ["", f"against {other}", str(self._family)]
            lines += wrapped(_count_verdicts(self._family))
        for note in (*self._failures, *self._explain_changes(), *self._explain_gaps()):
            lines += wrapped(note, hanging=2)
        return page(lines).at(shutil.get_terminal_size().columns - 1).splitlines() if lines else []

    def _label_records(self) -> dict[str, tuple[Benchmarked, RunRecord]]:
        """Return records by unique names: names of tests, with their files if needed."""
        return _by_label([(bench, record.name, (bench, record)) for bench, record in self.records])

    def _by_group(self) -> dict[str, dict[str, tuple[Benchmarked, RunRecord]]]:
        """Return records by group and label; the group without a name has the others."""
        groups: dict[str, dict[str, tuple[Benchmarked, RunRecord]]] = {}
        for label, (bench, record) in self._label_records().items():
            groups.setdefault(bench.group or "", {})[label] = (bench, record)
        return groups

    def _comparisons(self) -> dict[str, Comparison]:
        return _by_label(self.compared)

    def _compare(self, saved: Journal, collected: Sequence[str]) -> None:
        """Compare all records with the newest saved ones of the same tests."""
        pairs, margins, new = {}, {}, []
        known = {record.run_id for _, record in self.records}
        listed = [run for run in saved.runs() if run["run_id"] not in known]
        self._begins = not listed and self.store is not None and saved.path == self.store.path
        for label, (bench, record) in self._label_records().items():
            runs = (saved.load(run["run_id"]) for run in listed if run["name"] == record.name)
            old = next((run for run in runs if run.subject.get("test") == bench.fullname), None)
            if old is None:
                new.append(label)
            else:
                pairs[label], margins[label] = (old, record), bench.margin
        self._missing = {
            "saved": new,
            "measured": self._tests_without_record(saved, listed, collected),
        }
        if any(self._missing.values()):
            self._verdicts.add(Verdict.UNDECIDED)
        try:
            if pairs:
                self._family = _compare_all(pairs, margins=margins, store=saved)
                self._verdicts |= {*self._family.verdicts.values()}
        except BenchrigorError as error:
            self._failures.append(f"Not compared: {error}")
            self._verdicts.add(Verdict.UNDECIDED)

    def _judge(self, revision: Revision) -> None:
        """Judge the comparisons with the revision as one family."""
        if self.revised:
            from benchrigor.stats.comparison.two_sample import family_of  # noqa: PLC0415  # slow

            self._family = family_of(_by_label(self.revised))
            self._verdicts |= {*self._family.verdicts.values()}
        if revision.left_out:
            self._verdicts.add(Verdict.UNDECIDED)

    def _tests_without_record(
        self, saved: Journal, listed: Sequence[Mapping[str, Any]], collected: Sequence[str]
    ) -> list[str]:
        """Return tests of the saved suite that this run should have measured, but did not.

        The saved suite is the newest runs, up to the first that repeats. If names or marks selected
        the tests, no test counts as missing; if files did, only tests of these files or of deleted
        files do.
        """
        chosen = (self._config.option.keyword, self._config.option.markexpr)
        if any(chosen) or any("::" in argument for argument in self._config.args):
            return []
        measured = {bench.fullname for bench, _ in self.records}
        files = {_file_of(test) for test in collected}
        missing, before = list[str](), set[tuple[str, str]]()
        for run in listed:
            test = str(saved.load(run["run_id"]).subject.get("test", ""))
            if (test, run["name"]) in before:
                break
            before.add((test, run["name"]))
            is_here = _file_of(test) in files or not (self.root / _file_of(test)).exists()
            if test and is_here and test not in {*measured, *missing}:
                missing.append(test)
        return missing[::-1]

    def _groups(self) -> dict[str, Family]:
        """Compare the members of all groups with their baselines."""
        families = {}
        for group, members in self._by_group().items():
            baseline = next((record for bench, record in members.values() if bench.baseline), None)
            pairs = {
                label: (baseline, record)
                for label, (_, record) in members.items()
                if group and baseline is not None and record is not baseline
            }
            if baseline is None or not pairs:
                continue
            margins = {label: members[label][0].margin for label in pairs}
            try:
                families[f"{group}: change from {baseline.name}"] = _compare_all(
                    pairs, margins=margins
                )
            except BenchrigorError as error:
                self._failures.append(f"group {group} is not compared: {error}")
        return families

    def _explain_gaps(self) -> Iterator[str]:
        """Explain missing, saved, ignored and refused benchmarks."""
        family = {} if self._family is None else self._family.comparisons
        if any(map(_REPEATED.search, (*self._label_records(), *self._comparisons(), *family))):
            yield "#2: the second measurement of a test"
        for side, tests in self._missing.items():
            if tests:
                yield f"Not among those {side}: {first_few(tests, 5)}."
        name, path = self._config.getoption("bench_save"), saved_at(self._config, "bench_save")
        if path is not None and self.records:
            if path.is_relative_to(self.root):
                path = path.relative_to(self.root)
            yield (
                f"Saved {many(len(self.records), 'benchmark')} in {path}. Compare with them by "
                f"--bench-compare {name}."
            )
        if self.ignored:
            yield (
                f"Of the markers {', '.join(sorted(self.ignored))} are ignored: calls and readings "
                "follow from the clock and the interval, and warm-up is found."
            )
        if self.inside:
            why = next(iter(self.inside.values()))
            yield (
                f"Measured in this process: {first_few([*self.inside], 5)}, since a fresh "
                f"interpreter cannot: {why}."
            )
        if self.unmeasured:
            was = "was" if len(self.unmeasured) == 1 else "were"
            yield (
                f"{many(len(self.unmeasured), 'benchmark')} {was} run once and not measured: tests "
                "that run in parallel disturb each other. To measure, run without parallel "
                "workers: -n 0."
            )

    def _explain_changes(self) -> Iterator[str]:
        """List the tests that show only large changes, and those not compared with the revision."""
        visible = {} if self._family is None else self._family.visible
        hidden = [name for name, least in visible.items() if least is None or least > _COARSE]
        if hidden:
            cure = "raise --bench-budget"
            if self.revision is None:
                cure = "measure both versions in turn with --bench-against REVISION"
            least = max(visible[name] or math.inf for name in hidden)
            unseen = f"Changes below {percent(least)}" if math.isfinite(least) else "Large changes"
            yield f"{unseen} may go unseen in {first_few(hidden, 5)}: {cure}."
        if self.revision is not None:
            for name, why in self.revision.left_out.items():
                yield f"{name} is not compared with {self.revision.name}: {why}."

    def _plain(self) -> Mapping[str, Any]:
        """Return all that was measured, for JSON."""
        benchmarks = [
            {
                "name": record.name,
                "fullname": bench.fullname,
                "group": bench.group,
                "baseline": bench.baseline,
                "param": bench.param,
                "extra_info": bench.extra_info,
                "record": codec.encode(record),
            }
            for bench, record in self.records
        ]
        return {
            **codec.versions(),
            "benchmarks": benchmarks,
            "comparisons": codec.encode(self._comparisons()),
            "against": codec.encode(self._family),
            "missing": self._missing,
            "revision": self.revision and self.revision.name,
            "not_compared": self.revision and self.revision.left_out,
        }


def _with_pytest_options(sentence: str) -> str:
    """Return a sentence with the options of the command line as pytest has them."""
    return _OPTION.sub("--bench-", sentence)


def _count_verdicts(family: Family) -> str:
    """Say how many became slower, how many faster, and in how many no change was seen."""
    verdicts = [*family.verdicts.values()]
    slower, faster = (verdicts.count(verdict) for verdict in (Verdict.WORSE, Verdict.BETTER))
    return (
        f"{many(len(verdicts), 'benchmark')}: {slower} slower, {faster} faster, "
        f"{len(verdicts) - slower - faster} without a visible change"
    )


def _by_label(measured: Sequence[tuple[Benchmarked, str, T]]) -> dict[str, T]:
    """Return results by unique names: names of tests, with their files if needed."""
    names = [name for _, name, _ in measured]
    return {
        f"{bench.fullname}{name.removeprefix(bench.name)}" if names.count(name) > 1 else name: made
        for bench, name, made in measured
    }


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def saved_at(config: pytest.Config, option: str) -> Path | None:
    """Return the file of a saved suite that an option names; None if it is not given."""
    name = config.getoption(option)
    if name is None:
        return None
    path = Path(name)
    is_path = path.suffix == ".sqlite" or len(path.parts) > 1
    return path if is_path else config.rootpath / ".benchrigor" / f"{name}.sqlite"


def wrong_files(config: pytest.Config) -> Iterator[str]:
    """Yield problems with suites to keep or compare with: two places, none, or no folder."""
    fail_on, compared = config.getoption("bench_fail_on"), config.getoption("bench_compare")
    if fail_on not in {None, "never"}:
        yield from unmeasured(config, "compare", ["skip"]) if compared else ()
        typed = any(
            str(word).startswith("--bench-fail-on") for word in config.invocation_params.args
        )
        if typed and not (compared or config.getoption("bench_against")):
            yield "--bench-fail-on goes with --bench-against or --bench-compare"
    saved, path = saved_at(config, "bench_save"), saved_at(config, "bench_compare")
    if saved and config.getoption("bench_store"):
        yield "--bench-save and --bench-store both say where: give one of them"
    if path is not None and not is_there(path, Path.is_file) and path != saved:
        cure = f"run with --bench-save {compared} first"
        yield f"--bench-compare: there is no {path}, expected a suite that was saved: {cure}"
    target = config.getoption("bench_json")
    if target is not None and not is_there(Path(target).absolute().parent, Path.is_dir):
        yield f"--bench-json: no folder {Path(target).absolute().parent}"


def _compare_all(*words: Any, **options: Any) -> Family:
    """Compare runs as one family; loaded when used, since a run of pytest without pays for it."""
    from benchrigor.session.pairs.run_comparison import compare_suite  # noqa: PLC0415

    return compare_suite(*words, **options)
