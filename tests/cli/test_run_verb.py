import os
import signal

import pytest

from benchrigor.errors import WorkloadFailed
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
def only(kept):
    """Return what loads the one run that is kept."""

    def load():
        (record,) = kept()
        return record

    return load


def test_a_command_is_measured_and_kept(cli, only):
    calmly = ("--budget", "60", "--disturbed", "keep")  # the machine may be busy
    result = cli("run", "--target", "1000%", *calmly, "true")
    assert result.exit_code == 0
    record = only()
    assert record.decision.satisfied
    assert record.provenance.source  # a changed program is another one
    assert record.elapsed_s >= 1.0  # two looks agree at 15 rounds, but `true` takes 2 ms
    assert len(record.rounds) >= 15
    assert f"benchrigor show {record.run_id} --details\n" in result.stdout
    assert result.stderr == ""


def test_options_after_the_command_belong_to_it_and_two_dashes_before_it_are_allowed(told):
    found = told("run", *TEN_ROUNDS, "echo", "--target", "-n", "x")
    assert found["subject"]["argv"] == ["echo", "--target", "-n", "x"]
    assert told("run", *TEN_ROUNDS, "--", "echo", "x")["name"] == "echo x"


def test_the_json_summary_is_a_record_without_raw_readings(told):
    options = (*TEN_ROUNDS, "--budget", "none", "--disturbed", "keep", "--read", "said=column:0")
    document = told("run", *options, "--", "echo", "7")
    assert document["schema"] >= 1
    assert document["options"]["budget_s"] == "inf"
    assert [each["index"] for each in document["rounds"]] == list(range(10))
    (said,) = (each for each in document["analyses"] if each["metric"]["name"] == "said")
    assert said["estimate"]["n"] == 10


def test_readings_are_picked_from_the_output(told, script):
    printing = script(
        "print('rps: 250.0'); print('{\"cpu\": {\"user\": 3}}'); print('x 0.5'); exit(1)"
    )
    picks = ("--read", "rate:req/s=regex:rps: ([0-9.]+)", "--read", "cpu=json:cpu.user")
    picks += ("--read", "wait:s=column:1", "--accept-exit", "1")
    document = told("run", *TEN_ROUNDS, *picks, *printing)
    found = {each["metric"]["name"]: each for each in document["analyses"]}
    values = {name: each["estimate"]["value"] for name, each in found.items() if name != "time"}
    assert values == {"rate": 250.0, "cpu": 3.0, "wait": 0.5}
    assert found["rate"]["metric"]["unit"] == "req/s"
    assert not found["time"]["metric"]["must_satisfy"]


def test_a_call_of_a_function_that_lasts_too_long_is_ended(cli, module, kept):
    module(
        "hanging",
        "import itertools, time\n"
        "calls = itertools.count()\n"
        "def hang():\n"
        "    time.sleep(60 if next(calls) == 300 else 0)\n",
    )
    assert cli("run", "--timeout", "1", "--batch", "1", "hanging:hang").exit_code == 5
    assert [record.name for record in kept()] == ["hanging:hang"]


TAKING = (
    "awk",
    'BEGIN { printf "took %.17g of %s\\n", 0.5 + ARGV[1] / 2e6, ARGV[1] }',
    "{work}",
)
"""A program that says of itself that it does 2e6 units a second, after half a second."""


VARIED = ("run", "--no-reference", "--budget", "300", "--max-rounds", "12", "--work", "0:1e8")
TIMED = ("--read", "time:s=column:1")


@pytest.mark.parametrize("pick", ["time:s=column:1", "time:s=regex:took ([0-9.e+]+)"])
def test_a_range_of_work_and_the_duration_that_a_command_reports_give_its_speed(told, only, pick):
    document = told(*VARIED, "--read", pick, *TAKING)
    (speed,) = document["analyses"]
    assert speed["metric"]["name"] == "speed"
    assert speed["metric"]["unit"] == "/s"
    assert speed["metric"]["direction"] == "higher"
    assert speed["estimate"]["value"] == pytest.approx(2e6, rel=1e-6)
    assert document["options"]["work"] == [0, 10**8]
    amounts = [each.plan.work for each in only().rounds]
    assert len(set(amounts)) > 5
    assert all(isinstance(each, int) for each in amounts)


def test_what_else_is_picked_stands_beside_the_speed_and_options_reach_it(told):
    words = (*VARIED, "--work", "1kB:100MB", "--work-order", "random", "--short-round", "0.7")
    document = told(*words, *TIMED, "--read", "amount=column:3", *TAKING)
    speed, amount = document["analyses"]
    assert [each["metric"]["must_satisfy"] for each in (speed, amount)] == [True, False]
    assert (speed["metric"]["unit"], amount["metric"]["name"]) == ("B/s", "amount")
    options = document["options"]
    assert (options["work_order"], options["short_round_s"]) == ("random", 0.7)


