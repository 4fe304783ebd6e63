"""An agent over real sockets: what it tells, what it refuses, what it keeps."""

from __future__ import annotations

import gc
import json
import socket
import ssl
import stat
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from benchrigor.errors import InvalidInput
from benchrigor.instrument import Agent, ProbeRegistry
from benchrigor.instrument.nodes import node_service
from benchrigor.instrument.nodes.exposition import exposition
from benchrigor.instrument.nodes.node_service import NodeService
from benchrigor.machine import Alarms, StatusReader
from benchrigor.testing import FakeSampler

HERE = Path(__file__).parent
LONG_S = 20.0
BUSY = {
    "when": [{"sample": "cpu busy", "above": 90.0, "clear": 50.0}],
    "sentence": "All is busy.",
    "hold_s": 1.0,
}


def until(holds: Callable[[], object]) -> None:
    last_s = time.monotonic() + LONG_S
    while not holds():
        assert time.monotonic() < last_s, "it did not come to pass"
        time.sleep(0.01)


def test_all_is_told_that_is_known(agent_of, ask):
    registry = ProbeRegistry()
    with registry.probe("parse"):
        pass
    with agent_of(registry=registry) as agent:
        until(lambda: agent.service.health)
        assert {each["name"] for each in ask(agent.url + "/capabilities")[1]} > {"cpu model", "ram"}
        status, told = ask(agent.url + "/status")
        assert status == 200
        assert told["age_s"] < LONG_S
        assert told["status"]["samples"][0]["name"] == "load 1 min"
        told = ask(agent.url + "/health")[1]
        assert told["health"]["samples"]
        assert told["age_s"] < LONG_S
        assert ask(agent.url + "/alarms") == (200, {"alarms": []})
        assert "hot" in ask(agent.url + "/config")[1]["thresholds"]
        assert ask(agent.url + "/probes")[1]["probes"]["readings"]["parse"]["count"] == 1
        report = ask(agent.url + "/report?echo=x")[1]
        assert (report["echo"], report["sequence"]) == ("x", 1)


def test_probes_are_told_in_parts(agent_of, ask):
    registry = ProbeRegistry()
    with agent_of(registry=registry) as agent:
        cursor = ask(agent.url + "/probes?cursor=")[1]["cursor"]
        with registry.probe("parse"):
            pass
        for _ in range(2):  # as if the first answer had been lost
            told = ask(f"{agent.url}/probes?cursor={cursor}")[1]
            assert told["probes"]["readings"]["parse"]["count"] == 1
        told = ask(f"{agent.url}/probes?cursor={told['cursor']}")[1]
        assert told["probes"]["readings"]["parse"]["count"] == 0


def test_prometheus_reads_its_metrics(agent_of):
    registry = ProbeRegistry()
    name = 'a "name" with \\ and {label="x"} é'
    for _ in range(3):
        with registry.probe(name):
            pass
    frame = registry.probe("frame", deadline_s=4e-6)
    frame.stop(frame.start() - 5_000)
    with agent_of(registry=registry) as agent:
        until(lambda: agent.service.status)
        agent.service.alarms.raise_("queue-full")
        with urllib.request.urlopen(agent.url + "/metrics") as answer:  # noqa: S310
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            text = answer.read().decode()
    families = {each.name: each for each in text_string_to_metric_families(text)}
    probes = families["benchrigor_probe_seconds"].samples
    samples = {each.name: each for each in probes if each.labels["probe"] == name}
    assert samples["benchrigor_probe_seconds_count"].labels == {"probe": name, "clock": "wall"}
    assert samples["benchrigor_probe_seconds_count"].value == 3.0
    assert samples["benchrigor_probe_seconds_sum"].value > 0.0
    (missed,) = families["benchrigor_probe_missed_deadlines"].samples
    assert missed.labels == {"probe": "frame", "deadline": "4e-06"}
    assert (missed.name, missed.value) == ("benchrigor_probe_missed_deadlines_total", 1.0)
    states = {each.labels["sample"]: each.value for each in families["benchrigor_state"].samples}
    assert states["cpu busy"] == 7.0
    alarms = {each.labels["code"]: each.value for each in families["benchrigor_alarm"].samples}
    assert alarms["queue-full"] == 1.0
    assert alarms["hot"] == 0.0
    (age,) = families["benchrigor_state_age_seconds"].samples
    assert age.value >= 0.0


