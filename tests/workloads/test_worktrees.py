"""Revisions in folders of their own, and where they are imported from."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.workloads.worktrees import Checkout, commit_of, is_changed, worktrees


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "src" / "shop").mkdir(parents=True)
    (tmp_path / "src" / "shop" / "__init__.py").write_text("PRICE = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "tag", "one")
    return tmp_path


@pytest.fixture
def checkout(tmp_path):
    for top in ("here", "there"):
        (tmp_path / top / "src").mkdir(parents=True)
    (tmp_path / "here" / ".venv").mkdir()
    there = tmp_path / "there"
    return Checkout(top=there, folder=there, original=tmp_path / "here")


def test_a_revision_is_checked_out_for_a_while(repository, monkeypatch):
    monkeypatch.chdir(repository / "src")
    (repository / "src" / "shop" / "__init__.py").write_text("PRICE = 2\n")
    assert is_changed()
    with worktrees(["one"]) as [found]:
        assert found.folder == found.top / "src"
        assert (found.folder / "shop" / "__init__.py").read_text() == "PRICE = 1\n"
    assert not found.top.exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_folders_of_the_repository_are_taken_from_the_revision(checkout, monkeypatch):
    here = checkout.original
    monkeypatch.setattr(sys, "path", ["", "/usr/lib", str(here / ".venv"), str(here / "src")])
    assert checkout.path() == [str(checkout.top / "src")]


def test_so_are_modules_that_are_found_by_other_means(checkout, monkeypatch):
    """Some editable installations put a finder of their own in the place of a path."""
    package = checkout.original / "src" / "shop"

    class Finder:
        @staticmethod
        def find_spec(name, _path=None, _target=None):
            spec = ModuleSpec(name, None, is_package=True) if name == "shop_found_so" else None
            if spec is not None:
                spec.submodule_search_locations = [str(package)]
            return spec

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    monkeypatch.setattr(sys, "path", [])
    assert checkout.path(["shop_found_so", "sys", "__main__"]) == [str(checkout.top / "src")]


def test_a_revision_that_is_not_there_is_named_with_the_way_out(repository):
    with pytest.raises(InvalidInput, match=r"no revision 'nine', expected a branch.*fetch it"):
        commit_of("nine", repository)


def test_a_folder_outside_of_any_repository_is_named(tmp_path):
    with pytest.raises(InvalidInput, match="is in no git repository, expected one"):
        commit_of("main", tmp_path)
