"""What is wrong in a file of any tool: a clear error or a Notice, and never a traceback."""

import csv
import io
import itertools
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import benchrigor as br
from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.formats import recognition
from benchrigor.formats.recognition import TOOLS
from benchrigor.model import Code

TIMES = [0.101, 0.099, 0.102, 0.1, 0.098, 0.103, 0.1, 0.101, 0.099, 0.1, 0.102, 0.097]
Files = dict[str, Any]  # by their paths in a folder; one without a folder is a file


def asv(times: list[Any], *names: str) -> Files:
    row = [[0.1], [], "1", 0, 0, [None], [None], [None], [None], [1], [len(times)], [times]]
    columns = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a"]
    columns += ["stats_ci_99_b"]
    columns += ["stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples"]
    held = {"commit_hash": "0" * 40, "env_name": "a", "result_columns": columns, "version": 2}
    held["results"] = {f"time_{name}": row for name in names}
    return {"host/1.json": held, "benchmarks.json": {}}


def criterion(times: list[Any], *names: str) -> Files:
    sample = {"times": times, "iters": [1] * len(times)}
    told = ({"sample.json": sample, "benchmark.json": {"full_id": name}} for name in names)
    each = (
        (f"{index}/new/{file}", held)
        for index, one in enumerate(told)
        for file, held in one.items()
    )
    return dict(each)


def google(times: list[Any], *names: str) -> Files:
    rows = itertools.product(names, times)
    row = {"run_type": "iteration", "iterations": 1, "time_unit": "s"}
    return {
        "a": {"context": {}, "benchmarks": [{**row, "name": n, "real_time": t} for n, t in rows]}
    }


def hyperfine_2(times: list[Any], *names: str) -> Files:
    runs = [{"time_wall_clock": {"value": each, "unit": "second"}} for each in times]
    results = [{"command": name, "measurements": runs} for name in names]
    return {"a": {"schema_version": 2, "results": results}}


def jmh(times: list[Any], *names: str) -> Files:
    score = {"scoreUnit": "s/op", "rawData": [times]}
    return {"a": [{"benchmark": name, "mode": "avgt", "primaryMetric": score} for name in names]}


def pyperf(times: list[Any], *names: str) -> Files:
    named = [{"runs": [{"values": [t]} for t in times], "metadata": {"name": n}} for n in names]
    return {"a": {"version": "1.0", "benchmarks": named}}


def pytest_benchmark(times: list[Any], *names: str) -> Files:
    stats = {"data": times, "iterations": 1}
    return {"a": {"machine_info": {}, "benchmarks": [{"name": n, "stats": stats} for n in names]}}


def record(times: list[Any], *names: str) -> Files:
    path = Path(__file__).parent / "data" / "hyperfine.json"
    told = br.read_results(path)[0].to_dict()
    told["rounds"] = [{**told["rounds"][0], "readings": {"time": t}} for t in times]
    told |= {"analyses": [], "name": names[0]}
    return {"a": told}


def lines(*objects: Any) -> Files:
    return {"a": "".join(f"{json.dumps(each)}\n" for each in objects)}


def table(header: list[str] | None, rows: Any) -> Files:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([*([header] if header else []), *rows])
    return {"a": text.getvalue()}


def rows_of(times: list[Any], names: tuple[str, ...]) -> Any:
    return ((name, time) for name, time in itertools.product(names, times))


def scaled(time: Any, factor: float) -> Any:
    return int(time * factor) if isinstance(time, float) and math.isfinite(time) else time


def go(times: list[Any], *names: str) -> Files:
    kept = ((re.sub(r"\s", "_", name), time) for name, time in rows_of(times, names))
    return {"a": "".join(f"Benchmark{name} 1 {time} ns/op\n" for name, time in kept) + "PASS\n"}


def point(name: str, time: Any) -> Any:
    data = {"value": time, "tags": {"name": name}}
    return {"type": "Point", "metric": "http_req_duration", "data": data}


