"""What is no page is told from what is one, before anything is read from it."""

from __future__ import annotations

import errno
import mmap
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.queues.counting import page_files
from benchrigor.queues.counting.page_files import create_page, map_page, remove_page


def header(
    magic: bytes = b"BRIGCELL", version: int = 1, cells: int = 1, cell_bytes: int = 128
) -> bytes:
    return struct.pack("=8s7Q", magic, version, cells, cell_bytes, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "has 0 bytes"),
        (header()[:63], "has 63 bytes"),
        (bytes(range(256)), "does not begin with BRIGCELL"),
        (header(version=2) + bytes(128), "is version 2"),
        (header(cell_bytes=64) + bytes(128), "cells of 64 bytes"),
        (header() + bytes(127), "has 191 bytes, expected 192"),
        (header(cells=2**60) + bytes(128), "expected 147573952589676412992"),
    ],
    ids=["empty", "short", "garbage", "version", "cell size", "cut off", "too many cells"],
)
def test_what_is_no_page_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "work.cells"
    path.write_bytes(content)
    for writable in (False, True):
        with pytest.raises(InvalidInput, match=problem):
            map_page(path, writable=writable)


def test_a_file_longer_than_its_cells_need_is_mapped_as_far_as_they_go(tmp_path: Path) -> None:
    path = tmp_path / "work.cells"
    path.write_bytes(header() + bytes(131))
    assert len(map_page(path, writable=False)) == 192


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "absent", "pipe"):
        with pytest.raises(InvalidInput, match="is not there, or is no file"):
            map_page(tmp_path / name, writable=False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    path = create_page(1, tmp_path / "work.cells")
    path.chmod(0)
    with pytest.raises(InvalidInput, match="Permission denied"):
        map_page(path, writable=False)


@pytest.mark.parametrize(
    ("where", "name", "error"),
    [
        (Path, "is_file", PermissionError(errno.EACCES, "Permission denied")),
        (Path, "open", PermissionError(errno.EACCES, "Permission denied")),
        (mmap, "mmap", OSError(errno.ENOMEM, "Cannot allocate memory")),
        (mmap, "mmap", ValueError("mmap length is greater than file size")),
    ],
    ids=["folder", "file", "memory", "shortened"],
)
def test_a_file_that_cannot_be_mapped_is_refused_whatever_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, error: Exception
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise error

    path = create_page(1, tmp_path / "work.cells")
    monkeypatch.setattr(where, name, fail)
    reason = getattr(error, "strerror", None) or str(error)
    with pytest.raises(InvalidInput, match=f"work.cells: {reason}"):
        map_page(path, writable=True)


def test_only_its_user_may_read_a_page(tmp_path: Path) -> None:
    assert create_page(1, tmp_path / "work.cells").stat().st_mode & 0o777 == 0o600


def test_where_there_is_no_shared_memory_the_temporary_folder_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_files, "_MEMORY", tmp_path / "absent")
    monkeypatch.setattr(page_files.tempfile, "tempdir", str(tmp_path))
    path = create_page(1)
    assert path.parent == tmp_path
    assert len(map_page(path, writable=True)) == 192


def test_where_nothing_can_be_made_each_place_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_files, "_MEMORY", tmp_path / "absent")
    monkeypatch.setattr(page_files.tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(InvalidInput) as caught:
        create_page(1)
    assert ["absent" in each or "missing" in each for each in caught.value.problems] == [True, True]


def test_a_file_that_finds_no_room_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InvalidInput, match="No space left on device"):
        create_page(1, tmp_path / "work.cells")
    assert list(tmp_path.iterdir()) == []


def test_room_need_not_be_reserved_where_that_cannot_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    assert len(map_page(create_page(3, tmp_path / "work.cells"), writable=True)) == 64 + 3 * 128


def test_only_the_creator_removes_a_page(tmp_path: Path) -> None:
    path = create_page(1, tmp_path / "work.cells")
    remove_page(path, None)
    remove_page(path, os.getpid() + 1)
    assert path.exists()
    remove_page(path, os.getpid())
    assert not path.exists()
    remove_page(path, os.getpid())


def test_what_cannot_be_removed_stays(tmp_path: Path) -> None:
    remove_page(tmp_path, os.getpid())
    assert tmp_path.is_dir()
