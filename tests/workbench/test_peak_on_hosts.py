"""peak, with hosts that send: processes of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchrigor.storage import Journal
from benchrigor.workbench.on_host import HostLock, Token

SIMULATIONS = Path(__file__).parents[1] / "simulations"
OWN = "env XDG_DATA_HOME={folder}/{{host}}"  # a host of its own has a folder of its own
URL = ("--mean", "9s", "--url", "http://127.0.0.1:9/")


@pytest.fixture
def queue() -> Iterator[str]:
    """The address of a server that serves 200 a second, one after the other."""
    command = [sys.executable, str(SIMULATIONS / "queue_server.py"), "200"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/"
        server.kill()


def test_hosts_send_together(cli, store, strict, queue, tmp_path):
    words = ("--mean", "9s", "--url", queue, "--seed-load", "30", "--min-load", "30")
    words += ("--max-load", "30", "--trial-time", "0.5", "--budget", "500")
    words += ("--host", "elm", "--host", "oak")
    result = cli("peak", *words, "--prefix", OWN.format(folder=tmp_path))
    assert result.exit_code == 0, result.stderr
    (kept,) = Journal(store).runs()
    record = Journal(store).load(kept["run_id"])
    assert record.subject["generator"]["hosts"]["names"] == ["elm", "oak"]
    for words in (("show", kept["run_id"]), ("resume", kept["run_id"])):
        assert cli(*words).stdout == result.stdout
    document = strict(cli("resume", kept["run_id"], "--json").stdout)
    told = document["trials"][-1]["result"]
    assert sum(told["shares"].values()) == told["scheduled"]
    assert told["sent"] == told["scheduled"]
    locks = {path.parts[-4]: path.read_text() for path in tmp_path.rglob("hosts/*.lock")}
    assert locks == {"elm": "", "oak": ""}


def test_two_names_of_one_machine_and_a_host_that_works_for_somebody_else_are_errors(cli, queue):
    words = ("peak", "--mean", "9s", "--url", queue, "--host", "elm")
    twice = cli(*words, "--host", "oak", "--prefix", "env HOST={host}")
    assert twice.exit_code == 5
    lock = HostLock("elm", Token(owner="somebody else", number=1))
    lock.take()
    try:
        result = cli(*words)
    finally:
        lock.free()
    assert result.exit_code == 5
    assert "somebody else" in result.stderr


def test_a_dry_run_asks_no_host(cli, store):
    words = ("--host", "elm", "--prefix", "false {host}", "--accuracy", "20%", "--dry-run")
    result = cli("peak", *URL, *words, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["first"]["load"] == 50.0