def test_metrics_are_told_before_the_first_reading():
    service = NodeService(ProbeRegistry(), Alarms(), StatusReader(samplers=[]))
    names = {each.name for each in text_string_to_metric_families(exposition(service).decode())}
    assert "benchrigor_node_info" in names


def test_a_name_that_is_not_utf_8_spoils_no_metrics():
    sampler = FakeSampler({"disk \udcff": 1.0})
    service = NodeService(ProbeRegistry(), Alarms(), StatusReader(samplers=[sampler]))
    service.read()
    assert 'sample="disk ?"' in exposition(service).decode()


@pytest.mark.slow
def test_an_alarm_is_raised_on_the_node(agent_of, ask, sampler):
    with agent_of() as agent:
        assert ask(agent.url + "/config", {"thresholds": {"busy": BUSY}})[0] == 200
        sampler.values["cpu busy"] = 99.0
        until(lambda: ask(agent.url + "/alarms")[1]["alarms"])
        (alarm,) = ask(agent.url + "/alarms")[1]["alarms"]
        assert (alarm["code"], alarm["value"]) == ("busy", 99.0)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"[" * 60_000, "no JSON"),
        (b"\xff", "no JSON"),
        ([], "expected only 'thresholds'"),
        ({"thresholds": {}, "more": 1}, "expected only 'thresholds'"),
        ({"thresholds": 3}, "no table"),
        ({"thresholds": {"hot": {"hold_s": -1}}}, "hot.hold_s is -1"),
        ({"thresholds": {"busy": {}}}, "busy.when"),
        (b'{"thresholds": {"hot": {"hold_s": NaN}}}', "hot.hold_s is nan"),
    ],
)
def test_a_wrong_configuration_changes_nothing(agent_of, ask, body, said):
    with agent_of() as agent:
        before = ask(agent.url + "/config")
        status, told = ask(agent.url + "/config", body)
        assert status == 400
        assert said in told["error"]
        assert ask(agent.url + "/config") == before


def test_a_configuration_is_kept_over_a_restart(agent_of, ask, tmp_path):
    kept = tmp_path / "folder" / "agent.json"
    for _ in range(2):
        with agent_of(config=kept) as agent:
            ask(agent.url + "/config", {"thresholds": {"busy": BUSY}})
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    with agent_of(config=kept) as agent:
        assert ask(agent.url + "/config")[1]["thresholds"]["busy"]["sentence"] == "All is busy."


@pytest.mark.parametrize("text", ["", "{", "[]", '{"thresholds": {"hot": 1}}'])
def test_a_damaged_configuration_is_refused(agent_of, tmp_path, text):
    kept = tmp_path / "agent.json"
    kept.write_text(text)
    with pytest.raises(InvalidInput, match=r"agent\.json holds no thresholds"):
        agent_of(config=kept)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"port": -1}, "port is -1"),
        ({"port": 70_000}, "port is 70000"),
        ({"port": "80"}, "port is '80'"),
        ({"host": "0.0.0.0"}, "there is no token"),
        ({"host": "192.0.2.1"}, "there is no token"),
        ({"host": "example.org"}, "there is no token"),
        ({"host": None}, "host is None"),
        ({"token": "short"}, "at least 16 printable"),
        ({"token": "with a space in it and long"}, "at least 16 printable"),
        ({"token": "é" * 16}, "at least 16 printable"),
        ({"host": "192.0.2.1", "token": "x" * 16}, "cannot listen on 192.0.2.1"),
        ({"tls": (HERE / "key.pem", HERE / "key.pem")}, "no certificate with its key"),
        ({"host": "x" * 80, "token": "x" * 16}, "cannot listen"),
        ({"config": "/tmp/agent.json"}, "config is '/tmp/agent.json', expected Path or None"),  # noqa: S108
        ({"alarms": 3}, "alarms is 3, expected Alarms or None"),
        ({"config": Path("x" * 300)}, "holds no thresholds"),
        ({"tls": (HERE / "none", HERE / "none")}, "no certificate with its key"),
    ],
)
def test_what_cannot_be_served_is_refused(agent_of, given, said):
    with pytest.raises(InvalidInput, match=said) as raised:
        agent_of(**given)
    assert "short" not in str(raised.value)


