import json
import os
import signal
import sys

import pytest

from benchrigor.errors import WorkloadFailed
from benchrigor.storage import Journal
from benchrigor.workloads import CommandWorkload

TEN_ROUNDS = ("--budget", "300", "--max-rounds", "10")
# Times between 1 and 2 s, the same in each run: noise, but neither steps nor drifts.
NOISY = """
import random
with open("times", "a+") as times:
    times.write(".")
    times.seek(0)
    print("x", 1 + random.Random(len(times.read())).random())
"""


def run_for_a_number(cli, *words):
    """Run ten rounds until they have one: few times may rise or fall by chance, and give none."""
    for _ in range(20):
        result = cli("run", *TEN_ROUNDS, *words)
        if result.exit_code != 4:
            break
    return result


@pytest.fixture
def script(tmp_path):
    """Write a Python program and return the words that run it."""

    def write(text):
        path = tmp_path / "program.py"
        path.write_text(text)
        return sys.executable, "-S", path

    return write


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module of this name into the working directory."""

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)

    return write


@pytest.mark.slow
def test_a_command_is_measured_and_kept(cli, store):
    calmly = ("--budget", "60", "--disturbed", "keep")  # the machine may be busy
    result = cli("run", "--target", "1000%", *calmly, "true")
    assert result.exit_code == 0
    assert result.stdout.startswith("true  ")
    assert "±1,000 %: reached, with ±" in result.stdout
    (run,) = Journal(store).runs()
    record = Journal(store).load(run["run_id"])
    assert record.decision.satisfied
    assert record.provenance.source  # a changed program is another one
    assert record.elapsed_s >= 1.0  # two looks agree at 15 rounds, but `true` takes 2 ms
    assert run["rounds"] > 15
    assert f"benchrigor show {run['run_id']} --details\n" in result.stdout
    assert result.stderr == ""


def test_options_after_the_command_belong_to_it(cli, strict):
    result = cli("run", *TEN_ROUNDS, "--json", "echo", "--target", "-n", "x")
    assert strict(result.stdout)["subject"]["argv"] == ["echo", "--target", "-n", "x"]


def test_two_dashes_before_the_command_are_allowed(cli, strict):
    result = cli("run", *TEN_ROUNDS, "--json", "--", "echo", "x")
    assert strict(result.stdout)["name"] == "echo x"


def test_the_json_summary_is_a_record_without_raw_readings(cli, strict):
    options = (*TEN_ROUNDS, "--budget", "none", "--disturbed", "keep", "--read", "said=column:0")
    document = strict(cli("run", *options, "--json", "--", "echo", "7").stdout)
    assert document["schema"] >= 1
    assert document["options"]["budget_s"] == "inf"
    assert [each["index"] for each in document["rounds"]] == list(range(10))
    (said,) = (each for each in document["analyses"] if each["metric"]["name"] == "said")
    assert said["estimate"]["n"] == 10


def test_ending_before_the_target_is_reached_is_told_by_exit_code_3(cli):
    result = run_for_a_number(cli, "--target", "0.0001%", "true")
    assert result.exit_code == 3
    assert "±0.0001 %: missed, with ±" in result.stdout


@pytest.mark.slow
def test_readings_are_picked_from_the_output(cli, script, strict):
    printing = script("print('rps: 250.0'); print('{\"cpu\": {\"user\": 3}}'); print('x 0.5')")
    result = cli(
        *("run", *TEN_ROUNDS, "--json", "--read", "rate:req/s=regex:rps: ([0-9.]+)"),
        *("--read", "cpu=json:cpu.user", "--read", "wait:s=column:1", *printing),
    )
    found = {each["metric"]["name"]: each for each in strict(result.stdout)["analyses"]}
    values = {name: each["estimate"]["value"] for name, each in found.items() if name != "time"}
    assert values == {"rate": 250.0, "cpu": 3.0, "wait": 0.5}
    assert found["rate"]["metric"]["unit"] == "req/s"
    assert not found["time"]["metric"]["must_satisfy"]


def test_unit_readings_are_picked_from_the_output(cli, script, strict):
    printing = script("for n in range(50): print(n, 1 + n % 2)")
    words = ("--max-rounds", "2", "--json", "--read-units", "latency:s=column:1", *printing)
    (latency, _) = strict(cli("run", *words).stdout)["analyses"]
    assert latency["n"] == 100
    assert latency["estimate"]["value"] == pytest.approx(1.5, rel=0.1)


@pytest.mark.slow
def test_the_work_amount_replaces_its_place_in_the_arguments(cli, script, strict):
    printing = script("import sys; print(sys.argv[1])")
    words = (*TEN_ROUNDS, "--json", "--work", "1000", "--read", "n=column:0", *printing, "{work}")
    (n, _) = strict(cli("run", *words).stdout)["analyses"]
    assert n["estimate"]["value"] == 1000.0


def test_a_call_of_a_function_that_lasts_too_long_is_ended(cli, tmp_path):
    (tmp_path / "hanging.py").write_text(
        "import itertools, time\n"
        "calls = itertools.count()\n"
        "def hang():\n"
        "    time.sleep(60 if next(calls) == 300 else 0)\n"
    )
    words = ("--timeout", "1", "--batch", "1", "hanging:hang")
    result = cli("run", *words)
    assert result.exit_code == 5
    shown = cli("list", "--json").stdout
    assert "hanging:hang" in shown
    before = cli("resume", "hanging", "--budget", "0.001")
    assert before.exit_code != 5


def test_an_exit_code_may_be_accepted(cli):
    words = ("--read", "said=column:0", "sh", "-c", "echo 7; exit 1")
    assert cli("run", *TEN_ROUNDS, "--accept-exit", "1", *words).exit_code == 0


TAKING = (
    "awk",
    'BEGIN { printf "took %.17g of %s\\n", 0.5 + ARGV[1] / 2e6, ARGV[1] }',
    "{work}",
)
"""A program that says of itself that it does 2e6 units a second, after half a second."""


def only_run(store):
    """Load the one run that is kept."""
    (run,) = Journal(store).runs()
    return Journal(store).load(run["run_id"])


VARIED = ("--no-reference", "--budget", "300", "--max-rounds", "12", "--work", "0:1e8", "--json")


@pytest.mark.slow
@pytest.mark.parametrize("pick", ["time:s=column:1", "time:s=regex:took ([0-9.e+]+)"])
def test_a_range_of_work_and_the_duration_that_a_command_reports_give_its_speed(
    cli, store, strict, pick
):
    document = strict(cli("run", *VARIED, "--read", pick, *TAKING).stdout)
    (speed,) = document["analyses"]
    assert speed["metric"]["name"] == "speed"
    assert speed["metric"]["unit"] == "/s"
    assert speed["metric"]["direction"] == "higher"
    assert speed["estimate"]["value"] == pytest.approx(2e6, rel=1e-6)
    assert document["options"]["work"] == [0, 10**8]
    amounts = [each.plan.work for each in only_run(store).rounds]
    assert len(set(amounts)) > 5
    assert all(isinstance(each, int) for each in amounts)


@pytest.mark.slow
def test_what_else_is_picked_stands_beside_the_speed(cli, strict):
    picks = ("--read", "time:s=column:1", "--read", "amount=column:3")
    document = strict(cli("run", *VARIED, *picks, *TAKING).stdout)
    speed, amount = document["analyses"]
    assert [each["metric"]["must_satisfy"] for each in (speed, amount)] == [True, False]
    assert amount["metric"]["name"] == "amount"


@pytest.mark.slow
def test_unit_readings_of_varied_work_must_satisfy_and_the_speed_stands_beside(cli, script, strict):
    printing = script(
        "import sys; n = int(sys.argv[1]); print('took', 1 + n / 100)\n"
        "for each in range(n): print('unit', 0.01 + each % 2 / 1000)"
    )
    picks = ("--read", "time:s=regex:took (.+)", "--read-units", "unit:s=regex:unit (.+)")
    words = ("--max-rounds", "9", "--work", "10:1000", "--json", *picks, *printing, "{work}")
    found = {each["metric"]["name"]: each for each in strict(cli("run", *words).stdout)["analyses"]}
    assert found.keys() == {"unit", "speed"}
    assert found["unit"]["metric"]["must_satisfy"]
    assert not found["speed"]["metric"]["must_satisfy"]
    assert found["unit"]["estimate"]["value"] == pytest.approx(0.0105, rel=0.01)
    assert found["speed"]["estimate"]["value"] == pytest.approx(100.0)


@pytest.mark.slow
def test_bytes_make_the_speed_bytes_per_second(cli, strict):
    words = ("--max-rounds", "12", "--work", "1kB:100MB", "--read", "time:s=column:1", "--json")
    document = strict(cli("run", *words, *TAKING).stdout)
    assert document["analyses"][0]["metric"]["unit"] == "B/s"


@pytest.mark.slow
def test_the_order_of_work_and_the_shortest_round_reach_the_options(cli, strict):
    words = (*VARIED, "--work-order", "random", "--short-round", "0.7", "--seed", "1")
    words = (*words, "--read", "time:s=column:1", *TAKING)
    document = strict(cli("run", *words).stdout)
    assert document["options"]["work_order"] == "random"
    assert document["options"]["short_round_s"] == 0.7


@pytest.mark.slow
def test_wps_may_be_asked_for_by_name_without_a_range(cli, strict):
    words = (
        "--budget",
        "300",
        "--max-rounds",
        "12",
        "--analysis",
        "wps",
        "--json",
        "--read",
        "time:s=column:1",
    )
    document = strict(cli("run", *words, *TAKING).stdout)
    assert document["options"]["analysis"] == "wps"
    assert document["analyses"][0]["estimate"]["value"] == pytest.approx(2e6, rel=1e-6)


@pytest.mark.slow
def test_wps_by_name_lets_nothing_but_the_speed_count(cli, module, store):
    module("counted", "def f(n):\n    for _ in range(n): yield sum(range(2000))")
    words = ("--work", "100:3000", "--short-round", "0.0001", "--max-rounds", "12")
    cli("run", *words, "--analysis", "wps", "counted:f")
    wanted = {metric.name: metric.must_satisfy for metric in only_run(store).metrics}
    assert wanted == {"speed": True, "time": False}


@pytest.mark.slow
def test_rounds_that_stay_too_short_are_bad_input_and_say_so(cli, script):
    words = ("--work", "0:1000", "--read", "time:s=column:0", *script("print(0.001)"), "{work}")
    result = cli("run", *words)
    assert result.exit_code == 2


SLEEPY = "import time\ndef f(n): time.sleep(0.002 + n / 1e5)"


@pytest.mark.slow
def test_a_function_of_an_amount_is_measured_and_taken_up_again(cli, module, store):
    module("sleepy", SLEEPY)
    words = ("--work", "100:2000", "--short-round", "0.001", "--target", "0.001%")
    ended = cli("run", *words, "--gc", "off", "--max-rounds", "11", "sleepy:f")
    assert ended.exit_code in {3, 4}
    again = cli("resume", only_run(store).run_id, "--max-rounds", "25")
    record = only_run(store)
    speed = record.estimate()  # None where the machine is too busy for a straight line
    assert again.exit_code == (3 if speed else 4)
    assert record.options.work == (100, 2000)
    assert record.metrics[0].name == "speed"
    assert len(record.rounds) == 25
    assert all(100 <= each.plan.work <= 2000 for each in record.rounds)
    assert {each.facts["gc"] for each in record.rounds} == {"off"}
    assert speed is None or speed.value == pytest.approx(1e5, rel=0.5)


@pytest.mark.slow
def test_a_command_of_various_work_is_taken_up_again(cli, script, store):
    words = ("--work", "1e6:1e8", "--target", "0.001%", "--read", "time:s=column:1")
    noisy = "import random, sys; print('took', float(sys.argv[1]) / 2e6 * random.uniform(0.9, 1.1))"
    printing = script(noisy)
    enough = ("--budget", "300")
    assert cli("run", *words, *enough, "--max-rounds", "10", *printing, "{work}").exit_code == 3
    assert cli("resume", only_run(store).run_id, *enough, "--max-rounds", "30").exit_code == 3
    record = only_run(store)
    assert len(record.rounds) == 30
    assert record.estimate().value == pytest.approx(2e6, rel=0.3)


@pytest.mark.slow
def test_a_generator_function_of_an_amount_does_the_work_of_each_round(cli, module, store):
    module("working", "def f(n):\n    for _ in range(n): yield sum(range(2000))")
    words = ("--work", "100B:3000B", "--short-round", "0.0001", "--max-rounds", "12")
    assert cli("run", *words, "working:f").exit_code in {0, 3, 4}
    record = only_run(store)
    wanted = {metric.name: (metric.unit, metric.must_satisfy) for metric in record.metrics}
    assert wanted == {"time": ("s", True), "speed": ("B/s", False)}
    sizes = [each.unit_readings["time"].size for each in record.rounds]
    assert sizes == [each.plan.work for each in record.rounds]


def test_a_function_of_an_amount_may_be_given_one(cli, module, store):
    module("single", "def f(n): sum(range(int(n)))")
    assert cli("run", "--work", "20k", "--max-rounds", "12", "single:f").exit_code in {0, 3, 4}
    record = only_run(store)
    assert record.metrics[0].name == "time"
    assert {each.plan.work for each in record.rounds} == {20_000}


def test_a_function_is_measured(cli, module, strict):
    module("fast", "def f(): sum(range(50))")
    document = strict(cli("run", "--budget", "0.1", "--gc", "off", "--json", "fast:f").stdout)
    assert document["name"] == "fast:f"
    assert document["subject"]["gc"] == "off"
    assert document["analyses"][0]["n"] > 0


def test_statistic_and_batch_reach_the_options_and_the_stored_subject(cli, module, store, strict):
    module("batched", "def f(): sum(range(50))")
    words = ("--in-process", "--statistic", "median", "--batch", "3", "--max-readings", "50")
    words += ("--json",)
    document = strict(cli("run", *words, "batched:f").stdout)
    assert document["options"]["statistic"] == "median"
    assert document["options"]["method"] == "long-run-variance"
    assert document["subject"]["batch"] == 3
    journal = Journal(store)
    record = journal.load(journal.runs()[0]["run_id"])
    assert record.options.statistic == "median"
    assert record.subject["batch"] == 3
    assert {each.facts["inner_loop"] for each in record.rounds} == {3}


def test_the_method_reaches_the_options_and_the_interval(cli, strict):
    words = (*TEN_ROUNDS, "--method", "subsessions", "--read", "n=column:0", "--json", "echo", "5")
    document = strict(cli("run", *words).stdout)
    assert document["options"]["method"] == "subsessions"
    assert document["analyses"][0]["estimate"]["method"] == "subsessions"


@pytest.mark.slow
def test_what_becomes_of_red_rounds_reaches_the_options_and_the_light_the_record(cli, strict):
    words = ("--red-rounds", "repeat", "--max-rounds", "5", "--json")
    told = strict(cli("run", *words, sys.executable, "-c", "sum(range(10**6))").stdout)
    assert told["options"]["red_rounds"] == "repeat"
    assert told["interference"]["light"] in {"green", "yellow", "red", "unknown"}


@pytest.mark.slow
def test_a_run_taken_up_goes_on_with_the_same_batch(cli, module, store):
    module("resumed", "def f(): sum(range(10_000))")
    words = ("--batch", "3", "--target", "0.0001%", "--statistic", "p10", "--budget", "none")
    assert cli("run", *words, "--max-rounds", "2", "resumed:f").exit_code in {3, 4}
    (run,) = Journal(store).runs()
    assert cli("resume", run["run_id"], "--max-rounds", "4").exit_code in {3, 4}
    record = Journal(store).load(run["run_id"])
    assert [each.facts["inner_loop"] for each in record.rounds] == [3] * 4
    assert record.options.statistic == "p10"


def test_a_generator_function_is_measured_step_by_step(cli, module, strict):
    module("steps", "def f():\n  while True:\n    sum(range(5000)); yield")
    document = strict(cli("run", "--max-readings", "50", "--json", "steps:f").stdout)
    assert document["analyses"][0]["n"] > 1


@pytest.mark.slow
def test_restarted_rounds_start_a_generator_anew(cli, module):
    steps = "def steps():\n    print('anew')\n    while True:\n        yield sum(range(500))\n"
    module("starting", steps)
    options = ["--rounds", "restarted", "--max-rounds", "3", "--no-store"]
    result = cli("run", *options, "starting:steps")
    assert result.stderr.count("anew") == 3


def test_what_a_function_prints_does_not_reach_the_result(cli, module, strict):
    module("noisy", "print('imported')\ndef f(): print('called')")
    result = cli("run", "--in-process", "--budget", "0.05", "--json", "noisy:f")
    assert strict(result.stdout)["name"] == "noisy:f"
    assert result.stderr.startswith("imported\ncalled\n")


@pytest.mark.slow
def test_rounds_finished_before_a_failure_are_kept_and_it_is_said_where(cli, store, script):
    failing = script(
        "import sys; from pathlib import Path\n"
        "with open('count', 'a') as count: count.write('x')\n"
        "sys.exit(len(Path('count').read_text()) > 3)"
    )
    other = store.with_name("other.sqlite")
    result = cli("run", "--store", other, *failing)
    assert result.exit_code == 5
    (run,) = Journal(other).runs()
    assert run["rounds"] == 3
    hint = f"3 finished rounds kept: benchrigor resume {run['run_id']} --store {other}"
    assert hint in result.stderr


def test_a_command_that_an_interrupt_caught_while_it_started_is_started_again(
    cli, monkeypatch, strict
):
    started = []
    run = CommandWorkload.run

    def run_interrupted(workload, plan, recorder):
        started.append(plan.index)
        if len(started) == 3:
            os.kill(os.getpid(), signal.SIGINT)
            raise WorkloadFailed("true was killed by SIGINT")
        run(workload, plan, recorder)

    monkeypatch.setattr(CommandWorkload, "run", run_interrupted)
    result = cli("run", "--json", "true")
    assert result.exit_code in {0, 4}  # three times may fall by chance
    assert started == [0, 1, 2, 2]
    assert len(strict(result.stdout)["rounds"]) == 3


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "wanted"), [((), 1), (("--no-reference",), 0)])
def test_a_reference_is_run_in_turn_with_a_command(cli, store, flags, wanted):
    cli("run", *TEN_ROUNDS, *flags, "true")
    (run,) = Journal(store).runs()
    record = Journal(store).load(run["run_id"])
    paced = [each for each in record.rounds if each.references is not None]
    assert min(len(paced), 1) == wanted
    assert record.options.reference is bool(wanted)


def test_nothing_is_kept_with_no_store(cli, store):
    result = cli("run", *TEN_ROUNDS, "--no-store", "true")
    assert "kept as" not in result.stdout
    assert not store.exists()


def test_a_store_that_cannot_be_written_is_told_by_exit_code_6(cli, store):
    store.write_text("this is no database, and long enough to be taken for one " * 100)
    result = cli("run", *TEN_ROUNDS, "true")
    assert result.exit_code == 6


# What a budget leaves unreached


@pytest.mark.slow
def test_a_spent_budget_is_a_result_unless_a_target_was_given(cli, store, script):
    words = script(NOISY)
    read = (*TEN_ROUNDS, "--disturbed", "keep", "--read", "x:s=regex:x (.+)")
    done = cli("run", "--details", *read, *words)
    assert done.exit_code == 0, done.stderr
    assert "wanted" not in done.stdout
    done = cli("run", "--target", "2%", "--details", *read, *words)
    assert done.exit_code == 3
    assert cli("run", "--target", "1000%", *read, *words).exit_code == 0


@pytest.mark.slow
def test_a_width_in_the_description_of_a_metric_is_a_target(cli, store, script, tmp_path):
    words = script(NOISY)
    read = ("--disturbed", "keep", "--read", "x:s,±2%=regex:x (.+)")
    assert cli("run", *TEN_ROUNDS, *read, *words).exit_code == 3
    run_id = Journal(store).runs()[0]["run_id"]
    assert cli("resume", run_id, "--max-rounds", "12").exit_code == 3
    (tmp_path / "pyproject.toml").write_text("[tool.benchrigor.metrics]\ntime = '±0.0001%'\n")
    assert run_for_a_number(cli, "true").exit_code == 3


def test_thorough_is_short_for_a_budget_of_a_minute(cli, strict):
    result = cli("run", "--thorough", "--max-rounds", "10", "--json", "true")
    assert strict(result.stdout)["options"]["budget_s"] == 60.0


@pytest.mark.slow
def test_a_function_is_measured_in_fresh_interpreters(cli, module, strict, monkeypatch):
    monkeypatch.setenv("WANTED", "1")
    module("fresh_job", "import os, sys\n\ndef go():\n    assert os.environ['WANTED']\n")
    words = ("--inherit-env", "WANTED", "--batch", "5", "--max-rounds", "6")
    result = cli("run", *words, "--json", "fresh_job:go")
    told = strict(result.stdout)
    assert told["subject"]["kind"] == "interpreter"
    assert told["options"]["rounds"] == "restarted"
    assert told["subject"]["inner"] == 5
    assert len(told["rounds"]) == 6
    assert "this-process-only" not in {each["code"] for each in told["session_notices"]}


@pytest.mark.slow
def test_a_run_in_fresh_interpreters_is_taken_up_again(cli, module, store):
    module("fresh_job", "def go():\n    pass\n")
    assert cli("run", "--max-rounds", "3", "fresh_job:go").exit_code in {0, 4}
    (run,) = Journal(store).runs()
    cli("resume", run["run_id"], "--max-rounds", "5")
    assert Journal(store).load(run["run_id"]).rounds[4].facts["startup_s"] > 0.0


_KINDS = """
def steps():
    while True:
        yield
