"""What an error looks like, for people and for programs, and what is left of the run."""

import re
import subprocess
import sys

import pytest

from benchrigor.storage import Journal

FAILING = """
import asyncio, functools, time
until = 0.0

def late():
    global until
    steady()
    until = until or time.monotonic() + 2.0
    if time.monotonic() > until:
        own_part()

def steady():
    time.sleep(0.001)

def at_fifty(calls=[]):
    calls.append(1)
    steady()
    if len(calls) > 50:
        own_part()

def to_count():
    steady()
    with open("count", "a+") as count:
        if not hasattr(to_count, "began"):
            to_count.began = count.write("x")
        count.seek(0)
        if len(count.read()) > 3:
            own_part()

def own_part():
    raise ValueError("no more")

async def coroutine():
    await asyncio.sleep(0)

async def steps():
    yield

async def of_amount(n):
    await asyncio.sleep(0)

class Awaited:
    async def __call__(self):
        await asyncio.sleep(0)

partly = functools.partial(of_amount, 3)
awaited = Awaited()
hidden = lambda: coroutine()
hidden_of_amount = lambda n: of_amount(n)
"""


@pytest.fixture
def module(store, monkeypatch):
    """A module of functions that cannot be measured, in the folder of the test."""
    (store.parent / "failing.py").write_text(FAILING)
    monkeypatch.delitem(sys.modules, "failing", raising=False)
    return "failing"


@pytest.mark.slow
def test_json_tells_an_error_and_the_run_whose_rounds_are_kept(cli, store, module, strict):
    result = cli("run", "--in-process", "--json", "--target", "0.001%", f"{module}:late")
    assert result.exit_code == 5
    document = strict(result.stdout)
    assert document["error"]["type"] == "WorkloadFailed"
    assert "ValueError" in document["error"]["message"]
    assert document["schema"] >= 1
    assert [each["run_id"] for each in Journal(store).runs()] == [document["run_id"]]


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (("show", "--json", "3f"), 6, "StoreFailed"),
        (("run", "--json", "no_such_module:f"), 2, "InvalidInput"),
        (("run", "--target", "2", "--json", "true"), 2, "BadParameter"),
        (("analyze", "--json", "no-such-file"), 2, "InvalidInput"),
    ],
)
def test_every_verb_tells_its_errors_as_json(cli, words, code, kind, strict):
    result = cli(*words)
    assert result.exit_code == code
    error = strict(result.stdout)
    assert error["error"]["type"] == kind
    assert error["error"]["message"] in " ".join(result.stderr.split("\n"))
    assert "run_id" not in error


@pytest.mark.slow
def test_the_traceback_shows_the_users_own_part_only(cli, module):
    result = cli("run", "--in-process", "--target", "0.001%", f"{module}:late")
    assert result.exit_code == 5
    trace, _, message = result.stderr.partition("benchrigor: failing.")
    assert "own_part" in trace
    assert "callable.py" not in trace
    assert message.startswith("late raised")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["coroutine", "partly", "awaited"])
def test_coroutine_functions_are_awaited(cli, module, name):
    result = cli("run", "--budget", "0.2", f"{module}:{name}")
    assert result.exit_code in {0, 4}
    assert " reading" in result.stdout


@pytest.mark.parametrize("words", [["sleep 0.1"], ["/no/such/program"], ["false"], ["/dev/null"]])
def test_a_start_that_failed_is_not_stored(cli, store, words):
    result = cli("run", *words)
    assert result.exit_code == 5
    assert ("sh -c 'sleep 0.1'" in result.stderr) == (words == ["sleep 0.1"])
    assert "Traceback" not in result.stderr
    assert Journal(store).runs() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("run", "--in-process"), ("ab", "failing:steady"), ("run", "failing:steady")]
)
def test_a_function_that_raises_is_shown_in_one_way(cli, module, words):
    verb, *other = words
    result = cli(verb, "--target", "0.001%", "--budget", "20", *other, f"{module}:at_fifty")
    assert result.exit_code == 5
    side = "candidate: " if verb == "ab" else ""
    trace, _, message = result.stderr.partition(f"benchrigor: {side}failing.")
    assert trace.count("Traceback") == 1
    assert "callable.py" not in trace
    assert message.startswith("at_fifty")


@pytest.mark.slow
def test_a_side_of_a_comparison_is_gone_on_with_by_the_whole_command(cli, store, module):
    words = ("--budget", "0.2", f"{module}:steady", f"{module}:steady")
    cli("ab", *words)
    for each in Journal(store).runs():
        result = cli("resume", each["run_id"])
        assert result.exit_code == 2
        assert f"benchrigor ab {' '.join(words)}" in " ".join(result.stderr.split())


def run_alone(folder, source, *words):
    """Run a function in a process of its own, which it may spoil."""
    (folder / "job.py").write_text(source)
    argv = [sys.executable, "-m", "benchrigor", "run", "--no-store", *words, "job:work"]
    return subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, check=False, timeout=300.0
    )