def test_unit_readings_of_varied_work_must_satisfy_and_the_speed_stands_beside(told, script):
    printing = script(
        "import sys; n = int(sys.argv[1]); print('took', 1 + n / 100)\n"
        "for each in range(n): print('unit', 0.01 + each % 2 / 1000)"
    )
    picks = ("--read", "time:s=regex:took (.+)", "--read-units", "unit:s=regex:unit (.+)")
    words = ("run", "--max-rounds", "9", "--work", "10:1000", *picks, *printing, "{work}")
    found = {each["metric"]["name"]: each for each in told(*words)["analyses"]}
    assert found.keys() == {"unit", "speed"}
    assert found["unit"]["metric"]["must_satisfy"]
    assert not found["speed"]["metric"]["must_satisfy"]
    assert found["unit"]["estimate"]["value"] == pytest.approx(0.0105, rel=0.01)
    assert found["speed"]["estimate"]["value"] == pytest.approx(100.0)


def test_rounds_that_stay_too_short_measure_nothing(cli, script):
    words = ("--work", "0:1000", "--read", "time:s=column:0", *script("print(0.001)"), "{work}")
    found = cli("run", *words)
    assert (found.exit_code, "benchrigor show" in found.stderr) == (4, True)


SLEEPY = "import time\ndef f(n): time.sleep(0.002 + n / 1e5)"


def test_a_function_of_an_amount_is_measured_and_taken_up_again(cli, module, only):
    module("sleepy", SLEEPY)
    words = ("--work", "100:2000", "--short-round", "0.001", "--target", "0.001%")
    ended = cli("run", *words, "--gc", "off", "--max-rounds", "11", "sleepy:f")
    assert ended.exit_code in {3, 4}
    again = cli("resume", only().run_id, "--max-rounds", "25")
    record = only()
    speed = record.estimate()  # None where the machine is too busy for a straight line
    assert again.exit_code == (3 if speed else 4)
    assert record.options.work == (100, 2000)
    assert record.metrics[0].name == "speed"
    assert len(record.rounds) == 25
    assert all(100 <= each.plan.work <= 2000 for each in record.rounds)
    assert {each.facts["gc"] for each in record.rounds} == {"off"}
    assert speed is None or speed.value == pytest.approx(1e5, rel=0.5)


@pytest.mark.parametrize(("more", "counts"), [((), "time"), (("--analysis", "wps"), "speed")])
def test_a_generator_function_of_an_amount_does_the_work_of_each_round(
    cli, module, only, more, counts
):
    """By name, nothing but the speed counts."""
    module("working", "def f(n):\n    for _ in range(n): yield sum(range(2000))")
    words = ("--work", "100B:3000B", "--short-round", "0.0001", "--max-rounds", "12", *more)
    assert cli("run", *words, "working:f").exit_code in {0, 3, 4}
    record = only()
    wanted = {metric.name: (metric.unit, metric.must_satisfy) for metric in record.metrics}
    assert wanted == {"time": ("s", counts == "time"), "speed": ("B/s", counts == "speed")}
    sizes = [each.unit_readings["time"].size for each in record.rounds]
    assert sizes == [each.plan.work for each in record.rounds]


def test_statistic_batch_and_collector_reach_the_options_and_the_stored_subject(told, module, only):
    module("batched", "def f(): sum(range(50))")
    words = ("--in-process", "--statistic", "median", "--batch", "3", "--max-readings", "50")
    document, record = told("run", *words, "--gc", "off", "batched:f"), only()
    assert document["name"] == "batched:f"
    assert document["options"]["statistic"] == record.options.statistic == "median"
    assert document["subject"]["batch"] == record.subject["batch"] == 3
    assert document["subject"]["gc"] == "off"
    assert {each.facts["inner_loop"] for each in record.rounds} == {3}


def test_the_method_reaches_the_options_and_the_interval(told):
    document = told("run", "--max-rounds", "1", "--red-rounds", "repeat", "echo")
    assert document["options"]["red_rounds"] == "repeat"
    words = (*TEN_ROUNDS, "--method", "subsessions", "--read", "n=column:0")
    document = told("run", *words, "echo", "5")
    assert document["options"]["method"] == "subsessions"
    assert document["analyses"][0]["estimate"]["method"] == "subsessions"


def test_a_run_taken_up_goes_on_with_the_same_batch(cli, module, only):
    module("resumed", "def f(): sum(range(10_000))")
    words = ("--batch", "3", "--target", "0.0001%", "--statistic", "p10", "--budget", "none")
    assert cli("run", *words, "--max-rounds", "2", "resumed:f").exit_code in {3, 4}
    assert cli("resume", only().run_id, "--max-rounds", "4").exit_code in {3, 4}
    assert [each.facts["inner_loop"] for each in only().rounds] == [3] * 4
    assert only().options.statistic == "p10"


def test_restarted_rounds_start_a_generator_anew(cli, module):
    steps = "def steps():\n    print('anew')\n    while True:\n        yield sum(range(500))\n"
    module("starting", steps)
    options = ["--rounds", "restarted", "--max-rounds", "3", "--no-store"]
    assert cli("run", *options, "starting:steps").stderr.count("anew") == 3