def test_a_port_that_is_taken_is_told(agent_of):
    with agent_of() as agent, pytest.raises(InvalidInput, match="in use"):
        agent_of(port=int(agent.url.rpartition(":")[2]))


def test_a_host_that_has_only_ipv6_is_served(agent_of, ask, monkeypatch):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    found = socket.getaddrinfo("::1", 0, type=socket.SOCK_STREAM)
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        agent = agent_of(host="localhost")
    with agent:
        port = agent.url.rpartition(":")[2]
        assert ask(f"http://[::1]:{port}/alarms")[0] == 200


def test_a_token_is_needed_for_everything(agent_of, ask, token):
    with agent_of(token=token) as agent:
        for path in ("/status", "/metrics", "/nothing", "/config"):
            assert ask(agent.url + path) == (401, {"error": "Unauthorized"})
        assert ask(agent.url + "/status", token=token + "x")[0] == 401
        assert ask(agent.url + "/config", {"thresholds": {}}, token="é" * 16)[0] == 401
        assert ask(agent.url + "/status", token=token)[0] == 200


def test_it_speaks_tls(agent_of, ask):
    context = ssl.create_default_context(cafile=HERE / "certificate.pem")
    with agent_of(tls=(HERE / "certificate.pem", HERE / "key.pem")) as agent:
        assert agent.url.startswith("https://")
        assert ask(agent.url + "/alarms", context=context) == (200, {"alarms": []})


def test_another_name_of_this_machine_is_not_answered_without_a_token(agent_of, token):
    for given, status in ((None, 403), (token, 200)):
        with agent_of(token=given) as agent:
            request = urllib.request.Request(agent.url + "/alarms")  # noqa: S310
            request.add_header("Host", "evil.example")
            request.add_header("Authorization", f"Bearer {token}")
            try:
                found = urllib.request.urlopen(request, timeout=LONG_S).status  # noqa: S310
            except urllib.error.HTTPError as error:
                found = error.code
                error.close()
            assert found == status


def test_a_configuration_that_cannot_be_kept_is_not_in_force(agent_of, ask, tmp_path):
    (tmp_path / "file").write_text("")
    with agent_of(config=tmp_path / "kept.json") as agent:
        before = ask(agent.url + "/config")
        agent.service._config = tmp_path / "file" / "agent.json"  # noqa: SLF001  # it vanished
        status, told = ask(agent.url + "/config", {"thresholds": {"busy": BUSY}})
        assert status == 500
        assert "cannot be kept in" in told["error"]
        assert ask(agent.url + "/config") == before


def test_a_forked_process_does_not_hold_the_port(agent_of, fork, tmp_path):
    def work() -> None:
        (tmp_path / "begun").touch()
        time.sleep(LONG_S)

    with agent_of() as agent:
        child = fork(work)
        until((tmp_path / "begun").exists)
    port = int(agent.url.rpartition(":")[2])
    with agent_of(port=port) as another:  # the port is free, although the child is there
        assert another.url == agent.url
        assert child.is_alive()


