"""peak: the greatest load at which a server keeps its limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchrigor import LoadResult
from benchrigor.errors import InvalidInput
from benchrigor.storage import Journal
from benchrigor.workbench import PeakSearch
from benchrigor.workbench.searches import plan_lengths
from benchrigor.workloads.processes import time_limits

SERVER = Path(__file__).parents[1] / "simulations" / "queue_server.py"
# A generator that offers no load: it prints what a server that serves 200 a second would answer.
FAKE = """BEGIN {
    load = ARGV[1]
    printf "mean %.17g failed %g\\n", load < 199 ? 1000 / (200 - load) : 5000, load < 180 ? 0 : 0.5
}"""
READ = ("--read", "mean:ms=regex:mean (\\S+)")


def fake(first: str = "") -> tuple[str, ...]:
    """Return the words of the fake, which may do something ``first``; awk starts at once."""
    return ("--", "sh", "-c", f"{first}\nexec awk '{FAKE}' $0", "{load}")


@pytest.fixture
def queue() -> Iterator[str]:
    """The address of a server that serves 200 a second, one after the other."""
    command = [sys.executable, str(SERVER), "200"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/"
        server.kill()


@pytest.mark.slow
def test_a_peak_is_found_told_and_kept(cli, store):
    result = cli("peak", "--mean", "40ms", "--budget", "none", *READ, *fake())
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("  peak 17")
    assert "· found ·" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    run_id = Journal(store).runs()[0]["run_id"]
    assert f"benchrigor explain {run_id}" in result.stdout
    shown = cli("show", run_id)
    assert shown.stdout == result.stdout
    assert cli("resume", run_id).stdout == result.stdout


@pytest.mark.slow
def test_json_has_all_trials(cli, strict):
    document = strict(cli("peak", "--mean", "40ms", "--json", *READ, *fake()).stdout)
    assert document["status"] == "found"
    assert document["load"]["low"] < 175.0 < document["load"]["high"]
    trial = document["trials"][0]
    assert trial["asked"]["load"] == 50.0
    assert trial["result"]["mean_response_s"] == pytest.approx(1 / 150)
    assert document["limits"] == [{"metric": "mean", "at_most": 0.04}]


@pytest.mark.slow
def test_an_interval_between_loads_tried_has_no_confidence(cli):
    words = ("--mean", "40ms", "--policy", "binsearch", "--json", *READ, *fake())
    assert json.loads(cli("peak", *words).stdout)["load"]["confidence"] is None


@pytest.mark.slow
def test_after_the_last_trial_no_time_is_left(cli):
    words = ("--mean", "40ms", "--accuracy", "20%", "--budget", "100")
    *others, last = cli("peak", *words, *READ, *fake()).stderr.split(" req/s · ")[1:]
    assert all("left" in each for each in others)
    assert "left" not in last


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["40ms", "40", "0.04s"])
def test_a_limit_may_be_in_the_unit_of_its_metric(cli, limit):
    read = ("--read", "ttft:ms=regex:mean (\\S+)")
    result = cli("peak", "--limit", f"ttft={limit}", "--accuracy", "8%", *read, *fake())
    assert result.stdout.startswith("  peak 1")


@pytest.mark.slow
def test_a_dry_run_offers_no_load(cli, store):
    words = ("peak", "--url", "http://127.0.0.1:9/", "--p95", "1s", "--accuracy", "20%")
    words += ("--dry-run",)
    result = cli(*words)
    assert result.exit_code == 0
    assert not store.exists()
    assert json.loads(cli(*words, "--accuracy", "50%", "--json").stdout)["first"]["load"] == 50.0


@pytest.mark.slow
def test_a_dry_run_reckons_with_the_requests_that_limits_need(cli):
    words = ("peak", "--url", "http://x/", "--dry-run", "--json")
    words += ("--budget", "none", "--seed-load", "5")
    mean, far = (
        json.loads(cli(*words, *limits).stdout)["seconds"]
        for limits in (("--mean", "1s"), ("--mean", "1s", "--limit", "p99.9=2s", "--failed", "1%"))
    )
    assert far[0] > 2.0 * mean[0]


NOISY = "echo >> count; echo mean $((18 + 7 * $(wc -l < count) % 5))"


@pytest.mark.slow
def test_a_plan_shows_how_many_trials_of_each_length_it_takes(cli, strict, store):
    command = (*READ, "--", "sh", "-c", NOISY, "{load}")
    words = ("peak", "--mean", "40ms", "--plan", "--trial-time", "60s", "--seed-load", "120")
    result = cli(*words, *command)
    assert result.exit_code == 0, result.stderr
    header, *rows, _ = result.stdout.splitlines()
    assert header.split() == ["seconds", "variation", "trials", "cost"]
    assert [row.split()[0] for row in rows] == ["30", "60", "120"]
    assert not store.exists()
    document = strict(cli(*words, "--accuracy", "4%", "--json", *command).stdout)
    assert [each["duration_s"] for each in document["lengths"]] == [30.0, 60.0, 120.0]
    assert all(each["trials"] >= 2 for each in document["lengths"])
    assert document["accuracy"] == 0.04


@pytest.mark.slow
def test_a_plan_by_what_never_differs_from_0_is_refused(cli):
    words = ("--failed", "1%", "--plan", "--trial-time", "1s", "--seed-load", "120")
    result = cli("peak", *words, "--read", r"failed=regex:failed (\S+)", *fake())
    assert result.exit_code == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "trials", "status"),
    [
        (("--accuracy", "0.1%"), 4, "budget-spent"),
        (("--policy", "linear"), 14, "found"),
    ],
)
def test_a_dry_run_says_what_cannot_be_reached(cli, words, trials, status):
    words = ("--url", "http://127.0.0.1:9/", "--mean", "40ms", "--dry-run", "--json", *words)
    told = json.loads(cli("peak", *words).stdout)
    assert told["trials"][0] >= trials
    assert {*told["statuses"]} == {status}


class LateAtFirst:
    """Offers loads in no time, the first of them too late."""

    def __init__(self, late=1):
        self.late = late

    def offer(self, trial):
        lag_s = 0.02 + 0.001 * trial.id if trial.id < self.late else 0.0
        return LoadResult(mean_response_s=0.02 + 0.001 * (trial.id % 4), lag_p99_s=lag_s)

    def check(self):
        """Answer."""

    close = check


def test_a_pilot_that_was_not_offered_on_time_is_left_out(capsys):
    search = PeakSearch(threshold_s=0.04, accuracy=0.1, trial_s=1.0)
    plan_lengths(search, LateAtFirst(), budget_s=None, as_json=False)
    printed = capsys.readouterr()
    assert printed.err
    assert printed.out.split()[:4] == ["seconds", "variation", "trials", "cost"]


def test_pilots_that_are_all_late_are_one_problem():
    search = PeakSearch(threshold_s=0.04, accuracy=0.1, trial_s=1.0)
    with pytest.raises(InvalidInput) as raised:
        plan_lengths(search, LateAtFirst(late=15), budget_s=None, as_json=False)
    assert len(raised.value.problems) == 1


@pytest.mark.slow
def test_a_width_that_was_asked_for_and_missed_is_3(cli, store):
    words = ("peak", "--mean", "40ms", "--budget", "1.2", *READ, *fake())
    assert cli(*words).exit_code in (0, 4)  # by whether trials bracketed the peak in time
    for budget_s in (2, 8, 32, 128):  # the first in which a busy machine brackets the peak
        limits = ("--accuracy", "0.001%", "--budget", f"{budget_s}", "--mean", "40ms")
        asked = cli("peak", *limits, *READ, *fake())
        if asked.exit_code != 4:
            break
    assert asked.exit_code == 3
    assert "budget-spent" in asked.stdout
    run_id = Journal(store).runs()[0]["run_id"]
    assert cli("resume", run_id).exit_code == 3
    assert cli("resume", run_id, "--budget", f"{budget_s + 1}").exit_code == 3


@pytest.mark.slow
def test_users_are_whole_and_named(cli):
    words = ("--load", "users", "--seed-load", "3", "--budget", "none", "--accuracy", "10%")
    result = cli("peak", "--mean", "6ms", *words, *READ, *fake())
    assert result.exit_code == 0
    assert " users [" in result.stdout.splitlines()[0]


@pytest.mark.slow
def test_a_picture_is_drawn(cli, tmp_path):
    picture = tmp_path / "peak.svg"
    assert cli("peak", "--mean", "40ms", "--plot", picture, *READ, *fake()).exit_code == 0
    drawn = picture.read_text(encoding="utf-8")
    assert drawn.startswith("<?xml")


@pytest.mark.slow
def test_what_is_run_before_each_trial_is_run(cli, tmp_path):
    mark = tmp_path / "marks"
    prepare = f"sh -c 'sleep 0.05; echo x >> {mark}'"
    result = cli("peak", "--mean", "40ms", "--json", "--prepare", prepare, *READ, *fake())
    trials = json.loads(result.stdout)["trials"]
    assert len(mark.read_text().split()) == len(trials)
    assert all(each["result"]["spent_s"]["set-up"] >= 0.05 for each in trials)
    begun = time.monotonic()
    leaving = f"sh -c 'sleep 600 & echo x >> {mark}'"  # it leaves something running
    cli("peak", "--mean", "40ms", "--budget", "1", "--prepare", leaving, *READ, *fake())
    assert time.monotonic() - begun < 300.0
    failing = cli("peak", "--mean", "40ms", "--prepare", "false", *READ, *fake())
    assert failing.exit_code == 5
    assert "--prepare" in failing.stderr


@pytest.mark.slow
def test_a_coroutine_function_is_offered_load(cli, tmp_path):
    (tmp_path / "client.py").write_text(
        "import asyncio\n\nasync def request():\n    await asyncio.sleep(0.001)\n"
    )
    words = ("--mean", "2s", "--max-load", "60", "--budget", "30")
    result = cli("peak", *words, "client:request")
    assert "not-saturated" in result.stdout


def _overslept_s() -> float:
    """Return by how much a sleep of a millisecond takes longer, at its 99th percentile."""
    times = []
    for _ in range(500):
        begun = time.perf_counter()
        time.sleep(0.001)
        times.append(time.perf_counter() - begun - 0.001)
    return sorted(times)[-5]


def rated(cli, queue):
    """Rate a queue of 200 a second, whose peak is 200 - 1 / .06 = 183, less what timers add."""
    words = ("--mean", "60ms", "--budget", "30", "--accuracy", "8%", "--max-load", "1000")
    result = cli("peak", "--url", queue, *words, "--json")
    document = json.loads(result.stdout)
    late = ["late" in each["invalid"] for each in document["trials"]]
    if (result.exit_code == 4 and any(late)) or (all(late) and _overslept_s() > 0.003):
        pytest.skip("other processes keep this machine too busy to send requests in time")
    assert result.exit_code in (0, 3), result.stderr
    assert document["cost_s"] < 60.0
    return document["load"]


@pytest.mark.slow
@pytest.mark.minutes
def test_a_real_queue_is_rated_within_half_a_minute_and_not_above_its_peak(cli, queue):
    """Beside other processes the queue itself is slower, or the requests are late."""
    load = rated(cli, queue)
    assert load is None or load["low"] * 0.9 <= 183.3


@pytest.mark.slow
@pytest.mark.minutes  # on a machine that does nothing else
def test_the_peak_of_a_real_queue_is_found(cli, queue):
    load = rated(cli, queue)
    assert load["low"] * 0.9 <= 183.3 <= load["high"] * 1.1
    assert load["value"] == pytest.approx(183.3, rel=0.25)


@pytest.mark.slow
def test_a_search_that_is_killed_is_taken_up(tmp_path, store):
    command = [sys.executable, "-m", "benchrigor", "peak", "--mean", "40ms", *READ]
    command += fake("sleep 0.2")
    env = {**os.environ, "BENCHRIGOR_STORE": str(store)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as search:
        told = 0
        while told < 3:
            told += "req/s" in search.stderr.readline()
        search.send_signal(signal.SIGKILL)
    (run,) = Journal(store).runs()
    assert run["rounds"] >= 3
    resumed = [sys.executable, "-m", "benchrigor", "resume", run["run_id"], "--json"]
    done = subprocess.run(resumed, capture_output=True, text=True, env=env, check=True)
    document = json.loads(done.stdout)
    assert document["status"] == "found"
    assert [each["asked"]["id"] for each in document["trials"]] == list(
        range(len(document["trials"]))
    )


@pytest.mark.slow
def test_a_server_that_is_killed_ends_the_search_with_what_is_known(cli, store, monkeypatch):
    monkeypatch.setattr("benchrigor.workbench.loadgen.open_loop._RECOVERY_S", 0.2)
    command = [sys.executable, str(SERVER), "200"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        port = server.stdout.readline().strip()
        killer = f"sh -c 'test -e {store} && kill -9 {server.pid} || true'"
        started = time.monotonic()
        words = ("--mean", "60ms", "--budget", "30", "--prepare", killer)
        result = cli("peak", "--url", f"http://127.0.0.1:{port}/", *words)
        server.kill()
    assert time.monotonic() - started < 60.0
    assert result.exit_code == 5


def test_a_server_that_is_not_there_is_an_error_before_any_trial(cli, store):
    result = cli("peak", "--url", "http://127.0.0.1:9/", "--mean", "1s")
    assert result.exit_code == 5
    assert not store.exists()


HANGING = """
import asyncio, time

