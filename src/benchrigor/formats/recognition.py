"""Which tool wrote a file: recognised by what it holds, whatever its name is."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.files import decoded, readable
from benchrigor.formats import saved_records
from benchrigor.formats.harnesses import hyperfine, pyperf, pytest_benchmark
from benchrigor.formats.json_text import parsed
from benchrigor.model import RunRecord
from benchrigor.model.recorded import Recorded

Result = Recorded | RunRecord

_GZIP = b"\x1f\x8b"
_MOST = 10_000  # benchmarks of a file
_DOCUMENTS: tuple[Any, ...] = (saved_records, pyperf, pytest_benchmark, hyperfine)
TOOLS = tuple(each.TOOL for each in _DOCUMENTS)


def results_in(path: str | Path) -> list[Result] | None:
    """Read the benchmarks of a file or folder; None if no tool that is known wrote it.

    Raises
    ------
    InvalidInput
        When it cannot be read, or a tool wrote it and something in it is wrong.
    """
    place = str(path)
    try:
        raw = readable(path).read_bytes()
        text = decoded(gzip.decompress(raw) if raw.startswith(_GZIP) else raw)
    except UnicodeDecodeError:
        return None
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(f"{place} cannot be read: {why}") from error
    if not text.strip():
        raise InvalidInput(f"{place} is empty, expected readings")
    read = _from_json(text, place) if text.lstrip()[0] in "[{" else None
    return None if read is None else _all_of(read, place)


def _from_json(text: str, place: str) -> Iterator[Result] | None:
    found = parsed(text, place)
    if found.are_lines:
        return None
    fits = [each for each in _DOCUMENTS if each.is_format(found.data)]
    if len(fits) > 1:
        tools = " and of ".join(each.TOOL for each in fits)
        raise InvalidInput(f"{place} has the keys of {tools}, expected those of one tool")
    return fits[0].read(found.data, text, place) if fits else None


def _all_of(read: Iterable[Result], place: str) -> list[Result]:
    """Return the benchmarks of a file, if there are any, and not too many."""
    results = list(islice(read, _MOST + 1))
    if not results:
        raise InvalidInput(f"{place} holds no benchmarks, expected one at least")
    if len(results) > _MOST:
        raise InvalidInput(f"{place} holds more than {_MOST:,} benchmarks: divide the file")
    return results
