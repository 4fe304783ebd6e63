"""Files are written whole, whoever else writes them."""

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchrigor.files import locked, make_private_folder, remove_whole, write_whole


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_many_writers_at_once_all_succeed_and_readers_see_whole_files(tmp_path):
    path = tmp_path / "record.json"
    texts = {letter * 20_000 for letter in "abcdefgh"}
    write_whole(path, "a" * 20_000)
    finished = threading.Event()

    def read() -> set[str]:
        seen = set()
        while not finished.is_set():
            seen.add(path.read_text())
        return seen

    with ThreadPoolExecutor(9) as pool:
        reader = pool.submit(read)
        writers = [pool.submit(write_whole, path, text) for text in sorted(texts) * 20]
        assert [each.result() for each in writers] == [None] * 160
        finished.set()
        assert reader.result() <= texts
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_earlier_content_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "record.json"
    write_whole(path, "earlier")

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "later")
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_modes_of_earlier_files_are_kept_and_new_private_ones_are_for_their_owner(tmp_path):
    path, private, plain = tmp_path / "shared", tmp_path / "private", tmp_path / "plain"
    path.touch()
    path.chmod(0o664)
    before = os.umask(0o022)
    try:
        write_whole(path, "x", private=True)
        write_whole(private, "x", private=True)
        write_whole(plain, "x")
    finally:
        os.umask(before)
    assert [mode_of(each) for each in (path, private, plain)] == [0o664, 0o600, 0o644]


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    write_whole(link, "x")
    assert link.is_symlink()
    assert (tmp_path / "file").read_text() == "x"
    write_whole(os.devnull, "x")
    assert Path(os.devnull).is_char_device()


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("é" * 127)
    write_whole(path, b"x")
    assert path.read_bytes() == b"x"


def test_what_a_killed_writer_left_is_removed_with_the_file(tmp_path, monkeypatch):
    path = tmp_path / "a[1].rates"
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", lambda *_, **__: None)
        patched.setattr(Path, "replace", lambda *_: None)
        write_whole(path, "x")
    assert len(list(tmp_path.iterdir())) == 1
    remove_whole(path)
    assert list(tmp_path.iterdir()) == []


def test_only_folders_that_are_made_are_private(tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(0o755)
    make_private_folder(there / "a" / "b")
    assert [mode_of(each) for each in (there, there / "a", there / "a" / "b")] == [
        0o755,
        0o700,
        0o700,
    ]


def test_a_lock_loses_no_update(tmp_path):
    path = tmp_path / "count"
    path.write_text("0")

    def add(_):
        with locked(path):
            write_whole(path, str(int(path.read_text()) + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(60)))
    assert path.read_text() == "60"
