"""What an error looks like, for people and for programs, and what is left of the run."""

import os
import re
import subprocess
import sys

import pytest

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

partly = functools.partial(asyncio.sleep, 0)
"""


@pytest.fixture
def failing(module):
    """A module of functions that cannot be measured, in the folder of the test."""
    return module("failing", FAILING)


def test_json_tells_an_error_and_the_run_whose_rounds_are_kept(kept, failing, told):
    document = told("run", "--in-process", "--target", "0.001%", "failing:late")
    assert document["error"]["type"] == "WorkloadFailed"
    assert document["schema"] >= 1
    assert [record.run_id for record in kept()] == [document["run_id"]]


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (("show", "--json", "3f"), 6, "StoreFailed"),
        (("run", "--json", "no_such_module:f"), 2, "InvalidInput"),
        (("run", "--target", "2", "--json", "true"), 2, "BadParameter"),
        (("analyze", "--json", "no-such-file"), 2, "InvalidInput"),
        (("run", "--json", "--budget", "0.3", "failing:own_part"), 5, "WorkloadFailed"),
    ],
)
def test_every_verb_tells_its_errors_as_json(cli, words, code, kind, strict):
    result = cli(*words)
    assert result.exit_code == code
    error = strict(result.stdout)
    assert error["error"]["type"] == kind
    assert error["error"]["message"].splitlines()[0] in " ".join(result.stderr.split("\n"))
    assert "run_id" not in error


@pytest.mark.parametrize("name", ["coroutine", "partly"])
def test_coroutine_functions_are_awaited(cli, failing, name):
    result = cli("run", "--budget", "0.2", f"failing:{name}")
    assert result.exit_code in {0, 4}
    assert " reading" in result.stdout


@pytest.mark.parametrize("words", [["sleep 0.1"], ["/no/such/program"], ["false"], ["/dev/null"]])
def test_a_start_that_failed_is_not_stored(cli, kept, words):
    result = cli("run", *words)
    assert result.exit_code == 5
    assert "Traceback" not in result.stderr
    assert kept() == []


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--in-process", "failing:late"),
        ("run", "--in-process", "failing:at_fifty"),
        ("ab", "failing:steady", "failing:at_fifty"),
        ("run", "failing:steady", "failing:at_fifty"),
    ],
)
def test_the_traceback_shows_the_users_own_part_only_and_in_one_way(cli, failing, words):
    verb, *other = words
    result = cli(verb, "--target", "0.001%", "--budget", "20", *other)
    assert result.exit_code == 5
    side = "candidate: " if verb == "ab" else ""
    trace, _, message = result.stderr.partition(f"benchrigor: {side}failing.")
    assert trace.count("Traceback") == 1
    assert "own_part" in trace
    assert "callable.py" not in trace
    assert message.startswith(words[-1].partition(":")[2])


def test_a_side_of_a_comparison_is_gone_on_with_by_the_whole_command(cli, kept, failing):
    words = ("--budget", "0.2", "failing:steady", "failing:steady")
    cli("ab", *words)
    for each in kept():
        result = cli("resume", each.run_id)
        assert result.exit_code == 2
        assert f"benchrigor ab {' '.join(words)}" in " ".join(result.stderr.split())


SPOILING = {
    "clears the environment": ("os.environ.clear()", "", {0, 3, 4}),
    "lowers the limit of recursion": ("sys.setrecursionlimit(90)", "", {0, 3, 4}),
    "exits at once": ("os._exit(3)", "", {5}),
    "limits the open files": (
        "time.sleep(0.002); resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))",
        "open files",
        {5},
    ),
    "limits its memory": (
        "time.sleep(0.002); resource.setrlimit(resource.RLIMIT_AS, (2**26, 2**26))",
        "no memory is left",
        {5},
    ),
    "limits its memory to some libraries": (
        "time.sleep(0.002); resource.setrlimit(resource.RLIMIT_AS, (15 * 10**7, 2**28))",
        "no memory is left",
        {5},
    ),
}


@pytest.mark.parametrize(("body", "said", "codes"), SPOILING.values(), ids=SPOILING.keys())
def test_a_function_that_spoils_its_process_makes_no_traceback_of_ours(
    module, alone, body, said, codes
):
    how = ("--in-process",) if said else ()
    module("job", f"import os, resource, sys, time\ndef work():\n    {body}\n")
    limits = ("--budget", "0.5") if how else ("--budget", "0.3", "--max-rounds", "3")
    done = alone("run", "--no-store", *limits, *how, "job:work")
    assert done.returncode in codes, done.stderr
    assert "Traceback" not in done.stderr
    assert said in done.stderr


def limited(kilobytes: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Call the command line within a limit of memory, with one thread for each library."""
    script = f'ulimit -v {kilobytes}; exec "$0" -m benchrigor "$@"'
    argv = ["sh", "-c", script, sys.executable, *words]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60.0, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such limit")
