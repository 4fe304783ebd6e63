"""Maps and choices on hosts: threads of this process, or processes of this machine."""

from __future__ import annotations

import itertools
import json
import math
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from known_maps import known

from benchrigor.model import Code
from benchrigor.workbench.loadgen import HttpRequest, HttpRequests
from benchrigor.workbench.on_host import Job, Outcome

THREADS = '[factors.threads]\nlevels = [1, 2, 4, 8]\nscale = "log2"\n'
FEW = "[factors.threads]\nlevels = [1, 2]\n"
RESPONSE = '[response]\nfunction = "answers:rate"\ndirection = "higher"\n'
ELM = '[hosts]\nnames = ["elm"]\n'
TWO = '[hosts]\nnames = ["elm", "oak"]\n'
FOUR = '[hosts]\nnames = ["ash", "elm", "fir", "oak"]\n'
FULL = '[design]\nkind = "full"\n'
PEAK = '[response.peak]\nurl = "http://{host}:8000/{threads}"\nmean = "40ms"\naccuracy = "20%"\n'


def test_a_map_and_its_choice_on_two_hosts(cli, folder):
    result = folder.map(THREADS + FULL + RESPONSE + TWO, "--best")
    assert result.exit_code == 0, result.stderr
    processes = {line.split()[1] for line in (folder.path / "calls").read_text().splitlines()}
    assert len(processes) == 8
    run_id = folder.whole["run_id"]
    told = folder.explained(run_id)
    assert (told["verdict"], told["point"]) == ("best", {"threads": 8})
    assert {turn["turn"]["host"] for turn in told["turns"]} == {"elm", "oak"}
    assert cli("show", run_id).stdout == cli("resume", run_id).stdout
    assert {each["host"] for each in folder.explained(told["map"])["samples"]} == {"elm", "oak"}


@pytest.mark.minutes
def test_nothing_finished_is_repeated_when_the_controller_is_killed(cli, folder):
    """Of hosts behind a prefix; `docs/evidence/trust.py` also kills its workers."""
    behind = f'prefix = "env XDG_DATA_HOME={folder.path}/{{host}}"\ncwd = "{folder.path}"\n'
    slow = RESPONSE.replace(":rate", ":slowly")
    name = folder.write(THREADS + FULL + slow + TWO + behind)
    argv = [sys.executable, "-m", "benchrigor", "map", name]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(argv, **quiet) as running:
        while not any(each["rounds"] for each in folder.journal.runs()):
            assert running.poll() is None
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
    kept = folder.explained()["samples"]
    assert cli("resume", folder.whole["run_id"]).exit_code == 0
    samples = folder.explained()["samples"]
    assert all(each in samples for each in kept)
    assert sorted(each["sample"]["point"]["threads"] for each in samples) == [1, 2, 4, 8]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_map_on_workers_of_dask(folder, monkeypatch):
    distributed = pytest.importorskip("distributed")
    for name in ("_ANSWER_S", "_GONE_S"):
        monkeypatch.setattr(f"benchrigor.workbench.executors.{name}", 300.0)
    own = {"n_workers": 2, "threads_per_worker": 1, "resources": {"host": 1}, "processes": False}
    with distributed.LocalCluster(protocol="tcp", dashboard_address=":0", **own) as cluster:
        hosts = f'[hosts]\nscheduler = "{cluster.scheduler_address}"\ncwd = "{folder.path}"\n'
        result = folder.map(FEW + FULL + RESPONSE + hosts)
    assert result.exit_code == 4, result.stderr  # two points make no model
    samples = folder.explained()["samples"]
    assert sorted(each["sample"]["point"]["threads"] for each in samples) == [1, 2]
    assert all(each["estimates"] for each in samples)
    assert {each["host"] for each in samples} == {"0", "1"}


def test_what_other_hosts_measured_is_kept_here(folder, hosts):
    """Behind a prefix hosts have stores of their own."""
    command = '[response]\ncommand = "echo {threads}"\nread = "rate:op/s=regex:(.+)"\n'
    prefix = f'prefix = "ssh {{host}}"\ncwd = "{folder.path}"\n'
    folder.map(FEW + FULL + command + 'budget = "1s"\n' + TWO + prefix)
    runs = [each for each in folder.journal.runs() if "of map" in each["name"]]
    assert [bool(each["rounds"]) for each in runs] == [True, True]
    told = folder.journal.load(folder.whole["run_id"]).rounds
    assert {each.facts["run"] for each in told} == {each["run_id"] for each in runs}


