"""Records that benchrigor saved itself.

As `RunRecord.save` and ``show --json`` write one, and ``--bench-json`` those of a suite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import are_objects
from benchrigor.model import RunRecord, codec

TOOL = "benchrigor"


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    return are_objects([data], "schema", "rounds", "options") or _is_suite(data)


def _is_suite(data: object) -> bool:
    return are_objects([data], "schema", "benchmarks", "comparisons")


def read(data: Any, _: str, place: str) -> Iterator[RunRecord]:
    """Read the record, or those of a suite by their tests: the ids that pytest has for them."""
    if not _is_suite(data):
        yield _record(data, place)
        return
    for index, benchmark in enumerate(data["benchmarks"]):
        here = f"{place} benchmarks[{index}]"
        if not (
            isinstance(benchmark, Mapping) and {"name", "fullname", "record"} <= benchmark.keys()
        ):
            raise InvalidInput(f"{here} has no name, fullname and record, expected all of them")
        versions = {key: data[key] for key in codec.versions() if key in data}
        record = _record({**versions, **benchmark["record"]}, f"{here} record")
        times = record.name.removeprefix(str(record.subject.get("name")))  # "#2" of a test
        yield replace(record, name=f"{benchmark['fullname']}{times}")


def _record(data: Any, place: str) -> RunRecord:
    try:
        return RunRecord.from_dict(data)
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {problem}" for problem in error.problems) from error
