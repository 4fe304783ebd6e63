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


def test_the_rate_of_a_stage_is_told_first(cli, saved):
    result = cli("rate", saved("stage.csv", bytes_each=2000))
    assert result.exit_code == 0, result.output
    title, rule, first, evidence, *rest = result.stdout.splitlines()
    assert (title, set(rule)) == ("stage.csv", {"─"})
    assert first.startswith("  rate ")
    assert first.endswith("95%, converged")
    assert evidence.strip().startswith("busy time, 0 to 40 s: 400 periods of 100 ms, 0%")
    assert any(line.startswith("  served    70") and " utilisation 69" in line for line in rest)
    assert any(line.startswith("  bytes     2.0") and "at 2 kB each" in line for line in rest)
    assert result.stderr == ""


def test_the_recorded_stage_of_the_examples_changed_its_rate(cli):
    result = cli("rate", EXAMPLE)
    assert result.exit_code == 0, result.output
    shown = result.stdout
    assert "k documents/s [95% interval]" in shown
    assert [line.split()[1:4] for line in shown.splitlines() if "●" in line] == [
        ["0", "to", "90"],
        ["90", "to", "150"],
    ]
    assert max(map(len, shown.splitlines())) <= 79
    assert "of the busy time for a processor" in " ".join(shown.split())


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


def test_several_ends_stand_below_each_other_and_one_may_be_chosen(cli, saved, strict):
    name = saved("stages.csv", ends=("parse", "index"))
    shown = cli("rate", name).stdout
    assert shown.startswith("stages.csv: parse\n─")
    assert "\n\nstages.csv: index\n─" in shown
    (end,) = strict(cli("rate", name, "--end", "index", "--json").stdout)["ends"]
    assert end["end"] == "index"
    result = cli("rate", name, "--end", "hash")
    assert result.exit_code == 2
    assert "stages.csv has no end 'hash', expected one of parse, index" in result.stderr


def test_standard_input_is_read(cli, saved, tmp_path):
    text = (tmp_path / saved("stage.csv")).read_text()
    result = cli("rate", "-", input=text)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("standard input\n")
    assert result.stdout.splitlines()[2:] == cli("rate", "stage.csv").stdout.splitlines()[2:]


def test_a_rate_that_is_not_known_well_enough_ends_with_3_and_says_what_would_do(cli, saved):
    result = cli("rate", saved("stage.csv", n=30), "--target", "0.1%")
    assert result.exit_code == 3
    assert "95%, the best so far" in result.stdout
    said = " ".join(result.stdout.split())
    assert "%, wanted 0.1%. Record about " in said
    assert " s in all" in said


@pytest.mark.parametrize(
    ("row", "said"),
    [("0.1,0,0.1", "it waited all of the time"), ("0.1,0,0.0", "it was busy and finished no item")],
)
def test_what_allows_no_number_ends_with_4(cli, tmp_path, row, said):
    (tmp_path / "idle.csv").write_text("period_s,items,blocked_s\n" + f"{row}\n" * 50)
    result = cli("rate", "idle.csv")
    assert result.exit_code == 4
    assert "  rate      no number\n" in result.stdout
    assert f"not converged: {said}" in result.stdout


def test_flags_alone_are_worked_with_by_the_quantile(cli, saved, strict):
    name = saved("flags.csv", flags=True, n=1500)
    (end,) = strict(cli("rate", name, "--json").stdout)["ends"]
    assert {each["method"] for each in end["rates"]} == {"quantile"}
    assert end["rates"][0]["estimate"]["value"] == pytest.approx(1000.0, rel=0.1)
    published = strict(cli("rate", name, "--method", "published", "--json").stdout)["ends"]
    assert published[0]["rates"] != end["rates"]