WRITERS: dict[str, Callable[..., Files]] = {
    "asv": asv,
    "criterion": criterion,
    "google-benchmark": google,
    "hyperfine": lambda times, *names: {
        "a": {"results": [{"command": name, "times": times} for name in names]}
    },
    "hyperfine 2": hyperfine_2,
    "jmh": jmh,
    "pyperf": pyperf,
    "pytest-benchmark": pytest_benchmark,
    "benchrigor": record,
    "go": go,
    "jmeter": lambda times, *names: table(
        ["elapsed", "label", "success"], ((t, n, "true") for n, t in rows_of(times, names))
    ),
    "k6": lambda times, *names: lines(*(point(*each) for each in rows_of(times, names))),
    "k6 csv": lambda times, *names: table(
        ["metric_name", "timestamp", "metric_value", "name"],
        (("http_req_duration", 1, t, n) for n, t in rows_of(times, names)),
    ),
    "vegeta": lambda times, *names: lines(
        *(
            {"attack": n, "latency": scaled(t, 1e9), "timestamp": "", "code": 200, "seq": index}
            for index, (n, t) in enumerate(rows_of(times, names))
        )
    ),
    "vegeta csv": lambda times, *names: table(
        None,
        (
            [10**18, 200, scaled(t, 1e9), 0, 0, "", "", n, index]
            for index, (n, t) in enumerate(rows_of(times, names))
        ),
    ),
    "JSON lines": lambda times, *names: lines(
        *({"name": n, "unit": "s", "value": t} for n, t in rows_of(times, names))
    ),
}
DOCUMENTS = ("google-benchmark", "hyperfine", "pyperf", "pytest-benchmark", "benchrigor")
PAIRS = [*itertools.combinations(DOCUMENTS, 2), ("asv", "google-benchmark"), ("asv", "benchrigor")]


@pytest.fixture
def put(tmp_path: Path) -> Callable[[Files], Path]:
    """Write files, and return the file or the folder."""

    def write(files: Files) -> Path:
        for name, held in files.items():
            path = tmp_path / "results" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(held if isinstance(held, str) else json.dumps(held), encoding="utf-8")
        return tmp_path / "results" / ("a" if "a" in files else "")

    return write


def test_there_is_a_writer_for_each_tool() -> None:
    assert {name.removesuffix(" csv").removesuffix(" 2") for name in WRITERS} == {*TOOLS}


every = pytest.mark.parametrize("tool", WRITERS)


@every
def test_what_is_right_is_read(tool: str, put: Any) -> None:
    found = br.read_results(put(WRITERS[tool](TIMES, "one")))
    assert len(found) == 1
    assert found[0].readings().size == 12
    assert found[0].estimate().value > 0.0