def test_a_limit_of_memory_with_room_for_libraries_is_no_error(store):
    how = "--no-store", "--budget", "0.3", "--in-process"
    done = limited(400_000, "run", *how, "platform:python_version")
    assert done.returncode in {0, 3, 4}, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such limit")
def test_a_limit_of_memory_below_what_libraries_take_is_named(store):
    words = "run", "--in-process", "platform:python_version"
    done = limited(150_000, *words)
    assert done.returncode == 5
    assert "ulimit -v" in done.stderr
    assert not store.exists()


def test_a_fresh_function_that_raises_shows_its_own_frames_alone(module, alone):
    module("job", "def work():\n    raise ValueError('no')\n")
    done = alone("run", "--no-store", "--fresh", "job:work")
    assert done.returncode == 5
    assert "in work" in done.stderr
    assert "worker.py" not in done.stderr


@pytest.mark.parametrize("words", [["late"], ["--fresh", "to_count"], ["sh count.sh"]])
def test_a_comparison_that_failed_says_what_is_kept_and_how_to_see_it(
    cli, store, kept, failing, words
):
    store.with_name("count.sh").write_text("echo x >> $0.$1; [ $(wc -l < $0.$1) -lt 9 ]")
    *more, job = words
    sides = ["failing:steady", f"failing:{job}"]
    if job == "sh count.sh":
        sides = [f"{job} {name}" for name in "ab"]
    result = cli("ab", *more, *sides, "--budget", "300", "--target", "0.001%")
    assert result.exit_code == 5
    runs = {record.run_id: len(record.rounds) for record in kept()}
    line = re.search(r"(\d+) and (\d+) finished rounds kept: benchrigor (.*)", result.stderr)
    hint = line[3].split()
    assert hint[:2] == ["compare", "--paired"]
    assert [runs[name] for name in hint[2:]] == [int(line[1]), int(line[2])]
    assert cli(*hint).exit_code in {0, 3, 4, 7}


def test_a_side_that_is_kept_alone_can_be_shown(cli, kept):
    result = cli("ab", "true", "false")
    if runs := [record for record in kept() if record.rounds]:
        assert f"benchrigor show {runs[0].run_id}" in result.stderr


@pytest.mark.parametrize("more", [[], ["--in-process"]])
@pytest.mark.parametrize("how", ["os.abort()", "ctypes.string_at(0)"])
def test_a_crash_shows_the_lines_that_led_to_it(module, alone, more, how):
    module(
        "crash",
        f"import ctypes, os\ncalls = []\ndef work():\n  if len(calls) > 200: {how}\n"
        "  calls.append(1)\n",
    )
    done = alone("run", *more, "--no-store", "crash:work")
    assert "line 4" in done.stderr
    assert done.returncode == (5 if not more else -6 if "abort" in how else -11)


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
def test_no_failure_shows_or_stores_a_secret(cli, store, module, words):
    module("leaky", LEAKY)
    verb, *rest = words
    failed = cli(verb, "--budget", "1", *rest)
    stored = [cli("show", "--details"), cli("show", "--json"), cli("list")]
    for ran in (failed, *stored):
        assert "hunter2" not in ran.output
    assert "__hidden__" in failed.output
    for path in store.parent.glob("runs.sqlite*"):
        assert b"hunter2" not in path.read_bytes()
    if words == ("run", "leaky:at_once"):  # its line is shown as it is but for the secret
        line = "raise ValueError('GET https://__hidden__@h/?token=__hidden__ failed')\n"
        assert f"|     {line}" in failed.stderr
