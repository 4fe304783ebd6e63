"""map: how an answer depends on the configuration, from a file to a number."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchrigor.model import Estimate
from benchrigor.storage import Journal
from benchrigor.workbench.maps import responses
from benchrigor.workbench.maps.map_run import sample_in

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "maps.md").read_text(encoding="utf-8")
FACTORS = """
[factors.threads]
levels = [1, 2, 4, 8]
scale = "log2"
[factors.page]
levels = ["small", "large"]
workload = true
"""
FUNCTION = f"""{FACTORS}
[response]
function = "answers:rate"
direction = "higher"
"""
ONE = """
[factors.threads]
levels = [1, 2, 4, 8, 16]
scale = "log2"
[design]
kind = "full"
[response]
function = "answers:sometimes"
direction = "higher"
"""
ANSWERS = """
def rate(threads, page):
    value = 100.0 * threads * (1.0 if page == "small" else 0.5)
    return value, 0.99 * value, 1.01 * value

def sometimes(threads):
    if threads == 4:
        raise RuntimeError("no 4")
    return rate(threads, "small")

def several(threads, page):
    return {"rate": rate(threads, page), "delay": 3.0 * threads}

def counted(threads, page):
    with open("calls", "a") as calls:
        calls.write("x")
    return rate(threads, page)
"""
# Prints what a queue would answer whose capacity is 200 a second and thread, and says that it did.
GENERATOR = """
import sys, time
load, threads, page = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
capacity = threads * (200.0 if page == "small" else 100.0)
print("mean", 1000.0 / (capacity - load) if load < 0.99 * capacity else 5000.0)
time.sleep(0.05)
with open("trials", "a") as trials:
    print(load, threads, page, file=trials)
"""
SERVER = """
import socket, sys, time
with open("started", "a") as started:
    print(sys.argv[2], file=started)
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    listening.accept()[0].close()
"""


@pytest.fixture
def unused_port() -> int:
    """A port of this machine at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@pytest.fixture
def folder(store, tmp_path, monkeypatch) -> Path:
    """The current folder, with what maps are of."""
    for name, text in (("answers", ANSWERS), ("generator", GENERATOR), ("server", SERVER)):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.delitem(sys.modules, "answers", raising=False)
    return tmp_path


def written(folder: Path, text: str) -> str:
    (folder / "map.toml").write_text(text)
    return "map.toml"


def peak_map(port: int, *, samples: int) -> str:
    """Return the file of a map of peaks."""
    python = sys.executable
    return f"""{FACTORS}
[design]
samples = {samples}
[server]
start = "{python} server.py {port} {{threads}}"
port = {port}
[response.peak]
command = "{python} generator.py {{load}} {{threads}} {{page}}"
read = "mean:ms=regex:mean (.+)"
mean = "40ms"
budget = "none"
accuracy = "3%"
"""


@pytest.mark.slow
def test_a_function_is_mapped_told_and_kept(cli, store, folder):
    result = cli("map", written(folder, FUNCTION))
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    (listed,) = Journal(store).runs()
    assert f"benchrigor explain {listed['run_id']}" in result.stdout
    assert listed["reason"] == "satisfied"
    assert cli("show").stdout == result.stdout


@pytest.mark.slow
def test_a_map_is_as_wide_as_the_terminal(cli, folder, monkeypatch):
    """Only the command that goes on with it is unbroken, so that it can be copied."""
    monkeypatch.setenv("COLUMNS", "40")
    name = written(folder, FUNCTION)
    for result in (cli("map", name, "--dry-run"), cli("map", name), cli("show"), cli("explain")):
        lines = [*result.stdout.splitlines(), *result.stderr.splitlines()]
        long = [line for line in lines if len(line) > 40]
        assert all(line.startswith("  benchrigor explain") for line in long), long


def test_numbers_that_do_not_steer_are_kept_without_the_one_that_does(
    cli, store, folder, monkeypatch
):
    """As of a command that printed a rate below 0 once."""

    def answers(_name, point, *_):
        rate = -1.0 if dict(point) == {"threads": 4, "page": "large"} else 100.0 * point["threads"]
        one = {"confidence": 0.95, "n": 9, "n_effective": 9.0, "method": "told"}
        answer = {"rate": rate, "delay": 3.0}
        return {name: Estimate(value=x, low=x, high=x, **one) for name, x in answer.items()}

    monkeypatch.setattr(responses, "values_of", answers)
    ways = 'direction = {rate = "higher", delay = "lower"}'
    text = FUNCTION.replace("[1, 2, 4, 8]", "[1, 4]").replace('direction = "higher"', ways)
    result = cli("map", written(folder, text + '[design]\nkind = "full"\n'))
    assert result.exit_code == 4, result.stderr
    rounds = Journal(store).load(Journal(store).runs()[0]["run_id"]).rounds
    kept = [sorted(sample_in(finished).estimates) for finished in rounds]
    assert sorted(kept) == [["delay"], *[["delay", "rate"]] * 3]