@every
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "NaN", "+INF", "", "x"])
def test_a_reading_that_is_no_finite_number_is_named(tool: str, bad: Any, put: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        br.read_results(put(WRITERS[tool]([*TIMES, bad], "one")))
    (problem,) = caught.value.problems
    assert "results" in problem
    assert re.search(r"expected|is refused by pyperf|is no JSON", problem)


@every
def test_a_negative_time_is_named(tool: str, put: Any) -> None:
    with pytest.raises(InvalidInput, match=r"is -|'-?0\.|refused by pyperf"):
        br.read_results(put(WRITERS[tool]([*TIMES, -0.5], "one")))


@every
def test_times_of_zero_have_no_number_and_say_why(tool: str, put: Any) -> None:
    path = put(WRITERS[tool]([0.0] * 12, "one"))
    if tool == "pyperf":
        with pytest.raises(InvalidInput, match="refused by pyperf"):
            br.read_results(path)
        return
    (found,) = br.read_results(path)
    assert found.estimate() is None
    assert any(each.severity == "refusal" for each in found.notices)


@every
def test_what_is_cut_is_an_error_or_told(tool: str, put: Any) -> None:
    path = put(WRITERS[tool](TIMES, "one"))
    file = path if path.is_file() else next(path.rglob("*[1e].json"))
    text = file.read_text()
    if "\n" in text:
        file.write_text(text[:-7])
        codes = [{notice.code for notice in each.notices} for each in br.read_results(path)]
        assert all(Code.UNFINISHED_LINE in each for each in codes)
    else:
        file.write_text(text[: len(text) // 2])
        with pytest.raises(InvalidInput, match="JSON"):
            br.read_results(path)


def merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        common = {key: merged(one[key], other[key]) for key in one.keys() & other.keys()}
        return one | other | common
    if isinstance(one, list) and isinstance(other, list):
        return [merged(*pair) for pair in zip(one, other, strict=False)]
    return one


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_keys_of_two_tools_are_an_error(one: str, other: str, put: Any) -> None:
    sides = (WRITERS[each](TIMES, "one") for each in (one, other))
    both = merged(*(side.get("a") or side["host/1.json"] for side in sides))
    with pytest.raises(InvalidInput, match=r"has the keys of .* and of"):
        recognition.results_in(put({"a": both}))


@pytest.mark.parametrize(
    ("tool", "key"),
    [
        ("asv", "version"),
        ("pyperf", "version"),
        ("hyperfine 2", "schema_version"),
        ("benchrigor", "schema"),
    ],
)
@pytest.mark.parametrize("version", [99, "99", None, [1]])
def test_another_version_is_an_error(tool: str, key: str, version: Any, put: Any) -> None:
    files = WRITERS[tool](TIMES, "one")
    next(iter(files.values()))[key] = version
    with pytest.raises(InvalidInput, match=r"version|schema"):
        br.read_results(put(files))


@every
def test_too_many_benchmarks_are_refused_but_for_those_that_are_named(
    tool: str, put: Any, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recognition, "_MOST", 3)
    path = put(WRITERS[tool](TIMES, "a", "b", "c", "d", "e"))
    if tool == "benchrigor":
        assert len(br.read_results(path)) == 1
        return
    with pytest.raises(InvalidInput, match=r"holds more than 3 benchmarks: choose some by"):
        br.read_results(path)
    (found,) = recognition.results_in(path, lambda name: "d" in name[-6:])
    with pytest.raises(InvalidInput, match="holds no benchmarks"):
        recognition.results_in(path, lambda _: False)
    if tool == "hyperfine":
        assert cli("analyze", path, "--column", found.name, "--target", "9%").exit_code == 0
        assert cli("compare", path, path, "--filter", "^x").exit_code == 2


@pytest.mark.parametrize(
    ("tool", "right", "wrong"),
    [
        ("google-benchmark", '"s"', '"fortnight"'),
        ("hyperfine 2", '"second"', '"fortnight"'),
        ("pyperf", '"name": "one"', '"name": "one", "unit": "fortnight"'),
        ("jmh", '"mode": "avgt"', '"mode": "thrpt"'),
    ],
)
def test_a_unit_that_is_unknown_is_an_error(tool: str, right: str, wrong: str, put: Any) -> None:
    path = put(WRITERS[tool](TIMES, "one"))
    path.write_text(path.read_text().replace(right, wrong))
    with pytest.raises(InvalidInput, match=r"expected|refused by pyperf"):
        br.read_results(path)


@pytest.mark.parametrize(
    ("tool", "unit"), [("go", "ns/op"), ("JSON lines", '"s"'), ("jmh", "s/op")]
)
def test_a_unit_that_is_unknown_where_that_does_not_matter_stays(
    tool: str, unit: str, put: Any
) -> None:
    path = put(WRITERS[tool](TIMES, "one"))
    path.write_text(
        path.read_text().replace(
            unit, unit.replace("s", "furlong", 1) if '"' in unit else "furlong/op"
        )
    )
    (found,) = br.read_results(path)
    assert "furlong" in found.metrics[0].unit


NASTY = [
    "<script>alert(1)</script>",
    "a|b`*_",
    "quo\"t'e,",
    "two\nlines",
    "\u202egnp.exe\u200f",
    "\x1b[31m",
]


@every
def test_names_are_escaped_wherever_they_are_shown(tool: str, put: Any, cli: Any) -> None:
    names = [name for name in NASTY if tool != "pyperf" or name.isprintable()]
    path = put(WRITERS[tool](TIMES, *names))
    if tool not in {"go", "asv", "benchrigor"}:
        found = recognition.results_in(path)
        assert all(name in each.name for name, each in zip(names, found, strict=True))
    check_shown(cli("analyze", path))


@pytest.mark.parametrize("words", [(), ("--markdown", "-"), ("--csv", "-"), ("--details",)])
def test_names_are_escaped_in_tables(words: Any, put: Any, cli: Any, tmp_path: Path) -> None:
    path = put(WRITERS["hyperfine"](TIMES, *NASTY))
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
def test_an_empty_file_is_an_error(held: str, put: Any) -> None:
    with pytest.raises(InvalidInput, match=r"is empty|no known tool"):
        br.read_results(put({"a": held}))


@pytest.mark.parametrize(
    "files",
    [{"x.txt": "a"}, {"benchmarks.json": {}}, {"benchmarks.json": {}, "host/machine.json": {}}],
)
def test_a_folder_without_results_is_an_error(files: Files, put: Any) -> None:
    with pytest.raises(InvalidInput, match="is a folder without results"):
        br.read_results(put(files))


def asv_means() -> Files:
    files = asv(TIMES, "one")
    files["host/1.json"]["results"]["time_one"] = asv(TIMES, "a")["host/1.json"]["results"][
        "time_a"
    ][:11]
    return files


MEANS: dict[str, tuple[Files, str]] = {
    "asv": (asv_means(), "asv run with --record-samples"),
    "criterion": ({"a/new/estimates.json": {"mean": {"point_estimate": 0.1}}}, "keep sample.json"),
    "google-benchmark": (
        {
            "a": {
                "context": {},
                "benchmarks": [
                    {
                        "run_type": "aggregate",
                        "run_name": "one",
                        "name": "one_mean",
                        "aggregate_name": "mean",
                        "real_time": 0.1,
                    }
                ],
            }
        },
        "without --benchmark_report_aggregates_only",
    ),
    "hyperfine": ({"a": {"results": [{"command": "one", "mean": 0.1}]}}, "--export-json"),
    "hyperfine 2": (
        {"a": {"results": [{"command": "one", "summary": {"time_wall_clock": {"mean": 0.1}}}]}},
        "--export-json",
    ),
    "jmh": (
        {
            "a": [
                {
                    "benchmark": "one",
                    "mode": "avgt",
                    "primaryMetric": {"score": 0.1, "scoreUnit": "s/op"},
                }
            ]
        },
        "-rf json",
    ),
    "k6": (
        {"a": {"root_group": {}, "metrics": {"http_req_duration": {"avg": 0.1}}}},
        "--out json=FILE",
    ),
    "pytest-benchmark": (
        {"a": {"machine_info": {}, "benchmarks": [{"name": "one", "stats": {"mean": 0.1}}]}},
        "--benchmark-save-data",
    ),
    "vegeta": ({"a": {"status_codes": {}, "latencies": {"mean": 0.1}}}, "vegeta encode --to json"),
}


@pytest.mark.parametrize("tool", MEANS)
def test_means_alone_are_shown_and_a_verdict_is_refused(
    tool: str, put: Any, cli: Any, tmp_path: Path
) -> None:
    files, option = MEANS[tool]
    path = put(files)
    (record,) = br.read_results(path)
    (notice,) = record.notices
    assert record.estimate() is None
    assert 0.1 in notice.evidence.values()
    assert "only " in notice.sentence
    assert option in notice.sentence
    with pytest.raises(NotEstimable, match=re.escape(option)):
        br.compare_runs(record, record)
    shutil.copytree(tmp_path / "results", tmp_path / "b" / "results")
    result = cli("compare", path, tmp_path / "b" / path.relative_to(tmp_path))
    assert result.exit_code == 4
    assert option in " ".join(result.stderr.split())
