"""``benchrigor rate``."""

from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "recorded_stage.csv"


@pytest.fixture
def saved(tmp_path):
    """Save the recording of a stage that serves 1000 items/s, and waits for a third of the time."""

    def save(name, *, n=400, flags=False, head="", ends=("",), bytes_each=None):
        rng = np.random.default_rng(1)
        columns = ["period_s", "items", "blocked" if flags else "blocked_s"]
        columns += ["end"] * (ends != ("",)) + ["item_bytes"] * (bytes_each is not None)
        lines = [f"{head}{','.join(columns)}\n"]
        for _ in range(n):
            for end in ends:
                blocked_s = 0.0 if flags else 0.1 * rng.uniform(0.2, 0.4)
                row = ["0.1", f"{rng.poisson(1000.0 * (0.1 - blocked_s))}", f"{blocked_s:.6f}"]
                row += [end] * (ends != ("",)) + [f"{bytes_each}"] * (bytes_each is not None)
                lines.append(",".join(row) + "\n")
        (tmp_path / name).write_text("".join(lines))
        return name

    return save


def test_json_holds_all_that_was_found(cli, saved, strict):
    document = strict(cli("rate", saved("stage.csv", bytes_each=2000), "--json").stdout)
    assert document["schema"] >= 1
    assert (document["name"], document["unit"]) == ("stage.csv", "items")
    assert document["unfinished_line"] is None
    (end,) = document["ends"]
    assert (end["end"], end["converged"], end["item_bytes"]) == (None, True, 2000.0)
    assert end["served_per_s"] == pytest.approx(700.0, rel=0.02)
    (rate,) = end["rates"]
    assert rate["estimate"]["low"] < 1000.0 < rate["estimate"]["high"]
    assert (rate["method"], rate["reason"]) == ("busy-time", None)


def test_standard_input_is_read(cli, saved, tmp_path):
    text = (tmp_path / saved("stage.csv")).read_text()
    result = cli("rate", "-", input=text)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[2:] == cli("rate", "stage.csv").stdout.splitlines()[2:]


@pytest.mark.parametrize(
    ("given", "words", "found"),
    [
        ({"head": "# servers: 2\n"}, [], (0, "busy-time", 700.0 / 0.85)),
        ({"ends": ("parse", "index")}, ["--end", "index"], (0, "busy-time", 1000.0)),
        ({"flags": True, "n": 1500}, [], (0, "quantile", 1000.0)),
        ({"flags": True, "n": 1500}, ["--method", "published"], (3, "quantile", 1060.0)),
    ],
)
def test_the_last_rate_of_an_end(cli, saved, strict, *, given, words, found):
    code, method, value = found
    result = cli("rate", saved("stage.csv", **given), *words, "--json")
    assert result.exit_code == code
    (end,) = strict(result.stdout)["ends"]
    assert end["end"] == (words[-1] if "ends" in given else None)
    assert {each["method"] for each in end["rates"]} == {method}
    assert end["rates"][0]["estimate"]["value"] == pytest.approx(value, rel=0.02)


@pytest.mark.parametrize(
    "words",
    [["nowhere.csv"], ["stage.csv", "--confidence", "most"], ["stage.csv", "--method", "mean"], []],
)
def test_what_cannot_be_worked_with_ends_with_2(cli, saved, words):
    saved("stage.csv")
    result = cli("rate", *words)
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_line_that_was_not_finished_does_not_count(cli, saved, tmp_path, strict):
    whole = strict(cli("rate", saved("stage.csv"), "--json").stdout)
    with (tmp_path / "stage.csv").open("a") as file:
        file.write("0.1,9")
    torn = strict(cli("rate", "stage.csv", "--json").stdout)
    assert torn == {**whole, "unfinished_line": 402}


@pytest.mark.slow
def test_the_rate_is_drawn(cli, saved, tmp_path):
    name = saved("stage.csv")
    result = cli("rate", name, "--plot", "stage.png")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "stage.png").read_bytes().startswith(b"\x89PNG")
    assert result.stdout == cli("rate", name).stdout
    many = saved("stages.csv", ends=("parse", "index"))
    assert cli("rate", many, "--end", "parse", "--plot", "one.svg").exit_code == 0


@pytest.mark.slow
def test_what_was_found_is_printed_also_where_the_picture_cannot_be_written(cli, saved):
    name = saved("stage.csv")
    result = cli("rate", name, "--plot", "no/such/folder/run.png")
    assert result.exit_code == 2
    assert "run.png" in result.stderr
    assert result.stdout == cli("rate", name).stdout


def test_the_page_of_queues_shows_what_the_example_shows(cli):
    page = (Path(__file__).parents[2] / "docs" / "queues.md").read_text(encoding="utf-8")
    shown = page.split("$ benchrigor rate examples/recorded_stage.csv\n")[1].split("\n```")[0]
    assert cli("rate", str(EXAMPLE)).stdout.rstrip() == shown
