"""Folders of criterion.rs: ``sample.json`` has total times, and how many calls each is of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import TIME, one_series, only_summary, optional, scaled, taken
from benchrigor.model import Floats
from benchrigor.model.recorded import Recorded
from benchrigor.model.series import check_items

TOOL = "criterion"
_LATEST = "new"
_FILES = ("sample.json", "estimates.json")


def read_folder(folder: Path) -> Iterator[Recorded]:
    """Read the latest run of each benchmark below a folder, or the one that is the folder itself.

    A folder of one benchmark's baseline, such as ``NAME/base``, is read as it is.
    """
    found = [folder] if any((folder / name).is_file() for name in _FILES) else []
    below = {path.parent for name in _FILES for path in folder.rglob(f"{_LATEST}/{name}")}
    if not (found or below):
        expected = "sample.json of criterion in a folder 'new', or one file of results"
        raise InvalidInput(f"{folder} is a folder without results, expected {expected}")
    for each in sorted({*found, *below}):
        yield _read(each)


def _read(folder: Path) -> Recorded:
    benchmark = _load(folder / "benchmark.json") if (folder / "benchmark.json").is_file() else {}
    names = (benchmark.get(key) for key in ("group_id", "function_id", "value_str"))
    told: dict[str, Any] = {
        "name": optional(benchmark, "full_id", str)
        or "/".join(str(each) for each in names if each)
        or folder.parent.name,
        "metrics": (TIME,),
        "tool": TOOL,
        "parameters": {
            key: benchmark[key]
            for key in ("value_str", "throughput")
            if benchmark.get(key) is not None
        },
    }
    if not (folder / _FILES[0]).is_file():
        estimates = _load(folder / _FILES[1])
        points = {
            key: each.get("point_estimate")
            for key, each in estimates.items()
            if isinstance(each, Mapping)
        }
        notice = only_summary("cargo bench", points, "again, and keep sample.json beside the means")
        return Recorded(**told, rounds=(), notices=(notice,))
    sample = _load(path := folder / _FILES[0])
    times, iters = (
        scaled(taken(sample, key, list, str(path)), 1.0, f"{path} {key}")
        for key in ("times", "iters")
    )
    per_call, calls = _per_call(times, iters, str(path))
    return Recorded(**told, rounds=one_series(TIME, per_call, inner_loop=calls))


def _per_call(times: Floats, iters: Floats, place: str) -> tuple[Floats, int]:
    """Return seconds per call: in linear mode each sample has more calls than the one before."""
    if times.size != iters.size:
        raise InvalidInput(
            f"{place} has {times.size} times and {iters.size} iters, expected one each"
        )
    check_items(iters, iters >= 1.0, "1 call or more", name=f"{place} iters")
    return scaled(times / iters, 1e-9, place), int(iters.min())


def _load(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{path} is a list, expected an object")
    return data