def make():
    return lambda: None
closure = make()
def plain(): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("kinds:steps",), "kinds:steps is a generator function"),
        (("kinds:closure",), "kinds:closure is made inside of another function"),
        (("--in-process", "kinds:plain"), "--in-process is given"),
        (("--timeout", "5", "kinds:plain"), "--timeout is for one process"),
    ],
)
def test_what_stays_in_this_process_says_so(cli, module, store, words, why):
    module("kinds", _KINDS)
    shown = " ".join(cli("run", "--budget", "0.1", *words).stdout.split())
    assert why.split()[-1] in shown
    (run,) = Journal(store).runs()
    assert Journal(store).load(run["run_id"]).subject["kind"] == "target"


@pytest.mark.slow
def test_a_target_out_of_reach_is_said_while_the_run_goes_on(cli):
    result = cli("run", "--target", "2%", "--budget", "5", "sleep", "2")
    assert "±2% cannot" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("later_s", "is_named"), [(0.0, True), (0.1, False)], ids=["compiles", "is slow"]
)
def test_a_first_call_that_does_more_is_no_reading_of_a_fresh_process(
    cli, module, later_s, is_named
):
    module(
        "first_slow",
        "import time\nleft = [0.1]\n"
        f"def work():\n    time.sleep(left.pop() if left else {later_s})\n",
    )
    result = cli("run", "--budget", "2s", "--json", "first_slow:work")
    found = json.loads(result.stdout)
    (analysis,) = found["analyses"]
    assert (found["first_call_s"] is not None) == is_named
    assert (analysis["estimate"]["value"] < 0.01) == is_named
    page = cli("show", found["run_id"]).stdout
    assert ("first call 1" in page.splitlines()[0]) == is_named
    assert ("call of" in page) == is_named
