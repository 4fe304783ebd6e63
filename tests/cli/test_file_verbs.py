"""The verbs that take files of other tools, of one benchmark or of several."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pyperf
import pytest

DATA = Path(__file__).parents[1] / "formats" / "data"
HYPERFINE = DATA / "hyperfine.json"
FIRST, SECOND = "sort -n a.txt", "sort --parallel=2 a.txt"


def test_analyze_shows_the_benchmarks_of_a_file_or_a_folder(cli, told) -> None:
    assert FIRST in cli("analyze", HYPERFINE).stdout
    assert [each["name"] for each in told("analyze", HYPERFINE)] == [FIRST, SECOND]
    assert "sum/fold/1000" in cli("analyze", DATA / "criterion").stdout


@pytest.mark.parametrize("verb", ["analyze", "explain", "plan", "changes"])
def test_each_verb_takes_the_benchmark_that_is_named(cli, told, verb) -> None:
    assert told(verb, HYPERFINE, "--column", FIRST)["schema"] >= 1
    assert cli(verb, HYPERFINE).exit_code == (0 if verb == "analyze" else 2)
    assert cli(verb, HYPERFINE, "--column", "other").exit_code == 2


def test_options_of_analyze_count(cli, told) -> None:
    words = ("analyze", HYPERFINE, "--column", FIRST)
    found = told(*words, "--statistic", "median")["analyses"][0]["estimate"]
    assert found["value"] == pytest.approx(0.0999, abs=5e-5)
    assert cli(*words, "--target", "0.01%").exit_code == 3


def test_export_takes_a_file_of_one_benchmark(cli, tmp_path) -> None:
    assert cli("export", DATA / "vegeta.csv", "-o", tmp_path).exit_code == 0
    assert len((tmp_path / "readings.csv").read_text().splitlines()) == 51


def test_results_are_converted_and_pyperf_reads_them(cli, tmp_path) -> None:
    result = cli("convert", HYPERFINE, tmp_path / "a.json.gz")
    assert (result.exit_code, result.stderr) == (0, "")
    suite = pyperf.BenchmarkSuite.load(str(tmp_path / "a.json.gz"))
    assert suite.get_benchmark_names() == [FIRST, SECOND]


def test_a_stored_run_is_converted(cli, told, tmp_path, kept) -> None:
    cli("run", "--max-rounds", "6", "--name", "mine", "true")
    run_id = kept()[0].run_id
    assert told("convert", run_id[:8], tmp_path / "a.csv")["format"] == "csv"
    assert len((tmp_path / "a.csv").read_text().splitlines()) > 6
    assert cli("convert", run_id, tmp_path / "a.json").exit_code == 0
    (benchmark,) = pyperf.BenchmarkSuite.load(str(tmp_path / "a.json"))
    assert benchmark.get_name() == "mine"
    assert benchmark.get_metadata().keys() >= {"aslr", "boot_time", "cpu_model_name", "hostname"}


@pytest.mark.parametrize(
    "words",
    [
        *(("there.json",), ("-",), ("there.json/a.json",), ("folder", "--to", "csv"), ("a.txt",)),
        *(("/dev/full", "--to", "csv", "--force"), ("a.json", "--metric", "speed")),
    ],
)
def test_what_cannot_be_converted_leaves_nothing(cli, store, words) -> None:
    folder = store.parent
    (folder / "folder").mkdir()
    (folder / "there.json").write_text("mine")
    assert cli("convert", HYPERFINE, *words).exit_code == 2
    assert {path.name for path in folder.iterdir()} == {"folder", "there.json"}
    assert (folder / "there.json").read_text() == "mine"


@pytest.mark.parametrize(("cores", "shown"), [(4, "4 processors"), (1, "1 processor")])
def test_a_machine_of_which_only_the_number_of_processors_is_known_is_named(
    cli, tmp_path, cores, shown
) -> None:
    row = {"name": "f", "run_type": "iteration", "iterations": 9, "time_unit": "ns"}
    rows = [{**row, "real_time": time, "cpu_time": time} for time in (5.0, 5.1, 5.2, 5.0)]
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"context": {"num_cpus": cores}, "benchmarks": rows}))
    assert f"machine   {shown}\n" in cli("analyze", path).stdout
    pytest_benchmark = json.loads((DATA / "pytest-benchmark-5.3.1.json").read_text())
    pytest_benchmark["machine_info"] = {"cpu": {"count": cores}}
    path.write_text(json.dumps(pytest_benchmark))
    name = pytest_benchmark["benchmarks"][0]["fullname"]
    assert f"machine   {shown}" in cli("analyze", path, "--column", name).stdout


def processes(*each: tuple[float, ...]) -> str:
    """Return what `go test` writes, a process for each group of readings."""
    head, line = "goos: linux\npkg: p\n", "BenchmarkA-8 10 {} ns/op\n"
    return "".join(f"{head}{''.join(map(line.format, times))}PASS\n" for times in each)


@pytest.mark.parametrize(
    "repeated",
    [((3, 5), (3, 5), (3, 5)), ((3, 5), (5, 3), (2, 6)), ((90.5, 91, 92),) * 2],
)
def test_readings_that_differ_are_not_called_the_same(cli, tmp_path, repeated) -> None:
    path = tmp_path / "go.txt"
    path.write_text(processes(*repeated))
    page = " ".join(cli("analyze", path).stdout.split())
    assert "all processes" in page
    assert "All readings" not in page
    path.write_text(processes((3, 5), (3, 5), (4, 6), (4, 6)))
    assert "the same" not in cli("analyze", path).stdout


ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")


def write_suite(path: Path, seed: int, **means: float) -> None:
    """Write eight processes of five readings for each benchmark, a percent apart."""
    rng = np.random.default_rng(seed)
    lines = []
    for name, mean in means.items():
        for level in mean * (1.0 + 0.003 * rng.normal(size=8)):
            values = (level * (1.0 + 0.001 * rng.normal(size=5))).round(6).tolist()
            lines.append(json.dumps({"name": name, "unit": "ms", "values": values}))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def suites(tmp_path):
    write_suite(tmp_path / "old.json", 1, parse=3.0, render=12.0, load=1.0, gone=1.0)
    write_suite(tmp_path / "new.json", 2, parse=3.3, render=12.0, load=0.8, added=2.0)
    write_suite(tmp_path / "same.json", 3, parse=3.0, render=12.0, load=1.0, gone=1.0)
    return tmp_path


def test_the_page_shows_what_is_printed(cli, suites) -> None:
    result = cli("compare", "old.json", "new.json")
    assert result.exit_code == 0
    block = PAGE.split("$ benchrigor compare old.json new.json\n", 1)[1].split("```", 1)[0]
    assert result.stdout == block


GONE = ("old.json", "new.json", "--filter", "render|gone", "--margin", "5%")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("old.json", "new.json"), 0),  # worse, but in these two runs
        (("old.json", "same.json", "--margin", "5%", "--fail-on", "undecided"), 0),
        (GONE, 0),
        ((*GONE, "--fail-on", "undecided"), 3),
        (("old.json", "new.json", "--fail-on", "worse"), 7),
        (("old.json", "new.json", "--fail-on", "never"), 0),
        (("old.json", "other.json"), 8),
        (("old.json",), 2),
        (("old.json", "old.json"), 2),
        (("old.json", "new.json", "--paired"), 2),
        (("old.json", "new.json", "--filter", "("), 2),
        (("old.json", "new.json", "--filter", "nothing"), 2),
    ],
)
def test_the_exit_code_tells_the_worst(cli, suites, words, code) -> None:
    write_suite(suites / "other.json", 4, first=1.0, second=1.0)
    result = cli("compare", *words)
    assert result.exit_code == code


def test_names_are_matched_in_the_order_in_which_they_repeat(told, tmp_path) -> None:
    rng = np.random.default_rng(1)
    for file, means in (("a.json", (1.0, 5.0)), ("b.json", (1.0, 6.0))):
        times = [rng.normal(mean, 0.01, 50).tolist() for mean in means]
        results = [{"command": "t", "times": each} for each in times]
        (tmp_path / file).write_text(json.dumps({"results": results}))
    found = told("compare", "a.json", "b.json")["suites"]["families"]["b.json"]["comparisons"]
    assert [*found] == ["t", "t #2"]
    ratios = [each["ratio"]["value"] for each in found.values()]
    assert ratios == pytest.approx([1.0, 1.2], rel=0.01)


def test_means_have_no_number_whatever_fails(cli) -> None:
    for more in ((), *(("--fail-on", each) for each in ("worse", "undecided", "never"))):
        means = ("compare", DATA / "hyperfine.csv", DATA / "hyperfine.json", *more)
        assert cli(*means).exit_code == 4


@pytest.mark.parametrize("columns", [20, 80])
def test_no_line_is_wider_than_the_terminal(cli, suites, monkeypatch, columns) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in ((), ("same.json",), ("--details",)):
        result = cli("compare", "old.json", "new.json", *words)
        assert max(map(len, result.stdout.splitlines())) <= columns


def test_another_processor_or_system_is_another_machine(cli, tmp_path) -> None:
    same = "goos: linux\ncpu: X\n"
    heads = [same, "cpu: X\ngoos: linux\n", "goos: linux\ncpu: Y\n", "goos: darwin\ncpu: X\n"]
    for name, head in zip("abcd", heads, strict=True):
        lines = "".join(f"BenchmarkA-8 10 {30 + n % 3} ns/op\n" for n in range(12))
        (tmp_path / name).write_text(head + lines)
    data = json.loads((DATA / "google-benchmark.json").read_text())
    for cores in (4, 8):
        data["context"]["num_cpus"] = cores
        (tmp_path / f"{cores}.json").write_text(json.dumps(data))
    assert cli("compare", "a", "b", "--same-machine").exit_code in {0, 3}
    for sides in (("a", "c"), ("a", "d"), ("4.json", "8.json")):
        assert cli("compare", *sides, "--same-machine").exit_code == 8


def test_a_report_compares_files_and_holds_all_benchmarks(cli, suites) -> None:
    """The answer, the changes as a picture, and a part for each file and benchmark."""
    assert cli("report", "old.json", "new.json", "-o", "page.html").exit_code == 0
    text = (suites / "page.html").read_text()
    assert "1 worse, 1 better, 1 equivalent" in text
    assert re.findall(r"<b>([^<]*)\.</b>", text)[0] == "Changes in new.json"
    parts = [html.unescape(name) for name in re.findall(r"<summary><h2>([^<]*)</h2>", text)]
    both = ["parse", "render", "load"]
    assert parts == ["old.json", *both, "gone", "new.json", *both, "added"]
    assert text.count("<svg") == 1 + 8
    before = cli("report", "old.json", "-o", "page.html")
    assert before.exit_code == 2
    assert "--force" in before.stderr
    assert cli("report", "old.json", "-o", "page.html", "--force").exit_code == 0


def test_of_many_benchmarks_a_report_draws_the_first(cli, tmp_path) -> None:
    write_suite(tmp_path / "many.json", 1, **{f"b{index}": 1.0 for index in range(52)})
    assert cli("report", "many.json", "-o", "page.html").exit_code == 0
    text = (tmp_path / "page.html").read_text()
    assert "52 benchmarks of many.json, the first 50 with pictures" in text
    assert text.count("<svg") == 50


def test_a_report_says_why_sources_cannot_be_compared(cli, tmp_path) -> None:
    for name, unit in (("one", "ms"), ("other", "B")):
        told = {"name": name, "unit": unit, "values": [1.0, 2.0, 3.0, 2.5]}
        (tmp_path / f"{name}.json").write_text(json.dumps(told))
    assert cli("report", "one.json", "other.json", "-o", "page.html").exit_code == 0
    text = (tmp_path / "page.html").read_text()
    assert 'class="answer doubtful"' in text
    assert "How do they compare?" in text


def test_markdown_of_many_benchmarks_keeps_the_worst(cli, tmp_path) -> None:
    """A page of GitHub takes 65,536 characters."""
    for file, slower in (("old.json", 1.0), ("new.json", 1.2)):
        means = {f"benchmark_{'x' * 60}_{index}": 1.0 for index in range(300)}
        write_suite(tmp_path / file, 1, **means, slow=slower)
    assert cli("compare", "old.json", "new.json", "--markdown", "table.md").exit_code == 0
    text = (tmp_path / "table.md").read_text()
    assert len(text) < 65_536
    rows = [line for line in text.splitlines() if line.startswith("| slow |")]
    assert len(rows) == 2
    assert "worse" in rows[1]
    assert "more rows: --csv" in text
