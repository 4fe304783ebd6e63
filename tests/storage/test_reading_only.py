"""A store that may not be written is read; what would write to it says why it cannot."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest
from tests.storage.made_journals import HEADER, a_round, as_of_schema_1, other_process

from benchrigor.errors import StoreFailed
from benchrigor.storage import Journal

READ = """
for run in store.runs():
    print(run["name"], len(store.load(run["run_id"]).rounds))
try:
    store.check()
except StoreFailed as error:
    print("barred", error)
"""


def fill(path: Path) -> None:
    with Journal(path) as opened:
        opened.append(opened.begin(HEADER), a_round(0))


def leave_in_wal(path: Path) -> None:
    """Begin a run, and be killed before it is in the file itself."""
    other_process("store.begin(HEADER)\nos._exit(0)", path, "").communicate()
    path.with_name(f"{path.name}-shm").unlink()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "runs.sqlite"


@pytest.mark.parametrize("schema", [1, 2])
def test_who_may_not_write_reads_also_an_older_schema(
    path: Path, schema: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path)
    if schema == 1:
        as_of_schema_1(path)
    before = path.read_bytes()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("benchrigor.storage.journal.open_to_write", refuse)
    with Journal(path) as opened:
        (run,) = opened.runs()
        assert len(opened.load(run["run_id"]).rounds) == 1
        with pytest.raises(StoreFailed, match="denied"):
            opened.begin(HEADER)
    assert path.read_bytes() == before


def without_privileges() -> list[str]:
    """Return the words that take the right to write everywhere from the superuser."""
    if os.geteuid():
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("the superuser may write everywhere, and there is no setpriv")
    return ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
@pytest.mark.parametrize("barrier", ["folder", "file", "wal"])
def test_a_store_is_read_where_modes_forbid_to_write(path: Path, barrier: str) -> None:
    words = without_privileges()
    fill(path)
    expected = ["sort 1"]
    if barrier == "wal":
        leave_in_wal(path)
        expected = ["sort 0", "sort 1"]
    if barrier != "folder":
        path.chmod(0o400)
    if barrier != "file":
        path.parent.chmod(0o500)
    try:
        told, _ = other_process(READ, path, "", through=words).communicate()
    finally:
        path.parent.chmod(0o700)
    *runs, barred = told.splitlines()
    assert runs == expected
    assert barred.startswith("barred journal")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_a_store_is_for_its_owner_alone(path: Path) -> None:
    path.parent.parent.chmod(0o755)
    with Journal(path) as opened:
        opened.begin(HEADER)
        places = [path.parent, *path.parent.iterdir()]
        modes = {place.name: stat.S_IMODE(place.stat().st_mode) for place in places}
    assert modes.pop("store") == 0o700
    assert set(modes.values()) == {0o600}
    assert len(modes) == 3
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o755
