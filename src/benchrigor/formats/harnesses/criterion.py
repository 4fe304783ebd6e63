"""Folders of criterion.rs: ``sample.json`` has total times, and how many calls each is of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import TIME, object_at, one_series, only_summary, scaled, taken
from benchrigor.model.recorded import Recorded
from benchrigor.model.series import check_items

TOOL = "criterion"
_LATEST = "new"
_FILES = ("sample.json", "estimates.json")
_CURE = "run cargo bench again, and keep sample.json beside the means"


def read_folder(folder: Path) -> Iterator[Recorded]:
    """Read the latest run of each benchmark below a folder, or the one that is the folder itself.

    A folder of one benchmark's baseline, such as ``NAME/base``, is read as it is.
    """
    found = {folder} if any((folder / name).is_file() for name in _FILES) else set()
    found |= {path.parent for name in _FILES for path in folder.rglob(f"{_LATEST}/{name}")}
    if not found:
        expected = "sample.json of criterion in a folder 'new', or one file of results"
        raise InvalidInput(f"{folder} is a folder without results, expected {expected}")
    yield from map(_read, sorted(found))


def _read(folder: Path) -> Recorded:
    path, means = (folder / name for name in _FILES)
    benchmark = _load(folder / "benchmark.json") if (folder / "benchmark.json").is_file() else {}
    kept = ("value_str", "throughput")
    parameters = {key: benchmark[key] for key in kept if benchmark.get(key) is not None}
    name = str(benchmark.get("full_id") or folder.parent.name)
    told: dict[str, Any] = {"name": name, "metrics": (TIME,), "tool": TOOL}
    told["parameters"] = parameters
    if not path.is_file():
        known = _load(means)
        points = {key: object_at(known, key).get("point_estimate") for key in known}
        return Recorded(**told, **only_summary(points, _CURE))
    sample = _load(path)
    times, iters = (
        scaled(taken(sample, key, list, str(path)), 1.0, f"{path} {key}")
        for key in ("times", "iters")
    )
    if times.size != iters.size:
        found = f"{times.size} times and {iters.size} iters"
        raise InvalidInput(f"{path} has {found}, expected as many of both")
    check_items(iters, iters >= 1.0, "1 call or more", name=f"{path} iters")
    # In linear mode each sample has more calls than the one before.
    per_call = scaled(times / iters, 1e-9, str(path))
    return Recorded(**told, rounds=one_series(TIME, per_call, inner_loop=int(iters.min())))


def _load(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{path} is a list, expected an object")
    return data
