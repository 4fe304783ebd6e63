"""``benchrigor agent`` and ``benchrigor watch``."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from benchrigor.instrument import Agent, ProbeRegistry
from benchrigor.instrument.data.node import NodeCondition, NodeView
from benchrigor.instrument.watch_verb import screen
from benchrigor.machine import StatusReader
from benchrigor.testing import FakeSampler

LONG_S = 120.0
TOKEN = "a-token-of-the-tests"  # noqa: S105  # for this test alone


@pytest.fixture
def agent():
    reader = StatusReader(samplers=[FakeSampler({"cpu busy": 7.0, "memory available": 4e9})])
    with Agent(registry=ProbeRegistry(), reader=reader) as made:
        last_s = time.monotonic() + LONG_S
        while made.service.status is None:
            assert time.monotonic() < last_s
            time.sleep(0.01)
        yield made


def test_nodes_are_shown_in_a_table(cli, agent):
    result = cli("watch", "--once", agent.url)
    assert result.exit_code == 0
    head, _, row = (each for each in result.stdout.splitlines() if each.strip())
    assert head.split() == [
        "node",
        "is",
        "age",
        "busy",
        "load",
        "free",
        "pressure",
        "clock",
        "alarms",
    ]
    assert row.split()[:2] == [agent.url.partition("://")[2], "well"]
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_long_address_is_told_whole_and_takes_no_room_from_figures(cli, agent):
    long = "[fe80:0000:0000:0000:0000:0000:0000:0009]:1"
    result = cli("watch", "--once", agent.url, long)
    told = "".join(result.stdout.replace("silent", "").split())
    assert told.count(long) == 2  # in its row and in its note
    assert re.search(r"well .* 7% .* 4 GB ", result.stdout)
    assert max(map(len, result.stdout.splitlines())) <= 80


def drawn(views: list[NodeView], height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=80)
    console.print(screen(views, height))
    return console.file.getvalue().splitlines()[:height]


def test_a_low_terminal_shows_first_what_is_wrong():
    well = [NodeView(address=f"http://a{i}:1", condition=NodeCondition.WELL) for i in range(40)]
    gone = NodeView(address="http://b:1", condition=NodeCondition.SILENT, reason="no answer")
    lines = drawn([*well, gone], height=24)
    assert lines[0] == "b:1: no answer"
    rows = [each.split() for each in lines if "well" in each or "silent" in each]
    assert rows[0] == ["b:1", "silent"]
    assert len(rows) > 15


def test_however_much_is_wrong_a_low_terminal_shows_some_rows():
    wrong = NodeCondition.WRONG
    views = [
        NodeView(address=f"http://a{i}:1", condition=wrong, reason="x " * 50) for i in range(40)
    ]
    lines = drawn(views, height=24)
    assert "and 34 more notes" in lines
    assert any("a0:1  wrong" in each for each in lines)


def test_what_programs_read_has_all(cli, agent, strict):
    document = strict(cli("watch", "--once", "--json", agent.url).stdout)
    (node,) = document["nodes"]
    assert (node["address"], node["condition"]) == (agent.url, "well")
    assert node["report"]["status"]["samples"][0]["name"] == "cpu busy"


@pytest.mark.slow
def test_nothing_but_lines_of_json_is_printed_when_it_is_interrupted():
    words = [sys.executable, "-m", "benchrigor", "watch", "--json", "127.0.0.1:1"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        first = process.stdout.readline() + process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=LONG_S)
    finally:
        process.kill()
        process.communicate()
    for line in (first + rest).splitlines():
        assert json.loads(line)["nodes"]
    assert process.returncode == 130


@pytest.mark.slow
def test_a_terminal_has_its_cursor_back_when_it_is_told_to_end():
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    words = [sys.executable, "-m", "benchrigor", "watch", "127.0.0.1:1"]
    process = subprocess.Popen(words, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    drawn = b""
    try:
        while part := os.read(ours, 4096):
            if b"silent" in part and b"silent" not in drawn:
                process.send_signal(signal.SIGTERM)
            drawn += part
    except OSError:  # the terminal was closed at the other end
        pass
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert drawn.rfind(b"\x1b[?25h") > drawn.rfind(b"\x1b[?25l") > -1
    assert process.returncode == 130


def test_the_exit_code_says_whether_all_is_well(cli, agent):
    gone = "127.0.0.1:1"
    result = cli("watch", "--once", agent.url, gone)
    assert result.exit_code == 3
    assert f"{gone}: " in result.stdout
    assert cli("watch", "--once", gone).exit_code == 4
    agent.service.alarms.raise_("queue-full", "A queue is full.")
    result = cli("watch", "--once", agent.url)
    assert result.exit_code == 3
    assert "A queue is full. [queue-full]" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("watch", "--once", "a:b"), "'a:b' is no node"),
        (("watch", "--once", "a:1", "a:1"), "twice"),
        (("watch",), "Missing argument 'NODE...'"),
        (("watch", "--authority", "none.pem", "a:1"), "does not exist"),
        (("agent", "--host", "0.0.0.0"), "there is no token"),
        (("agent", "--port", "70000"), "is not in the range"),
        (("agent", "--token-file", "none"), "does not exist"),
        (("agent", "--token-file", os.devnull), "is a device, expected a file"),
    ],
)
def test_wrong_input_is_refused(cli, words, said):
    result = cli(*words)
    assert result.exit_code == 2
    assert said in result.stderr


def test_wrong_thresholds_are_refused(cli, tmp_path):
    wrong = tmp_path / "thresholds.toml"
    wrong.write_text("[hot]\nhold_s = -1")
    result = cli("agent", "--port", "0", "--thresholds", wrong)
    assert result.exit_code == 2
    assert "hot.hold_s is -1" in result.stderr


def test_thresholds_that_are_not_in_force_are_told(cli, tmp_path, monkeypatch):
    given, kept = tmp_path / "given.toml", tmp_path / "kept.json"
    given.write_text("")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("benchrigor.instrument.agent_verb.print_result", interrupted)
    words = ("agent", "--port", "0", "--thresholds", given, "--config", kept)
    assert "in force" not in cli(*words).stderr
    kept.write_text('{"thresholds": {}}')
    assert f"thresholds kept in {kept} are in force, not those of {given}" in cli(*words).stderr


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_an_agent_serves_until_it_is_told_to_end(cli, tmp_path, monkeypatch, how):
    secret = tmp_path / "token"
    secret.write_text(TOKEN + "\n")
    words = ["-m", "benchrigor", "agent", "--port", "0", "--token-file", str(secret)]
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[1]
        assert cli("watch", "--once", url).exit_code == 4  # no token
        monkeypatch.setenv("BENCHRIGOR_TOKEN", TOKEN)
        (node,) = json.loads(cli("watch", "--once", "--json", url).stdout)["nodes"]
        assert node["condition"] == "well"
        process.send_signal(how)
        assert process.wait(LONG_S) in (0, 130)
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
