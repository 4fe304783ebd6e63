import gc
import inspect
import json
import multiprocessing
import os
import signal
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import click.testing
import pytest
from hypothesis import settings

from benchrigor.testing import FakeClock, FakeMeter
from benchrigor.workloads.processes.worker import SegmentTimer

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("steady")

pytest_plugins = ["pytester"]

Write = Callable[[dict[str, str]], Path]

ROOT = Path(__file__).parents[1]
SLOW = frozenset((ROOT / "tests/slow.txt").read_text(encoding="utf-8").splitlines())

QUIET = {
    "proc/thread-self/schedstat": "1000 0 1\n",
    "proc/thread-self/io": "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\n",
    "proc/self/fd": "....",
    "proc/self/cgroup": "0::/bench\n",
    "proc/stat": "cpu  100 0 0 500 0 0 0 0 0 0\ncpu0 100 0 0 500 0 0 0 0 0 0\n",
    "sys/fs/cgroup/bench/cpu.stat": "usage_usec 5\nnr_throttled 0\nthrottled_usec 0\n",
    "sys/fs/cgroup/bench/cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "sys/fs/cgroup/bench/io.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "sys/fs/cgroup/bench/memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
}

# Tests leave the user's folders as they are; processes that they start inherit this.
_FOLDER = tempfile.TemporaryDirectory(prefix="benchrigor-")
os.environ["XDG_DATA_HOME"] = _FOLDER.name
# Tests run beside each other: threads of linear algebra would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_configure():
    """Let processes that tests start be interrupted.

    A job in the background of a script ignores SIGINT, and so does whatever it starts.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Let the second worker collect from the end, a third and a fourth from the middle.

    Each rewrites asserts of its own and finds what others have compiled; in a fresh checkout that
    is half of collecting.
    """
    report = yield
    if isinstance(collector, pytest.Directory):
        worker, middle = os.environ.get("PYTEST_XDIST_WORKER"), len(report.result) // 2
        if worker in {"gw1", "gw3"}:
            report.result.reverse()
        if worker in {"gw2", "gw3"}:
            report.result[:] = report.result[middle:] + report.result[:middle]
    return report


def pytest_ignore_collect(collection_path, config):
    """Load no module of which no test is asked for."""
    words = config.option.markexpr.split()
    if "or" in words or collection_path.suffix != ".py" or not collection_path.is_relative_to(ROOT):
        return None
    path = collection_path.relative_to(ROOT).as_posix()
    if words[:1] == ["slow"]:
        return not any(path in _wholes(node) or node in _wholes(path) for node in SLOW) or None
    return (words[:2] == ["not", "slow"] and not SLOW.isdisjoint(_wholes(path))) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark slow tests, and have one order in all workers: that of pytest."""
    items.sort(key=lambda item: item.path.parts)
    for item in items:
        if not SLOW.isdisjoint(_wholes(item.nodeid)):
            item.add_marker(pytest.mark.slow)


def _wholes(node):
    """Yield a node of pytest, and all that it is a part of."""
    function = node.partition("[")[0]
    path = function.partition("::")[0]
    yield from (node, function, path, *(parent.as_posix() for parent in Path(path).parents))


def pytest_collection_finish():
    """Spare the collector what stays until the end: modules, and the tests themselves."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test that is marked so in a forked process, where no other thread is.

    Threads that earlier tests left behind close files and allocate memory at any moment.
    """
    __tracebackhide__ = True
    if pyfuncitem.get_closest_marker("alone") is None:
        return None
    ours, theirs = multiprocessing.Pipe(duplex=False)
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    def work():
        try:
            pyfuncitem.obj(**arguments)
        except pytest.skip.Exception as error:
            theirs.send((pytest.skip, str(error)))
        except BaseException:  # noqa: BLE001  # the parent tells what it was
            theirs.send((pytest.fail, traceback.format_exc()))
        else:
            theirs.send((None, ""))

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    theirs.close()
    try:
        tell, why = ours.recv()
    except EOFError:
        tell, why = pytest.fail, "the process of this test died"
    process.join()
    if tell is not None:
        tell(why)
    return True


@pytest.fixture
def fork():
    """Return what runs a function in a forked process.

    Never by `os.fork` alone: what fails in a copy of pytest must not go on as a second pytest, and
    whoever waits for it must not do so for ever.
    """
    processes = []

    def start(work):
        process = multiprocessing.get_context("fork").Process(target=work)
        processes.append(process)
        process.start()
        return process

    yield start
    for each in processes:
        each.kill()
        each.join()


@pytest.fixture
def in_fork(fork):
    """Return what runs a function in a forked process until it exits, and returns how it did."""

    def run(work):
        process = fork(work)
        process.join(20.0)
        return process.exitcode

    return run


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def meter(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> FakeMeter:
    """Return a meter of what a test loses, where the real threads of the test process are idle."""
    monkeypatch.setattr(SegmentTimer, "spent_ns", lambda _: (0, 0, 0))
    return FakeMeter(clock)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs are kept by default; the test runs in the folder beside it."""
    path = tmp_path / "runs.sqlite"
    monkeypatch.setenv("BENCHRIGOR_STORE", str(path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return path


@pytest.fixture
def cli(store: Path) -> Callable[..., click.testing.Result]:
    """Call the command line within this process."""
    from benchrigor.cli import main  # noqa: PLC0415  # most tests do without

    runner = click.testing.CliRunner()
    return lambda *words, **given: runner.invoke(main, [str(word) for word in words], **given)


@pytest.fixture
def strict() -> Callable[[str], object]:
    """Parse JSON that knows no NaN and no Infinity, as other languages do."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return lambda text: json.loads(text, parse_constant=refuse)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write files of a made-up system, into the same files where they are there already."""

    def write(files: dict[str, str]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return tmp_path

    return write


@pytest.fixture
def quiet(write: Write) -> Path:
    """Where nothing has been lost yet."""
    return write(QUIET)
