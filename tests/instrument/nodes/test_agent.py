"""An agent over real sockets: what it tells, what it refuses, what it keeps."""

from __future__ import annotations

import gc
import socket
import ssl
import stat
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from signalled import until
from tests.instrument.nodes.made_nodes import agent_of, ask

from benchrigor.errors import InvalidInput
from benchrigor.instrument import Agent, ProbeRegistry

HERE = Path(__file__).parent
LONG_S = 20.0
TOKEN = "a-token-of-the-tests"  # noqa: S105  # for these tests alone
BUSY = {
    "when": [{"sample": "cpu busy", "above": 90.0, "clear": 50.0}],
    "sentence": "All is busy.",
    "hold_s": 1.0,
}


def count(registry: ProbeRegistry, events: int = 1) -> None:
    parse = registry.probe("parse")
    for _ in range(events):
        parse.stop(parse.start())


def test_all_is_told_that_is_known(sampler):
    registry = ProbeRegistry()
    count(registry)
    with agent_of(sampler, registry=registry) as agent:
        until(lambda: agent.service.state("health")["health"])
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


def told_of(agent: Agent, cursor: str) -> tuple[str, int, bool]:
    """Return the next cursor, the events of its part, and whether that is all since they began."""
    told = ask(f"{agent.url}/probes?cursor={cursor}")[1]
    parse = told["probes"]["readings"].get("parse", {"count": 0})
    return told["cursor"], parse["count"], told["from_start"]


def test_parts_of_probes_add_up_to_all_also_where_answers_are_lost():
    registry, received = ProbeRegistry(), 0
    with agent_of(registry=registry) as agent:
        cursor = ""
        for turn, is_lost in enumerate([False, True, True, False, True, False, False]):
            count(registry, turn + 1)
            sent, part, is_first = told_of(agent, cursor)
            assert is_first is (turn == 0)  # with what was counted before
            if not is_lost:
                cursor, received = sent, received + part
        assert received + told_of(agent, cursor)[1] == registry.read()["parse"].count == 28


def test_readers_of_probes_do_not_take_from_each_other_and_a_strange_cursor_begins_anew():
    registry = ProbeRegistry()
    with agent_of(registry=registry) as agent:
        one, other = (told_of(agent, "")[0] for _ in range(2))
        count(registry, 5)
        assert told_of(agent, one)[1] == told_of(agent, other)[1] == 5
        for wrong in ("x.1", "..", f"{one.partition('.')[0]}.7", "1.2.3", "%C3%A9"):
            began, part, is_first = told_of(agent, wrong)
            assert began.partition(".")[0] != one.partition(".")[0]
            assert (part, is_first) == (5, True)


def test_only_so_many_readers_of_probes_are_kept():
    with agent_of() as agent:
        first, *others = [told_of(agent, "")[0] for _ in range(65)]
        assert not told_of(agent, others[0])[2]
        assert told_of(agent, first)[2]


def test_prometheus_reads_its_metrics(sampler):
    registry = ProbeRegistry()
    name = 'a "name" with \\ and {label="x"} é'
    for _ in range(3):
        with registry.probe(name):
            pass
    frame = registry.probe("frame", deadline_s=4e-6)
    frame.stop(frame.start() - 5_000)
    sampler.values["disk \udcff"] = 1.0  # a name that is not UTF-8
    with agent_of(sampler, registry=registry) as agent:
        until(lambda: agent.service.state("status")["status"])
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
    assert (states["cpu busy"], states["disk ?"]) == (7.0, 1.0)
    alarms = {each.labels["code"]: each.value for each in families["benchrigor_alarm"].samples}
    assert alarms["queue-full"] == 1.0
    assert alarms["hot"] == 0.0
    (age,) = families["benchrigor_state_age_seconds"].samples
    assert age.value >= 0.0


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[" * 60_000, b"\xff", [], {"thresholds": {}, "more": 1}, {"thresholds": 3}),
        {"thresholds": {"hot": {"hold_s": -1}}},
        b'{"thresholds": {"hot": {"hold_s": NaN}}}',
    ],
    ids=lambda body: str(body)[:20],
)
def test_a_wrong_configuration_changes_nothing(body):
    with agent_of() as agent:
        before = ask(agent.url + "/config")
        assert ask(agent.url + "/config", body)[0] == 400
        assert ask(agent.url + "/config") == before


def test_a_configuration_is_kept_over_a_restart(tmp_path):
    kept = tmp_path / "folder" / "agent.json"
    for _ in range(2):
        with agent_of(config=kept) as agent:
            ask(agent.url + "/config", {"thresholds": {"busy": BUSY}})
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    with agent_of(config=kept) as agent:
        assert ask(agent.url + "/config")[1]["thresholds"]["busy"]["sentence"] == "All is busy."


@pytest.mark.parametrize("text", ["", "{", "[]", '{"thresholds": {"hot": 1}}'])
def test_a_damaged_configuration_is_refused(tmp_path, text):
    kept = tmp_path / "agent.json"
    kept.write_text(text)
    with pytest.raises(InvalidInput):
        agent_of(config=kept)


