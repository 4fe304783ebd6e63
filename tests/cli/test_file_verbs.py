"""The verbs that take files of other tools."""

import json
from pathlib import Path

import pyperf
import pytest

from benchrigor.storage import Journal

DATA = Path(__file__).parents[1] / "formats" / "data"
HYPERFINE = DATA / "hyperfine.json"
FIRST, SECOND = "sort -n a.txt", "sort --parallel=2 a.txt"


def test_analyze_shows_the_benchmarks_of_a_file(cli, strict) -> None:
    result = cli("analyze", HYPERFINE)
    assert result.exit_code == 0
    assert FIRST in result.stdout
    assert "recorded" in result.stdout
    documents = strict(cli("analyze", HYPERFINE, "--json").stdout)
    assert [each["name"] for each in documents] == [FIRST, SECOND]


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["analyze", "explain", "plan", "changes"])
def test_each_verb_takes_the_benchmark_that_is_named(cli, strict, verb) -> None:
    result = cli(verb, HYPERFINE, "--column", FIRST, "--json")
    assert result.exit_code in (0, 3), result.stderr
    assert strict(result.stdout)["schema"] >= 1
    if verb != "analyze":
        result = cli(verb, HYPERFINE)
        assert result.exit_code == 2
    result = cli(verb, HYPERFINE, "--column", "other")
    assert result.exit_code == 2
    assert "found 'other'" in result.stderr


def test_options_of_analyze_count(cli) -> None:
    result = cli("analyze", HYPERFINE, "--column", FIRST, "--statistic", "median")
    assert "median 99.9" in " ".join(result.stdout.split())
    result = cli("analyze", HYPERFINE, "--column", FIRST, "--target", "0.01%")
    assert result.exit_code == 3


def test_compare_names_sides_by_their_files(cli, tmp_path) -> None:
    data = json.loads(HYPERFINE.read_text())
    data["results"][0]["times"] = [1.5 * each for each in data["results"][0]["times"]]
    slower = tmp_path / "slower.json"
    slower.write_text(json.dumps(data))
    words = ("compare", HYPERFINE, slower, "--column", FIRST, "--statistic", "median")
    result = cli(*words)
    assert result.exit_code == 0
    assert "slower.json" in result.stdout
    assert cli(*words, "--fail-on", "worse").exit_code == 7


def test_a_folder_is_read(cli, tmp_path) -> None:
    assert "sum/fold/1000" in cli("analyze", DATA / "criterion").stdout
    result = cli("analyze", tmp_path)
    assert result.exit_code == 2


def test_export_takes_a_file_of_one_benchmark(cli, tmp_path) -> None:
    result = cli("export", DATA / "vegeta.csv", "-o", tmp_path)
    assert result.exit_code == 0
    assert len((tmp_path / "readings.csv").read_text().splitlines()) == 51


@pytest.mark.parametrize("name", ["<script>|`", "a\nb\x1b[2J", "\u202egnp"])
def test_hostile_names_are_escaped(cli, tmp_path, name) -> None:
    path = tmp_path / "results"
    path.write_text(json.dumps({"results": [{"command": name, "times": [1.0] * 12}] * 1}))
    for verb in ("analyze", "explain", "plan"):
        shown = cli(verb, path).stdout
        assert not {"\x1b", "\u202e"} & set(shown)


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_results_are_converted_and_pyperf_reads_them(cli, tmp_path, name) -> None:
    result = cli("convert", HYPERFINE, tmp_path / name)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "a.json" in result.stdout
    suite = pyperf.BenchmarkSuite.load(str(tmp_path / name))
    assert suite.get_benchmark_names() == [FIRST, SECOND]


def test_a_stored_run_is_converted(cli, strict, tmp_path, store) -> None:
    cli("run", "--max-rounds", "6", "--name", "mine", "true")
    (run,) = Journal(store).runs()
    told = strict(cli("convert", run["run_id"][:8], tmp_path / "a.csv", "--json").stdout)
    assert told["format"] == "csv"
    assert len((tmp_path / "a.csv").read_text().splitlines()) > 6
    assert cli("convert", run["run_id"], tmp_path / "a.json").exit_code == 0
    (benchmark,) = pyperf.BenchmarkSuite.load(str(tmp_path / "a.json"))
    assert benchmark.get_name() == "mine"
    assert benchmark.get_metadata().keys() >= {"aslr", "boot_time", "cpu_model_name", "hostname"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((HYPERFINE, "there.json"), "there.json is there already: --force replaces it"),
        ((HYPERFINE, "-"), "'-' is no path here"),
        ((HYPERFINE, "there.json/a.json"), "cannot be written"),
        ((HYPERFINE, "/dev/full", "--to", "csv", "--force"), "No space left on device"),
        ((HYPERFINE, "/proc/a.json"), "/proc/a.json cannot be written"),
        ((HYPERFINE, "folder", "--to", "csv"), "is a directory"),
        ((HYPERFINE, "a.txt"), "tells no format"),
        ((HYPERFINE, "a.json", "--metric", "speed"), "metric 'speed' is unknown"),
        (("-", "a.json"), "'-' is no path here"),
        (("plain.csv", "a.json"), "plain.csv is of no known tool"),
        (("nowhere.json", "a.json"), "nowhere.json is neither a file nor the id of a stored run"),
    ],
)
def test_what_cannot_be_converted_is_told_and_leaves_nothing(
    cli, tmp_path, monkeypatch, words, said
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "there.json").write_text("mine")
    (tmp_path / "plain.csv").write_text("1\n2\n3\n")
    result = cli("convert", *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "there.json", "plain.csv"}
    assert (tmp_path / "there.json").read_text() == "mine"


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
