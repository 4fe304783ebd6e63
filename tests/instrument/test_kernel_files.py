"""Control groups are found wherever they are mounted."""

from __future__ import annotations

import pytest

from benchrigor.instrument.kernel_files import Unavailable, cgroup_folders, open_file


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
