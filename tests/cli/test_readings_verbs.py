"""analyze and changes."""

import json
import re

import numpy as np
import pytest

import benchrigor as br
from benchrigor.cli import analyze_verb, changes_verb
from benchrigor.stats import estimate_invocations


@pytest.fixture
def recording(tmp_path):
    """A CSV file: 100 slow readings, then 900 around 10 ms."""
    rng = np.random.default_rng(1)
    times = np.where(np.arange(1000) < 100, 0.02, 0.01) + rng.normal(0.0, 0.0005, 1000)
    path = tmp_path / "readings.csv"
    rows = "".join(f"{index},{time:.6f}\n" for index, time in enumerate(times))
    path.write_text(f"index,time\n{rows}")
    return path


def test_analyze_leaves_the_warm_up_out_and_says_so(cli, recording):
    result = cli("analyze", recording, "--column", "time", "--unit", "s", "--details")
    assert result.exit_code == 0
    assert "ms [" in result.stdout
    assert "warm-up 0–" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("rate", ["0.1", "0.3", "0.7", "49", "123456789.123"])
def test_analyze_says_equal_rates_as_they_stand_in_the_file(cli, rate):
    result = cli("analyze", "--unit", "req/s", "--details", input=f"{rate}\n" * 40)
    assert result.exit_code == 0
    assert f" {rate}: the" in result.stdout
    if len(rate) < 4:
        assert f"{rate} req/s [{rate}, {rate}] 95%" in result.stdout


def test_analyze_reads_standard_input(cli, recording, strict):
    result = cli("analyze", "--column", "1", "--json", input=recording.read_text())
    document = strict(result.stdout)
    assert document["name"] == "standard input"
    assert document["schema"] >= 1
    assert document["analyses"][0]["estimate"]["value"] == pytest.approx(0.01, rel=0.01)


def test_analyze_without_a_number_prints_what_was_observed_for_programs_too(cli, strict):
    result = cli("analyze", "--unit", "s", "--json", input="3\n")
    assert result.exit_code == 4
    (analysis,) = strict(result.stdout)["analyses"]
    assert analysis["estimate"] is None
    assert analysis["observed"] == {
        "n": 1,
        "calls": 1,
        **dict.fromkeys(("least", "p10", "median", "mean", "greatest"), 3.0),
        "levels": [{"value": 3.0, "share": 1.0}],
    }


def test_analyze_estimates_a_quantile(cli, recording, strict):
    words = ("analyze", recording, "--column", "time", "--unit", "s", "--statistic", "median")
    result = cli(*words)
    assert result.exit_code == 0
    assert "median 10.0" in " ".join(result.stdout.split())
    estimate = strict(cli(*words, "--json").stdout)["analyses"][0]["estimate"]
    assert estimate["method"] == "order statistics"
    assert estimate["value"] == pytest.approx(0.01, rel=0.01)


def test_analyze_merges_readings_on_demand(cli, recording, strict):
    words = ("analyze", recording, "--column", "time", "--method", "subsessions")
    estimate = strict(cli(*words, "--json").stdout)["analyses"][0]["estimate"]
    assert estimate["method"] == "subsessions"


def test_analyze_merges_readings_up_to_the_limit_asked_for(cli, recording, strict):
    words = ("analyze", recording, "--column", "time", "--autocorrelation-limit")
    found = strict(cli(*words, "40%", "--json").stdout)
    assert found["options"]["autocorrelation_limit"] == 0.4
    assert found["analyses"][0]["subsessions"]["limit"] == 0.4


@pytest.mark.parametrize(
    ("trim", "said"),
    [
        ("none", "nothing, as asked; 1,000 of"),
        ("10%", "10% at each end, as asked; 800 of"),
        ("10%:0", "10% at the start, as asked; 900 of"),
        ("0:0.05", "5% at the end, as asked; 950 of"),
    ],
)
def test_analyze_cuts_as_asked_and_says_so(cli, recording, trim, said):
    words = ("analyze", recording, "--column", "time", "--trim", trim)
    assert said in " ".join(cli(*words, "--explain").stdout.split())
    report = cli(*words, "--details").stdout
    assert said.partition(";")[0] in report
    assert "short-run" not in report


@pytest.mark.slow
@pytest.mark.parametrize("detector", ["edm", "pelt"])
@pytest.mark.parametrize("verb", ["analyze", "changes"])
def test_the_detector_can_be_chosen_by_name(cli, recording, verb, detector):
    words = (verb, recording, "--column", "time", "--detector", detector)
    result = cli(*words, *(["--details"] if verb == "analyze" else []))
    assert result.exit_code in ({0, 4} if detector == "edm" else {0}), result.stdout
    if verb == "changes":
        assert "no promise" in " ".join(result.stdout.split())
    if verb == "analyze" and detector != "edm":
        assert "warm-up 0–99" in result.stdout