@pytest.mark.parametrize(
    "given",
    [
        *({"port": each} for each in (-1, 70_000, "80")),
        *({"host": each} for each in ("0.0.0.0", "192.0.2.1", "example.org", None)),
        *({"token": each} for each in ("short", "with a space in it and long", "é" * 16)),
        *({"host": each, "token": "x" * 16} for each in ("192.0.2.1", "x" * 80)),
        *({"tls": (each, each)} for each in (HERE / "key.pem", HERE / "none")),
        *({"config": each} for each in ("/tmp/agent.json", Path("x" * 300))),  # noqa: S108
        {"alarms": 3},
    ],
    ids=str,
)
def test_what_cannot_be_served_is_refused(given):
    with pytest.raises(InvalidInput) as raised:
        agent_of(**given)
    assert "short" not in str(raised.value)


def test_a_port_that_is_taken_is_told():
    with agent_of() as agent, pytest.raises(InvalidInput):
        agent_of(port=int(agent.url.rpartition(":")[2]))


def test_a_token_is_needed_for_everything():
    with agent_of(token=TOKEN) as agent:
        for path in ("/status", "/metrics", "/nothing", "/config"):
            assert ask(agent.url + path) == (401, {"error": "Unauthorized"})
        assert ask(agent.url + "/status", token=TOKEN + "x")[0] == 401
        assert ask(agent.url + "/config", {"thresholds": {}}, token="é" * 16)[0] == 401
        assert ask(agent.url + "/status", token=TOKEN)[0] == 200


def test_it_speaks_tls():
    context = ssl.create_default_context(cafile=HERE / "certificate.pem")
    with agent_of(tls=(HERE / "certificate.pem", HERE / "key.pem")) as agent:
        assert agent.url.startswith("https://")
        assert ask(agent.url + "/alarms", context=context) == (200, {"alarms": []})


def test_another_name_of_this_machine_is_not_answered_without_a_token():
    for given, status in ((None, 403), (TOKEN, 200)):
        with agent_of(token=given) as agent:
            strange = {"Host": "evil.example"}
            assert ask(agent.url + "/alarms", token=TOKEN, headers=strange)[0] == status


def test_a_configuration_that_cannot_be_kept_is_not_in_force(tmp_path):
    with agent_of(config=tmp_path / "folder" / "kept.json") as agent:
        before = ask(agent.url + "/config")
        (tmp_path / "folder").touch()  # where a folder would have to be
        assert ask(agent.url + "/config", {"thresholds": {"busy": BUSY}})[0] == 500
        assert ask(agent.url + "/config") == before


def test_a_program_that_forks_is_not_held_up(in_fork):
    with agent_of() as agent:
        assert in_fork(agent.close) == 0  # the child has no thread that serves


def test_a_forked_process_does_not_hold_the_port(fork, tmp_path):
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


def test_whatever_goes_wrong_is_an_answer(monkeypatch):
    with agent_of() as agent:
        monkeypatch.setattr(agent.service, "configuration", lambda: 1 / 0)
        assert ask(agent.url + "/config")[0] == 500


def test_what_is_not_there_is_told():
    with agent_of() as agent:
        for path in ("/", "/nothing", "/../../etc/passwd", "/%2e%2e/etc/passwd", "//etc"):
            assert ask(agent.url + path)[0] == 404
        assert ask(agent.url + "/alarms", {})[0] == 405


def test_a_body_that_is_too_large_is_refused_at_once():
    with agent_of() as agent:
        port = int(agent.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), LONG_S) as connection:
            connection.sendall(
                b"PUT /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"
                + b"x" * (64 * 1024 + 1)
            )
            assert b" 413 " in connection.recv(4096).splitlines()[0]
        assert ask(agent.url + "/alarms")[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /status HTT",
        b"PUT /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_who_sends_slowly_holds_up_no_end(sent):
    with agent_of() as agent:
        place = ("127.0.0.1", int(agent.url.rpartition(":")[2]))
        with socket.create_connection(place, LONG_S) as connection:
            connection.sendall(sent)
            time.sleep(0.2)
            began_s = time.monotonic()
            agent.close()
            assert time.monotonic() - began_s < LONG_S


def test_a_reading_that_fails_is_tried_again(monkeypatch):
    with agent_of() as agent:
        until(lambda: agent.service.state("status")["status"])
        monkeypatch.setattr(agent.service.alarms, "tell", lambda *_: 1 / 0)
        for _ in range(2):
            before = agent.service.state("status")["status"]
            until(lambda before=before: agent.service.state("status")["status"] is not before)
        assert agent.service.state("status")["age_s"] < LONG_S


def test_a_health_check_that_hangs_delays_no_status(monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr("benchrigor.instrument.agent.health", ended.wait)
    with agent_of() as agent:
        for _ in range(2):
            before = agent.service.state("status")["status"]
            until(lambda before=before: agent.service.state("status")["status"] is not before)
        assert agent.service.state("health")["health"] is None
        ended.set()


def test_it_ends_and_leaves_nothing_behind():
    gc.collect()
    before = threading.active_count()
    agent = agent_of()
    url = agent.url
    until(lambda: agent.service.state("status")["status"])
    agent.close()
    agent.close()
    until(lambda: threading.active_count() <= before)
    with pytest.raises(OSError, match="refused"):
        ask(url + "/alarms")


def test_a_host_that_has_only_ipv6_is_served(monkeypatch):
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