def test_attempts_are_kept_and_explained_and_other_hosts_are_not_reused(cli, folder, hosts):
    """A host that others use, whose lock was stale: `explain` tells it."""
    found = {"found": [{"estimates": {"value": asdict(known(9.0))}}], "runs": []}
    outcomes = [Outcome(disturbed="others used 1.5"), *[Outcome(value=found)] * 2]
    outcomes.append(Outcome(value=found, taken_over_from="a1b2"))
    hosts.instead = lambda _: outcomes.pop(0)
    text = FEW.replace("2]", "2, 4]") + FULL + RESPONSE
    assert folder.map(text + ELM).exit_code == 4
    said = cli("explain").stdout
    assert "disturbed" in said
    assert "a1b2" in said
    for hosts_now, planned in ((ELM, 0), ("", 3)):
        again = folder.map(text + hosts_now, "--reuse", "--dry-run", "--json")
        assert len(json.loads(again.stdout)["samples"]) == planned


def test_a_host_that_is_not_fit_ends_the_map(folder, hosts):
    """Its samples are not failures of their configurations: they are measured later."""
    hosts.instead = lambda _: Outcome(kind="refused", failure="elm has benchrigor 9.9")
    assert folder.map(FEW + FULL + RESPONSE + ELM).exit_code == 5
    assert folder.whole["rounds"] == 0


def test_a_sample_has_a_server_and_what_sends_to_it(folder, hosts, offering, monkeypatch):
    """Of three hosts one is left, which is no pair: no two samples are measured at once."""
    requests = HttpRequests(kinds=[HttpRequest(url="http://elm/")])
    monkeypatch.setattr(offering, "check", lambda _: offering.senders.check(requests))
    three = '[hosts]\nnames = ["elm", "oak", "fir"]\ngenerators = 1\n'
    folder.map(FEW + FULL + PEAK + three)
    samples, *senders = hosts
    jobs = [job for _, job, *_ in samples.log]
    assert [job.arguments["hosts"] for job in jobs] == [["elm", "oak"]] * 2
    leases = [job.arguments["lease"] for job in jobs]
    assert leases == [job.token.number for job in jobs]
    spans = [log[2:] for log in samples.log]
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
    for executor, lease in zip(senders, leases, strict=True):  # one for each sample
        assert executor.hosts == ("oak",)
        tokens = [job.token for _, job, *_ in executor.log]
        assert {token.owner for token in tokens} == {folder.whole["run_id"]}
        assert min(token.number for token in tokens) > lease


# --- choices: turns are kept, and taken up again

PACES = {"ash": 1.0, "elm": 1.3, "fir": 0.8, "oak": 1.1}


def is_turn(job: Job) -> bool:
    """Whether a job is a turn of a choice, with several configurations."""
    return len(job.arguments.get("samples", ())) > 1


_turns: Counter[tuple[str, str]] = Counter()  # of a test and a host, whose noise they number


def answers_of(
    job: Job, *, noise: float = 0.0, bounded: object = None, rate: float = 1.0
) -> Outcome | None:
    """Answer turns: a rate of 100 of all, and more for more threads; else call the function."""
    if not is_turn(job):
        return None
    points = [sample["point"] for sample in job.arguments["samples"]]
    turn = _turns[job.arguments["cwd"], job.host] = _turns[job.arguments["cwd"], job.host] + 1
    drawn = np.random.default_rng([*job.host.encode(), turn]).normal(0.0, noise, len(points))
    found: list[Any] = [
        asdict(known(100.0 * PACES[job.host] * math.exp(off + math.log(p["threads"]) * rate)))
        for p, off in zip(points, drawn.tolist(), strict=True)
    ]
    bounds = [50.0 if job.host == bounded and p == {"threads": 8} else None for p in points]
    found = [None if bound else each for each, bound in zip(found, bounds, strict=True)]
    answers = [
        {"estimates": {} if each is None else {"value": each}, "at_least": bound}
        for each, bound in zip(found, bounds, strict=True)
    ]
    return Outcome(value={"found": answers, "runs": []})


def chosen(folder: Any, hosts: Any, instead: Any, best: str = "") -> Mapping[str, Any]:
    """Choose on four hosts; return all that is known of it."""
    hosts.instead = instead
    folder.map(f"{THREADS}{FULL}{RESPONSE}{FOUR}{best}", "--best")
    told: Mapping[str, Any] = folder.explained(folder.whole["run_id"])
    return told


def test_each_host_has_one_turn_at_a_time_and_turns_are_kept(cli, folder, hosts):
    told = chosen(folder, hosts, answers_of)
    assert (told["verdict"], told["point"]) == ("best", {"threads": 8})
    assert sorted(each["turn"]["host"] for each in told["turns"]) == [*PACES]
    log = [each for executor in hosts for each in executor.log if is_turn(each[1])]
    for host in PACES:
        spans = sorted((begin, end) for name, _, begin, end in log if name == host)
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
    run_id = folder.whole["run_id"]
    assert folder.journal.load(run_id).subject["kind"] == "choice"
    assert cli("show", run_id).stdout == cli("resume", run_id).stdout


@pytest.mark.parametrize(("margin", "never"), [(0.001, "equivalent"), (0.5, "undecided")])
def test_the_margin_of_a_choice_is_that_of_the_file(folder, hosts, margin, never):
    """Of equal configurations one is found best by chance, now and then."""

    def equal(job: Job) -> Outcome | None:
        return answers_of(job, noise=0.05, rate=0.0)

    told = chosen(folder, hosts, equal, f"[best]\nmargin = {margin}\n")
    assert told["verdict"] != never


