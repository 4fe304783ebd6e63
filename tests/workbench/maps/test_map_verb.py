"""map: how an answer depends on the configuration, from a file to a number."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_maps import known
from signalled import until

from benchrigor import LoadResult, LoadTrial
from benchrigor.errors import WorkloadFailed
from benchrigor.model import (
    Analysis,
    Code,
    Decision,
    Metric,
    Notice,
    Options,
    RunRecord,
    StopReason,
)
from benchrigor.storage import Journal
from benchrigor.testing import SimulatedServer
from benchrigor.workbench.maps.responses import Samples

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "maps.md").read_text(encoding="utf-8")
THREADS = '[factors.threads]\nlevels = [1, 2, 4, 8, 16]\nscale = "log2"\n'
FEW = "[factors.threads]\nlevels = [1, 2, 4]\n"
TWO = FEW.replace(", 4", "")
FULL = '[design]\nkind = "full"\n'
FUNCTION = '[response]\nfunction = "answers:rate"\ndirection = "higher"\n'
PEAK = """[response.peak]
command = "no-such-generator {load} {threads}"
read = "mean:ms=regex:mean (.+)"
mean = "40ms"
"""


def numbers_of(told: Any, name: str = "value") -> list[float | None]:
    """Return the numbers of the samples of a map."""
    return [each["estimates"].get(name, {}).get("value") for each in told["samples"]]


def test_a_function_is_mapped_told_and_kept(cli, folder):
    """A sample that fails is told and kept, and the map goes on; one that is over is only shown."""
    folder.touch("broken")
    result = folder.map(THREADS + FULL + FUNCTION)
    assert result.exit_code == 0, result.stderr
    run_id = folder.whole["run_id"]
    assert f"benchrigor explain {run_id}" in result.stdout
    told = folder.explained()
    value = told["responses"]["value"]
    assert value["best"]["point"] == {"threads": 16}
    assert [each["point"]["threads"] for each in value["predictions"]] == [1, 2, 4, 8, 16]
    assert numbers_of(told) == [100.0, 200.0, None, 800.0, 1600.0]
    assert [bool(each["reason"]) for each in told["samples"]] == [False, False, True, False, False]
    (folder.path / "answers.py").unlink()
    assert cli("show").stdout == cli("resume", run_id).stdout == result.stdout
    assert cli("resume", run_id, "--max-rounds", "3").exit_code == 2


def test_a_map_is_as_wide_as_the_terminal(cli, folder, monkeypatch):
    """Only the command that goes on with it is unbroken, so that it can be copied."""
    name = folder.write(THREADS + FUNCTION)
    for width in (80, 40):
        monkeypatch.setenv("COLUMNS", str(width))
        said = [cli(*each) for each in (("map", name, "--dry-run"), ("map", name), ("explain",))]
        lines = [line for each in said for line in (each.stdout + each.stderr).splitlines()]
        long = [line for line in lines if len(line) > width]
        assert all(line.startswith("  benchrigor explain") for line in long), long
    assert folder.whole["reason"] == "satisfied"


def test_the_output_of_a_command_may_have_several_responses(folder):
    """Numbers that do not steer are kept without the one that does; each has its direction."""
    printing = "import sys; n = int(sys.argv[1]); print(f'rate {-1 if n == 4 else n} p99 {n}')"
    (folder.path / "printing.py").write_text(printing)
    text = f"""{THREADS}{FULL}
[response]
command = "{sys.executable} printing.py {{threads}}"
read = ["rate:op/s=regex:rate (\\\\S+)", "p99:ms=regex:p99 (\\\\d+)"]
budget = "500ms"
"""
    result = folder.map(text, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert numbers_of(told, "rate") == [1.0, 2.0, None, 8.0, 16.0]
    assert numbers_of(told, "p99") == [1.0, 2.0, 4.0, 8.0, 16.0]
    best = {name: each["best"]["point"]["threads"] for name, each in told["responses"].items()}
    assert best == {"rate": 16, "p99": 1}


def test_a_dry_run_measures_nothing(cli, store):
    """The page shows that of the example, whose server is not started."""
    shown = PAGE.split("$ benchrigor map examples/map.toml --dry-run\n")[1].split("```")[0]
    result = cli("map", ROOT / "examples" / "map.toml", "--dry-run")
    assert result.stdout == shown
    assert Journal(store).runs() == []


def test_a_dry_run_as_json_has_the_price_of_everything(folder):
    text = """