@pytest.mark.slow
def test_each_of_several_responses_is_told_by_its_own_direction(cli, folder):
    ways = 'direction = {rate = "higher", delay = "lower"}'
    text = FUNCTION.replace("answers:rate", "answers:several").replace('direction = "higher"', ways)
    assert cli("map", written(folder, text)).exit_code == 0
    told = json.loads(cli("explain", "--json").stdout)["responses"]
    assert [told[name]["best"]["point"]["threads"] for name in ("rate", "delay")] == [8, 1]


@pytest.mark.slow
def test_the_output_of_a_command_may_have_several_responses(cli, folder):
    printing = "import sys; n = int(sys.argv[1]); print(f'rate {n * 100} p99 {n}')"
    (folder / "printing.py").write_text(printing)
    text = f"""
[factors.threads]
levels = [1, 2, 4]
[design]
kind = "full"
[response]
command = "{sys.executable} printing.py {{threads}}"
read = ["rate:op/s=regex:rate (\\\\d+)", "p99:ms=regex:p99 (\\\\d+)"]
budget = "1s"
"""
    result = cli("map", written(folder, text), "--json")
    told = json.loads(result.stdout)
    found = [
        {name: each["value"] for name, each in sample["estimates"].items()}
        for sample in told["samples"]
    ]
    assert sorted(found, key=str) == [{"rate": 100.0 * n, "p99": float(n)} for n in (1, 2, 4)], (
        result.stderr
    )


@pytest.mark.slow
def test_a_dry_run_measures_nothing(cli, store):
    """The page shows that of the example, whose server is not started."""
    shown = PAGE.split("$ benchrigor map examples/map.toml --dry-run\n")[1].split("```")[0]
    result = cli("map", ROOT / "examples" / "map.toml", "--dry-run")
    assert result.stdout == shown
    assert Journal(store).runs() == []


def test_a_dry_run_as_json_has_the_price_of_everything(cli, folder):
    text = f"""{FACTORS}change = "10s"
[design]
kind = "d-optimal"
samples = 7
[response]
command = "true {{threads}} {{page}}"
budget = "60s"
"""
    told = json.loads(cli("map", written(folder, text), "--dry-run", "--json").stdout)
    assert (told["sample_s"], told["configurations"]) == (60.0, 8)
    assert told["expected_s"] == 7 * 60.0 + 10.0
    assert told["all_configurations_s"] == 8 * 60.0 + 10.0


@pytest.mark.parametrize("further", [(), ("--json",), ("--best",), ("--best", "--json")])
def test_a_map_without_a_model_measured_nothing(cli, folder, further):
    few = FUNCTION.replace("[response]", "[design]\nsamples = 3\n[response]")
    result = cli("map", written(folder, few), *further)
    assert result.exit_code == 4, result.output
    assert cli("show").exit_code == 0


def calls(folder: Path) -> int:
    """Return how often the function was called that counts its calls."""
    file = folder / "calls"
    return len(file.read_text()) if file.exists() else 0


@pytest.mark.slow
def test_samples_of_stored_maps_are_taken_in_only_where_all_is_equal(
    cli, folder, tmp_path, monkeypatch
):
    counted = FUNCTION.replace(":rate", ":counted")
    first = json.loads(cli("map", written(folder, counted), "--json").stdout)["samples"]
    assert calls(folder) == len(first)
    again = json.loads(cli("map", "map.toml", "--reuse", "--json").stdout)
    assert calls(folder) == len(first)  # as certain as wanted: none is measured again
    assert len(again["samples"]) == len(first)
    written(folder, counted.replace("levels = [1, 2, 4, 8]", "levels = [1, 2, 4]"))
    fewer = json.loads(cli("map", "map.toml", "--reuse", "--json").stdout)["samples"]
    assert calls(folder) == len(first) + len(fewer)  # of other factors
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "map.toml").write_text(counted)
    monkeypatch.chdir(elsewhere)
    cli("map", "map.toml", "--reuse")
    assert calls(elsewhere) == len(first)  # it may be another revision


def test_a_sample_that_fails_is_told_and_the_map_goes_on(cli, folder):
    result = cli("map", written(folder, ONE))
    assert result.exit_code == 0, result.stderr
    told = json.loads(cli("explain", "--json").stdout)
    value = told["responses"]["value"]
    assert value["best"]["point"] == {"threads": 16}
    assert [each["point"]["threads"] for each in value["predictions"]] == [1, 2, 4, 8, 16]
    failed = [each["sample"]["point"]["threads"] for each in told["samples"] if each["reason"]]
    assert failed == [4]


