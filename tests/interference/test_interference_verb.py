"""``benchrigor interference``."""

import io
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import benchrigor as br
from benchrigor.cli.output import say
from benchrigor.layout import page
from benchrigor.model import SegmentProfile
from benchrigor.model.interference import Light
from benchrigor.stats import profile_interference
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, FakeMeter


def profile(seed=1, *, hit=0.0, by_s=0.05, slower=1.0, delayed=True, **given):
    """Compose a run of three kinds of segments, of which some are hit by a delay."""
    rng = np.random.default_rng(seed)
    n = 600
    kind = np.arange(n) % 3
    duration_s = slower * np.array([0.004, 0.010, 0.025])[kind] * rng.normal(1.0, 0.01, n)
    duration_s += by_s * (rng.random(n) < hit)
    waited_s = 0.01 * (rng.random(n) < 0.02)
    return SegmentProfile(
        duration_s=duration_s + waited_s * delayed,
        computation={"instructions": np.array([1e6, 3e6, 9e6])[kind]},
        nominal={"label": np.array(["exchange", "solve", "write"])[kind]},
        delays={"run queue": waited_s} if delayed else {},
        **{"program": "heat", **given},
    )


@pytest.fixture
def saved(tmp_path):
    """Save profiles under their names."""

    def save(**profiles):
        for name, each in profiles.items():
            each.save(tmp_path / f"{name}.csv")
        return [f"{name}.csv" for name in profiles]

    return save


@pytest.mark.parametrize(
    ("hit", "light"), [(0.0, "green"), (0.03, "yellow"), (0.15, "red")], ids=list(Light)[:3]
)
def test_the_light_of_a_run_comes_first(cli, saved, hit, light):
    result = cli("interference", *saved(run=profile(hit=hit)))
    assert result.exit_code == 0, result.output
    title, rule, first, *rest = result.stdout.splitlines()
    assert (title, set(rule)) == ("run.csv: heat", {"─"})
    assert first.startswith(f"  light        ● {light}: ")
    assert max(map(len, rest)) <= 80
    assert "\x1b" not in result.stdout
    assert result.stderr == ""


def test_a_last_line_without_its_end_is_reported(cli, saved, tmp_path):
    (name,) = saved(run=profile())
    text = (tmp_path / name).read_text()
    (tmp_path / name).write_text(text.rstrip("\n"))
    said = cli("interference", name).stderr
    assert (
        f"run.csv line {text.count(chr(10))} has no line break, is perhaps unfinished, but" in said
    )


def test_measured_and_estimated_are_shown_apart(cli, saved):
    shown = cli("interference", *saved(run=profile(hit=0.1))).stdout
    found = profile_interference(profile(hit=0.1))
    assert f"  measured     {found.measured_percent:.1f}% delay: run queue" in shown
    assert f"  estimated    {found.percent:.1f}% instantaneous" in shown
    shown = cli("interference", *saved(run=profile(delayed=False))).stdout
    assert "no delay was measured, and none is in the light" in shown


def test_groups_and_notices_are_shown(cli, saved):
    shown = cli("interference", *saved(run=profile(hit=0.1))).stdout
    (start,) = (line for line in shown.splitlines() if line.startswith("  group"))
    assert start.split() == ["group", "n", "median", "threshold", "flagged", "excess"]
    for label in ("exchange", "solve", "write"):
        assert f"\n  {label} " in shown
    assert "[no-reference]" not in shown
    assert "[no-reference]" in cli("interference", *saved(run=profile(hit=0.1)), "--details").stdout


def test_json_holds_all_that_was_found(cli, saved, strict):
    files = saved(run=profile(hit=0.1), calm=profile(2))
    document = strict(cli("interference", *files, "--json").stdout)
    assert document["schema"] >= 1
    run, calm = document["runs"]
    found = profile_interference(profile(hit=0.1))
    assert (run["name"], calm["name"]) == ("run.csv: heat", "calm.csv: heat")
    assert run["percent"] == pytest.approx(found.percent)
    assert run["total_percent"] == pytest.approx(found.total_percent)
    assert (run["light"], calm["light"]) == (str(found.light), "green")
    assert len(run["groups"]) == 3
    assert run["continuous_percent"] is None


def test_profiles_of_one_run_are_merged_and_others_are_not(cli, saved, strict):
    ranks = {
        f"rank{rank}": profile(rank, run="7f3a", process=rank, processes=4) for rank in range(3)
    }
    files = saved(**ranks, other=profile(9))
    document = strict(cli("interference", *files, "--json").stdout)
    assert [each["name"] for each in document["runs"]] == [
        "run 7f3a: heat, 3 of 4 processes",
        "other.csv: heat",
    ]
    assert document["runs"][0]["n"] == 600


