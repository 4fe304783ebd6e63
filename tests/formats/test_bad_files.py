"""What is wrong in a file of any tool: a clear error or a Notice, and never a traceback."""

import csv
import io
import itertools
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.formats.written_files import DATA, MEANS, NASTY, TIMES, WRITERS, put

import benchrigor as br
from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code

DOCUMENTS = ("google-benchmark", "hyperfine", "pyperf", "pytest-benchmark", "benchrigor")
PAIRS = [*itertools.combinations(DOCUMENTS, 2), ("asv", "google-benchmark"), ("asv", "benchrigor")]
every = pytest.mark.parametrize("tool", WRITERS)


@every
def test_what_is_right_is_read(tool: str, tmp_path: Path) -> None:
    (found,) = br.read_results(put(WRITERS[tool](TIMES, "one"), tmp_path))
    assert found.readings().size == 12
    assert found.estimate().value > 0.0


@every
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "NaN", "+INF", "", "x", -0.5])
def test_a_reading_that_is_no_finite_number_is_named(tool: str, bad: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        br.read_results(put(WRITERS[tool]([*TIMES, bad], "one"), tmp_path))
    (problem,) = caught.value.problems
    assert str(tmp_path) in problem


@every
def test_times_of_zero_have_no_number(tool: str, tmp_path: Path) -> None:
    path = put(WRITERS[tool]([0.0] * 12, "one"), tmp_path)
    if tool == "pyperf":
        with pytest.raises(InvalidInput):
            br.read_results(path)
        return
    (found,) = br.read_results(path)
    assert found.estimate() is None
    assert any(each.severity == "refusal" for each in found.notices)


@every
def test_what_is_cut_is_an_error_or_told(tool: str, tmp_path: Path) -> None:
    path = put(WRITERS[tool](TIMES, "one"), tmp_path)
    file = path if path.is_file() else next(path.rglob("*[1e].json"))
    text = file.read_text()
    if "\n" in text:
        file.write_text(text[:-7])
        codes = [{notice.code for notice in each.notices} for each in br.read_results(path)]
        assert all(Code.UNFINISHED_LINE in each for each in codes)
    else:
        file.write_text(text[: len(text) // 2])
        with pytest.raises(InvalidInput):
            br.read_results(path)


def merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        common = {key: merged(one[key], other[key]) for key in one.keys() & other.keys()}
        return one | other | common
    if isinstance(one, list) and isinstance(other, list):
        return [merged(*pair) for pair in zip(one, other, strict=False)]
    return one


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_keys_of_two_tools_are_an_error(one: str, other: str, tmp_path: Path) -> None:
    sides = (WRITERS[each](TIMES, "one") for each in (one, other))
    both = merged(*(side.get("a") or side["host/1.json"] for side in sides))
    with pytest.raises(InvalidInput, match="keys"):
        br.read_results(put({"a": both}, tmp_path))


VERSIONS = {"asv": "version", "pyperf": "version", "hyperfine 2": "schema_version"}


@pytest.mark.parametrize("tool", [*VERSIONS, "benchrigor"])
@pytest.mark.parametrize("version", [99, "99", None, [1]])
def test_another_version_is_an_error(tool: str, version: Any, tmp_path: Path) -> None:
    files = WRITERS[tool](TIMES, "one")
    next(iter(files.values()))[VERSIONS.get(tool, "schema")] = version
    with pytest.raises(InvalidInput, match=r"version|schema"):
        br.read_results(put(files, tmp_path))


@pytest.mark.parametrize(
    ("tool", "right", "wrong"),
    [
        ("google-benchmark", '"s"', '"fortnight"'),
        ("hyperfine 2", '"second"', '"fortnight"'),
        ("pyperf", '"name": "one"', '"name": "one", "unit": "fortnight"'),
        ("jmh", '"mode": "avgt"', '"mode": "thrpt"'),
        ("go", "ns/op", "furlong/op"),
        ("JSON lines", '"s"', '"furlong"'),
        ("jmh", "s/op", "furlong/op"),
    ],
)
def test_a_unit_that_is_unknown_is_an_error_or_stays(
    tool: str, right: str, wrong: str, tmp_path: Path
) -> None:
    path = put(WRITERS[tool](TIMES, "one"), tmp_path)
    path.write_text(path.read_text().replace(right, wrong))
    if "furlong" in wrong:  # where that does not matter
        assert "furlong" in br.read_results(path)[0].metrics[0].unit
    else:
        with pytest.raises(InvalidInput):
            br.read_results(path)


@every
def test_names_are_escaped_wherever_they_are_shown(tool: str, tmp_path: Path, cli: Any) -> None:
    names = [name for name in NASTY if tool != "pyperf" or name.isprintable()]
    path = put(WRITERS[tool](TIMES, *names), tmp_path)
    if tool not in {"go", "asv", "benchrigor"}:
        found = br.read_results(path)
        assert all(name in each.name for name, each in zip(names, found, strict=True))
    check_shown(cli("analyze", path))


@pytest.mark.parametrize("words", [(), ("--markdown", "-"), ("--csv", "-"), ("--details",)])
def test_names_are_escaped_in_tables(words: Any, cli: Any, tmp_path: Path) -> None:
    path = put(WRITERS["hyperfine"](TIMES, *NASTY), tmp_path)
    other = Path(shutil.copy(path, tmp_path / "b\x1b\u202e|<script>"))
    result = cli("compare", path, other, *words)
    check_shown(result)
    if "--csv" in words:
        rows = [*csv.reader(io.StringIO(result.stdout), strict=True)]
        assert {len(row) for row in rows} == {len(rows[0])}
        assert len(rows) == 2 * len(NASTY) + 1
    if "--markdown" in words:
        assert "<script>" not in result.stdout
        rows = [row for row in result.stdout.splitlines() if row.startswith("|")]
        assert len(rows) > len(NASTY)
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


def check_shown(result: Any) -> None:
    assert result.exit_code in (0, 3), result.stderr
    assert not {"\x1b", "\u202e", "\u200f"} & set(result.stdout + result.stderr)


@pytest.mark.parametrize("held", ["", " \n\n", "\ufeff", "\0"])
def test_an_empty_file_is_an_error(held: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        br.read_results(put({"a": held}, tmp_path))


@pytest.mark.parametrize(
    "files",
    [{"x.txt": "a"}, {"benchmarks.json": {}}, {"benchmarks.json": {}, "host/machine.json": {}}],
)
def test_a_folder_without_results_is_an_error(files: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        br.read_results(put(files, tmp_path))


@pytest.mark.parametrize("name", ["k6.csv", "jmeter.csv", "vegeta.csv", "hyperfine-2.0.0.csv"])
def test_a_row_with_more_or_fewer_cells_is_an_error_with_its_line(held, name: str) -> None:
    first, second, third, *rest = (DATA / name).read_text().splitlines(keepends=True)
    for row in (third.replace("\n", ",1\n"), third.partition(",")[0] + ",2,3\n"):
        with pytest.raises(InvalidInput, match=r"line 3"):
            held("".join([first, second, row, *rest]))


@pytest.mark.parametrize("tool", MEANS)
def test_means_alone_are_shown_and_a_verdict_is_refused(
    tool: str, cli: Any, tmp_path: Path
) -> None:
    path = put(MEANS[tool], tmp_path)
    (record,) = br.read_results(path)
    (notice,) = record.notices
    assert record.estimate() is None
    assert 0.1 in notice.evidence.values()
    with pytest.raises(NotEstimable):
        br.compare_runs(record, record)
    shutil.copytree(tmp_path / "results", tmp_path / "b" / "results")
    result = cli("compare", path, tmp_path / "b" / path.relative_to(tmp_path))
    assert result.exit_code == 4