def test_what_a_function_prints_does_not_reach_the_result(cli, module, strict):
    module("noisy", "print('imported')\ndef f(): print('called')")
    result = cli("run", "--in-process", "--budget", "0.05", "--json", "noisy:f")
    assert strict(result.stdout)["name"] == "noisy:f"
    assert result.stderr.startswith("imported\ncalled\n")


def test_rounds_finished_before_a_failure_are_kept_and_it_is_said_where(cli, script, only):
    failing = script(
        "import sys; from pathlib import Path\n"
        "with open('count', 'a') as count: count.write('x')\n"
        "sys.exit(len(Path('count').read_text()) > 3)"
    )
    result = cli("run", *failing)
    assert result.exit_code == 5
    assert len(only().rounds) == 3
    assert f"benchrigor resume {only().run_id}" in result.stderr


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


@pytest.mark.parametrize(("flags", "wanted"), [((), 1), (("--no-reference",), 0)])
def test_a_reference_is_run_in_turn_with_a_command(cli, only, flags, wanted):
    cli("run", *TEN_ROUNDS, *flags, "true")
    paced = [each for each in only().rounds if each.references is not None]
    assert min(len(paced), 1) == wanted
    assert only().options.reference is bool(wanted)


def test_nothing_is_kept_with_no_store_nor_in_what_is_none(cli, store):
    result = cli("run", *TEN_ROUNDS, "--no-store", "true")
    assert "kept as" not in result.stdout
    assert not store.exists()
    store.write_text("this is no database, and long enough to be taken for one " * 100)
    assert cli("run", *TEN_ROUNDS, "true").exit_code == 6


# What a budget leaves unreached


def test_a_spent_budget_is_a_result_unless_a_target_was_given(cli, script):
    words = (*TEN_ROUNDS, "--disturbed", "keep", "--read", "x:s=regex:x (.+)", *script(NOISY))
    for target, code in (((), 0), (("--target", "2%"), 3), (("--target", "1000%"), 0)):
        assert cli("run", *target, *words).exit_code == code


def test_a_width_in_the_description_of_a_metric_is_a_target(cli, only, script, tmp_path):
    read = ("--disturbed", "keep", "--read", "x:s,±2%=regex:x (.+)")
    assert cli("run", *TEN_ROUNDS, *read, *script(NOISY)).exit_code == 3
    assert cli("resume", only().run_id, "--max-rounds", "12").exit_code == 3
    (tmp_path / "pyproject.toml").write_text("[tool.benchrigor.metrics]\ntime = '±0.0001%'\n")
    assert run_for_a_number(cli, "true").exit_code == 3


def test_thorough_is_short_for_a_budget_of_a_minute(told):
    found = told("run", "--thorough", "--max-rounds", "10", "true")
    assert found["options"]["budget_s"] == 60.0


def test_a_function_is_measured_in_fresh_interpreters_and_taken_up_again(
    cli, module, only, told, monkeypatch
):
    monkeypatch.setenv("WANTED", "1")
    module("fresh_job", "import os, sys\n\ndef go():\n    assert os.environ['WANTED']\n")
    words = ("--inherit-env", "WANTED", "--batch", "5", "--max-rounds", "6")
    found = told("run", *words, "fresh_job:go")
    assert found["subject"]["kind"] == "interpreter"
    assert found["options"]["rounds"] == "restarted"
    assert found["subject"]["inner"] == 5
    assert len(found["rounds"]) == 6
    assert "this-process-only" not in {each["code"] for each in found["session_notices"]}
    cli("resume", only().run_id, "--max-rounds", "8")
    assert only().rounds[7].facts["startup_s"] > 0.0


_KINDS = """
def steps():
    while True:
        yield
def make():
    return lambda: None
closure = make()
def plain(): pass
"""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("kinds:steps",), "generator"),
        (("kinds:closure",), "inside"),
        (("--in-process", "kinds:plain"), "--in-process"),
        (("--timeout", "5", "kinds:plain"), "--timeout"),
    ],
)
def test_what_stays_in_this_process_says_so(cli, module, only, words, why):
    module("kinds", _KINDS)
    assert why in cli("run", "--budget", "0.1", *words).stdout
    assert only().subject["kind"] == "target"


def test_a_target_out_of_reach_is_said_while_the_run_goes_on(cli):
    result = cli("run", "--target", "2%", "--budget", "5", "sleep", "2")
    assert "±2% cannot" in result.stderr


@pytest.mark.parametrize(
    ("later_s", "is_named"), [(0.0, True), (0.1, False)], ids=["compiles", "is slow"]
)
def test_a_first_call_that_does_more_is_no_reading_of_a_fresh_process(
    cli, module, told, later_s, is_named
):
    module(
        "first_slow",
        "import time\nleft = [0.1]\n"
        f"def work():\n    time.sleep(left.pop() if left else {later_s})\n",
    )
    found = told("run", "--budget", "2s", "first_slow:work")
    (analysis,) = found["analyses"]
    assert (found["first_call_s"] is not None) == is_named
    assert (analysis["estimate"]["value"] < 0.01) == is_named
    page = cli("show", found["run_id"]).stdout
    assert ("first call 1" in page.splitlines()[0]) == is_named
