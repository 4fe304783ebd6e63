"""Which tool wrote a file: recognised by its content, not by its name."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.files import decoded, readable
from benchrigor.formats import (
    asv,
    criterion,
    go,
    google_benchmark,
    hyperfine,
    jmeter,
    jmh,
    json_lines,
    k6,
    pyperf,
    pytest_benchmark,
    saved_records,
    vegeta,
)
from benchrigor.formats.fields import Parsed, loads, object_at, parse_json
from benchrigor.model import Code, Notice, RunRecord
from benchrigor.model.codec import is_there
from benchrigor.model.run import Recorded
from benchrigor.model.text_tables import LastLine, whole_lines
from benchrigor.safe_text import hide_secrets

Result = Recorded | RunRecord

_GZIP = b"\x1f\x8b"
_COMMENTS = re.compile(r"(?:\s*#.*\n)+\s*")
_BEFORE_JSON = re.compile(r"(?:(?![\[{]).*\n){1,20}(?=[\[{])")
_MARK = re.compile(r"\S")
_MOST = 10_000  # benchmarks of a file
_CHOOSE = "choose some by their names (--column, compare --filter), or divide the file"
_HEAD = 1 << 16  # characters in which the data of a tool begin, below a text
_SOME = 1_000  # characters after the first line that show whether there is another line
_DOCUMENTS: tuple[Any, ...] = (
    *(saved_records, pyperf, pytest_benchmark, asv, hyperfine, google_benchmark, jmh),
    *(k6, vegeta, json_lines),
)
_LINES: tuple[Any, ...] = (k6, vegeta, go, json_lines)
_TEXTS: tuple[Any, ...] = (go, k6, jmeter, vegeta, hyperfine)
_FOLDERS: tuple[Any, ...] = (criterion, asv)
_EXPECTED = "sample.json of criterion in a folder 'new', benchmarks.json of asv, or one file"
TOOLS = tuple(dict.fromkeys(tool.TOOL for tool in (*_DOCUMENTS, *_FOLDERS, *_TEXTS, *_LINES)))


def results_in(
    path: str | Path, wanted: Callable[[str], object] | None = None
) -> list[Result] | None:
    """Read the benchmarks of a file or folder; None if no known tool wrote it.

    If there are more than 10,000, read only the names that are ``wanted``.

    Raises
    ------
    InvalidInput
        When it cannot be read, or a tool wrote it and something in it is wrong.
    """
    place, path = str(path), Path(path)
    if is_there(path, Path.is_dir):
        results = [result for tool in _FOLDERS for result in tool.read_folder(path)]
        if not results:
            raise InvalidInput(f"{place} is a folder without results, expected {_EXPECTED}")
        return _with_notices(results, place, wanted)
    try:
        raw = readable(path).read_bytes()
        text = decoded(gzip.decompress(raw) if raw.startswith(_GZIP) else raw)
    except UnicodeDecodeError:
        return None
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(f"{place} cannot be read: {why}") from error
    if (begin := _MARK.search(text)) is None:
        raise InvalidInput(f"{place} is empty, expected readings")
    read = _from_json if begin[0] in "[{" else _from_text
    found, notices = read(text, place)
    if found is None:
        found, notices = _below_a_text(text, place)
    return None if found is None else _with_notices(found, place, wanted, notices)


_Found = tuple[Iterator[Result] | None, tuple[Notice, ...]]


def _below_a_text(text: str, place: str) -> _Found:
    """Read a tool's data below comments, or JSON below other output of a program."""
    for above, read in ((_COMMENTS, _from_text), (_BEFORE_JSON, _from_json)):
        if match := above.match(text[:_HEAD]):
            with suppress(InvalidInput):  # a table of no tool: its reader names the problem
                above_it = "\n" * match[0].count("\n")  # so that errors count all lines
                found, notices = read(above_it + text[match.end() :], place)
                if found is not None:
                    lines = len(match[0].splitlines())
                    return found, (*notices, Notice.of(Code.NOT_READ, lines_=lines))
    return None, ()


