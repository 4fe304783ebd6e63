import json
from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.formats.json_text import parse_json
from benchrigor.formats.recognition import results_in
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


def test_a_list_of_values_is_read_as_lines_and_no_number_has_two_units(held) -> None:
    rows = [
        {"name": name, "unit": unit, "value": value}
        for value in (1.0, 2.0)
        for name, unit in (("a", "s"), ("b", "MB"))
    ]
    one, other = held(rows)
    assert [one.metrics[0].unit, other.metrics[0].unit] == ["s", "MB"]
    assert one.rounds[0].unit_readings["value"].tolist() == [1.0, 2.0]
    with pytest.raises(InvalidInput, match="'a' in several units"):
        held([*rows, {"name": "a", "unit": "ms", "value": 1.0}])


def test_what_convert_writes_for_github_is_read_back_as_numbers(tmp_path, cli) -> None:
    data = Path(__file__).parent / "data" / "hyperfine.json"
    written = tmp_path / "history.json"
    assert cli("convert", data, written, "--to", "github").exit_code == 0
    numbers = {each["name"]: each["value"] for each in json.loads(written.read_text())}
    assert len(numbers) == 2
    for each in results_in(written):
        assert each.rounds == ()
        assert each.notices[0].evidence["value"] == numbers[each.name]
    assert cli("analyze", written).exit_code == 4