def test_a_target_of_the_file_that_is_missed_has_its_exit_code(cli, folder):
    wide = ONE.replace("[response]", 'target = "0.1%"\n[response]')
    assert cli("map", written(folder, wide)).exit_code == 3


@pytest.mark.slow
@pytest.mark.parametrize("step", ["stop", "clean"])
def test_a_server_that_does_not_end_as_it_should_spoils_no_sample(cli, folder, unused_port, step):
    text = f"""
[factors.threads]
levels = [1, 2, 4, 8]
scale = "log2"
[design]
kind = "full"
[server]
start = "{sys.executable} server.py {unused_port} {{threads}}"
port = {unused_port}
{step} = "false"
timeouts = {{stop = "1s"}}
[response]
function = "answers:alone"
direction = "higher"
"""
    (folder / "answers.py").write_text("def alone(threads):\n    return 10 * threads\n")
    result = cli("map", written(folder, text))
    assert result.exit_code == 0, result.stderr
    assert f"{step} exited" in cli("explain").stdout


@pytest.mark.slow
def test_a_command_that_was_interrupted_goes_on(cli, store, folder):
    """Ctrl-C ends it with what there is, which is no answer yet."""
    slow = f"{sys.executable} -c 'import time, random; time.sleep(.1); print(random.gauss(9, 1))'"
    text = f"""
[factors.threads]
levels = [1, 2]
[design]
kind = "full"
[response]
command = "{slow} {{threads}}"
read = "rate:op/s=regex:(.+)"
budget = "4s"
"""
    argv = [sys.executable, "-m", "benchrigor", "map", written(folder, text), "--store", str(store)]
    journal = Journal(store)
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as running:
        wait_for(lambda: store.exists() and any(1 < each["rounds"] < 9 for each in journal.runs()))
        running.send_signal(signal.SIGINT)
    (part,) = (each for each in journal.runs() if "of map" in each["name"])
    (whole,) = (each for each in journal.runs() if "of map" not in each["name"])
    cli("resume", whole["run_id"])
    rounds = len(journal.load(part["run_id"]).rounds)
    assert rounds > part["rounds"]
    told = [*map(sample_in, journal.load(whole["run_id"]).rounds)]
    assert len(told) == 2
    assert told[0].cost_s > 0.1 * rounds  # with what was measured before


def test_a_map_that_is_over_is_only_shown(cli, store, folder):
    result = cli("map", written(folder, ONE))
    run_id = Journal(store).runs()[0]["run_id"]
    (folder / "answers.py").unlink()
    resumed = cli("resume", run_id)
    assert resumed.exit_code == 0
    assert resumed.stdout == result.stdout
    assert cli("resume", run_id, "--max-rounds", "3").exit_code == 2


@pytest.mark.slow
def test_a_map_of_peaks_that_was_killed_repeats_no_trial(cli, store, folder, unused_port):
    """Killed within a search, it goes on there; what is left out is predicted within 15 %."""
    file = written(folder, peak_map(unused_port, samples=6))
    argv = [sys.executable, "-m", "benchrigor", "map", file, "--store", str(store)]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as running:
        wait_for(lambda: trials(folder) > 12)
        os.kill(running.pid, signal.SIGKILL)
    journal = Journal(store)
    whole = next(each for each in journal.runs() if "of map" not in each["name"])
    begun = journal.load(journal.runs()[0]["run_id"])
    assert begun.decision is None
    part = cli("resume", begun.run_id)
    assert part.exit_code == 2
    assert whole["run_id"] in part.stderr
    assert whole["run_id"] in cli("show").stdout  # not of the part
    resumed = cli("resume", whole["run_id"], "--json")
    assert resumed.exit_code == 0, resumed.stderr
    told = json.loads(resumed.stdout)
    stored = sum(len(journal.load(each["run_id"]).rounds) for each in journal.runs())
    # The trial under way when it was killed may have told the file, and nobody else.
    assert trials(folder) - (stored - 6) in {0, 1}
    assert len(told["samples"]) == 6
    for each in told["responses"]["peak"]["predictions"]:
        threads, page = each["point"].values()
        truth = threads * (200.0 if page == "small" else 100.0) - 25.0
        assert each["estimate"]["value"] == pytest.approx(truth, rel=0.15)
    starts = (folder / "started").read_text().split()
    assert len(starts) <= 7  # once for each configuration, and once more after the kill
    steps = journal.load(whole["run_id"]).rounds[-1].facts["steps"]
    assert "ready" in [step["name"] for step in json.loads(str(steps))]


def trials(folder: Path) -> int:
    file = folder / "trials"
    return len(file.read_text().splitlines()) if file.exists() else 0


def wait_for(is_so, limit_s: float = 60.0) -> None:
    until_s = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.02)