def test_profiles_without_a_run_are_runs_of_their_own(cli, saved):
    shown = cli("interference", *saved(one=profile(1), two=profile(2))).stdout
    assert "one.csv: heat\n" in shown
    assert "\n\ntwo.csv: heat\n" in shown


def test_a_reference_shows_the_continuous_part(cli, saved):
    files = saved(run=profile(1, slower=1.2), calm=profile(2))
    shown = cli("interference", files[0], "--reference", files[1]).stdout
    (percent,) = re.findall(r"continuous +\+([0-9.]+)% against the reference", shown)
    assert float(percent) == pytest.approx(100 * 0.2 / 1.2, abs=1.0)


def test_a_reference_may_be_of_several_processes(cli, saved):
    files = saved(
        **{f"rank{k}": profile(k, run="7f3a", process=k, processes=2) for k in range(2)},
        **{f"calm{k}": profile(9 + k, run="1c", process=k, processes=2) for k in range(2)},
    )
    words = [*files[:2], "--reference", files[2], "--reference", files[3]]
    result = cli("interference", *words)
    assert result.exit_code == 0, result.output
    assert "continuous   +0." in result.stdout or "continuous   -0." in result.stdout


def test_a_composite_is_one_profile_of_all_runs(cli, saved, strict):
    runs = {f"day{day}": profile(day, hit=0.1) for day in range(4)}
    result = cli("interference", *saved(**runs), "--composite")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("heat\n────\n  duration ")
    assert "\n  day0.csv: heat  ● " in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    document = strict(cli("interference", *saved(**runs), "--composite", "--json").stdout)
    quiet_s = 600 * (0.004 + 0.010 + 0.025) / 3
    assert document["duration"]["value"] == pytest.approx(quiet_s, rel=0.01)
    assert len(document["names"]) == len(document["runs"]) == 4


def test_a_composite_of_too_few_runs_has_no_number(cli, saved):
    result = cli("interference", *saved(one=profile(1)), "--composite")
    assert result.exit_code == 4
    assert result.stdout == ""


@pytest.fixture(scope="module")
def measured():
    """Measure with a meter of delay."""
    clock, rng = FakeClock(), np.random.default_rng(1)
    options = br.Options(budget_readings=1000, target=1e-6)
    session = br.Session(options, name="synthetic", seed=1, clock=clock, meter=FakeMeter(clock))
    return session.run(lambda: clock.advance(int(rng.normal(1e7, 1e6))))


@pytest.fixture
def record(measured, tmp_path):
    """Save the record of a session whose delay was measured."""
    measured.save(tmp_path / "record.json")
    return measured


def test_the_saved_record_of_a_session_is_shown(cli, record, strict):
    result = cli("interference", "record.json")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("record.json: synthetic\n")
    (run,) = strict(cli("interference", "record.json", "--json").stdout)["runs"]
    assert run["light"] == str(record.interference.light)
    assert run["n"] == record.interference.n


def test_a_record_without_interference_is_named(cli, tmp_path):
    rate = br.Metric(name="rate", unit="B/s", direction="higher")
    session = br.Session(br.Options(max_rounds=1), [rate], name="rates", seed=1)
    session.tell(br.Round(plan=session.ask(), elapsed_ns=0, unit_readings={"rate": [1.0] * 9}))
    session.result().save(tmp_path / "rates.json")
    result = cli("interference", "rates.json")
    assert result.exit_code == 2
    assert "rates.json has no interference" in result.stderr


def test_an_older_record_is_estimated_from_its_readings(cli, record, strict):
    replace(record, interference=None).save("old.json")
    (run,) = strict(cli("interference", "old.json", "--json").stdout)["runs"]
    assert run["n"] == record.interference.n
    assert run["measured_percent"] == pytest.approx(record.interference.measured_percent)
    assert run["percent"] == record.interference.percent == 0.0


@pytest.mark.usefixtures("record")
def test_a_session_is_not_asked_for_a_reference_that_it_cannot_have(cli):
    result = cli("interference", "record.json")
    assert result.exit_code == 0
    assert "[no-reference]" not in result.stdout


def test_a_reference_that_does_not_match_is_not_called_none(cli, saved):
    other = SegmentProfile(
        duration_s=[0.1] * 50,
        computation={"instructions": [7e8] * 50},
        nominal={"label": ["start"] * 50},
    )
    files = saved(run=profile(), other=other)
    shown = cli("interference", files[0], "--reference", files[1]).stdout
    assert "continuous   unknown: the reference does not match" in shown
    assert "  ! " in shown


