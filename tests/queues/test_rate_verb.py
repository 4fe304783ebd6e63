"""``benchrigor rate``, and the picture that it draws."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.texts.causes.queue_recordings import stage_csv

EXAMPLE = Path(__file__).parents[2] / "examples" / "recorded_stage.csv"
HEADER = "period_s,items,blocked_s\n"


@pytest.fixture
def saved(tmp_path):
    """Save a recording; by default that of a stage that serves 1000 items/s and waits at times."""

    def save(text=None, **more):
        (tmp_path / "stage.csv").write_text(text or stage_csv(400, **more))
        return "stage.csv"

    return save


def flagged(n):
    """Return the recording of a stage that serves 1000 items/s and never waits."""
    counts = np.random.default_rng(1).poisson(100.0, n)
    return "period_s,items,blocked\n" + "".join(f"0.1,{each},0\n" for each in counts)


def test_json_holds_all_that_was_found(cli, saved, strict):
    whole = strict(cli("rate", saved(), "--json").stdout)
    assert whole["schema"] >= 1
    assert (whole["name"], whole["unit"]) == ("stage.csv", "items")
    assert whole["unfinished_line"] is None
    (end,) = whole["ends"]
    assert (end["end"], end["converged"], end["item_bytes"]) == (None, True, 2000.0)
    assert end["served_per_s"] == pytest.approx(700.0, rel=0.02)
    (rate,) = end["rates"]
    assert rate["estimate"]["low"] < 1000.0 < rate["estimate"]["high"]
    assert (rate["method"], rate["reason"]) == ("busy-time", None)
    torn = strict(cli("rate", saved(torn="0.1,9"), "--json").stdout)
    assert torn == {**whole, "unfinished_line": 402}


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("# servers: 2\n" + stage_csv(400), [], (0, "busy-time", 700.0 / 0.85)),
        (stage_csv(400, ends=("parse", "index")), ["--end", "index"], (0, "busy-time", 1000.0)),
        (flagged(1500), [], (0, "quantile", 1000.0)),
        (flagged(1500), ["--method", "published"], (3, "quantile", 1060.0)),
    ],
    ids=["servers", "end", "flags", "published"],
)
def test_the_last_rate_of_an_end(cli, saved, strict, *, text, words, found):
    code, method, value = found
    result = cli("rate", saved(text), *words, "--json")
    assert result.exit_code == code
    (end,) = strict(result.stdout)["ends"]
    assert end["end"] == ("index" if "--end" in words else None)
    assert {each["method"] for each in end["rates"]} == {method}
    assert end["rates"][0]["estimate"]["value"] == pytest.approx(value, rel=0.02)


def test_the_page_of_queues_shows_what_the_example_shows(cli):
    page = (Path(__file__).parents[2] / "docs" / "queues.md").read_text(encoding="utf-8")
    shown = page.split("$ benchrigor rate examples/recorded_stage.csv\n")[1].split("\n```")[0]
    assert cli("rate", str(EXAMPLE)).stdout.rstrip() == shown


def test_what_was_found_is_printed_also_where_the_picture_cannot_be_written(cli, saved):
    path = saved()
    result = cli("rate", path, "--plot", "no/such/folder/run.png")
    assert (result.exit_code, "run.png" in result.stderr) == (2, True)
    assert result.stdout == cli("rate", path).stdout


@pytest.fixture
def drawn(cli, saved, tmp_path, monkeypatch):
    """Draw a recording, and return the axes and what was found."""
    save, figures = Figure.savefig, []

    def save_and_keep(figure, *args, **options):
        figures.append(figure)
        save(figure, *args, **options)

    monkeypatch.setattr(Figure, "savefig", save_and_keep)

    def draw(text, *words):
        path = saved(text)
        result = cli("rate", path, *words, "--plot", tmp_path / "stage.png")
        assert (tmp_path / "stage.png").read_bytes().startswith(b"\x89PNG")
        assert result.stdout == cli("rate", path, *words).stdout
        return figures[-1].axes[0]

    return draw


def halving(n=300, *, seldom=(), beyond=()):
    """Return the recording of a stage that serves 1000 items/s, and half as many later on.

    In some periods it does nothing but wait, or is far faster.
    """
    rng = np.random.default_rng(1)
    blocked_s = rng.uniform(0.0, 0.05, n)
    items = rng.poisson(np.repeat([1000.0, 500.0], n // 2) * (0.1 - blocked_s))
    items[[*seldom]], blocked_s[[*seldom]] = 0, 0.1
    items[[*beyond]], blocked_s[[*beyond]] = 400, 0.0
    rows = zip(items.tolist(), blocked_s.tolist(), strict=True)
    return HEADER + "".join(f"0.1,{each},{waited_s!r}\n" for each, waited_s in rows)


def labelled(artists, label):
    return [each for each in artists if each.get_label() == label]


def segments(axes, label):
    """Return the lines that bear a label."""
    return [line for each in labelled(axes.collections, label) for line in each.get_segments()]


def bands(axes, label):
    return [bar for each in labelled(axes.containers, label) for bar in each.patches]


@pytest.mark.parametrize(("target", "which"), [("5%", ""), ("0.1%", ", not converged")])
def test_the_picture_has_stretches_phases_rates_and_waiting(cli, strict, drawn, target, which):
    text = halving()
    axes = drawn(text, "--target", target)
    rates = strict(cli("rate", "stage.csv", "--target", target, "--json").stdout)["ends"][0][
        "rates"
    ]
    columns = np.array([line.split(",") for line in text.split()[1:]], dtype=float)
    period_s, items, blocked_s = columns.T
    (dots,) = labelled(axes.lines, "stretch")
    at_s, heights = dots.get_xydata().T
    assert at_s == pytest.approx(0.1 * np.arange(300) + 0.05)
    assert heights == pytest.approx(items / (period_s - blocked_s))
    assert len(rates) == 2
    lines, intervals = segments(axes, f"rate{which}"), bands(axes, f"interval{which}")
    for rate, line, band in zip(rates, lines, intervals, strict=True):
        estimate = rate["estimate"]
        assert line.tolist() == [
            pytest.approx([rate["start_s"], estimate["value"]]),
            pytest.approx([rate["stop_s"], estimate["value"]]),
        ]
        assert band.get_y() == pytest.approx(estimate["low"])
        assert band.get_y() + band.get_height() == pytest.approx(estimate["high"])
        assert (band.get_facecolor()[3] > 0.0) is (which == "")  # else it is hollow
        assert (band.get_linestyle() == "--") is (which != "")
    (border,) = segments(axes, "phase")
    assert border[0][0] == pytest.approx(rates[1]["start_s"])
    (below,) = axes.child_axes
    (stairs,) = labelled(below.patches, "waiting")
    assert stairs.get_data().values == pytest.approx(blocked_s / period_s)
    assert (below.get_ylim(), below.get_xlabel()) == ((0.0, 1.0), "time (s)")
    assert below.get_xlim() == pytest.approx((0.0, 30.0))


def test_in_a_picture_what_lies_far_above_is_marked_and_nothing_but_waiting_left_out(drawn):
    axes = drawn("# unit: lines\n" + halving(seldom=range(10), beyond=[60, 100]))
    (marks,) = labelled(axes.lines, "beyond")
    assert marks.get_xdata() == pytest.approx([6.05, 10.05])
    assert axes.get_ylim()[1] < 2500.0
    assert len(labelled(axes.lines, "stretch")[0].get_xdata()) == 300 - 10 - 2
    assert (axes.get_title(loc="left"), axes.get_ylabel()) == ("stage.csv", "k lines/s")
    texts = [each.get_text() for each in axes.texts]
    assert any(each.endswith("\nlines/s") for each in texts)
    (said,) = (each for each in texts if " lines/s [" in each)
    assert said.endswith("95%, converged")


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (HEADER + "0.1,0,0.1\n" * 30, [], "never busy"),
        ("t_s,end,items,blocked_s\n0,a,0,0\n0,b,0,0\n9,a,1,0\n", ["--end", "b"], "no number"),
    ],
)
def test_where_there_is_no_rate_the_picture_says_why(drawn, text, words, said):
    (shown,) = drawn(text, *words).texts
    assert said in shown.get_text()