calls = []

async def waits():
    calls.append(1)
    if len(calls) > 3:
        await asyncio.sleep(600)

async def blocks():
    calls.append(1)
    if len(calls) > 3:
        time.sleep(600)

async def answers():
    await asyncio.sleep(0)

async def breaks():
    calls.append(1)
    if len(calls) > 3:
        raise ConnectionError
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer signals")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((*READ, "--", "sh", "-c", "echo {load} mean 5; sleep 600"), 4),
        (("--timeout", "900s", "hanging_peak:waits"), 4),
        (("--timeout", "900s", "hanging_peak:blocks"), 4),
        (("--prepare", "sleep 600", "hanging_peak:answers"), 5),
    ],
)
def test_what_hangs_is_ended_with_the_budget(cli, tmp_path, monkeypatch, words, code):
    monkeypatch.setattr(time_limits, "_GRACE_S", 0.3)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "hanging_peak", raising=False)
    (tmp_path / "hanging_peak.py").write_text(HANGING)
    begun = time.monotonic()
    result = cli("peak", "--mean", "40ms", "--budget", "2", *words)
    assert time.monotonic() - begun < 300.0
    assert result.exit_code == code, result.stderr
    if code == 4:
        assert cli("show").stdout == result.stdout
    else:
        assert "budget" in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer signals")