def test_analyze_has_no_number_for_a_tail_of_few_readings(cli, recording, strict):
    result = cli("analyze", recording, "--column", "time", "--statistic", "p99.9", "--json")
    assert result.exit_code == 4
    codes = [each["code"] for each in strict(result.stdout)["analyses"][0]["notices"]]
    assert codes == ["start-cut", "few-readings-in-tail"]


@pytest.mark.parametrize(("target", "code"), [("1%", 0), ("0.5", 0), ("0.001%", 3)])
def test_analyze_tells_by_its_exit_code_whether_the_target_was_reached(
    cli, recording, target, code
):
    assert cli("analyze", recording, "--column", "time", "--target", target).exit_code == code


def test_analyze_has_no_number_for_one_reading_and_says_why(cli, strict):
    result = cli("analyze", "--json", input="5\n")
    assert result.exit_code == 4
    codes = [each["code"] for each in strict(result.stdout)["analyses"][0]["notices"]]
    assert "too-few-readings" in codes


def test_changes_shows_where_the_readings_change(cli, recording):
    result = cli("changes", recording, "--column", "time", "--unit", "s")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "points: 100 (" in lines[0]
    assert lines[1].split()[0] == "warm-up"
    assert lines[2].split()[0] == "stable"


@pytest.mark.slow
def test_changes_fits_a_terminal_of_80_columns_and_loses_no_word(cli, strict):
    noise = np.random.default_rng(1).normal(size=6000)
    many = "\n".join(map(str, 1e2 + np.repeat(np.arange(60.0), 100) * 10 + noise))
    result = cli("changes", "--details", input=many)
    indices = strict(cli("changes", "--json", input=many).stdout)["change_points"]["indices"]
    assert len(indices) > 40
    assert max(map(len, result.stdout.splitlines())) <= 80
    said = " ".join(result.stdout.split())
    assert said.startswith(f"change points: {', '.join(f'{index:,}' for index in indices)} (of ")
    assert said.endswith("[no-stable-phase]")


def test_changes_prints_json(cli, recording, strict):
    document = strict(cli("changes", recording, "--column", "time", "--json").stdout)
    assert document["schema"] >= 1
    assert document["change_points"]["indices"] == [100]
    assert [each["label"] for each in document["phases"]] == ["warm-up", "stable"]


def test_changes_ends_with_4_when_no_phase_is_stable(cli):
    steps = np.random.default_rng(1).normal(np.repeat(np.arange(4.0) * 10, 50), 1.0)
    result = cli("changes", "--details", input="\n".join(map(str, steps)))
    assert result.exit_code == 4
    assert "[no-stable-phase]" in result.stdout
    page = cli("changes", input="\n".join(map(str, steps))).stdout
    assert page in result.stdout.replace(f" [{'no-stable-phase'}]", "")


def slow_start(*levels: tuple[float, int], seed: int = 1) -> str:
    """Return the lines of a file of readings around levels, each for so many."""
    around = np.repeat([each for each, _ in levels], [n for _, n in levels])
    return "\n".join(map(str, around * np.random.default_rng(seed).normal(1.0, 0.01, around.size)))


