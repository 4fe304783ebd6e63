"""Servers are configured, started, awaited, stopped and cleaned up, whatever happens between."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from benchrigor.errors import WorkloadFailed
from benchrigor.workbench.maps.life_cycle import LifeCycle, Server

# Listens and answers each with the status; "deaf" ignores SIGTERM, "parent" leaves a child behind.
SERVER = """
import http.server, os, pathlib, signal, subprocess, sys
port, status, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
pathlib.Path("pid").write_text(str(os.getpid()))
if "deaf" in how:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "parent" in how:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path("child").write_text(str(child.pid))
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(status)
        self.end_headers()
    def log_message(self, *_):
        print("asked for", self.path, flush=True)
http.server.HTTPServer(("127.0.0.1", port), Answer).serve_forever()
"""


@pytest.fixture
def port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def life(tmp_path, monkeypatch, port):
    """Make the life cycle of our server, with what else is given."""
    monkeypatch.chdir(tmp_path)
    Path("server.py").write_text(SERVER)

    def make(*how, status=200, **given):
        start = [sys.executable, "server.py", str(port), str(status), *how]
        given = {"start": start, "ready": f"http://127.0.0.1:{port}/ready?a={{a}}", **given}
        given["timeouts"] = {"ready": 20.0, **given.get("timeouts", {})}
        return LifeCycle(**given)

    return make


def is_free(port):
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", port)) != 0


def log(word):
    """Return a command that writes a word, and the level of a, to a log."""
    return ["sh", "-c", f"echo {word} $0 >>log; echo {word}", "{a}"]


def names(server):
    return [each.name for each in server.steps]


def test_all_steps_are_run_in_order_with_the_levels_of_the_point(life, port):
    steps = {name: log(name) for name in ("configure", "warm_up", "ramp", "clean")}
    with Server(life(**steps), {"a": "b c"}) as server:
        assert names(server) == ["configure", "ready", "warm_up", "ramp"]
        assert not is_free(port)
        server.warm_up({"a": 2.0})
    assert is_free(port)
    assert names(server)[4:] == ["warm_up", "ramp", "start", "clean"]
    *_, warm_up, _, start, clean = server.steps
    assert (warm_up.code, warm_up.end, warm_up.how) == (0, ("warm_up",), "")
    assert start.code == -signal.SIGTERM
    assert "a=b%20c" in str(start.end)
    assert clean.seconds > 0.0
    told = Path("log").read_text().splitlines()
    assert told[:3] == ["configure b c", "warm_up b c", "ramp b c"]
    assert told[3:] == ["warm_up 2", "ramp 2", "clean 2"]


@pytest.mark.parametrize("way", ["port", "ready_command"])
def test_a_server_is_ready_when_its_port_or_a_command_says_so(life, port, way):
    asks = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
    given = {"port": str(port), "ready_command": [sys.executable, "-c", asks]}
    with Server(life(ready=None, **{way: given[way]}), {}) as server:
        assert not is_free(port)
    assert names(server) == ["ready", "start"]


# Takes a connection, and forgets it.
FORGETFUL = "import socket, time; s = socket.create_server(('', {})); time.sleep(600)"


@pytest.mark.parametrize("is_forgetful", [False, True])
def test_a_server_that_never_becomes_ready_is_ended_with_what_it_said(life, port, is_forgetful):
    start = {"start": [sys.executable, "-c", FORGETFUL.format(port)]} if is_forgetful else {}
    cycle = life(status=503, clean=log("clean"), timeouts={"ready": 1.5}, **start)
    begun_s = time.monotonic()
    with pytest.raises(WorkloadFailed) as caught, Server(cycle, {"a": 1}):
        pytest.fail("it was not ready")
    assert time.monotonic() - begun_s < 300.0
    assert ("status 503" in str(caught.value)) != is_forgetful
    assert "/ready?a=1" in str(caught.value)
    assert is_free(port)
    assert Path("log").read_text() == "clean 1\n"


def test_a_daemon_goes_on_until_it_is_stopped(life, port):
    start = f"{sys.executable} server.py {port} 200 &"
    cycle = life(start=["sh", "-c", start], stop=["sh", "-c", "kill $(cat pid)"])
    with Server(cycle, {}) as server:
        time.sleep(0.3)
        assert not is_free(port)
    assert is_free(port)
    assert [(each.name, each.code) for each in server.steps[1:]] == [("stop", 0), ("start", 0)]


@pytest.mark.parametrize("stop", [None, ["true"]])
def test_a_server_that_ignores_signals_is_killed_and_what_it_leaves_behind_ended(life, port, stop):
    cycle = life("deaf", "parent", stop=stop, timeouts={"stop": 0.3})
    with Server(cycle, {}) as server:
        child = int(Path("child").read_text())
        assert psutil.pid_exists(child)
    assert is_free(port)
    assert server.steps[-1].code == -signal.SIGKILL
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie"


def test_what_answers_already_is_not_taken_for_the_server(life):
    with (
        Server(life(), {}),
        pytest.raises(WorkloadFailed),
        Server(life(clean=["true"]), {}),
    ):
        pytest.fail("the first one answers")


@pytest.mark.parametrize("name", ["configure", "stop", "clean"])
def test_a_step_that_fails_is_named_with_its_code_and_its_last_words(life, name):
    steps = {"configure": log("configure"), "stop": log("stop"), "clean": log("clean")}
    steps[name] = ["sh", "-c", "echo the disk is full; exit 7"]
    server = Server(life(start=None, ready=None, **steps), {"a": 1})
    with pytest.raises(WorkloadFailed) as caught, server:
        pass
    assert str(caught.value).startswith(name)
    assert names(server) == (["configure", "clean"] if name == "configure" else [*steps])


def test_an_error_inside_is_raised_also_where_stopping_fails(life):
    server = Server(LifeCycle(clean=["false"]), {})
    with pytest.raises(KeyError), server:
        raise KeyError
    assert [(each.name, each.code) for each in server.steps] == [("clean", 1)]


def test_a_server_that_broke_down_can_be_started_again(life, port):
    with Server(life(stop=log("stop"), warm_up=log("warm_up")), {"a": 1}) as server:
        os.kill(int(Path("pid").read_text()), signal.SIGKILL)
        while not is_free(port):
            time.sleep(0.01)
        server.restart()
        assert not is_free(port)
        assert (server.steps[2].name, server.steps[2].code) == ("start", -signal.SIGKILL)
    assert is_free(port)
    assert Path("log").read_text() == "warm_up 1\n" * 2 + "stop 1\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_the_server_and_cleans_up(life, port, number):
    """A server does not outlive us, however we end; SIGKILL leaves no time to clean up."""
    cycle = life(clean=log("clean"))
    given = {name: getattr(cycle, name) for name in ("start", "ready", "clean")}
    program = f"""
