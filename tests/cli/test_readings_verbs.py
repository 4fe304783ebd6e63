"""analyze and changes."""

import json

import numpy as np
import pytest

import benchrigor as br
from benchrigor.cli import readings_verbs
from benchrigor.stats import estimate_invocations


@pytest.fixture
def recording(series):
    """A CSV file: 100 slow readings, then 900 around 10 ms."""
    rng = np.random.default_rng(1)
    times = np.where(np.arange(1000) < 100, 0.02, 0.01) + rng.normal(0.0, 0.0005, 1000)
    return series("readings.csv", (f"{n},{time:.6f}" for n, time in enumerate(times)), "index,time")


@pytest.fixture
def analysed(told, recording):
    """Return what analyze finds in it."""

    def analyse(*words):
        return told("analyze", recording, "--column", "time", *words)["analyses"][0]

    return analyse


@pytest.mark.parametrize(
    ("trim", "kept"), [("none", 1_000), ("10%", 800), ("10%:0", 900), ("0:0.05", 950)]
)
def test_analyze_cuts_as_asked(analysed, trim, kept):
    found = analysed("--trim", trim)
    assert found["n_kept"] == kept
    assert "short-run" not in {each["code"] for each in found["notices"]}


def test_changes_fits_a_terminal_of_80_columns_and_loses_no_word(cli, strict):
    noise = np.random.default_rng(1).normal(size=6000)
    many = "\n".join(map(str, 1e2 + np.repeat(np.arange(60.0), 100) * 10 + noise))
    result = cli("changes", "--details", input=many)
    indices = strict(cli("changes", "--json", input=many).stdout)["change_points"]["indices"]
    assert len(indices) > 40
    assert max(map(len, result.stdout.splitlines())) <= 80
    said = " ".join(result.stdout.split())
    assert f" {', '.join(f'{index:,}' for index in indices)} (of " in said
    assert said.endswith("[no-stable-phase]")


def slow_start(*levels: tuple[float, int], seed: int = 1) -> str:
    """Return the lines of a file of readings around levels, a number at each."""
    around = np.repeat([each for each, _ in levels], [n for _, n in levels])
    return "\n".join(map(str, around * np.random.default_rng(seed).normal(1.0, 0.01, around.size)))


ONE_STORY = {
    "a slow start and a small step": [(1.2, 150), (1.0, 600), (1.03, 450)],
    "a fast start": [(0.8, 150), (1.0, 1_000)],
    "a cool-down": [(1.0, 500), (1.03, 400), (1.4, 60)],
    "too few at the end": [(1.0, 300), (1.5, 6)],
    "too few at the start": [(1.5, 8), (1.0, 300)],
    "levels that come back": [(1.0, 200), (1.3, 200), (1.0, 200), (1.3, 200)],
}


@pytest.mark.parametrize("name", ONE_STORY)
def test_changes_and_analyze_tell_the_same_phases_and_draw_the_same_picture(
    cli, told, series, monkeypatch, name
):
    drawn = []
    monkeypatch.setattr(readings_verbs, "write_picture", lambda draw: drawn.append(draw()))
    path = series("readings.csv", [slow_start(*ONE_STORY[name])]).name
    words = (path, "--unit", "ms", "--plot", "t.png")
    changes, (analysis,) = told("changes", *words), told("analyze", *words)["analyses"]
    (phase,) = analysis["phases"]
    for field in ("start", "stop", "reason", "phases"):
        assert changes[field] == phase[field]
    other, one = ([text.get_text() for text in axes.texts] for axes in drawn)
    (evidence,) = (text for text in one if " kept" in text or "No number" in text)
    assert evidence in other
    assert one[-1] == other[-1]
    shown, explained = (
        [" ".join(line.split()).replace(", ", " ") for line in cli(*verb, path).stdout.splitlines()]
        for verb in (("changes",), ("analyze", "--explain"))
    )
    for part in phase["phases"]:
        start = f"{part['label']} {part['start']:,} "
        (row,) = (line for line in shown if line.startswith(start))
        assert row in explained


def test_rounds_of_which_half_cool_down_are_cut_one_by_one(told, series):
    rng, rounds = np.random.default_rng([36, 2]), []
    for _ in range(25):
        levels = np.ones(300)
        levels[: rng.integers(5, 100)] += 0.5
        if rng.random() < 0.5:
            levels[300 - rng.integers(1, 60) :] += 0.3
        rounds.append(levels * rng.normal(1.0, 0.01) * rng.normal(1.0, 0.03, 300))
    rows = [f"{name},{float(value)!r}" for name, each in enumerate(rounds) for value in each]
    words = (series("rounds.csv", rows, "start,time"), "--column", "time", "--round", "start")
    (analysis,) = told("analyze", *words)["analyses"]
    assert analysis["estimate"]["value"] == pytest.approx(1.0, abs=0.008)
    assert len({(each["start"], each["stop"]) for each in analysis["phases"]}) > 5
    changes = told("changes", *words)["rounds"]
    assert {each["stop"] for each in changes} == {each["stop"] for each in analysis["phases"]}
    assert estimate_invocations(rounds, trim=True).value == analysis["estimate"]["value"]


def test_min_segment_calls_what_is_too_few(cli):
    text = slow_start((1.0, 200), (1.5, 6))
    found = json.loads(cli("changes", "--min-segment", "5", "--json", input=text).stdout)
    assert found["change_points"]["indices"] == [200]


def test_modes_of_a_side_come_first_in_every_comparison(cli, told, series):
    rng, sides = np.random.default_rng(3), []
    for name in ("a.csv", "b.csv"):
        noise = rng.lognormal(0.0, 0.03, 40)
        sides.append((np.resize([12.0, 750.0, 12.0], 40) * noise).tolist())
        series(name, sides[-1])
    words = ("compare", "a.csv", "b.csv", "--unit", "ms")
    written = told(*words)
    assert [each["code"] for each in written["comparison"]["notices"][:2]] == ["several-modes"] * 2
    assert "[several-modes]" in written["warnings"][0]
    assert "several-modes" not in cli(*words, "--statistic", "median", "--json").stdout
    first = br.compare_runs(*sides).notices[0]
    assert (first.code.value, first.severity.value) == ("several-modes", "warning")
