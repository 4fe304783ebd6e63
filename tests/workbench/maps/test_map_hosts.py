"""Maps and choices on hosts that are processes of this machine."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import Estimate, codec
from benchrigor.storage import Journal
from benchrigor.testing import FakeExecutor
from benchrigor.workbench.loadgen import HttpRequest, HttpRequests
from benchrigor.workbench.maps import map_hosts, stored_choices
from benchrigor.workbench.maps.map_file import read_map
from benchrigor.workbench.maps.map_run import Found, samples_of
from benchrigor.workbench.pool.on_host import Outcome
from benchrigor.workbench.surfaces.samples import Sample

FACTOR = "[factors.size]\nlevels = [1, 2, 4, 8]\n"
FEW = "[factors.size]\nlevels = [1, 2]\n"
RESPONSE = '[response]\nfunction = "answers:rate"\ndirection = "higher"\n'
HOSTS = '[hosts]\nnames = ["elm", "oak"]\n'
BEHIND = HOSTS + 'prefix = "env XDG_DATA_HOME={folder}/{{host}}"\ncwd = "{folder}"\n'
FULL = '[design]\nkind = "full"\n'
ANSWERS = """
import os, time

def rate(size):
    with open("calls", "a") as calls:
        calls.write(f"{size} {os.getpid()}\\n")
    time.sleep({seconds})
    return 100.0 * size, 99.0 * size, 101.0 * size