import time
from benchrigor.workbench.maps.life_cycle import LifeCycle, Server
from benchrigor.workloads.processes.own_signals import ended_by_signals
with ended_by_signals(), Server(LifeCycle(**{given!r}), {{"a": 1}}):
    print("ready", flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        assert not is_free(port)
        process.send_signal(number)
        process.wait(15)
    until_s = time.monotonic() + 60.0
    while not is_free(port) and time.monotonic() < until_s:
        time.sleep(0.01)
    assert is_free(port)
    cleaned = Path("log").read_text() if Path("log").exists() else ""
    assert cleaned == ("" if number == signal.SIGKILL else "clean 1\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a}{a} {b}", "22 x y"),
        ('{"threads": {a}}', '{"threads": 2}'),
        ("${a} {} {1} { a } {load}", "${a} {} {1} { a } {load}"),
        ("{c} {d}", f"0.1 {10**20}"),
        ("{größe} {e}", "9 {a}"),  # a level with braces is not filled again
    ],
)
def test_places_are_words_in_braces(text, expected):
    point = {"a": 2.0, "b": "x y", "c": 0.1, "d": 1e20, "größe": 9, "e": "{a}"}
    cycle = LifeCycle(start=[text], port="{größe}").at(point)
    assert (cycle.start, cycle.port) == ([expected], "9")
