"""Other load generators, by what they print."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from benchrigor import LoadResult, LoadTrial
from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.workbench.loadgen import LoadCommand
from benchrigor.workloads import Pick

# As their documentation shows reports, with other numbers.
PRINTED = {
    "wrk2": """Running 30s test @ http://127.0.0.1:8080/
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.50ms    1.05ms  31.00ms   93.70%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    2.10ms
 90.000%    4.00ms
 99.000%   12.50ms
 99.900%    1.20s
  5999 requests in 30.00s, 4.65MB read
  Non-2xx or 3xx responses: 59
Requests/sec:    199.98
""",
    "vegeta": """Requests      [total, rate, throughput]         6000, 200.03, 199.98
Duration      [total, attack, wait]             30s, 29.995s, 5.1ms
Latencies     [min, mean, 50, 90, 95, 99, max]  290.1µs, 2.5ms, 2.1ms, 4ms, 6.5ms, 12.5ms, 1m2.5s
Success       [ratio]                           99.00%
""",
    "k6": """     checks_succeeded...................: 99.00% 5940 out of 6000
     dropped_iterations.............: 12     0.4/s
     http_req_duration..............: avg=2.5ms min=1ms med=2.1ms max=1.2s p(90)=4ms p(95)=6.5ms
     http_reqs......................: 6000   199.9/s
     iterations.....................: 6000   199.9/s
""",
    "oha": """Summary:
  Success rate: 99.00%
  Total:        30.0012 secs
  Average:      0.0025 secs

Response time distribution:
  50.00% in 0.0021 secs
  95.00% in 0.0065 secs
  99.00% in 0.0125 secs

Status code distribution:
  [200] 5940 responses
  [500] 60 responses
""",
    "h2load": """finished in 30.00s, 200.00 req/s, 1.50MB/s
requests: 6000 total, 6000 started, 6000 done, 5940 succeeded, 60 failed, 0 errored
                     min         max         mean         sd        +/- sd
time for request:     312us      31.00ms      2.50ms       1.00ms    85.00%
""",
    "fortio": """Ended after 30.01s : 6000 calls. qps=199.9
Aggregated Function Time : count 6000 avg 0.0025 +/- 0.001 min 0.0003 max 0.03
# target 50% 0.0021
# target 95% 0.0065
# target 99% 0.0125
Code 200 : 5940 (99.0 %)
All done 6000 calls (plus 4 warmup) 2.500 ms avg, 199.9 qps
""",
}


def offered(
    text: str, *words: str, load: float = 200.0, seconds: float = 30.0, **options: Any
) -> LoadResult:
    """Offer a load by a command that prints a text, whatever its further words are."""
    command = ["sh", "-c", f"cat <<'.'\n{text}\n.\n", *words, "{load}"]
    trial = LoadTrial(id=0, load=load, duration_s=seconds)
    return LoadCommand(command, **options).offer(trial)


@pytest.mark.parametrize("tool", PRINTED)
def test_what_a_known_generator_prints_is_read(tool):
    found = offered(PRINTED[tool], tool)
    assert found.mean_response_s == pytest.approx(0.0025)
    assert found.value("failed") == pytest.approx(0.01, rel=0.02)
    if tool != "h2load":
        assert (found.value("p99") or found.value("p95")) == pytest.approx(
            {"k6": 0.0065}.get(tool, 0.0125)
        )
    if tool == "k6":
        assert (found.sent, found.scheduled) == (6000, 6012)


@pytest.mark.parametrize("tool", ["wrk2", "fortio"])
def test_what_a_generator_that_waits_holds_back_was_not_sent(tool):
    """Fortio tells how many it sent, wrk2 how many were answered, which a slow server lowers."""
    found = offered(PRINTED[tool], tool, load=300.0)
    assert found.scheduled == {"fortio": 9000, "wrk2": None}[tool]


@pytest.mark.parametrize("tool", PRINTED)
def test_a_generator_that_sent_for_too_short_a_time_is_refused(tool):
    text = re.sub(r"3?[0-9]\.\d+(?=s|s,| secs)|(?<=, )29\.995(?=s)", "0.00125", PRINTED[tool])
    if tool == "k6":
        text = PRINTED[tool].replace("199.9/s", "4800000/s")
    with pytest.raises(WorkloadFailed):
        offered(text, tool, load=6000.0, seconds=1.0)


@pytest.mark.parametrize("tool", PRINTED)
def test_a_generator_that_ignores_its_rate_is_refused(tool):
    with pytest.raises(WorkloadFailed):
        offered(PRINTED[tool], tool, load=100.0)
    closed = offered(PRINTED[tool], tool, load=100.0, is_rate=False)
    assert closed.mean_response_s == pytest.approx(0.0025)


def test_the_rate_of_a_generator_is_of_iterations_that_send_several_requests():
    text = re.sub("(http_reqs.*): 6000   199.9", r"\1: 12000   399.8", PRINTED["k6"])
    found = offered(text, "k6")
    assert (found.sent, found.scheduled, found.failed) == (6000, 6012, 60)


def test_a_trial_lasts_whole_seconds_and_is_judged_by_these():
    text = re.sub("6000|5940", "10", PRINTED["fortio"])
    assert offered(text, "fortio", load=10.0, seconds=1.4).scheduled == 10


def test_load_and_seconds_are_put_in_their_places():
    echo = "import sys, time; time.sleep(1); "
    echo += "print('mean', float(sys.argv[1]) / 1000, 'of', sys.argv[2])"
    command = [sys.executable, "-c", echo, "{load}", "{seconds}s"]
    trial = LoadTrial(id=0, load=200.0, duration_s=1.0)
    found = LoadCommand(command, [Pick.parse(r"mean:s=regex:mean (\S+) of 1s")]).offer(trial)
    assert found.mean_response_s == 0.2


def test_times_are_read_in_their_unit():
    names = ("p95:ms=regex:p95 (.+)", "depth=regex:depth (.+)", "failed:%=regex:failed (.+)")
    picks = [Pick.parse(each) for each in names]
    found = offered("p95 250\ndepth 3\nfailed 5", picks=picks)
    assert found.value("failed") == 0.05
    assert found.p95_response_s == 0.25
    assert found.value("depth") == 3.0


def test_what_is_no_generator_that_waits_for_answers_is_taken():
    picks = [Pick.parse("mean:s=column:1")]
    LoadCommand(["wrk", "-R", "{load}", "URL"])  # this is wrk2
    LoadCommand(["mine", "{load}", "http://ab/"], picks)  # a host
    LoadCommand(["hey", "-c", "{load}"], picks, is_rate=False)
    for argv in (["wrk", "{load}", "URL"], ["ab", "{load}", "URL"], ["hey", "-c", "{load}"]):
        with pytest.raises(InvalidInput):
            LoadCommand(argv, picks)


def test_a_generator_that_ends_at_once_has_not_sent_for_so_long():
    """Whatever it prints: nothing but its picks is known of a generator of one's own."""
    says = "print('mean 5 ms, 833071 requests in 1.25ms')"
    command = [sys.executable, "-S", "-c", says, "{load}", "{seconds}"]
    picks = [Pick.parse("mean:ms=regex:mean ([0-9.]+)")]
    generator = LoadCommand(command, picks=picks)
    with pytest.raises(WorkloadFailed):
        generator.offer(LoadTrial(id=0, load=100.0, duration_s=5.0))
