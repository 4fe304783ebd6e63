import json

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.formats.json_text import parse_json
from benchrigor.units import Direction


def test_values_are_of_processes_and_a_value_continues_a_series(sample) -> None:
    found = sample("lines.ndjson")
    parse, load = found["parse"], found["load"]
    assert (parse.unit, len(parse.rounds), parse.metrics[0].unit) == ("process", 5, "ms")
    assert [each.n_readings for each in parse.rounds] == [20] * 5
    assert (load.unit, len(load.rounds)) == ("series", 1)
    assert load.metrics[0].averaging == "harmonic"
    assert load.metrics[0].direction is Direction.HIGHER


def test_one_name_has_one_unit_and_one_form(held) -> None:
    lines = [{"name": "a", "value": 1.0, "unit": "s"}, {"name": "a", "value": 1.0, "unit": "ms"}]
    with pytest.raises(InvalidInput, match="'a' in several units or forms"):
        held("\n".join(map(json.dumps, lines)) + "\n")
    lines = [{"name": "a", "unit": "s", "value": value} for value in (1, "x")]
    with pytest.raises(InvalidInput, match=r"a value\[1\] is 'x', expected a number"):
        held("\n".join(map(json.dumps, lines)) + "\n")


def test_an_unfinished_line_is_told_apart_from_a_wrong_one() -> None:
    found = parse_json('{"a": 1}\n{"a": 2}\n{"a":', "file")
    assert (found.data, found.are_lines) == ([{"a": 1}, {"a": 2}], True)
    assert found.unfinished == (3, '{"a":')
    with pytest.raises(InvalidInput, match="file is no JSON"):
        parse_json('{"a": 1}\n{"a":\n{"a": 2}\n', "file")