[factors.page]
levels = ["small", "large"]
change = "10s"
[design]
kind = "d-optimal"
samples = 8
[response]
command = "true {threads} {page}"
budget = "60s"
"""
    told = json.loads(folder.map(THREADS + text, "--dry-run", "--json").stdout)
    assert (told["sample_s"], told["configurations"]) == (60.0, 10)
    assert told["expected_s"] == 8 * 60.0 + 10.0
    assert told["all_configurations_s"] == 10 * 60.0 + 10.0


@pytest.mark.parametrize("further", [(), ("--json",), ("--best",), ("--best", "--json")])
def test_a_map_without_a_model_measured_nothing(cli, folder, further):
    result = folder.map(TWO + FULL + FUNCTION, *further)
    assert result.exit_code == 4, result.output
    assert cli("show").exit_code == 0


def test_samples_of_stored_maps_are_taken_in_only_where_all_is_equal(cli, folder, monkeypatch):
    """They are kept with the map that took them in, and stay there when it goes on."""
    text = FEW.replace("1, 2", "1") + FULL + FUNCTION
    folder.touch("interrupted")
    assert folder.map(text).exit_code == 130
    again = folder.map(text, "--reuse", "--json")  # 1 is known, 4 is not
    assert numbers_of(json.loads(again.stdout)) == [100.0, 400.0]
    assert folder.lines() == ["1", "4", "4"]
    folder.map(text, "--reuse")
    assert sorted(numbers_of(folder.explained())) == [100.0, 400.0]
    assert len(folder.lines()) == 3
    folder.map(text.replace("4", "2"), "--reuse")
    assert folder.lines()[3:] == ["1", "2"]  # of other factors
    elsewhere = folder.path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "map.toml").write_text(text)
    monkeypatch.chdir(elsewhere)
    cli("map", "map.toml", "--reuse")
    assert len((elsewhere / "calls").read_text().splitlines()) == 2  # it may be another revision


def test_a_map_that_was_cut_off_repeats_no_sample(cli, folder):
    """What was under way when the process ended is measured again, and nothing else."""
    folder.touch("interrupted")
    assert folder.map(FEW + FULL + FUNCTION).exit_code == 130
    assert folder.whole["rounds"] == 2
    assert cli("resume", folder.whole["run_id"]).exit_code == 4  # three points make no model
    assert folder.lines() == ["1", "2", "4", "4"]
    assert numbers_of(folder.explained()) == [100.0, 200.0, 400.0]


def test_a_target_of_the_file_that_is_missed_has_its_exit_code(folder):
    assert folder.map(THREADS + FULL + 'target = "0.1%"\n' + FUNCTION).exit_code == 3


# --- what a map measures: searches for peaks


def test_a_search_begins_below_the_peak_of_a_neighbour_and_one_without_a_peak_is_bounded(
    folder, offering
):
    """What never saturates, what is always saturated, and what failed."""
    levels = f"{FEW.replace('1, 2, 4', '1, 2, 9, 0.1, 0')}{FULL}{PEAK}"
    folder.map(f"{levels}seed_load = 60\nmin_load = 20\nmax_load = 800\n", "--json")
    samples = folder.explained()["samples"]
    told = {each["sample"]["point"]["threads"]: each for each in samples}
    assert told[1]["estimates"]["peak"]["low"] < 175 < told[1]["estimates"]["peak"]["high"]
    assert [told[n]["at_least"] for n in (1, 2, 9, 0.1, 0)] == [None, None, 800.0, None, None]
    assert [told[n]["at_most"] for n in (1, 2, 9, 0.1, 0)] == [None, None, None, 20.0, None]
    assert all(told[n]["reason"] for n in (9, 0.1, 0))
    first = dict(reversed(offering.loads))
    assert first["1"] == 60.0
    assert first["2"] == pytest.approx(0.7 * told[1]["estimates"]["peak"]["value"], rel=0.01)


def test_two_bounds_of_a_peak_are_an_interval(folder, offering):
    folder.map(f'{TWO}{FULL}{PEAK}budget = "61s"\ntrial_time = "10s"\npolicy = "binsearch"\n')
    (found, _) = (each["estimates"]["peak"] for each in folder.explained()["samples"])
    assert (found["low"], found["high"], found["method"]) == (100.0, 200.0, "bounds")
    assert found["value"] == pytest.approx((100.0 * 200.0) ** 0.5)


def test_a_search_that_contradicts_itself_has_no_answer(folder, offering):
    rng, server = np.random.default_rng(1), SimulatedServer(500.0)

    def answer(trial: LoadTrial) -> LoadResult:
        is_bad = trial.load > 200.0 and rng.random() < 0.5
        return LoadResult(mean_response_s=1.0) if is_bad else server.offer(trial)

    offering.answer = answer
    folder.map(f"{TWO}{FULL}{PEAK}")
    first = folder.explained()["samples"][0]
    assert (first["estimates"], bool(first["reason"])) == ({}, True)


@pytest.mark.parametrize("is_over", [False, True])
def test_a_map_of_peaks_that_was_cut_off_repeats_no_trial(cli, folder, offering, *, is_over):
    """Also where a search was over, and its answer not yet kept with the map."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    text = TWO + FULL + PEAK + 'accuracy = "20%"\n'
    if is_over:
        offering.ends[2] = interrupt
    else:
        offering.ends[1] = lambda: setattr(offering, "most", len(offering.loads) + 2)
    assert folder.map(text).exit_code == 130
    assert folder.whole["rounds"] == 1
    part = next(each for each in folder.journal.runs() if "of map" in each["name"])
    resumed = cli("resume", part["run_id"])
    assert resumed.exit_code == 2
    assert folder.whole["run_id"] in resumed.stderr
    assert folder.whole["run_id"] in cli("show").stdout  # not of the part
    offered = len(offering.loads)
    cli("resume", folder.whole["run_id"])
    assert (len(offering.loads) == offered) == is_over
    kept = sum(each["rounds"] for each in folder.journal.runs() if "of map" in each["name"])
    assert kept == len(offering.loads) - (not is_over)  # the trial under way is repeated
    assert len(folder.explained()["samples"]) == 2


