"""The pytest fixture ``bench``: measures functions in tests that use it, and only there.

pytest loads an installed plugin in every run, so it imports only pytest until a test asks for the
fixture.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.lazy_names import lazy_names
from benchrigor.settings import SETTINGS, settings_in, typed_name

if TYPE_CHECKING:
    from benchrigor.pytest_plugin.fixture import Bench as Bench
    from benchrigor.pytest_plugin.suite import Suite

__getattr__, _ = lazy_names(__name__, {"fixture": "Bench"})

_SUITE = pytest.StashKey["Suite"]()
_IGNORED = pytest.StashKey[list[str]]()  # options of pytest-benchmark
_RAN = pytest.StashKey[bool]()
_REASON = pytest.StashKey[str]()  # why a run fails that compared nothing
_SHIPPED = "benchrigor_unmeasured"
_RIVAL = "benchmark"  # the name of pytest-benchmark's plugin, fixture and marker
_FLAGS = ("autosave", "disable", "disable-gc", "enable", "only", "quiet", "save-data", "skip")
_HINT = (
    "pytest-benchmark's fixture: it is not here, and --bench-take-benchmark has benchrigor serve it"
)


def _add_setting(name: str, add: Callable[..., None]) -> None:
    """Add the option of a setting."""
    row = SETTINGS[name]

    def read(text: str) -> Any:
        try:
            value = row.kind.read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if row.kind.fits is not None and not row.kind.fits(value):
            raise argparse.ArgumentTypeError(f"{text!r} is given, expected {row.kind.expected}")
        return value

    given = {"choices": row.kind.choices} if row.kind.choices else {"metavar": row.kind.metavar}
    text = f"{row.help} (default: {row.usual})".replace("%", "%%")
    add(f"--bench-{typed_name(name)}", type=read, help=text, **given)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the fixture; if one has no default, the project may give it."""
    group = parser.getgroup("benchrigor", "benchmarks with the bench fixture")
    _add_how_to_measure(group.addoption)
    _add_what_becomes_of_it(group.addoption)


def _add_how_to_measure(add: Callable[..., None]) -> None:
    for name in settings_in("option"):
        _add_setting(name, add)
    add(
        "--bench-fresh",
        action="store_true",
        help="measure functions of modules in fresh interpreters",
    )
    add("--bench-only", action="store_true", help="run only tests that use the fixture")
    add("--bench-skip", action="store_true", help="call the functions once, measure nothing")
    add(
        "--bench-take-benchmark",
        action="store_true",
        help="serve tests that use the fixture benchmark too, in place of pytest-benchmark",
    )


def _add_what_becomes_of_it(add: Callable[..., None]) -> None:
    add(
        "--bench-save",
        metavar="NAME",
        help="keep the runs as .benchrigor/NAME.sqlite, to compare with them later",
    )
    add("--bench-store", metavar="FILE", help="keep the runs in this file (default: keep nothing)")
    add(
        "--bench-compare",
        metavar="NAME",
        help="compare the suite with the last one that was saved as NAME, or in the file NAME",
    )
    add(
        "--bench-against",
        metavar="REV",
        help="measure each function in turn with its version in this revision of the repository, "
        "in fresh interpreters",
    )
    add(
        "--bench-fail-on",
        choices=("worse", "undecided", "never"),
        help="the verdicts of --bench-against or --bench-compare that fail the run: worse; "
        "undecided or worse; none (default: worse with --bench-against, else never). A test that "
        "only one side has is undecided",
    )
    add("--bench-json", metavar="FILE", help="write all that was measured to this file")


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Bench:
    """Measure a function: ``bench(func, *args, **kwargs)`` returns what func returns.

    The function is called many times; ``bench.record`` is the record of its readings.
    ``bench.compare(old, new)`` compares two functions in turn.
    """
    from benchrigor.pytest_plugin.fixture import Bench  # noqa: PLC0415  # for who asks for it

    return Bench(request.node, _suite_of(request.config))


def _suite_of(config: pytest.Config) -> Suite:
    """Return what this run of pytest measures."""
    from benchrigor.pytest_plugin.suite import Suite  # noqa: PLC0415  # for who asks for it

    if _SUITE not in config.stash:
        try:
            config.stash[_SUITE] = Suite(config)
        except InvalidInput as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[_SUITE]