def test_a_turn_that_waits_for_its_host_costs_nothing_and_holds_up_no_other(folder, hosts):
    """While ash takes its first turn, elm takes both of its own, and the second of ash waits."""
    elm_turns, elm_is_done = itertools.count(1), threading.Event()

    def slow(job: Job) -> Outcome | None:
        if is_turn(job) and job.host == "elm" and next(elm_turns) == 2:
            elm_is_done.set()
        elif is_turn(job) and not elm_is_done.is_set() and job.host == "ash":
            assert elm_is_done.wait(30.0)
            time.sleep(0.05)
        return answers_of(job)

    hosts.instead = slow
    folder.map(f'{THREADS}{FULL}{RESPONSE}[hosts]\nnames = ["ash", "elm"]\n', "--best")
    turns = folder.explained(folder.whole["run_id"])["turns"]
    assert [each["turn"]["host"] for each in turns] == ["elm", "elm", "ash", "ash"]
    assert turns[3]["cost_s"] < turns[2]["cost_s"]


def test_no_turn_begins_after_the_deadline(folder, hosts):
    """Also none that waits for its host."""

    def slow(job: Job) -> Outcome | None:
        if is_turn(job):
            time.sleep(1.1)
        return answers_of(job)

    hosts.instead = slow
    two = '[hosts]\nnames = ["ash", "elm"]\ndeadline = "1s"\n'
    folder.map(f"{THREADS}{FULL}{RESPONSE}{two}", "--best")
    turns = folder.explained(folder.whole["run_id"])["turns"]
    assert sorted(each["turn"]["host"] for each in turns) == ["ash", "elm"]


def test_no_further_turn_is_asked_of_a_lost_host(folder, hosts):
    """Also those that wait for it are forgotten."""

    def lost(job: Job) -> Outcome | None:
        is_lost = is_turn(job) and job.host == "ash"
        return Outcome(kind="lost", failure="gone") if is_lost else answers_of(job)

    told = chosen(folder, hosts, lost)
    assert [each["turn"]["host"] for each in told["turns"] if each["lost"]] == ["ash"]
    assert {each["turn"]["host"] for each in told["turns"]} == {*PACES}
    assert told["point"] == {"threads": 8}


def test_a_peak_that_was_not_reached_in_a_turn_ends_no_choice(folder, hosts):
    """The turn is kept with the bound, and taken up with it."""
    told = chosen(folder, hosts, lambda job: answers_of(job, bounded="elm"))
    assert told["notices"][0]["code"] == Code.SAMPLES_WITHOUT_NUMBER
    turns = [each for each in told["turns"] if each["turn"]["host"] == "elm"]
    assert all({*each["better_than"]} == {None, 50.0} for each in turns)
    assert told["point"] == {"threads": 8}


def test_what_hosts_find_of_a_peak_that_is_only_bounded_is_no_value(folder, hosts, offering):
    five = THREADS.replace("2, 4", "2, 3, 4")  # of which four have a value, as a model takes
    folder.map(f"{five}{FULL}{PEAK}max_load = 1000\n{FOUR}", "--best")
    told = folder.explained(folder.whole["run_id"])
    first = told["turns"][0]
    pairs = {
        point["threads"]: (found is None, bound)
        for point, found, bound in zip(
            first["turn"]["points"], first["estimates"], first["better_than"], strict=True
        )
    }
    assert pairs[8] == (True, 1000.0)
    assert pairs[4] == (False, None)


COUNTING = """
import os

def rate(threads):
    if os.path.exists("left"):
        n = os.path.getsize("left")
        if n == 0:
            os.remove("left")
            raise KeyboardInterrupt
        os.truncate("left", n - 1)
    return threads, 0.99 * threads, 1.01 * threads
"""


@pytest.mark.parametrize("cut", [1, 3])
def test_a_choice_that_was_cut_off_repeats_no_turn(cli, folder, cut):
    """It ends as one that was never cut off."""
    (folder.path / "answers.py").write_text(COUNTING)
    folder.map(f"{THREADS}{FULL}{RESPONSE}", "--best")
    whole = folder.explained(folder.whole["run_id"])
    (folder.path / "left").write_text("x" * (4 + 2 * cut))  # calls, of four samples and of turns
    assert folder.map(f"{THREADS}{FULL}{RESPONSE}", "--best").exit_code == 130
    run_id = folder.whole["run_id"]
    before = folder.explained(run_id)["turns"]
    assert len(before) == cut
    cli("resume", run_id)
    again = folder.explained(run_id)
    assert again["turns"][:cut] == before
    for name in ("turn", "estimates"):
        assert [x[name] for x in again["turns"]] == [x[name] for x in whole["turns"]]
    assert (again["verdict"], again["point"]) == (whole["verdict"], whole["point"])
