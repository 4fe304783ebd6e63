"""Values in the files of other tools, checked as they are read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Metric, Notice, Round, RoundPlan
from benchrigor.model.run import Provenance
from benchrigor.model.series import LARGEST, Floats, as_series, short
from benchrigor.units import time_in

_WORDS: dict[Any, str] = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}
TIME = Metric(name="time", unit="s")


def are_objects(items: Iterable[Any], *keys: str) -> bool:
    """Return whether all items are JSON objects with these keys."""
    return all(isinstance(item, Mapping) and item.keys() >= set(keys) for item in items)


def check(value: Any, shape: Any, place: str) -> None:
    """Raise InvalidInput with the place of the first value of JSON that is of another type.

    A shape is a type, a list with the shape of all items, or a mapping of keys to the shapes of
    their values; the type ``str`` stands for any key, and "?" ends a key that may be missing.

    >>> check({"runs": [{"times": [1], "name": "a"}]}, {"runs": [{"times": list, "id?": str}]}, "f")
    >>> check({"runs": [{"times": 1}]}, {"runs": [{"times": list}]}, "f")
    Traceback (most recent call last):
    ...
    benchrigor.errors.InvalidInput: f runs[0] times is 1, expected a list
    """
    kind = type(shape) if isinstance(shape, dict | list) else shape
    is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST
    if not (is_number if kind is int else isinstance(value, kind)):
        raise InvalidInput(f"{place} is {short(value)}, expected {_WORDS[kind]}")
    if isinstance(shape, list):
        for index, item in enumerate(value):
            check(item, shape[0], f"{place}[{index}]")
    elif isinstance(shape, dict) and str in shape:
        for key, item in value.items():
            check(item, shape[str], f"{place}[{key!r}]")
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            name = key.removesuffix("?")
            if name == key and name not in value:
                raise InvalidInput(f"{place} has no {name!r}")
            if name == key or value.get(name) is not None:
                check(value[name], inner, f"{place} {name}")


def object_at(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object at a key, or an empty one."""
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def calls(data: Mapping[str, Any], key: str, place: str) -> dict[str, int]:
    """Return the number of calls that a reading averages, as a fact of its round."""
    check(data, {key: int}, place)
    number = data[key]
    if number < 1:
        raise InvalidInput(f"{place} has {number} for {key!r}, expected 1 or more")
    return {"inner_loop": number}


def in_base_unit(unit: str) -> tuple[str, float]:
    """Return the unit in which we keep readings, and the factor that converts to it.

    Times become seconds and rates become rates per second, so that files can be compared. Counts
    per operation become counts. Other units stay as they are.

    >>> in_base_unit("us/op"), in_base_unit("ops/ms"), in_base_unit("B/op"), in_base_unit("points")
    (('s', 1e-06), ('ops/s', 1000.0), ('B', 1.0), ('points', 1.0))
    """
    what, _, per = unit.partition("/")
    if (seconds := _seconds(what)) is not None:
        return "s", seconds
    if (seconds := _seconds(per)) is not None:
        return f"{what}/s", 1.0 / seconds
    return (what if per == "op" else unit), 1.0


def _seconds(unit: str) -> float | None:
    try:
        return time_in("s", f"1{unit}") if unit else None
    except ValueError:
        return None


def scale(values: object, factor: float, place: str) -> Floats:
    """Return readings in another unit, multiplied by its factor."""
    series = as_series(values, name=place)
    return series if factor == 1.0 else as_series(series * factor, name=place)


def rounds_of(rounds: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> tuple[Round, ...]:
    """Return rounds from pairs: the readings by metric, arrays or single numbers, and the facts."""
    made = list[Round]()
    for index, (readings, facts) in enumerate(rounds):
        single = {name: value for name, value in readings.items() if isinstance(value, float)}
        several = {key: some for key, some in readings.items() if key not in single and len(some)}
        made.append(
            Round(
                plan=RoundPlan(index=index),
                elapsed_ns=0,
                unit_readings=several,
                readings=single,
                facts=facts,
            )
        )
    return tuple(made)


def one_series(metric: Metric, values: object, **facts: Any) -> tuple[Round, ...]:
    """Return one round of readings that continue one series."""
    return rounds_of([({metric.name: values}, facts)])


def flat(data: object, prefix: str = "") -> dict[str, str | int | float]:
    """Return nested metadata as one mapping with dotted names; lists become their JSON text.

    >>> flat({"cpu": {"count": 2, "hz": [1, 0]}, "node": "a", "none": None})
    {'cpu.count': 2, 'cpu.hz': '[1, 0]', 'node': 'a'}
    """
    if isinstance(data, Mapping):
        head = f"{prefix}." if prefix else ""
        nested = (flat(value, f"{head}{key}") for key, value in data.items())
        return {key: value for part in nested for key, value in part.items()}
    if data is None or data == "":
        return {}
    return {prefix: data if isinstance(data, str | int | float) else json.dumps(data)}


def provenance_of(
    environment: object, *, cores: object = None, packages: Any = None, **known: Any
) -> Provenance:
    """Return the provenance of a file; facts that the file lacks stay unknown."""
    facts: dict[str, Any] = {
        "environment": flat(environment),
        "cores": cores if isinstance(cores, int) else None,
        "packages": packages or {},
    }
    facts |= {key: str(value) for key, value in known.items() if value not in (None, "")}
    return Provenance(**facts)


def only_summary(summary: Mapping[str, object], cure: str) -> dict[str, Any]:
    """Return no rounds, and a refusal that shows the figures and the command for raw readings."""
    figures = {
        key: value
        for key, value in summary.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    shown = ", ".join(f"{key} {value:.4g}" for key, value in figures.items()) or "names"
    cure = f"To keep the readings, {cure}."
    return no_rounds(f"The file has no raw readings, only {shown}. {cure}", **figures, cure=cure)


def no_rounds(sentence: str, **evidence: Any) -> dict[str, Any]:
    """Return no rounds, and a refusal that says why."""
    notice = Notice.of(Code.NO_RAW_READINGS, **{**evidence, "why_": sentence})
    return {"rounds": (), "notices": (notice,)}


def warn_of_failures(n: int, total: int, what: str, *, counts: bool = True) -> tuple[Notice, ...]:
    """Warn of runs or requests that failed: an error may be faster or slower than an answer."""
    if not 0 < n <= total:
        return ()
    times = "their times count" if counts else "they do not count"
    figures = {"failed": n, "total": total, "share_": n / total}
    return (Notice.of(Code.FAILED_RUNS, what_=what, which_=times, **figures),)
