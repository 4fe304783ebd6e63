"""compare: files of several benchmarks, matched by name."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "formats" / "data"
PAGE = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")


def write_suite(path: Path, seed: int, **means: float) -> Path:
    """Write eight processes of five readings for each benchmark, a percent apart."""
    rng = np.random.default_rng(seed)
    lines = []
    for name, mean in means.items():
        for level in mean * (1.0 + 0.003 * rng.normal(size=8)):
            values = (level * (1.0 + 0.001 * rng.normal(size=5))).round(6).tolist()
            lines.append(json.dumps({"name": name, "unit": "ms", "values": values}))
    path.write_text("\n".join(lines) + "\n")
    return path


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


def test_several_files_are_one_family(cli, suites, strict) -> None:
    result = cli("compare", "old.json", "new.json", "same.json")
    assert "of 7 comparisons" in result.stdout
    found = strict(cli("compare", "old.json", "new.json", "same.json", "--json").stdout)["suites"]
    assert found["names"] == ["parse", "render", "load", "gone"]
    assert found["missing"] == {"old.json": ["added"], "new.json": ["gone"], "same.json": ["added"]}
    ps = {
        (file, name): each["p_beyond"]
        for file, family in found["families"].items()
        for name, each in family["comparisons"].items()
    }
    least = min(ps, key=ps.get)
    assert found["families"][least[0]]["adjusted"][least[1]] <= 7 * ps[least]


GONE = ("old.json", "new.json", "--filter", "render|gone", "--margin", "5%")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("old.json", "same.json"), 0),
        (("old.json", "new.json"), 0),  # worse, but in these two runs
        (("old.json", "same.json", "--margin", "5%", "--fail-on", "undecided"), 0),
        (("old.json", "new.json", "--filter", "render", "--margin", "5%"), 0),
        (GONE, 0),
        ((*GONE, "--fail-on", "undecided"), 3),
        ((*GONE, "--fail-on", "worse"), 0),
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


def test_names_are_matched_in_the_order_in_which_they_repeat(cli, tmp_path, strict) -> None:
    line = '{{"benchmarks": [{}], "machine_info": {{}}, "commit_info": {{}}, "version": "5.0.0"}}'
    one = (
        '{{"name": "t", "fullname": "t", "params": null, "param": null, "group": null, '
        '"extra_info": {{}}, "options": {{}}, '
        '"stats": {{"iterations": 1, "rounds": 50, "data": {}}}}}'
    )
    rng = np.random.default_rng(1)
    for file, means in (("a.json", (1.0, 5.0)), ("b.json", (1.0, 6.0))):
        each = (one.format(rng.normal(mean, 0.01, 50).tolist()) for mean in means)
        (tmp_path / file).write_text(line.format(", ".join(each)))
    result = cli("compare", "a.json", "b.json", "--json")
    families = strict(result.stdout)["suites"]["families"]
    assert list(families["b.json"]["comparisons"]) == ["t", "t #2"]
    ratios = [each["ratio"]["value"] for each in families["b.json"]["comparisons"].values()]
    assert ratios == pytest.approx([1.0, 1.2], rel=0.01)


def test_means_are_shown_and_refused_with_the_option_that_keeps_readings(cli, tmp_path) -> None:
    shutil.copy(DATA / "hyperfine.csv", tmp_path / "means.csv")
    result = cli("compare", "means.csv", DATA / "hyperfine.json")
    assert result.exit_code == 4
    for fail_on in ("worse", "undecided", "never"):  # there is no number, whatever fails
        words = ("means.csv", DATA / "hyperfine.json", "--fail-on", fail_on)
        assert cli("compare", *words).exit_code == 4


@pytest.mark.slow
@pytest.mark.parametrize("columns", [20, 40, 80])
def test_no_line_is_wider_than_the_terminal(cli, suites, monkeypatch, columns) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in ((), ("same.json",), ("--details",)):
        result = cli("compare", "old.json", "new.json", *words)
        assert max(map(len, result.stdout.splitlines())) <= columns


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("goos: linux\ncpu: Y\n", "of cpu X and Y"),
        ("goos: darwin\ncpu: X\n", "of system darwin and linux"),
        ("cpu: X\n", "of system None and linux"),
    ],
)
def test_another_processor_or_system_is_another_machine(cli, tmp_path, head, said) -> None:
    line = "BenchmarkA-8 10 %d ns/op\n"
    for name, machine in (
        ("a", "goos: linux\ncpu: X\n"),
        ("b", head),
        ("c", "cpu: X\ngoos: linux\n"),
    ):
        (tmp_path / name).write_text(machine + "".join(line % (30 + n % 3) for n in range(12)))
    refused = cli("compare", "a", "b", "--same-machine")
    assert (refused.exit_code, said in refused.stderr) == (8, True)
    assert cli("compare", "a", "c", "--same-machine").exit_code in {0, 3}


def test_other_cores_are_another_machine(cli, tmp_path) -> None:
    data = json.loads((DATA / "google-benchmark.json").read_text())
    for cores in (4, 8):
        data["context"]["num_cpus"] = cores
        (tmp_path / f"{cores}.json").write_text(json.dumps(data))
    refused = cli("compare", "4.json", "8.json", "--same-machine")
    assert refused.exit_code == 8