def _from_json(text: str, place: str) -> _Found:
    if _are_rows_of_no_tool(text):
        return None, ()
    found = parse_json(text, place)
    if found.lines:
        tool = next((tool for tool in _LINES if tool.are_format(found.data)), None)
        read = tool.read_lines if tool else _documents
        return read(found, place), _notes_of(found.unfinished)
    return _document(found.data, text, place), ()


def _document(data: Any, text: str, place: str) -> Iterator[Result] | None:
    fits = [tool for tool in _DOCUMENTS if tool.is_format(data)]
    if len(fits) > 1:
        tools = " and of ".join(tool.TOOL for tool in fits)
        raise InvalidInput(f"{place} has the keys of {tools}, expected the keys of one tool")
    return fits[0].read(data, text, place) if fits else None


def _documents(found: Parsed, place: str) -> Iterator[Result] | None:
    """Read several documents in one file; InvalidInput if only some are of known tools."""
    places = [f"{place} document {number}" for number in range(1, len(found.data) + 1)]
    pairs = zip(found.data, places, strict=True)
    read = [_document(item, json.dumps(item), at) for item, at in pairs]
    known = [each for each in read if each is not None]
    if known and len(known) < len(read):
        unknown = places[read.index(None)]
        raise InvalidInput(f"{unknown} is of no known tool, expected one like the others")
    return chain.from_iterable(known) if known else None


def _are_rows_of_no_tool(text: str) -> bool:
    """Return whether there are several lines, and the first is JSON that no tool writes."""
    end = text.find("\n")
    with suppress(ValueError, RecursionError):
        first = loads(text[: max(end, 0)])
        is_known = any(tool.are_format([first]) for tool in _LINES)
        is_known = is_known or any(tool.is_format(first) for tool in _DOCUMENTS)
        return not is_known and bool(text[end : end + _SOME].strip())
    return False


def _from_text(text: str, place: str) -> _Found:
    tool = next((tool for tool in _TEXTS if tool.is_text(text.lstrip())), None)
    if tool is None:
        return None, ()
    whole, last = whole_lines(text)
    if not whole:  # one line, of which more could not be used
        return tool.read_text(text, place), ()
    return tool.read_text(whole, place), _notes_of(last)


def _notes_of(last: LastLine | None) -> tuple[Notice, ...]:
    """Say that a last line is cut off, as by a tool that was killed."""
    if last is None:
        return ()
    return (Notice.of(Code.UNFINISHED_LINE, what_=str(last), line=last.number),)


def _with_notices(
    read: Iterable[Result],
    place: str,
    wanted: Callable[[str], object] | None,
    notices: tuple[Notice, ...] = (),
) -> list[Result]:
    """Return the benchmarks of a file with its notices; InvalidInput if none, or too many."""
    rest = iter(read)
    results = list(islice(rest, _MOST + 1))
    if len(results) > _MOST and wanted is not None:
        some = (result for result in chain(results, rest) if wanted(result.name))
        results = list(islice(some, _MOST + 1))
    if not results:
        raise InvalidInput(f"{place} holds no benchmarks, expected one at least")
    if len(results) > _MOST:
        raise InvalidInput(f"{place} holds more than {_MOST:,} benchmarks: {_CHOOSE}")
    return [
        replace(run, notices=(*run.notices, *notices)) if isinstance(run, Recorded) else run
        for run in _told_apart(results)
    ]


def _told_apart(results: Sequence[Result]) -> Iterator[Result]:
    """Yield results with names of their own: with the parameters that differ, else a number."""
    names = [hide_secrets(result.name) for result in results]
    parameters = [object_at(result.subject, "parameters") for result in results]
    first, differ = dict[str, Mapping[str, Any]](), dict[str, set[str]]()
    for name, own in zip(names, parameters, strict=True):
        one = first.setdefault(name, own)
        several = {key for key in {**one, **own} if one.get(key) != own.get(key)}
        differ[name] = differ.get(name, set()) | several
    given, taken, times = set(names), set[str](), Counter[str]()
    for name, own, result in zip(names, parameters, results, strict=True):
        told = ", ".join(f"{key}={own[key]}" for key in own if key in differ[name])
        named = full = f"{name} ({told})" if told else name
        while named in taken or (named != name and named in given):
            times[full] += 1
            named = f"{full} #{times[full] + 1}"
        taken.add(named)
        yield result if named == result.name else replace(result, name=named)