class _Taken:
    """Gives the fixture under the name that pytest-benchmark has for its own."""

    @pytest.fixture(name=_RIVAL)
    def give_bench(self, bench: Bench) -> Bench:
        """Return the fixture ``bench``."""
        return bench


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Know the options of pytest-benchmark that are given where a suite of it is taken over."""
    if not early_config.known_args_namespace.bench_take_benchmark:
        return
    given = {word.partition("=")[0] for word in args if word.startswith("--benchmark-")}
    if "--benchmark-compare-fail" in given:  # a gate: ignored, it would let all pass
        raise pytest.UsageError(
            "--benchmark-compare-fail is not taken over: give --bench-against REV, or "
            "--bench-compare NAME --bench-fail-on worse, with --bench-margin"
        )
    if (rival := early_config.pluginmanager.get_plugin(_RIVAL)) is not None:
        early_config.pluginmanager.unregister(rival)  # its options stay known
    else:
        for word in given:
            is_flag = word.removeprefix("--benchmark-") in _FLAGS
            parser.addoption(word, **({"action": "store_true"} if is_flag else {"nargs": "?"}))
    taken = {f"--benchmark-{name}" for name in ("disable", "enable", "json", "only", "skip")}
    early_config.stash[_IGNORED] = sorted(given - taken)


def _rivals(config: pytest.Config, name: str) -> Any:
    """Return an option of pytest-benchmark where it is taken over."""
    is_taken = config.getoption("bench_take_benchmark")
    return config.getoption(f"benchmark_{name}", None) if is_taken else None


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, take over a name, and refuse files that cannot be compared with."""
    for name in ("bench", _RIVAL):
        line = f"{name}(target, budget, margin, group, baseline): how a benchmark is measured"
        config.addinivalue_line("markers", line)
    if config.getoption("bench_take_benchmark"):
        config.pluginmanager.register(_Taken(), "benchrigor-benchmark")
        option = config.option
        option.bench_only |= bool(_rivals(config, "only"))
        option.bench_skip |= bool(_rivals(config, "disable") and not _rivals(config, "enable"))
        option.bench_json = option.bench_json or _rivals(config, "json")
    problems: list[str] = []
    if any(config.getoption(f"bench_{name}") for name in ("save", "compare", "json", "fail_on")):
        from benchrigor.pytest_plugin.suite import wrong_files  # noqa: PLC0415  # only then

        problems += wrong_files(config)
    if config.getoption("bench_against") is not None:
        from benchrigor.pytest_plugin.revision import wrong_revision  # noqa: PLC0415  # only then

        problems += wrong_revision(config)
    if problems:
        from benchrigor.safe_text import escaped  # noqa: PLC0415  # only then

        raise pytest.UsageError(escaped("; ".join(problems)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep only the benchmarks, or skip them, if an option asks for it."""
    names = {"bench"} | ({_RIVAL} if config.getoption("bench_take_benchmark") else set())
    kept = [item for item in items if names & {*getattr(item, "fixturenames", ())}]
    if not config.getoption("bench_only"):
        for item in kept if _rivals(config, "skip") else ():
            item.add_marker(pytest.mark.skip(reason="--benchmark-skip"))
        return
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Note that tests are run, not only collected or listed."""
    session.config.stash[_RAN] = not session.config.option.collectonly
    return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write and compare the measurements; a worker reports its unmeasured tests."""
    config, suite = session.config, session.config.stash.get(_SUITE, None)
    output = getattr(config, "workeroutput", None)
    if output is not None:
        output[_SHIPPED] = suite.unmeasured if suite is not None else []
        return
    fails = suite is not None and suite.finish([item.nodeid for item in session.items])
    is_well = session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    if is_well and (gate := _gate(config)) and config.stash.get(_RAN, False):
        idle = "no test that ran uses the fixture bench" if suite is None else suite.idle()
        config.stash[_REASON] = f"The run fails: {gate} compared nothing: {idle}" if idle else ""
        fails |= bool(idle)
    if fails and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _gate(config: pytest.Config) -> str:
    """Return the option of a comparison that may fail the run; empty without one."""
    for name, otherwise in (("against", "worse"), ("compare", "never")):
        given, fail_on = config.getoption(f"bench_{name}"), config.getoption("bench_fail_on")
        if given is not None and (fail_on or otherwise) != "never":
            from benchrigor.safe_text import escaped  # noqa: PLC0415  # only then

            return escaped(f"--bench-{name} {given}")
    return ""


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Say last why a run fails that compared nothing."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and (reason := config.stash.get(_REASON, "")):
        reporter.write_line(reason, red=True)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect the unmeasured tests of the workers."""
    names = getattr(node, "workeroutput", {}).get(_SHIPPED, [])
    if names:
        _suite_of(node.config).unmeasured.extend(names)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say who serves a fixture that is not there."""
    report = yield
    missing = None if call.excinfo is None else getattr(call.excinfo.value, "argname", None)
    if missing == _RIVAL:
        report.sections.append(("benchrigor", _HINT))
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Show the measurements, if a test used the fixture."""
    suite = config.stash.get(_SUITE, None)
    lines = suite.lines() if suite is not None else []
    if ignored := config.stash.get(_IGNORED, []):
        named = f"Ignored, as pytest-benchmark does not measure: {', '.join(ignored)}."
        lines += [named, "Keep runs with --bench-save NAME, compare with --bench-compare NAME."]
    if lines:
        terminalreporter.write_sep("=", "benchrigor")
        for line in lines:
            terminalreporter.write_line(line)
