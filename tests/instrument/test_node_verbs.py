"""``benchrigor agent`` and ``benchrigor watch``."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time

import pytest
from tests.instrument.nodes.made_nodes import agent_of

from benchrigor.testing import FakeSampler

LONG_S = 120.0
TOKEN = "a-token-of-the-tests"  # noqa: S105  # for this test alone


@pytest.fixture
def agent():
    with agent_of(FakeSampler({"cpu busy": 7.0, "memory available": 4e9})) as made:
        last_s = time.monotonic() + LONG_S
        while made.service.state("status")["status"] is None:
            assert time.monotonic() < last_s
            time.sleep(0.01)
        yield made


def test_a_long_address_is_told_whole_and_takes_no_room_from_figures(cli, agent):
    long = "[fe80:0000:0000:0000:0000:0000:0000:0009]:1"
    result = cli("watch", "--once", agent.url, long)
    told = "".join(result.stdout.replace("silent", "").split())
    assert told.count(long) == 2  # in its row and in its note
    assert re.search(r"well .* 7% .* 4 GB .* < [0-9.]+ .?s", result.stdout)
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_what_programs_read_has_all(cli, agent, strict):
    document = strict(cli("watch", "--once", "--json", agent.url).stdout)
    (node,) = document["nodes"]
    assert (node["address"], node["condition"]) == (agent.url, "well")
    assert node["report"]["status"]["samples"][0]["name"] == "cpu busy"


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


def test_a_terminal_shows_first_what_is_wrong_and_has_its_cursor_back_at_the_end(agent):
    fcntl, termios = (pytest.importorskip(name) for name in ("fcntl", "termios"))
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    gone = [f"127.0.0.1:{port}" for port in range(1, 31)]
    words = [sys.executable, "-m", "benchrigor", "watch", agent.url, *gone]
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
    lines = [each for each in drawn.decode(errors="replace").splitlines() if "127.0.0.1:" in each]
    assert f"{gone[0]}: " in lines[0]  # why it is silent, before all rows
    assert b"24 more notes" in drawn
    rows = [each for each in lines if "silent" in each]
    assert gone[0] in rows[0]


def test_the_exit_code_says_whether_all_is_well(cli, agent):
    gone = "127.0.0.1:1"
    result = cli("watch", "--once", agent.url, gone)
    assert result.exit_code == 3
    assert f"{gone}: " in result.stdout
    assert cli("watch", "--once", gone).exit_code == 4
    agent.service.alarms.raise_("queue-full", "A queue is full.")
    result = cli("watch", "--once", agent.url)
    assert result.exit_code == 3
    assert "[queue-full]" in result.stdout


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_an_agent_serves_until_it_is_told_to_end(cli, tmp_path, monkeypatch, how):
    secret, given, kept = (tmp_path / each for each in ("token", "given.toml", "kept.json"))
    secret.write_text(TOKEN + "\n")
    given.write_text("")
    if how is signal.SIGTERM:
        kept.write_text('{"thresholds": {}}')
    words = ["-m", "benchrigor", "agent", "--port", "0", "--token-file", secret]
    words += ["--thresholds", given, "--config", kept]
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, *words], stdout=pipe, stderr=pipe, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[1]
        assert cli("watch", "--once", url).exit_code == 4  # no token
        monkeypatch.setenv("BENCHRIGOR_TOKEN", TOKEN)
        (node,) = json.loads(cli("watch", "--once", "--json", url).stdout)["nodes"]
        assert node["condition"] == "well"
        process.send_signal(how)
        _, said = process.communicate(timeout=LONG_S)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode in (0, 130)
    # Given thresholds that are not in force, since others are kept, are told.
    assert (str(given) in said) is kept.exists()