ONE_STORY = {
    "a slow start and a small step": [(1.2, 150), (1.0, 600), (1.03, 450)],
    "a very slow start and small steps": [(3.0, 90), (1.0, 400), (0.98, 300), (1.02, 300)],
    "a fast start": [(0.8, 150), (1.0, 1_000)],
    "a cool-down": [(1.0, 500), (1.03, 400), (1.4, 60)],
    "too few at the end": [(1.0, 300), (1.5, 6)],
    "too few at the start": [(1.5, 8), (1.0, 300)],
    "small steps": [(1.0, 500), (1.006, 500)],
    "levels that come back": [(1.0, 200), (1.3, 200), (1.0, 200), (1.3, 200)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_STORY)
def test_changes_and_analyze_tell_the_same_phases(cli, strict, tmp_path, name):
    text = slow_start(*ONE_STORY[name])
    path = tmp_path / "readings.csv"
    path.write_text(text)
    changes = strict(cli("changes", path, "--json").stdout)
    (analysis,) = strict(cli("analyze", path, "--json").stdout)["analyses"]
    (phase,) = analysis["phases"]
    for field in ("start", "stop", "reason", "phases"):
        assert changes[field] == phase[field]
    lines = [" ".join(line.split()) for line in cli("changes", path).stdout.splitlines()]
    told = cli("analyze", path, "--explain").stdout.splitlines()
    explained = [" ".join(line.split()) for line in told]
    for part in phase["phases"]:
        (row,) = (each for each in lines if each.startswith(f"{part['label']} {part['start']:,} "))
        assert row in explained


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_STORY)
def test_changes_and_analyze_draw_the_same_picture(cli, tmp_path, monkeypatch, name):
    drawn = []
    for verb in (analyze_verb, changes_verb):
        monkeypatch.setattr(verb, "write_picture", lambda axes, _path: drawn.append(axes))
    (tmp_path / "readings.csv").write_text(slow_start(*ONE_STORY[name]))
    for verb in ("analyze", "changes"):
        cli(verb, "readings.csv", "--unit", "ms", "--plot", "t.png")
    one, other = ([text.get_text() for text in axes.texts] for axes in drawn)
    (evidence,) = (text for text in one if " kept" in text or "No number" in text)
    assert evidence in other
    assert one[-1] == other[-1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (slow_start((1.0, 99)) + "\n-5\n", "readings[99] is -5.0 ms, expected a duration of 0"),
        ("5", "1 reading, expected at least 2"),
        ("\n".join("0" for _ in range(40)), "40 readings, all 0, expected some above 0"),
        ("\n".join(str(1.0 + index / 10) for index in range(15)), "No steady level: it rises"),
        ("50\n" + slow_start((1.0, 15)), "left out as cold"),
        (slow_start((1.0, 100), (1.3, 100), (1.0, 100), (1.3, 100)), "changing-pace"),
        (slow_start(*((1.0 + index / 5, 50) for index in range(8))), "No steady level: it rises"),
    ],
)
def test_changes_and_analyze_accept_and_refuse_the_same_files(cli, text, said):
    options = ("--details", "--unit", "ms")
    one, other = (cli(verb, *options, input=text) for verb in ("analyze", "changes"))
    assert one.exit_code == other.exit_code
    for result in (one, other):
        assert said in " ".join((result.stdout + result.stderr).split())


@pytest.mark.slow
def test_rounds_of_which_half_cool_down_are_cut_one_by_one(cli, strict, tmp_path):
    rng, rounds, path = np.random.default_rng([36, 2]), [], tmp_path / "rounds.csv"
    for _ in range(25):
        levels = np.ones(300)
        levels[: rng.integers(5, 100)] += 0.5
        if rng.random() < 0.5:
            levels[300 - rng.integers(1, 60) :] += 0.3
        rounds.append(levels * rng.normal(1.0, 0.01) * rng.normal(1.0, 0.03, 300))
    rows = [f"{name},{float(value)!r}" for name, each in enumerate(rounds) for value in each]
    path.write_text("\n".join(["start,time", *rows]))
    words = (path, "--column", "time", "--round", "start", "--json")
    (analysis,) = strict(cli("analyze", *words).stdout)["analyses"]
    assert analysis["estimate"]["value"] == pytest.approx(1.0, abs=0.008)
    assert "cut-one-by-one" in {each["code"] for each in analysis["notices"]}
    assert len({(each["start"], each["stop"]) for each in analysis["phases"]}) > 5
    assert {each["stop"] for each in strict(cli("changes", *words).stdout)["rounds"]} == {
        each["stop"] for each in analysis["phases"]
    }
    assert estimate_invocations(rounds, trim=True).value == analysis["estimate"]["value"]


def test_changes_of_rounds_shows_the_warm_up_that_they_share(cli, strict, tmp_path):
    rng, path = np.random.default_rng(1), tmp_path / "rounds.csv"
    rows = [
        f"{name},{value}"
        for name in "abcdef"
        for value in np.repeat([2.0, 1.0], [40, 260]) * rng.normal(1.0, 0.02, 300)
    ]
    path.write_text("\n".join(["start,time", *rows]))
    columns = ("--column", "time", "--round", "start", "--json")
    changes = strict(cli("changes", path, *columns).stdout)["rounds"]
    (analysis,) = strict(cli("analyze", path, *columns).stdout)["analyses"]
    assert [each["phases"] for each in changes] == [each["phases"] for each in analysis["phases"]]
    assert len({each["phases"][0]["stop"] for each in changes}) == 1


def test_changes_says_what_is_too_few_to_call_and_min_segment_calls_it(cli):
    text = slow_start((1.0, 200), (1.5, 6))
    said = " ".join(cli("changes", input=text).stdout.split())
    assert "last 6" in said
    assert cli("changes", "--min-segment", "5", input=text).stdout.startswith("change points: 200 ")
    assert cli("changes", "--min-segment", "1", input=text).exit_code == 2


