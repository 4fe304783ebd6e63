"""--plot, where there are readings to draw."""

import sys

import numpy as np
import pytest

from benchrigor.cli import changes_verb
from benchrigor.storage import Journal


@pytest.fixture
def recording(tmp_path):
    """A CSV file: 100 slow readings, then 900 around 10 ms."""
    rng = np.random.default_rng(1)
    times = np.where(np.arange(1000) < 100, 0.02, 0.01) + rng.normal(0.0, 0.0005, 1000)
    path = tmp_path / "readings.csv"
    path.write_text("".join(f"{time:.6f}\n" for time in times))
    return path


STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "suffix"), [*(("changes", each) for each in STARTS), ("analyze", ".png")]
)
def test_readings_are_drawn_into_a_file_of_the_kind_that_its_suffix_names(
    cli, recording, tmp_path, verb, suffix
):
    path = tmp_path / f"trace{suffix}"
    result = cli(verb, recording, "--unit", "s", "--plot", path)
    assert result.exit_code == 0, result.output
    assert path.read_bytes().startswith(STARTS[suffix])
    assert result.stdout == cli(verb, recording, "--unit", "s").stdout


@pytest.mark.slow
def test_a_stored_run_is_drawn(cli, store, tmp_path):
    cli("run", "--max-rounds", "3", "true")
    path = tmp_path / "run.png"
    assert cli("show", Journal(store).runs()[0]["run_id"], "--plot", path).exit_code == 0
    assert path.read_bytes().startswith(STARTS[".png"])


KINDS = {
    "single readings": ((), ()),
    "one reading": (("--max-rounds", "1"), ()),
    "rounds of various work": (("--work", "1:9", "--short-round", "0.0001"), ("{work}",)),
    "rounds of various work that do not count": (
        ("--work", "1:9", "--short-round", "100", "--max-rounds", "2"),
        ("{work}",),
    ),
    "unit readings": (("--read-units", "u:s=regex:u (.+)"), ()),
    "unit readings of various work": (
        ("--work", "1:9", "--short-round", "0.0001", "--read-units", "u:s=regex:u (.+)"),
        ("{work}",),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_run_of_any_kind_is_drawn(cli, store, tmp_path, kind):
    options, words = KINDS[kind]
    options = ("--max-rounds", "4", *options)
    printing = "for i in 1 2 3; do echo u $i; done"
    assert cli("run", *options, "sh", "-c", printing, "sh", *words).exit_code in {0, 4}
    path = tmp_path / "run.svg"
    drawn = cli("show", Journal(store).runs()[0]["run_id"], "--plot", path)
    assert drawn.exit_code == 0, drawn.stderr
    assert path.read_bytes().startswith(STARTS[".svg"])


@pytest.mark.slow
def test_readings_without_a_stable_phase_are_drawn_and_still_end_with_4(cli, tmp_path):
    steps = np.random.default_rng(1).normal(np.repeat(np.arange(4.0) * 10, 50), 1.0)
    path = tmp_path / "trace.PNG"
    assert cli("changes", "--plot", path, input="\n".join(map(str, steps))).exit_code == 4
    assert path.exists()


@pytest.fixture(params=["changes", "analyze", "analyze --explain", "changes --json", "show"])
def words(request, cli, recording, store):
    """Words of a command line that draws."""
    if request.param != "show":
        verb, *options = request.param.split()
        return [verb, recording, *options]
    cli("run", "--max-rounds", "3", "true")
    return ["show", Journal(store).runs()[0]["run_id"]]


@pytest.mark.slow
def test_what_was_computed_is_printed_also_where_the_picture_cannot_be_written(cli, words):
    result = cli(*words, "--plot", "no/such/folder/trace.png")
    assert result.exit_code == 2
    assert result.stdout == cli(*words).stdout != ""


def test_what_was_computed_is_printed_also_without_matplotlib(cli, words, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = cli(*words, "--plot", "trace.png")
    assert result.exit_code == 2
    assert result.stdout == cli(*words).stdout != ""


@pytest.mark.parametrize(("named", "title"), [(True, "readings.csv"), (False, "standard input")])
def test_the_picture_of_changes_bears_the_name_of_the_file(
    cli, recording, monkeypatch, named, title
):
    drawn = []
    monkeypatch.setattr(changes_verb, "write_picture", lambda axes, _path: drawn.append(axes))
    source = recording if named else "-"
    assert cli("changes", source, "--plot", "t.png", input=recording.read_text()).exit_code == 0
    assert title in [text.get_text() for text in drawn[0].texts]
