"""Files of maps: what they say, and all that is wrong in them at once, with its line."""

import re
import tomllib
from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.workbench.data import Limit
from benchrigor.workbench.maps.map_file import read_map
from benchrigor.workbench.searches import generator_of

GOOD = """\
budget = "2h"

[factors.threads]
levels = [1, 2, 4, 8]
scale = "log2"
change = "30s"

[factors.size]
levels = ["small", "large one"]
workload = true

[design]
samples = 8
target = "5%"

[server]
configure = "make THREADS={threads}"
start = [
    "my-server",        # [not a table]
    "--threads={threads}",
]
ready = "http://127.0.0.1:8000/"
warm_up = "my-client --once {size}"
timeouts = {ready = "20s", stop = "5s"}

[response.peak]
url = "http://127.0.0.1:8000/{size}"
headers = {Size = "{size}"}
p95 = "{threads}00ms"
mean = {size = {small = "10ms", "large one" = "40ms"}}
limits = {p99 = "500ms"}
accuracy = "4%"
max_load = 2000
prepare = "sync {size}"
timeout = "3s"
"""
COMMAND = """\
[factors.threads]
levels = [1, 2]
[response]
command = "my-program --threads {threads}"
"""
FACTOR = "[factors.a]\nlevels = [1, 2]\n"
FUNCTION = f'{FACTOR}[response]\nfunction = "my.mod:f"\ndirection = "higher"'
PEAK = f'{FACTOR}[response.peak]\np95 = "9ms"\n'
SEVERAL = f"""{PEAK}
[[response.peak.requests]]
url = "http://x/{{a}}"
[[response.peak.requests]]
url = "http://x/2"
weight = 2
"""
TOOL = f"""{PEAK}
command = "mine {{a}} {{load}}"
read = ["p95:ms=regex:(.+)"]
load = "users"
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(text):
        Path("map.toml").write_text(text)
        return read_map("map.toml")

    return read


@pytest.fixture
def problems(read):
    """Return what is wrong with a text, as lines and sentences."""

    def problems(text):
        with pytest.raises(InvalidInput) as caught:
            read(text)
        found = [re.fullmatch(r"map\.toml:(\d+): (.+)", each) for each in caught.value.problems]
        return [(int(each[1]), each[2]) for each in found]

    return problems


def test_a_file_is_read_as_plain_data(read):
    found = read(GOOD)
    threads, size = found.factors
    assert (threads.name, threads.levels, threads.scale) == ("threads", (1, 2, 4, 8), "log2")
    assert (threads.change_s, threads.workload, size.workload) == (30.0, False, True)
    assert found.design == {"kind": "adaptive", "samples": 8, "target": 0.05}
    assert found.budget_s == 7200.0
    assert found.life_cycle.start == ("my-server", "--threads={threads}")
    assert found.life_cycle.timeouts == {"ready": 20.0, "stop": 5.0}
    assert found.response.search == {"accuracy": 0.04, "max_load": 2000.0}


def test_a_peak_differs_by_sample(read):
    response = read(GOOD).response
    assert response.limits_at({"threads": 4, "size": "large one"}) == [
        Limit(metric="mean", at_most=0.04),
        Limit(metric="p95", at_most=0.4),
        Limit(metric="p99", at_most=0.5),
    ]
    offered = response.generator_at({"threads": 4, "size": "large one"})
    (request,) = offered["requests"]
    assert request == {"url": "http://127.0.0.1:8000/large one", "headers": {"Size": "large one"}}
    assert offered["prepare"] == "sync 'large one'"
    assert generator_of(offered, response.limits_at({"threads": 1, "size": "small"}))


def test_several_kinds_of_requests_and_a_generator_of_ones_own_may_be_offered(read):
    offered = read(SEVERAL).response.generator_at({"a": 2.0})
    assert [each["url"] for each in offered["requests"]] == ["http://x/2", "http://x/2"]
    response = read(TOOL).response
    offered = response.generator_at({"a": 1})
    assert (offered["kind"], offered["words"]) == ("command", ["mine", "1", "{load}"])
    assert generator_of(offered, response.limits_at({"a": 1}))


HIGHER, TWO_WAYS = 'direction = "higher"', 'direction = {cost = "lower", rate = "higher"}'


@pytest.mark.parametrize(
    ("more", "direction"),
    [
        ("", "lower"),
        ("read = 'rate:op/s=regex:(.+)'", "higher"),
        ("read = 'score=regex:(.+)'\ndirection = 'lower'", "lower"),
    ],
)
def test_a_metric_of_a_command_knows_which_way_is_better(read, more, direction):
    response = read(f'{COMMAND}{more}\naccuracy = 0.02\nbudget = "none"').response
    assert [str(each) for each in response.directions.values()] == [direction]
    assert response.options == {"accuracy": 0.02, "budget_s": None}
    assert response.command == ["my-program", "--threads", "{threads}"]


def test_each_of_several_responses_has_its_own_direction(read):
    several = "read = ['rate:op/s=regex:(.+)', 'p99:ms=json:p99', 'score=json:score']\n"
    ways = read(f"{COMMAND}{several}direction = {{score = 'higher'}}").response.directions
    assert {name: str(way) for name, way in ways.items()} == {
        "rate": "higher",
        "p99": "lower",
        "score": "higher",
    }
    of_function = read(f"{FUNCTION.replace(HIGHER, TWO_WAYS)}").response
    assert [*of_function.directions] == ["cost", "rate"]


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("read = ['score=json:a', 'p99:ms=json:b']", "no direction for score, expected"),
        ("read = ['a:ms=json:a', 'a:ms=json:b']", "read has a, a, expected different names"),
        ("read = 'a:ms=json:a'\ndirection = {b = 'lower'}", "direction is of 'b', expected a"),
        ("read = 'a:ms=json:a'\ndirection = {a = 'up'}", "response.direction is 'up'"),
        ("direction = 7", "response.direction is 7"),
    ],
)
def test_what_is_wrong_with_several_responses_is_told(read, more, problem):
    with pytest.raises(InvalidInput, match=problem):
        read(f"{COMMAND}{more}")


def test_a_function_uses_all_factors(read):
    assert read(FUNCTION).response.function == "my.mod:f"


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ('"2h"', "7200", 1, "budget is 7200, expected a duration with its unit"),
        ('"2h"', '"2x"', 1, "budget: '2x' is no duration"),
        ("budget", "bugdet", 1, "the file has 'bugdet', expected budget"),
        ("[1, 2, 4, 8]", "4", 4, "factors.threads.levels is 4, expected a list"),
        ("[1, 2, 4, 8]", "[4]", 4, "levels of threads are [4], expected at least two"),
        ("[1, 2, 4, 8]", "[0, 4]", 3, "a level of threads is 0"),
        ("levels = [1, 2, 4, 8]", "", 3, "factors.threads has no levels"),
        ('"log2"', "2", 5, "scale of threads is 2, expected 'linear'"),
        ('"log2"', '"log3"', 5, "scale of threads is 'log3'"),
        ("true", '"yes"', 10, "factors.size.workload is 'yes', expected true or false"),
        ("samples", "sample", 13, "design has 'sample', expected samples"),
        ("samples = 8", "samples = 8.5", 13, "design.samples is 8.5, expected a whole number"),
        ("samples = 8", 'kind = "box"', 13, "design.kind is 'box', expected 'adaptive' or"),
        ('"5%"', "5", 14, "design.target is 5, expected a number between 0 and 1"),
        ('"make THREADS={threads}"', "3", 17, "server.configure is 3, expected a program"),
        ('"make THREADS={threads}"', '"make \'x"', 17, "server.configure: No closing quotation"),
        ("THREADS={threads}", "{size}", 17, "server.configure has a place for size, expected none"),
        ("THREADS={threads}", "{cores}", 17, "has a place for cores, expected threads or size"),
        ("ready = ", "port = ", 22, "port is 'http://127.0.0.1:8000/', expected a number"),
        ('"20s"', "20", 24, "server.timeouts.ready is 20, expected a duration"),
        ("stop = ", "nap = ", 24, "server.timeouts has 'nap', expected"),
        ("url = ", "command = ", 28, "response.peak has 'headers', expected"),
        ('"http://127.0.0.1:8000/{size}"', '"x{size}"', 27, "url is 'xsmall', expected http"),
        ("p95 =", "p95x =", 29, "response.peak has 'p95x', expected p95"),
        ('"{threads}00ms"', "200", 29, "response.peak.p95 is 200, expected a text such as"),
        ('"{threads}00ms"', '"200"', 29, "200 has no unit"),
        (
            "small =",
            "tiny =",
            30,
            "mean is given by 'size', expected each of ['large one', 'small']",
        ),
        ("{size = {", "{depth = {", 30, "mean is given by 'depth', expected a factor"),
        ('8000/"\nwarm', '80{threads}000/"\nwarm', 22, "ready is 'http://127.0.0.1:808000/'"),
        ('8000/"\nwarm', '{cores}"\nwarm', 22, "server.ready has a place for cores"),
        ('8000/{size}"', '{size}/"', 27, "url is 'http://127.0.0.1:large one/', expected http"),
        ('8000/{size}"', '{threads}8000/"', 27, "url is 'http://127.0.0.1:88000/', expected"),
        ('"{threads}00ms"', '"{threads}{size}"', 29, "'8large one' is no duration"),
        ("samples = 8", 'kind = "d-optimal"', 12, "samples is None, expected a whole number"),
        ("samples = 8", 'kind="d-optimal"\nsamples = 3', 14, "samples is 3, expected a whole"),
        ('"500ms"', "500", 31, "response.peak.limits.p99 is 500, expected a text"),
        ('"4%"', '"400%"', 32, "response.peak.accuracy is 4.0, expected a number between"),
        ("2000", '"many"', 33, "max_load is 'many', expected a load above 0"),
        ("max_load = 2000", "max_load = 0.5", 26, "min_load is 1.0, expected at most max_load"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(problems, old, new, line, problem):
    assert old in GOOD
    found = problems(GOOD.replace(old, new, 1))
    assert any(number == line and problem in each for number, each in found), found


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "the file has no factors"),
        ("factors = 3\nresponse = 4", 2, "response is 4, expected a table"),
        ("[factors]\n[response]", 1, "factors is empty"),
        (COMMAND + "function = 'a:b'", 3, "response has command and function, expected one of"),
        (COMMAND.replace("threads}", "}"), 1, "threads is unused, expected {threads} in a command"),
        (COMMAND.replace("{threads}", "${threads}"), 1, "threads is unused"),
        (COMMAND + "read = 'x'", 5, "x"),
        (COMMAND + "read = 'x=regex:(.+)'", 3, "response has no direction"),
        (COMMAND + "[server]\nstart = 'x'", 5, "0 of ready, port and ready_command are given"),
        (
            COMMAND + "[server]\nport = true\nstart = 'x'",
            6,
            "port is True, expected a number from 1",
        ),
        ("[factors.a]\nlevels=[1,2]\n[response]\nfunction = 'f'", 4, "expected module:function"),
        ("[factors.a]\nlevels=[1,2]\n[response.peak]\nurl='http://x/{a}'", 3, "limit"),
        ("[factors]\na = 3\n[response]\nfunction = 'a:b'", 2, "factors.a is 3, expected a table"),
    ],
)
def test_what_a_map_cannot_do_without_is_asked_for(problems, text, line, problem):
    found = problems(text)
    assert any(number == line and problem in each for number, each in found), found


def test_all_problems_are_told_at_once_by_their_lines(problems):
    text = GOOD.replace('"2h"', "2").replace("[1, 2, 4, 8]", "8").replace("samples", "sample")
    text = text.replace('"20s"', "20").replace("{threads}00ms", "fast")
    found = problems(text.replace('"4%"', '"x"'))
    assert [line for line, _ in found] == [1, 4, 13, 24, 32]


ODD = [
    3,
    -1.5,
    True,
    "",
    "x {threads} {size}",
    "{y}",
    [],
    [1],
    ["x", {"a": 1}],
    {},
    {"a": {"b": 2}},
]


def places(item, keys=()):
    yield keys
    if isinstance(item, dict | list):
        for key in item if isinstance(item, dict) else range(len(item)):
            yield from places(item[key], (*keys, key))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [GOOD, COMMAND, FUNCTION, SEVERAL, TOOL],
    ids=["good", "command", "function", "several", "tool"],
)
def test_whatever_stands_in_a_place_is_taken_or_refused(read, monkeypatch, text):
    taken = refused = 0
    for keys in [*places(tomllib.loads(text))][1:]:
        for odd in ODD:
            document = tomllib.loads(text)
            around = document
            for key in keys[:-1]:
                around = around[key]
            around[keys[-1]] = odd
            with monkeypatch.context() as patched:
                patched.setattr(tomllib, "loads", lambda _, document=document: document)
                try:
                    read(text)
                    taken += 1
                except InvalidInput:
                    refused += 1
    assert refused > taken > 0


@pytest.mark.parametrize("text", ["a = ", "a = 1\na = 2", "\0"])
def test_what_is_no_toml_is_refused_with_its_line(read, text):
    with pytest.raises(InvalidInput, match=r"map\.toml cannot be read: .*\(at .*\)"):
        read(text)


def test_secrets_of_commands_are_not_repeated(problems):
    text = COMMAND.replace("my-program", "my-program --password=hunter2 {x}")
    assert "hunter2" not in str(problems(text))
