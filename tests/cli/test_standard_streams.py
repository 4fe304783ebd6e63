"""Standard streams that are closed, full, or without a reader: a plain exit code."""

import os
import shlex
import signal
import subprocess
import sys

import pytest

PROGRAM = shlex.join([sys.executable, "-m", "benchrigor"])
CANNOT_WRITE = 6


def shell(script, folder):
    """Run a script in which "$benchrigor" is the program; pipes fail with what fails first."""
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {script.replace('benchrigor', PROGRAM, 1)}"],
        cwd=folder,
        env=os.environ | {"BENCHRIGOR_STORE": str(folder / "store")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


GONE = "mkdir gone; cd gone; rmdir ../gone; benchrigor"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")  # noqa: PTH110
@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("benchrigor --help > /dev/full", CANNOT_WRITE, "standard output cannot be written: No sp"),
        ("benchrigor --help >&-", CANNOT_WRITE, "standard output cannot be written: Bad file"),
        ("benchrigor --help | true", 128 + signal.SIGPIPE, ""),
        ("benchrigor show nothing 2> /dev/full", 6, ""),
        ("benchrigor show nothing 2>&-", 6, ""),
        ("benchrigor --version 2>&- <&-", 0, ""),
        (f"{GONE} run true", 2, "the current folder cannot be"),
        (f"{GONE} list", 6, "there is no store at"),
    ],
)
def test_each_way_has_its_exit_code(tmp_path, script, code, said):
    found = shell(script, tmp_path)
    assert (found.returncode, said in found.stderr) == (code, True), found.stderr
    assert "Traceback" not in found.stderr
    assert "Exception ignored" not in found.stderr
    assert said or not found.stderr


@pytest.mark.parametrize("streams", ["2>&-", "2> /dev/full", "<&- 2>&-"])
@pytest.mark.parametrize("words", ["talking:f", "sh -c 'echo 1 >&2'"])
def test_a_run_needs_no_standard_error(tmp_path, words, streams):
    (tmp_path / "talking.py").write_text("import sys\ndef f():\n    print(1, file=sys.stderr)\n")
    found = shell(f"benchrigor run --budget 0.3 {words} {streams}", tmp_path)
    assert found.returncode in {0, 4}, found.stderr
    assert found.stdout


def test_a_run_whose_report_cannot_be_written_is_kept_and_read_without_a_folder(tmp_path):
    found = shell("benchrigor run --max-rounds 3 true > /dev/full", tmp_path)
    assert found.returncode == CANNOT_WRITE
    assert "standard output" in found.stderr
    verbs = ("list", "show", "explain", "doctor", "track-record")
    found = shell(f"{GONE} {'; benchrigor '.join(verbs)}", tmp_path)
    assert "Traceback" not in found.stderr
    assert "current folder" not in found.stderr
    assert " rounds" in found.stdout