def test_whatever_goes_wrong_is_an_answer(agent_of, ask, monkeypatch):
    with agent_of() as agent:
        monkeypatch.setattr(agent.service, "configuration", lambda: 1 / 0)
        assert ask(agent.url + "/config") == (500, {"error": "ZeroDivisionError in the agent"})


def test_a_program_that_forks_is_not_held_up(agent_of, in_fork):
    with agent_of() as agent:
        assert in_fork(agent.close) == 0  # the child has no thread that serves


def test_probes_without_events_are_left_out_and_only_so_many_are_told(agent_of, ask, monkeypatch):
    monkeypatch.setattr("benchrigor.instrument.nodes.node_service._MOST_PROBES", 3)
    registry = ProbeRegistry()
    registry.probe("unused")
    for index in range(5):
        registry.probe(f"p{index}").stop(time.perf_counter_ns() - 1000 * index)
    with agent_of(registry=registry) as agent:
        told = ask(agent.url + "/report")[1]
        assert len(told["probes"]["readings"]) == 3
        assert "unused" not in told["probes"]["readings"]
        assert told["left_out"] == 2
        told = ask(f"{agent.url}/report?cursor={told['cursor']}")[1]
        assert (told["probes"]["readings"], told["left_out"]) == ({}, 0)


def test_what_is_not_there_is_told(agent_of, ask):
    with agent_of() as agent:
        for path in ("/", "/nothing", "/../../etc/passwd", "/%2e%2e/etc/passwd", "//etc"):
            assert ask(agent.url + path)[0] == 404
        assert ask(agent.url + "/alarms", {})[0] == 405


def test_a_body_that_is_too_large_is_refused_at_once(agent_of, ask):
    with agent_of() as agent:
        port = int(agent.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), LONG_S) as connection:
            connection.sendall(
                b"PUT /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"
                + b"x" * (64 * 1024 + 1)
            )
            assert b" 413 " in connection.recv(4096).splitlines()[0]
        assert ask(agent.url + "/alarms")[0] == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /status HTT",
        b"PUT /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_who_sends_slowly_holds_up_no_end(agent_of, sent):
    with agent_of() as agent:
        place = ("127.0.0.1", int(agent.url.rpartition(":")[2]))
        with socket.create_connection(place, LONG_S) as connection:
            connection.sendall(sent)
            time.sleep(0.2)
            began_s = time.monotonic()
            agent.close()
            assert time.monotonic() - began_s < LONG_S


@pytest.mark.slow
def test_a_reading_that_fails_is_tried_again(agent_of, monkeypatch):
    with agent_of() as agent:
        until(lambda: agent.service.status)
        monkeypatch.setattr(agent.service.alarms, "tell", lambda *_: 1 / 0)
        for _ in range(2):
            before = agent.service.status
            until(lambda before=before: agent.service.status is not before)
        assert agent.service.age_s < LONG_S


@pytest.mark.slow
def test_a_health_check_that_hangs_delays_no_status(agent_of, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(node_service, "health", ended.wait)
    with agent_of() as agent:
        for _ in range(2):
            before = agent.service.status
            until(lambda before=before: agent.service.status is not before)
        assert agent.service.health is None
        ended.set()


def test_it_ends_and_leaves_nothing_behind(agent_of, ask):
    gc.collect()
    before = threading.active_count()
    agent = agent_of()
    url = agent.url
    until(lambda: agent.service.status)
    agent.close()
    agent.close()
    until(lambda: threading.active_count() <= before)
    with pytest.raises(OSError, match="refused"):
        ask(url + "/alarms")


def test_what_it_tells_is_json_without_words_of_its_own(agent_of, ask, sampler):
    sampler.values["load 1 min"] = float("nan")
    with agent_of() as agent:
        until(lambda: agent.service.status)
        assert json.dumps(ask(agent.url + "/status")[1], allow_nan=False)


def test_the_public_name_is_the_agent():
    assert Agent.__module__ == "benchrigor.instrument.nodes.agent"
