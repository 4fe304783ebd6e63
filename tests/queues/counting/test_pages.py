"""Files of cells: made, found by their path, claimed from by anybody, and gone in the end."""

from __future__ import annotations

import gc
import multiprocessing
import os
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.queues import Page, cells

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

HEADER, CELL = struct.Struct("=8s7Q"), struct.Struct("=8Q64s")
FORK = multiprocessing.get_context("fork")
FOREIGN = """
import fcntl, mmap, os, struct, sys
with open(sys.argv[1], "r+b") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    page = mmap.mmap(file.fileno(), 0)
    magic, version, cells, size, claimed = struct.unpack_from("=8s4Q", page)
    assert (magic, version, size) == (b"BRIGCELL", 1, 128) and claimed < cells
    start = 64 + size * claimed
    page[start + 64:start + 128] = "grün.head".encode().ljust(64, bytes(1))
    struct.pack_into("=8Q", page, start, 3, 30, 1, -500 % 2**64, 1, 7 << 32 | 8, 0,
                     (-500 % 2**64) ^ 1)
    struct.pack_into("=Q", page, 32, claimed + 1)
"""


def test_the_file_is_as_documented(page: Page) -> None:
    cell = page.claim("work.head")
    cell.count_bytes(9)
    content = page.path.read_bytes()
    assert len(content) == 64 + 128 * 8
    assert HEADER.unpack_from(content) == (b"BRIGCELL", 1, 8, 128, 1, 0, 0, 0)
    owner = os.getpid() << 32 | threading.get_native_id()
    name = b"work.head".ljust(64, b"\0")
    assert CELL.unpack_from(content, 64) == (1, 9, 0, 0, 0, owner, 0, 0, name)
    assert not any(content[192:])


def test_a_program_that_knows_nothing_but_the_layout_is_read(page: Page) -> None:
    page.claim("work.tail")
    subprocess.run([sys.executable, "-c", FOREIGN, page.path], check=True)
    first, second = page.cells()
    assert first.name == "work.tail"
    counts = second.read(900)
    assert (counts.name, counts.items, counts.bytes) == ("grün.head", 3, 30)
    assert (counts.blocked_ns, counts.waiting, counts.pid, counts.tid) == (400, 1, 7, 8)


def test_when_all_cells_are_claimed_that_is_said_and_counted() -> None:
    with Page.create(cells=1) as page:
        page.claim("work.head")
        with pytest.raises(InvalidInput):
            page.claim("work.tail")
        assert HEADER.unpack_from(page.path.read_bytes())[5] == 1
        assert len(page.cells()) == 1


def claim_many(path: Path) -> None:
    page = Page.open(path, writable=True)
    for _ in range(25):
        page.claim(f"{os.getpid()}").words[0] = os.getpid()


def test_processes_that_claim_at_once_get_cells_of_their_own() -> None:
    with Page.create(cells=120) as page:
        children = [FORK.Process(target=claim_many, args=(page.path,)) for _ in range(4)]
        for each in children:
            each.start()
        for each in children:
            each.join()
        found = [(each.name, each.read().items, each.read().pid) for each in page.cells()]
    assert len(found) == 100
    assert all(name == str(items) == str(pid) for name, items, pid in found)
    assert {pid for *_, pid in found} == {each.pid for each in children}


def test_a_page_that_nobody_holds_removes_its_file() -> None:
    page = Page.create()
    path = page.path
    del page
    gc.collect()
    assert not path.exists()


def test_a_page_left_open_is_removed_when_its_program_ends() -> None:
    code = "from benchrigor.queues import Page; page = Page.create(); print(page.path)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not Path(done.stdout.strip()).exists()


def test_neither_a_reader_nor_a_forked_process_removes_the_file(page: Page) -> None:
    Page.open(page.path, writable=True).close()
    child = FORK.Process(target=page.close)
    child.start()
    child.join()
    assert child.exitcode == 0
    assert page.path.exists()


def test_a_closed_page_says_so_and_its_cells_go_on() -> None:
    with Page.create() as page:
        cell = page.claim("work.head")
        assert page.path.exists()
    page.close()
    assert (page.closed, page.path.exists()) == (True, False)
    for use in (page.cells, lambda: page.claim("work.head")):
        with pytest.raises(InvalidInput):
            use()
    cell.count()
    assert cell.read().items == 1


def created(folder: Path) -> Path:
    """Return the path of a page that outlives this call, as one of another process does."""
    path = folder / "work.cells"
    with Page.create(cells=1, path=path) as page:
        path.rename(folder / "kept")
        page.close()
    return (folder / "kept").rename(path)


def test_only_its_user_may_read_a_page(tmp_path: Path) -> None:
    assert created(tmp_path).stat().st_mode & 0o777 == 0o600


def test_where_there_is_no_shared_memory_the_temporary_folder_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "SHARED_MEMORY", tmp_path / "absent")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Page.create() as page:
        assert page.path.parent == tmp_path


def test_where_nothing_can_be_made_each_place_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "SHARED_MEMORY", tmp_path / "absent")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(InvalidInput) as caught:
        Page.create()
    assert ["absent" in each or "missing" in each for each in caught.value.problems] == [True, True]


def test_a_file_that_finds_no_room_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InvalidInput):
        created(tmp_path)
    assert list(tmp_path.iterdir()) == []