DISTURBED = (
    TWO
    + FULL
    + """[response]
command = "no-such-program {threads}"
read = "rate:op/s=regex:(.+)"
"""
)


def record_of(value: float | None, lost_percent: float) -> RunRecord:
    """Return a run that ended with a rate, while others took some of its time."""
    metric = Metric(name="rate", unit="op/s")
    warning = Notice.of(
        Code.DISTURBED, who_="Other work", advice_="run it again", measured_percent=lost_percent
    )
    found = None if value is None else known(value)
    return RunRecord(
        name="a run",
        options=Options(),
        metrics=(metric,),
        seed=0,
        rounds=(),
        analyses=(Analysis(metric=metric, kind="readings", n=1, estimate=found),),
        decision=Decision(stop=True, reason=StopReason.SATISFIED),
        session_notices=(warning,) if lost_percent > 7.5 else (),
    )


@pytest.mark.parametrize(
    ("measured", "value", "lost_share"),
    [
        ([(100.0, 5.0)], 100.0, 0.0),
        ([(100.0, 12.0)], 100.0, 0.12),  # yellow: weighed
        ([(100.0, 37.0), (101.0, 4.0)], 101.0, 0.0),
        ([(100.0, 37.0), (101.0, 20.0)], 101.0, 0.2),
        ([(100.0, 37.0), (101.0, 60.0)], 100.0, 0.37),
        ([(100.0, 37.0), (None, 0.0)], 100.0, 0.37),  # its repeat has no number
        ([(100.0, 37.0), None], 100.0, 0.37),
    ],
)
def test_a_disturbed_sample_is_repeated_once_and_else_counts_less(
    folder, monkeypatch, measured, value, lost_share
):
    left = [*measured, *[(7.0, 0.0)] * 9]  # of further samples

    def next_record(*_: object) -> RunRecord:
        if (found := left.pop(0)) is None:
            raise WorkloadFailed("the program timed out")
        return record_of(*found)

    monkeypatch.setattr(Samples, "_measure_metric", next_record)
    folder.map(DISTURBED)
    first = folder.explained()["samples"][0]["estimates"]["rate"]
    shares = [each["evidence"]["measured_percent"] / 100.0 for each in first["notices"]]
    assert (first["value"], max(shares, default=0.0)) == (value, lost_share)
    assert left == [(7.0, 0.0)] * 8


SERVED = """[factors.page]
levels = ["small", "large"]
workload = true
[server]
start = "no-such-server {threads}"
port = 1
[response]
function = "answering:rate"
direction = "higher"
"""