def test_a_hook_that_hangs_after_a_trial_is_ended_with_the_budget(cli, tmp_path, monkeypatch):
    marks = tmp_path / "marks"
    later = f"sh -c 'echo x >> {marks}; test $(wc -l < {marks}) -lt 3 || sleep 600'"
    begun = time.monotonic()
    result = cli("peak", "--mean", "40ms", "--budget", "3", "--prepare", later, *READ, *fake())
    assert time.monotonic() - begun < 300.0
    assert result.exit_code == 4, result.stderr
    assert "2 trials" in " ".join(result.stdout.split())


SLO = "p95<150ms and first-byte<140ms: 95%"


@pytest.mark.slow
def test_a_share_of_good_requests_is_limited_stored_and_shown(cli, store, strict, queue):
    """Of M/M/1 that serves 200/s, 95% of requests come within 150 ms at 180/s."""
    words = ("--slo", SLO, "--seed-load", "120", "--budget", "30", "--min-load", "60")
    result = cli("peak", "--url", f"{queue}stream", *words)
    run_id = Journal(store).runs()[0]["run_id"]
    assert cli("show", run_id).stdout == result.stdout
    peak = strict(cli("explain", run_id, "--json").stdout)["peak"]
    metric = "response<150ms and first-byte<140ms"
    assert peak["limits"] == [{"metric": metric, "at_most": 0.05}]
    told = peak["trials"][0]["result"]["metrics"]
    assert 0.0 < told["first-byte-p95"] < told["response-p95"]
    if result.exit_code == 4:  # on a busy machine
        return
    assert result.exit_code == 0, result.stderr
    assert cli("resume", run_id).stdout == result.stdout
    assert peak["load"]["low"] < 205.0  # the machine may stall, and the queue is empty at first
    assert peak["load"]["high"] > 120.0
