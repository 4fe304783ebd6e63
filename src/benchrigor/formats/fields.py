"""Values in the files of other tools, checked as they are read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Metric, Notice, Round, RoundPlan
from benchrigor.model.codec import value_at
from benchrigor.model.run import Provenance, Recorded
from benchrigor.model.series import LARGEST, Floats, as_series, short
from benchrigor.model.text_tables import (
    Kinds,
    Labels,
    LastLine,
    Numbers,
    Part,
    Problems,
    Table,
    TextTable,
    mark_by,
)
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


_MOST_DIGITS = 300
_HUGE = re.compile(rf"\d{{{_MOST_DIGITS}}}")
_SPACE = re.compile(r"\s*")
_FEWEST_WHOLE = 2  # lines before one that is unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The data of a JSON text; ``unfinished`` is a last line cut off.

    If it is of several documents, ``lines`` are the numbers of those in which they begin.
    """

    data: Any
    lines: Sequence[int] = ()
    unfinished: LastLine | None = None

    def some(self, indices: Sequence[int]) -> Parsed:
        """Return some of the documents."""
        lines, data = ([every[index] for index in indices] for every in (self.lines, self.data))
        return replace(self, lines=lines, data=data)

    def table(self, name: str, keys: Sequence[str]) -> Table:
        """Return the values of objects at some paths, as columns."""
        columns = {key: [_value_at(item, key) for item in self.data] for key in keys}
        rows = self.lines or range(len(self.data))
        return Table(name=name, columns=columns, rows=rows, are_items=not self.lines)


def _value_at(item: Any, path: str) -> Any:
    with suppress(LookupError):
        return value_at(item, path)
    return None


def loads(text: str) -> Any:
    """Parse JSON; whole numbers that no float can hold are infinite."""
    return json.loads(text, parse_int=_whole if _HUGE.search(text) else None)


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


def parse_json(text: str, name: str) -> Parsed:
    """Parse JSON, or documents that stand one after another; InvalidInput if it is neither."""
    try:
        return Parsed(data=loads(text))
    except (ValueError, RecursionError) as whole:
        with suppress(ValueError, RecursionError):
            return _json_documents(text)
        raise InvalidInput(f"{name} is not JSON: {whole}") from whole


def _json_documents(text: str) -> Parsed:
    """Return documents as a line each, or as `cat` joins files, without an unfinished last line."""
    decoder = json.JSONDecoder(parse_int=_whole if _HUGE.search(text) else None)
    at, items, before = _below_space(text, 0), list[Any](), 0
    lines = list[int]()
    while at < len(text):
        lines.append((lines[-1] if lines else 1) + text.count("\n", before, at))
        try:
            item, end = decoder.raw_decode(text, at)
        except ValueError:
            if "\n" in text[at:] or len(items) < _FEWEST_WHOLE:
                raise
            unfinished = LastLine(number=lines.pop(), text=text[at:])
            return Parsed(data=items, lines=lines, unfinished=unfinished)
        items.append(item)
        at, before = _below_space(text, end), at
    return Parsed(data=items, lines=lines)


def _below_space(text: str, start: int) -> int:
    return _SPACE.match(text, start).end()  # type: ignore[union-attr]  # it may be empty


def load_object(path: Path) -> Mapping[str, Any]:
    """Return the object in a file of a folder; InvalidInput if it holds anything else."""
    try:
        data = loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(data, Mapping):
        found = "a list" if isinstance(data, list) else short(data)
        raise InvalidInput(f"{path} is {found}, expected an object")
    return data


Request = tuple[str, float, str]  # name, time, error; none if it is empty
Knows = Callable[[Sequence[str]], object]

A_TIME = Numbers(least=0.0, most=LARGEST)
A_NUMBER = Numbers(least=-LARGEST, most=LARGEST)
_HEAD = 10_000  # characters in which the first line of a tool ends


def begins_with(text: str, knows: Knows) -> bool:
    """Return whether a tool knows the cells of the first line of a text, whatever parts them."""
    return mark_by(text[:_HEAD].partition("\n")[0], knows) is not None


def parts_in(
    source: str | Parsed,
    place: str,
    kinds: Kinds | None = None,
    *,
    knows: Knows = bool,
    names: Sequence[str] = (),
    fewest: int = 0,
) -> Iterator[Part]:
    """Yield the rows of CSV, or of objects; InvalidInput lists all cells that do not fit.

    Without ``kinds`` all columns of a CSV are texts. ``names`` are those of one without a header,
    and it has the ``fewest`` of them at least.
    """
    if isinstance(source, Parsed):
        part = Part(kinds or {}, partial(source.table, place, list(kinds or ())))
        part.check(problems := Problems())
        problems.refuse()
        return iter((part,))
    text = source if source.endswith("\n") else f"{source}\n"
    lines = (line[0] for line in re.finditer(r".*\n", text))
    table = TextTable(lines, name=place, knows=knows, names=names, spans_lines=True)
    if 0 < (n := len(table.header)) < fewest:
        line = table.line + 1
        raise InvalidInput(f"{place} line {line} has {n} cells, expected {fewest} or more")
    times = Counter(table.header)
    if twice := [name for name in times if times[name] > 1]:
        line = table.head[0]
        raise InvalidInput(f"{place} line {line} names {twice[0]!r} twice, expected it once")
    return table.parts({name: Labels() for name in times} if kinds is None else kinds)


def rows_in(
    source: str | Parsed, place: str, kinds: Kinds, **how: Any
) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of these columns row by row, of `parts_in`."""
    return chain.from_iterable(part.rows() for part in parts_in(source, place, kinds, **how))


def by_name(
    requests: Iterable[Request], tool: str, *, seconds: float, place: str
) -> Iterator[Recorded]:
    """Return a series of times per name; failed requests count, and a Notice says so."""
    grouped: dict[str, list[Request]] = {}
    for request in requests:
        grouped.setdefault(request[0], []).append(request)
    for name, several in grouped.items():
        errors = [error for _, _, error in several if error]
        times = scale([time for _, time, _ in several], seconds, f"{place} {name}")
        yield Recorded(
            name=name,
            metrics=(TIME,),
            rounds=one_series(TIME, times),
            tool=tool,
            notices=warn_of_failures(
                len(errors), len(several), f"for example by {short(errors[0])}" if errors else ""
            ),
        )