def test_a_line_that_was_not_finished_is_told_beside_the_report(cli, saved, tmp_path, strict):
    whole = cli("rate", saved("stage.csv")).stdout
    with (tmp_path / "stage.csv").open("a") as file:
        file.write("0.1,9")
    result = cli("rate", "stage.csv")
    assert result.exit_code == 0
    assert result.stdout == whole
    assert result.stderr == (
        "benchrigor: stage.csv, line 402: the last line is not finished and does not count\n"
    )
    assert strict(cli("rate", "stage.csv", "--json").stdout)["unfinished_line"] == 402


@pytest.mark.slow
def test_the_rate_is_drawn(cli, saved, tmp_path):
    name = saved("stage.csv")
    result = cli("rate", name, "--plot", "stage.png")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "stage.png").read_bytes().startswith(b"\x89PNG")
    assert result.stdout == cli("rate", name).stdout
    many = saved("stages.csv", ends=("parse", "index"))
    result = cli("rate", many, "--plot", "both.png")
    assert result.exit_code == 2
    assert "--plot draws one end, found parse, index: choose one with --end" in result.stderr
    assert cli("rate", many, "--end", "parse", "--plot", "one.svg").exit_code == 0


@pytest.mark.slow
def test_what_was_found_is_printed_also_where_the_picture_cannot_be_written(cli, saved):
    name = saved("stage.csv")
    result = cli("rate", name, "--plot", "no/such/folder/run.png")
    assert result.exit_code == 2
    assert "run.png cannot be written" in result.stderr
    assert result.stdout == cli("rate", name).stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.csv"], "nowhere.csv cannot be read: No such file"),
        (["folder"], "folder cannot be read: Is a directory"),
        (["bytes.png"], "bytes.png is no text in UTF-8"),
        (["empty.csv"], "empty.csv has no header, expected one such as"),
        (["text.txt"], "text.txt, line 1: 'some words' names no column that is known"),
        (["stage.csv", "--end", "parse"], "stage.csv has no column 'end', and so no end 'parse'"),
        (["stage.csv", "--target", "0"], "target is 0.0, expected"),
        (["stage.csv", "--confidence", "200%"], "confidence is 2.0, expected"),
        (["stage.csv", "--confidence", "most"], "'most' is no share"),
        (["stage.csv", "--method", "mean"], "'mean' is not one of"),
        (["stage.csv", "--plot", "p.gif"], "ends otherwise than in .png"),
        (["crowded.csv"], "say how many at the beginning: '# servers: 4'"),
        ([], "Missing argument"),
    ],
    ids=lambda value: (" ".join(value) or "nothing") if isinstance(value, list) else "said",
)
def test_what_cannot_be_worked_with_is_named(cli, saved, tmp_path, words, said):
    saved("stage.csv")
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes.png").write_bytes(b"\x89PNG\xff\xfe")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "text.txt").write_text("some words\n")
    (tmp_path / "crowded.csv").write_text("period_s,items,blocked_s\n0.1,7,0.25\n")
    result = cli("rate", *words)
    assert result.exit_code == 2, result.output
    assert said in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_several_servers_are_declared_on_the_first_line(cli, saved, strict):
    name = saved("stage.csv", head="# servers: 2\n")
    (end,) = strict(cli("rate", name, "--json").stdout)["ends"]
    assert end["rates"][0]["estimate"]["value"] == pytest.approx(700.0 / 0.85, rel=0.02)


def test_help_shows_the_columns_and_fits_a_terminal(cli):
    shown = cli("rate", "--help").stdout
    for column in ("t_ns", "blocked_ns", "item_bytes", "delay_s", "servers"):
        assert column in shown
    assert max(map(len, shown.splitlines())) <= 79


def test_the_page_of_queues_shows_what_the_example_shows(cli):
    page = (Path(__file__).parents[2] / "docs" / "queues.md").read_text(encoding="utf-8")
    shown = page.split("$ benchrigor rate examples/recorded_stage.csv\n")[1].split("\n```")[0]
    assert cli("rate", str(EXAMPLE)).stdout.rstrip() == shown