"""

KNOWN = {"confidence": 0.95, "n": 9, "n_effective": 9.0, "method": "told"}
FOUND = Found(estimates={"value": Estimate(value=9.0, low=8.9, high=9.1, **KNOWN)})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.py").write_text(ANSWERS.replace("{seconds}", "0.05"))
    (tmp_path / "map.toml").write_text(FACTOR + FULL + RESPONSE + HOSTS)
    return tmp_path


def test_the_name_of_the_host_needs_hosts(folder: Path) -> None:
    command = FACTOR + '[response]\ncommand = "run {size} {host}"\n'
    (folder / "alone.toml").write_text(command)
    with pytest.raises(InvalidInput):
        read_map(folder / "alone.toml")
    (folder / "hosts.toml").write_text(command + HOSTS)
    assert read_map(folder / "hosts.toml").has_pool


@pytest.mark.slow
def test_a_map_and_its_choice_on_two_hosts(cli, store, folder: Path) -> None:
    result = cli("map", "map.toml", "--best")
    assert result.exit_code == 0, result.stderr
    assert len({line.split()[1] for line in (folder / "calls").read_text().splitlines()}) == 8
    (choice,) = (each for each in Journal(store).runs() if each["name"].startswith("best of"))
    run_id = choice["run_id"]
    told = json.loads(cli("explain", run_id, "--json").stdout)
    assert (told["verdict"], told["point"]) == ("best", {"size": 8})
    assert {turn["turn"]["host"] for turn in told["turns"]} == {"elm", "oak"}
    assert cli("show", run_id).stdout == cli("resume", run_id).stdout
    (whole,) = (each for each in Journal(store).runs() if each["name"] == "answers:rate")
    samples = samples_of(Journal(store).load(whole["run_id"]))
    assert {sample.host for sample in samples} == {"elm", "oak"}


@pytest.mark.slow
@pytest.mark.parametrize("hosts", [HOSTS, BEHIND])
def test_nothing_finished_is_repeated_when_the_controller_is_killed(
    cli, store, folder: Path, hosts: str
) -> None:
    """On this machine, and behind a prefix; `docs/evidence/maps.py` kills it twenty times."""
    (folder / "map.toml").write_text(FACTOR + FULL + RESPONSE + hosts.format(folder=folder))
    journal = Journal(store)
    argv = [sys.executable, "-m", "benchrigor", "map", "map.toml", "--store", str(store)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(argv, **quiet) as running:
        while not store.exists() or not any(each["rounds"] for each in journal.runs()):
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
    (whole,) = journal.runs()
    kept = samples_of(journal.load(whole["run_id"]))
    assert cli("resume", whole["run_id"]).exit_code == 0
    samples = samples_of(journal.load(whole["run_id"]))
    assert all(each in samples for each in kept)
    assert sorted(each.sample.point["size"] for each in samples) == [1, 2, 4, 8]


def test_attempts_are_kept_and_explained(cli, store, folder: Path, monkeypatch) -> None:
    """A host that others use, whose lock was stale: `explain` tells it."""
    taken = {"value": {"found": codec.encode(FOUND), "runs": []}, "taken_over_from": "a1b2"}
    outcomes = [Outcome(disturbed="others used 1.5 processors"), *[Outcome(**taken)] * 2]
    executor = FakeExecutor(["elm"], instead=lambda _: outcomes.pop(0))
    monkeypatch.setattr("benchrigor.workbench.maps.map_hosts.executor_for", lambda _hosts: executor)
    (folder / "map.toml").write_text(FEW + FULL + RESPONSE + '[hosts]\nnames = ["elm"]')
    assert cli("map", "map.toml").exit_code == 4
    said = cli("explain").stdout
    assert "disturbed" in said
    assert "a1b2" in said


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_map_on_workers_of_dask(cli, store, folder: Path, monkeypatch) -> None:
    distributed = pytest.importorskip("distributed")
    for name in ("_ANSWER_S", "_GONE_S"):
        monkeypatch.setattr(f"benchrigor.workbench.pool.dask_executor.{name}", 300.0)
    own = {"n_workers": 2, "threads_per_worker": 1, "resources": {"host": 1}, "processes": False}
    with distributed.LocalCluster(protocol="tcp", dashboard_address=":0", **own) as cluster:
        hosts = f'[hosts]\nscheduler = "{cluster.scheduler_address}"\ncwd = "{folder}"\n'
        factor = "[factors.size]\nlevels = [1, 2]\n"
        (folder / "map.toml").write_text(factor + FULL + RESPONSE + hosts)
        result = cli("map", "map.toml")
    assert result.exit_code == 4, result.stderr  # two points make no model
    (whole,) = Journal(store).runs()
    samples = samples_of(Journal(store).load(whole["run_id"]))
    assert sorted(each.sample.point["size"] for each in samples) == [1, 2]
    assert all(each.estimates for each in samples)
    assert {each.host for each in samples} == {"0", "1"}


@pytest.mark.slow
def test_what_other_hosts_measured_is_kept_here(cli, store, folder: Path) -> None:
    """Behind a prefix hosts have a store of their own, and a folder of that name."""
    command = '[response]\ncommand = "echo {size}"\nread = "rate:op/s=regex:(.+)"\nbudget = "1s"\n'
    hosts = f"{BEHIND.format(folder=folder)}interchangeable = true\n"
    (folder / "map.toml").write_text(FACTOR + FULL + command + hosts)
    assert cli("map", "map.toml").exit_code == 0
    runs = [each for each in Journal(store).runs() if "of map" in each["name"]]
    (whole,) = (each for each in Journal(store).runs() if "of map" not in each["name"])
    assert len(runs) == 4
    told = Journal(store).load(whole["run_id"]).rounds
    assert {each.facts["run"] for each in told} == {each["run_id"] for each in runs}
    assert all(each["rounds"] for each in runs)


PEAK = """[factors.size]
levels = [1, 2]
[response.peak]
url = "http://{host}:8000/{size}"
mean = "9s"
seed_load = 20
min_load = 20
max_load = 20
trial_time = "500ms"
budget = "9min"
"""


GENERATORS = '[hosts]\nnames = ["elm", "oak", "fir"]\ngenerators = 1\n'


def test_a_sample_has_a_server_and_what_sends_to_it(cli, folder: Path, monkeypatch) -> None:
    """Of three hosts one is left, which is no pair: no two samples are measured at once."""
    found = replace(FOUND, estimates={"peak": FOUND.estimates["value"]})
    outcome = Outcome(value={"found": codec.encode(found), "runs": []})
    executor = FakeExecutor(["elm", "oak", "fir"], instead=lambda _: outcome)
    monkeypatch.setattr("benchrigor.workbench.maps.map_hosts.executor_for", lambda _hosts: executor)
    (folder / "map.toml").write_text(PEAK + FULL + GENERATORS)
    cli("map", "map.toml")
    jobs = [job for _, job, *_ in executor.log]
    assert [job.arguments["hosts"] for job in jobs] == [["elm", "oak"]] * 2
    assert [job.arguments["lease"] for job in jobs] == [job.token.number for job in jobs]
    spans = [log[2:] for log in executor.log]
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))


def test_the_other_hosts_of_a_lease_send(folder: Path, monkeypatch) -> None:
    (folder / "map.toml").write_text(PEAK + GENERATORS)
    made: list[FakeExecutor] = []

    def executor_for(hosts: Any) -> FakeExecutor:
        made.append(FakeExecutor(hosts.names))
        return made[-1]

    monkeypatch.setattr(map_hosts, "executor_for", executor_for)
    document = read_map("map.toml").document
    with map_hosts._senders(document, ["elm", "oak", "fir"], "m", 7) as senders:  # noqa: SLF001
        senders.check(HttpRequests(kinds=[HttpRequest(url="http://elm/")]))
        senders.close()  # as after each search: the pool stays until the sample is over
        senders.check(HttpRequests(kinds=[HttpRequest(url="http://elm/")]))
    (executor,) = made
    assert sorted(host for host, *_ in executor.log) == ["fir", "fir", "oak", "oak"]
    tokens = [job.token for _, job, *_ in executor.log]
    assert {token.owner for token in tokens} == {"m"}
    assert min(token.number for token in tokens) == 8
    with map_hosts._senders(document, ["elm"], "m", 7) as senders:  # noqa: SLF001
        assert senders is None


def test_searches_send_from_where_they_are_told(folder: Path, monkeypatch) -> None:
    (folder / "map.toml").write_text(PEAK + GENERATORS)
    given: list[object] = []

    def generator_of(*_: object, senders: object, **__: object) -> None:
        given.append(senders)
        raise WorkloadFailed("it is enough")

    monkeypatch.setattr("benchrigor.workbench.maps.responses.generator_of", generator_of)
    senders = object()
    file = map_hosts._file_on("elm", read_map("map.toml").document)  # noqa: SLF001
    with map_hosts.Samples(file, cwd=str(folder), senders=senders) as samples:
        samples.measure(Sample(id=0, point={"size": 1}, accuracy=0.1))
    assert given == [senders]


@pytest.mark.parametrize(("best", "verdict"), [("", "undecided"), ("margin = 0.5", "equivalent")])
def test_the_margin_of_a_choice_is_that_of_the_file(folder: Path, best: str, verdict: str) -> None:
    (folder / "map.toml").write_text(f"{FACTOR}{RESPONSE}{HOSTS}[best]\n{best}\n")
    points = [{"size": size} for size in (1, 2)]
    subject = {"points": points, "hosts": ["ash", "elm", "fir", "oak"], "budget_s": None}
    choice = stored_choices._choice_of(subject, read_map(folder / "map.toml"))  # noqa: SLF001
    rng = np.random.default_rng(7)
    while (turn := choice.ask()) is not None:
        values = (100.0 * np.exp(rng.normal(0.0, 0.05, 2))).tolist()
        choice.tell(turn, [(value, 0.9 * value, 1.1 * value) for value in values])
    assert choice.result().verdict == verdict


def test_a_host_that_is_not_fit_ends_the_map(cli, folder: Path, monkeypatch) -> None:
    """Its samples are not failures of their configurations: they are measured later."""
    refused = Outcome(kind="refused", failure="elm has benchrigor 9.9, expected 0.1.0 as here")
    executor = FakeExecutor(["elm"], instead=lambda _: refused)
    monkeypatch.setattr("benchrigor.workbench.maps.map_hosts.executor_for", lambda _hosts: executor)
    (folder / "map.toml").write_text(FACTOR + FULL + RESPONSE + '[hosts]\nnames = ["elm"]')
    result = cli("map", "map.toml")
    assert result.exit_code == 5
    assert "9.9" in result.stderr
    (whole,) = Journal(folder / "runs.sqlite").runs()
    assert whole["rounds"] == 0


def test_samples_of_other_hosts_are_not_reused(cli, store, folder: Path, monkeypatch) -> None:
    outcome = Outcome(value={"found": codec.encode(FOUND), "runs": []})
    executor = FakeExecutor(["elm"], instead=lambda _: outcome)
    monkeypatch.setattr("benchrigor.workbench.maps.map_hosts.executor_for", lambda _hosts: executor)
    (folder / "map.toml").write_text(FEW + FULL + RESPONSE + '[hosts]\nnames = ["elm"]')
    assert cli("map", "map.toml").exit_code == 4
    again = json.loads(cli("map", "map.toml", "--reuse", "--dry-run", "--json").stdout)
    assert again["samples"] == []
    (folder / "map.toml").write_text(FEW + FULL + RESPONSE)
    alone = json.loads(cli("map", "map.toml", "--reuse", "--dry-run", "--json").stdout)
    assert len(alone["samples"]) == 2


def test_a_turn_lacks_the_value_of_a_peak_that_is_only_bounded(folder: Path, monkeypatch) -> None:
    found = iter([Found(at_least=500.0, reason="not saturated"), FOUND, Found(reason="failed")])
    monkeypatch.setattr(map_hosts.Samples, "measure", lambda *_: next(found))
    samples = [Sample(id=n, point={"size": size}, accuracy=0.1) for n, size in enumerate((1, 2, 4))]
    told = map_hosts.measure_points(
        document=read_map("map.toml").document,
        cwd=str(folder),
        map_id=None,
        store=None,
        samples=[codec.encode(sample) for sample in samples],
        response="value",
        hosts=["elm"],
        lease=0,
    )
    assert [plain is None for plain in told["estimates"]] == [True, False, True]
    assert told["better_than"] == [500.0, None, None]
