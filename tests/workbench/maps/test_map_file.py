"""Files of maps: what they say, and all that is wrong in them at once, with its line."""

import tomllib
from pathlib import Path

import pytest
from tests.texts.causes.workbench_maps import COMMAND, GOOD

from benchrigor import Limit
from benchrigor.errors import InvalidInput
from benchrigor.workbench.maps.map_file import read_map

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


def test_a_peak_differs_by_sample(read):
    size = "large one"
    response, point = read(GOOD).response, {"threads": 4, "size": size}
    assert response.limits_at(point) == [
        Limit(metric="mean", at_most=0.04),
        Limit(metric="p95", at_most=0.4),
        Limit(metric="p99", at_most=0.5),
    ]
    offered = response.generator_at(point)
    (request,) = offered["requests"]
    assert request == {"url": f"http://127.0.0.1:8000/{size}", "headers": {"Size": size}}
    assert offered["prepare"] == f"sync '{size}'"


def test_several_kinds_of_requests_and_a_generator_of_ones_own_may_be_offered(read):
    offered = read(SEVERAL).response.generator_at({"a": 2.0})
    assert [each["url"] for each in offered["requests"]] == ["http://x/2", "http://x/2"]
    offered = read(TOOL).response.generator_at({"a": 1})
    assert (offered["kind"], offered["words"]) == ("command", ["mine", "1", "{load}"])


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
    assert {**ways} == {"rate": "higher", "p99": "lower", "score": "higher"}
    of_function = read(f"{FUNCTION.replace(HIGHER, TWO_WAYS)}").response
    assert [*of_function.directions] == ["cost", "rate"]


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
