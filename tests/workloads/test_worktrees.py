"""Where modules of a revision are imported from, which has a folder of its own."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

from benchrigor.workloads.worktrees import Checkout


def test_modules_that_are_found_by_other_means_are_taken_from_the_revision(tmp_path, monkeypatch):
    """Some editable installations put a finder of their own in the place of a path."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here / "src", here / ".venv", there / "src"):
        folder.mkdir(parents=True)
    checkout = Checkout(top=there, folder=there, original=here)
    package = here / "src" / "shop"

    class Finder:
        @staticmethod
        def find_spec(name, _path=None, _target=None):
            spec = ModuleSpec(name, None, is_package=True) if name == "shop_found_so" else None
            if spec is not None:
                spec.submodule_search_locations = [str(package)]
            return spec

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    for paths in ([], ["", "/usr/lib", str(here / ".venv"), str(here / "src")]):
        monkeypatch.setattr(sys, "path", paths)
        assert checkout.path(["shop_found_so", "sys", "__main__"]) == [str(there / "src")]
