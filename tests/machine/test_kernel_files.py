"""Control groups are found wherever they are mounted."""

from __future__ import annotations

import os

import pytest

from benchrigor.machine.kernel_files import Unavailable, cgroup_folders, open_file


@pytest.mark.parametrize(
    ("line", "folders"),
    [
        ("0::/a/b", ["a/b", "a", "", "unified/a/b", "unified/a", "unified"]),
        ("4:memory:/a", []),
        ("3:cpu,cpuacct:/a", ["cpu,cpuacct/a", "cpu,cpuacct"]),
    ],
)
def test_groups_are_yielded_from_the_innermost_out(write, line, folders) -> None:
    root = write({"proc/self/cgroup": f"{line}\n"})
    mount = root / "sys/fs/cgroup"
    assert list(cgroup_folders(root)) == [mount / each for each in folders]


def test_what_cannot_be_opened_says_why(tmp_path) -> None:
    with pytest.raises(Unavailable, match="nothing: No such file"):
        open_file(tmp_path / "nothing")


def test_a_file_that_the_program_opened_under_its_number_stays_open(write) -> None:
    root = write({"ours": "1", "theirs": "2"})
    ours = open_file(root / "ours")
    number = ours.descriptor
    with (root / "theirs").open() as theirs:
        os.dup2(theirs.fileno(), number)
    del ours
    assert os.read(number, 9) == b"2"
    os.close(number)