SPOILING = {
    "clears the environment": ("os.environ.clear()", {0, 3, 4}),
    "lowers the limit of recursion": ("sys.setrecursionlimit(90)", {0, 3, 4}),
    "exits at once": ("os._exit(3)", {5}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("body", "codes"), SPOILING.values(), ids=SPOILING.keys())
def test_a_function_that_spoils_its_process_makes_no_traceback_of_ours(tmp_path, body, codes):
    source = f"import os, sys\ndef work():\n    {body}\n"
    done = run_alone(tmp_path, source, "--budget", "0.3", "--max-rounds", "3")
    assert done.returncode in codes, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_fresh_function_that_raises_shows_its_own_frames_alone(tmp_path):
    done = run_alone(tmp_path, "def work():\n    raise ValueError('no')\n", "--fresh")
    assert done.returncode == 5
    assert "in work" in done.stderr
    assert "worker.py" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [["late"], ["--fresh", "to_count"], ["sh count.sh"]])
def test_a_comparison_that_failed_says_what_is_kept_and_how_to_see_it(cli, store, module, words):
    (store.parent / "count.sh").write_text("echo x >> $0.$1; [ $(wc -l < $0.$1) -lt 9 ]")
    *more, failing = words
    sides = [f"{module}:steady", f"{module}:{failing}"]
    if failing == "sh count.sh":
        sides = [f"{failing} {name}" for name in "ab"]
    result = cli("ab", *more, *sides, "--budget", "300", "--target", "0.001%")
    assert result.exit_code == 5
    runs = {run["run_id"]: run for run in Journal(store).runs()}
    line = re.search(r"(\d+) and (\d+) finished rounds kept: benchrigor (.*)", result.stderr)
    hint = line[3].split()
    assert hint[:2] == ["compare", "--paired"]
    assert [runs[name]["rounds"] for name in hint[2:]] == [int(line[1]), int(line[2])]
    assert cli(*hint).exit_code in {0, 3, 4, 7}


def test_a_side_that_is_kept_alone_can_be_shown(cli, store):
    result = cli("ab", "true", "false")
    if runs := [run for run in Journal(store).runs() if run["rounds"]]:
        hint = f"1 finished round of true kept: benchrigor show {runs[0]['run_id']}"
        assert hint in result.stderr


@pytest.mark.parametrize("more", [[], ["--in-process"]])
@pytest.mark.parametrize("how", ["os.abort()", "ctypes.string_at(0)"])
@pytest.mark.slow
def test_a_crash_shows_the_lines_that_led_to_it(store, more, how):
    (store.parent / "crash.py").write_text(
        f"import ctypes, os\ncalls = []\ndef work():\n  if len(calls) > 200: {how}\n"
        "  calls.append(1)\n"
    )
    argv = [sys.executable, "-m", "benchrigor", "run", *more, "--no-store", "crash:work"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=store.parent, check=False)
    assert "line 4" in done.stderr
    assert done.returncode == (5 if not more else -6 if "abort" in how else -11)


@pytest.mark.slow
def test_a_function_that_limits_the_open_files_makes_no_traceback_of_ours(store):
    pytest.importorskip("resource")
    (store.parent / "limits.py").write_text(
        "import resource, time\ndef work():\n  time.sleep(0.002)\n"
        "  resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\n"
    )
    argv = [sys.executable, "-m", "benchrigor", "run", "--budget", "0.5"]
    argv += ["--in-process", "limits:work"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=store.parent, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode == 5
    assert "open files" in done.stderr


LEAKY = """
import time
calls = []

def at_once():
    raise ValueError('GET https://u:hunter2XYZ@h/?token=hunter2XYZ failed')

def later():
    time.sleep(0.002)
    calls.append(1)
    if len(calls) > 5:
        at_once()

async def request():
    calls.append(1)
    if len(calls) % 2 == 0:
        at_once()
"""


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--in-process", "leaky:later"),
        ("run", "leaky:at_once"),
        ("run", "--json", "leaky:at_once"),
        ("ab", "leaky:later", "leaky:later"),
        ("timeit", "--setup", "import leaky", "leaky.at_once()"),
        ("peak", "--failed", "1%", "leaky:request"),
        ("run", "--", "true --password hunter2XYZ"),
        ("run", "https://u:hunter2XYZ@h/"),
        ("run", "--budget", "https://u:hunter2XYZ@h/", "true"),
        ("commands", "cat {token}", "-L", "token", "hunter2XYZ"),
    ],
)
def test_no_failure_shows_or_stores_a_secret(cli, store, words):
    (store.parent / "leaky.py").write_text(LEAKY)
    sys.modules.pop("leaky", None)
    verb, *rest = words
    failed = cli(verb, "--budget", "1", *rest)
    stored = [cli("show", "--details"), cli("show", "--json"), cli("list")]
    for ran in (failed, *stored):
        assert "hunter2" not in ran.output
    assert "__hidden__" in failed.output
    for path in store.parent.glob("runs.sqlite*"):
        assert b"hunter2" not in path.read_bytes()


def test_a_source_line_is_shown_as_it_is_but_for_the_secret(cli, store):
    (store.parent / "leaky.py").write_text(LEAKY)
    failed = cli("run", "--budget", "1", "leaky:at_once")
    line = "raise ValueError('GET https://__hidden__@h/?token=__hidden__ failed')\n"
    assert f"|     {line}" in failed.stderr