def test_another_server_is_started_where_the_one_that_was_kept_fails(folder, monkeypatch):
    """It may still work off the load of the sample before."""
    began, busy = [], folder.path / "busy"

    class Kept:
        def __init__(self, _life_cycle: object, point: Any, **_: object) -> None:
            self.steps, self.point = [], point

        def __enter__(self) -> Any:
            began.append(tuple(self.point.values()))
            return self

        def __exit__(self, *_: object) -> None:
            busy.unlink(missing_ok=True)

        def warm_up(self, _point: object) -> None:
            busy.touch()

    monkeypatch.setattr("benchrigor.workbench.maps.responses.Server", Kept)
    (folder.path / "answering.py").write_text(
        "import os\n\ndef rate(threads, page):\n    return 9.0 / (not os.path.exists('busy'))\n"
    )
    folder.map(TWO + SERVED + FULL)
    assert [each["reason"] for each in folder.explained()["samples"]] == [None] * 4
    assert began == [(1, "small"), (1, "large"), (2, "large"), (2, "small")]


# --- real servers and processes

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


def server(folder: Any) -> str:
    """Return the table of a server at a port at which nothing listens yet."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    (folder.path / "server.py").write_text(SERVER)
    start = f"{sys.executable} server.py {port} {{threads}}"
    return f'[server]\nstart = "{start}"\nport = {port}\n'


@pytest.mark.parametrize("step", ["stop", "clean"])
def test_a_server_that_does_not_end_as_it_should_spoils_no_sample(cli, folder, step):
    steps = f'{server(folder)}{step} = "false"\ntimeouts = {{stop = "1s"}}\n'
    result = folder.map(THREADS + FULL + steps + FUNCTION)
    assert result.exit_code == 0, result.stderr
    assert f"{step} exited" in cli("explain").stdout


@contextmanager
def measuring(folder: Any, text: str) -> Iterator[subprocess.Popen[bytes]]:
    """Measure a map in a process of its own."""
    argv = [sys.executable, "-m", "benchrigor", "map", folder.write(text)]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as running:
        yield running


def test_a_command_that_was_interrupted_goes_on(cli, folder):
    """Ctrl-C ends it with what there is, which is no answer yet."""
    slow = f"{sys.executable} -c 'import time, random; time.sleep(.1); print(random.gauss(9, 1))'"
    command = f'[response]\ncommand = "{slow} {{threads}}"\nread = "rate:op/s=regex:(.+)"\n'
    text = f'{TWO}{FULL}{command}budget = "2s"\n'
    with measuring(folder, text) as running:
        until(lambda: any(1 < each["rounds"] < 9 for each in folder.journal.runs()))
        running.send_signal(signal.SIGINT)
    (part,) = (each for each in folder.journal.runs() if "of map" in each["name"])
    cli("resume", folder.whole["run_id"])
    rounds = len(folder.journal.load(part["run_id"]).rounds)
    assert rounds > part["rounds"]
    told = folder.explained()["samples"]
    assert len(told) == 2
    assert told[0]["cost_s"] > 0.1 * rounds  # with what was measured before


def test_a_map_of_peaks_that_was_killed_repeats_no_trial(cli, folder):
    """Killed within a search, it goes on there; what is left out is predicted within 15 %."""
    (folder.path / "generator.py").write_text(GENERATOR)
    page = '[factors.page]\nlevels = ["small", "large"]\nworkload = true\n'
    peak = PEAK.replace("{load} {threads}", "{load} {threads} {page}")
    peak = peak.replace("no-such-generator", f"{sys.executable} generator.py")
    rest = 'budget = "none"\naccuracy = "3%"\n[design]\nsamples = 6\n'
    levels = THREADS.replace(", 16", "")
    with measuring(folder, levels + page + server(folder) + peak + rest) as running:
        until(lambda: len(folder.lines("trials")) > 12)
        os.kill(running.pid, signal.SIGKILL)
    whole = folder.whole["run_id"]
    resumed = cli("resume", whole, "--json")
    assert resumed.exit_code == 0, resumed.stderr
    told = json.loads(resumed.stdout)
    stored = sum(each["rounds"] for each in folder.journal.runs())
    # The trial under way when it was killed may have told the file, and nobody else.
    assert len(folder.lines("trials")) - (stored - 6) in {0, 1}
    assert len(told["samples"]) == 6
    for each in told["responses"]["peak"]["predictions"]:
        threads, page = each["point"].values()
        truth = threads * (200.0 if page == "small" else 100.0) - 25.0
        assert each["estimate"]["value"] == pytest.approx(truth, rel=0.15)
    # Once for each configuration, and once more after the kill.
    assert len(folder.lines("started")) <= 7
    steps = folder.journal.load(whole).rounds[-1].facts["steps"]
    assert "ready" in [step["name"] for step in json.loads(str(steps))]