def test_a_speed_tells_its_amounts_and_its_subsessions(cli, tmp_path, strict):
    rng = np.random.default_rng(36)
    work = rng.permutation(np.linspace(100.0, 4000.0, 80))
    duration = 0.1 + work / 1000.0 + rng.normal(0.0, 0.02, work.size)
    path = tmp_path / "pairs.csv"
    rows = (f"{amount},{took}" for amount, took in zip(work, duration, strict=True))
    path.write_text("\n".join(["work,time", *rows]) + "\n", encoding="utf-8")
    words = ("analyze", path, "--column", "time", "--work", "work")
    page = " ".join(cli(*words).stdout.split())
    assert "80 rounds" in page
    (analysis,) = strict(cli(*words, "--json").stdout)["analyses"]
    assert analysis["subsessions"]["size"] >= 1
    assert abs(analysis["subsessions"]["autocorrelation"]) <= 0.1
    merged = strict(cli(*words, "--method", "merged-subsessions", "--json").stdout)["analyses"][0]
    assert merged["wps"]["slope"]["method"] == "wps-merged-subsessions"
    refused = cli("analyze", path, "--column", "time", "--method", "merged-subsessions")
    assert refused.exit_code == 2


def test_modes_far_apart_come_first_on_line_page_and_json(cli, tmp_path):
    path, times = tmp_path / "modes.csv", np.resize([0.012, 0.75, 0.012], 40)
    noisy = times * np.random.default_rng(3).lognormal(0.0, 0.03, 40)
    path.write_text("\n".join(["time", *map(repr, noisy.tolist())]))
    words = ("analyze", path, "--column", "time", "--unit", "s")
    page = " ".join(cli(*words).stdout.split())
    line = r"\S+ 2\d\d ms ±\S+ % \(68% near 1\S+ ms, 32% near 7\d\d ms\) modes 68% near "
    assert re.match(line, page)
    told = r"The readings have 2 modes: 68% near 1\S+ ms, 32% near 7\d\d ms\. The mean may be "
    assert re.match(told, page.split(" ! ")[1])
    (analysis,) = json.loads(cli(*words, "--json").stdout)["analyses"]
    first = analysis["notices"][0]
    assert (first["code"], first["severity"]) == ("several-modes", "warning")
    assert first == analysis["estimate"]["notices"][0]
    assert first["evidence"]["value_1"] == pytest.approx(0.75, rel=0.05)
    assert first["evidence"]["share_0"] == pytest.approx(0.675, abs=0.01)
    median = cli(*words, "--statistic", "median", "--json")
    assert "several-modes" not in median.stdout


def test_modes_of_a_side_come_first_in_every_comparison(cli, tmp_path):
    rng, paths = np.random.default_rng(3), [tmp_path / name for name in ("a.csv", "b.csv")]
    for path in paths:
        noisy = np.resize([12.0, 750.0, 12.0], 40) * rng.lognormal(0.0, 0.03, 40)
        path.write_text("\n".join([*map(repr, noisy.tolist()), ""]))
    words = ("compare", *paths, "--unit", "ms")
    page = " ".join(cli(*words).stdout.split())
    for told, side in zip(page.split(" ! ")[1:3], ("Baseline", "Candidate"), strict=True):
        assert re.match(rf"{side}: .* 68% near 1\S+ ms", told)
    written = json.loads(cli(*words, "--json").stdout)
    assert [each["code"] for each in written["comparison"]["notices"][:2]] == ["several-modes"] * 2
    assert "[several-modes]" in written["warnings"][0]
    assert "several-modes" not in cli(*words, "--statistic", "median", "--json").stdout
    third = tmp_path / "c.csv"
    third.write_text(paths[0].read_text())
    assert "2 modes: 68% near" in cli("compare", *paths, third, "--unit", "ms").stdout
    table, suites = tmp_path / "table.md", [path.with_suffix(".json") for path in paths]
    cli(*words, "--markdown", table)
    assert "2 modes" in table.read_text()
    for path, suite in zip(paths, suites, strict=True):
        times = {"a": np.loadtxt(path), "b": rng.normal(9.0, 0.1, 40)}
        results = [{"command": name, "times": each.tolist()} for name, each in times.items()]
        suite.write_text(json.dumps({"results": results}))
    assert "2 modes" in cli("compare", *suites).stdout
    readings = [np.loadtxt(path) for path in paths]
    first = br.compare_runs(*readings).notices[0]
    assert (first.code.value, first.severity.value) == ("several-modes", "warning")
