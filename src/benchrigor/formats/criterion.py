"""Folders of criterion.rs: ``sample.json`` has total times and their numbers of calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import (
    TIME,
    check,
    load_object,
    object_at,
    one_series,
    only_summary,
    scale,
)
from benchrigor.model.run import Recorded
from benchrigor.model.series import check_items

TOOL = "criterion"
_LATEST = "new"
_FILES = ("sample.json", "estimates.json")
_CURE = "run cargo bench again, and keep sample.json next to the means"


def read_folder(folder: Path) -> Iterator[Recorded]:
    """Read the latest run of every benchmark below a folder.

    A folder that is itself a run, such as the baseline ``NAME/base``, is read too.
    """
    found = {folder} if any((folder / name).is_file() for name in _FILES) else set()
    found |= {path.parent for name in _FILES for path in folder.rglob(f"{_LATEST}/{name}")}
    yield from map(_read, sorted(found))


def _read(folder: Path) -> Recorded:
    path, means = (folder / name for name in _FILES)
    benchmark = (
        load_object(folder / "benchmark.json") if (folder / "benchmark.json").is_file() else {}
    )
    kept = ("value_str", "throughput")
    parameters = {key: benchmark[key] for key in kept if benchmark.get(key) is not None}
    name = str(benchmark.get("full_id") or folder.parent.name)
    common: dict[str, Any] = {"name": name, "metrics": (TIME,), "tool": TOOL}
    common["parameters"] = parameters
    if not path.is_file():
        known = load_object(means)
        points = {key: object_at(known, key).get("point_estimate") for key in known}
        return Recorded(**common, **only_summary(points, _CURE))
    sample = load_object(path)
    check(sample, {"times": list, "iters": list}, str(path))
    times, iters = (scale(sample[key], 1.0, f"{path} {key}") for key in ("times", "iters"))
    if times.size != iters.size:
        found = f"{times.size} times and {iters.size} iters"
        raise InvalidInput(f"{path} has {found}, expected as many of both")
    check_items(iters, iters >= 1.0, "1 call or more", name=f"{path} iters")
    # In linear mode every sample has more calls than the previous one.
    per_call = scale(times / iters, 1e-9, str(path))
    return Recorded(**common, rounds=one_series(TIME, per_call, inner_loop=int(iters.min())))
