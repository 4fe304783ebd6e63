"""Values in what other tools wrote, checked where they are taken."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Floats, Metric, Notice, Provenance, Round, RoundPlan, as_series
from benchrigor.model.series import short
from benchrigor.units import time_in

T = TypeVar("T")

_WORDS = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}
TIME = Metric(name="time", unit="s")


def are_objects(items: Iterable[Any], *keys: str) -> bool:
    """Return whether all items are JSON objects with these keys."""
    return all(isinstance(each, Mapping) and each.keys() >= set(keys) for each in items)


def taken(data: object, key: str, kind: type[T], place: str) -> T:
    """Return the value of a key; InvalidInput unless there is one of this kind."""
    value = data.get(key) if isinstance(data, Mapping) else None
    if isinstance(value, kind) and not isinstance(value, bool):
        return value
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{place} is {short(data)}, expected an object with {key!r}")
    found = f"has {short(value)} for {key!r}" if key in data else f"has no {key!r}"
    raise InvalidInput(f"{place} {found}, expected {_WORDS[kind]}")


def object_at(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object of a key, an empty one if there is none."""
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def calls(data: Mapping[str, Any], key: str, place: str) -> dict[str, int]:
    """Return the fact how many calls a reading averages."""
    number = taken(data, key, int, place)
    if number < 1:
        raise InvalidInput(f"{place} has {number} for {key!r}, expected 1 or more")
    return {"inner_loop": number}


def in_base_unit(unit: str) -> tuple[str, float]:
    """Return the unit in which readings are kept, and the factor that leads to it.

    Times become seconds and rates become rates per second, so that files can be compared; what is
    counted per operation is counted. Other units stay as they are.

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


def scaled(values: object, factor: float, place: str) -> Floats:
    """Return readings in another unit."""
    series = as_series(values, name=place)
    return series if factor == 1.0 else as_series(series * factor, name=place)


def rounds_of(rounds: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> tuple[Round, ...]:
    """Return rounds of their readings by metric, several or a single one, and of their facts."""
    made = list[Round]()
    for index, (held, facts) in enumerate(rounds):
        single = {name: each for name, each in held.items() if isinstance(each, float)}
        made.append(
            Round(
                plan=RoundPlan(index=index),
                elapsed_ns=0,
                unit_readings={
                    name: each for name, each in held.items() if name not in single and len(each)
                },
                readings=single,
                facts=facts,
            )
        )
    return tuple(made)


def one_series(metric: Metric, values: object, **facts: Any) -> tuple[Round, ...]:
    """Return readings that continue one series as a round."""
    return rounds_of([({metric.name: values}, facts)])


def flat(data: object, prefix: str = "") -> dict[str, str | int | float]:
    """Return nested metadata as one mapping with dotted names; lists become their JSON text.

    >>> flat({"cpu": {"count": 2, "hz": [1, 0]}, "node": "a", "none": None})
    {'cpu.count': 2, 'cpu.hz': '[1, 0]', 'node': 'a'}
    """
    if isinstance(data, Mapping):
        head = f"{prefix}." if prefix else ""
        nested = (flat(value, f"{head}{key}") for key, value in data.items())
        return {key: value for each in nested for key, value in each.items()}
    if data is None or data == "":
        return {}
    return {prefix: data if isinstance(data, str | int | float) else json.dumps(data)}


def provenance_of(environment: object, **known: Any) -> Provenance:
    """Return where a file was written; what it does not tell stays unknown."""
    told = {key: value for key, value in known.items() if value not in (None, "")}
    return Provenance(environment=flat(environment), **told)


def only_summary(held: Mapping[str, object], cure: str) -> dict[str, Any]:
    """Return that there are no rounds but figures, and what to run to have raw readings."""
    figures = {
        key: value
        for key, value in held.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    shown = ", ".join(f"{key} {value:.4g}" for key, value in figures.items()) or "names"
    cure = f"To keep the readings, {cure}."
    return no_rounds(f"The file has no raw readings, only {shown}. {cure}", **figures, cure=cure)


def no_rounds(sentence: str, **evidence: Any) -> dict[str, Any]:
    """Return that there are no rounds, and why."""
    notice = Notice.refusal(Code.NO_RAW_READINGS, sentence, **evidence)
    return {"rounds": (), "notices": (notice,)}


def failed(n: int, total: int, what: str) -> tuple[Notice, ...]:
    """Warn of runs or requests that failed: an error may be faster or slower than an answer."""
    sentence = f"{n:,} of {total:,} failed ({what}), and their times count."
    notice = Notice.warning(Code.FAILED_RUNS, sentence, failed=n, total=total)
    return (notice,) if n else ()