def test_errors_of_a_composite_name_files(cli, saved):
    given = {"one": profile(1), "two": profile(2, program="cool"), "three": profile(3)}
    unlike = SegmentProfile(duration_s=[1.0] * 9, program="heat", computation={"flops": [1.0] * 9})
    result = cli("interference", *saved(**given, four=unlike), "--composite")
    assert result.exit_code == 2
    assert "two.csv is of program 'cool', one.csv of 'heat': give runs of one" in result.stderr
    assert "four.csv has computation ['flops'], one.csv ['instructions']" in result.stderr
    assert "profiles[" not in result.stderr


def test_the_id_of_a_stored_run_is_enough(cli, store):
    cli("run", "--max-rounds", "6", "true")
    run_id = Journal(store).runs()[0]["run_id"]
    result = cli("interference", run_id)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{run_id}: true\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.csv"], "nowhere.csv is neither a file nor the id of a stored run"),
        (["folder"], "folder is no segment profile: Is a directory"),
        (["text.txt"], "text.txt is no segment profile, expected '# benchrigor segment profile"),
        (["bytes.png"], "bytes.png is no text in UTF-8"),
        (["empty.csv"], "empty.csv is no segment profile"),
        (["run.csv", "--reference", "nowhere.csv"], "nowhere.csv is no segment profile: No such"),
        (["run.csv", "--reference", "record.json"], "record.json is no segment profile"),
        (["run.csv", "--reference", "strange.csv"], "flops"),
        (["rank.csv", "again.csv"], "rank.csv (process 0) and again.csv (process 0) are of the"),
        (["rank.csv", "short.csv"], "short.csv (process 1) has 3 segments, rank.csv (process 0)"),
        (["record.json", "--reference", "run.csv"], "--reference is for segment profiles, found"),
        (["run.csv", "record.json", "--composite"], "--composite is for segment profiles, found"),
        (["run.csv", "rank.csv", "--plot", "p.png"], "--plot draws the segment profile of one run"),
        (["record.json", "--plot", "p.png"], "found record.json: synthetic"),
        (["run.csv", "--composite", "--reference", "rank.csv"], "--reference is given (rank.csv)"),
        (["run.csv"] * 3 + ["--composite"], "run.csv is given 3 times, expected once"),
        (["run.csv", "--composite", "--plot", "p.png"], "found run.csv: heat, --composite"),
        (["run.csv", "--plot", "p.gif"], "ends otherwise than in .png"),
        ([], "Missing argument"),
    ],
    ids=lambda value: (" ".join(value) or "nothing") if isinstance(value, list) else "message",
)
@pytest.mark.usefixtures("record")
def test_what_cannot_be_worked_with_is_named(cli, saved, tmp_path, words, message):
    saved(
        run=profile(),
        rank=profile(run="7f3a"),
        again=profile(run="7f3a"),
        short=SegmentProfile(
            duration_s=[1.0] * 3, program="heat", run="7f3a", process=1, processes=2
        ),
        strange=SegmentProfile(duration_s=[1.0] * 9, computation={"flops": [1.0] * 9}),
    )
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.txt").write_text("1\n2\n")
    (tmp_path / "bytes.png").write_bytes(b"\x89PNG\xff\xfe")
    (tmp_path / "empty.csv").write_text("")
    result = cli("interference", *words)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.slow
def test_the_segments_are_drawn(cli, saved, tmp_path):
    files = saved(run=profile(hit=0.1))
    result = cli("interference", *files, "--plot", "run.png")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert result.stdout == cli("interference", *files).stdout


@pytest.mark.slow
def test_what_was_found_is_printed_also_where_the_picture_cannot_be_written(cli, saved):
    files = saved(run=profile())
    result = cli("interference", *files, "--plot", "no/such/folder/run.png")
    assert result.exit_code == 2
    assert "run.png cannot be written" in result.stderr
    assert result.stdout == cli("interference", *files).stdout


class Terminal(io.StringIO):
    """Somebody looks."""

    def isatty(self):
        return True


@pytest.mark.parametrize("no_color", [False, True])
def test_lights_have_their_colour_on_a_terminal_unless_nobody_wants_it(monkeypatch, no_color):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    say(page(["  light  ● red: lost", "the red line stays"]))
    assert ("\x1b[1;31m● red\x1b[0m: lost" in terminal.getvalue()) is not no_color
    assert ("\x1b" in terminal.getvalue()) is not no_color
    assert "\nthe red line stays" in terminal.getvalue()
