"""The CSV of JMeter (JTL): a row for each sample, in milliseconds, by its label."""

from __future__ import annotations

from collections.abc import Iterator

from benchrigor.formats.fields import TIME, one_series, scaled
from benchrigor.formats.load_tools.tables import failed, number, rows_in
from benchrigor.model.recorded import Recorded

TOOL = "jmeter"
_COLUMNS = {"elapsed", "label", "success"}


def is_text(text: str) -> bool:
    """Return whether the first line of a text names the columns of JMeter."""
    return set(text.partition("\n")[0].strip().split(",")) >= _COLUMNS


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Read the samples of each label; those that failed count, and a Notice says how many."""
    (_, header), *rows = rows_in(text, place)
    of = {name: header.index(name) for name in _COLUMNS}
    labels: dict[str, tuple[list[float], list[str]]] = {}
    for line, row in rows:
        times, successes = labels.setdefault(row[of["label"]], ([], []))
        times.append(number(row[of["elapsed"]], "elapsed", line, place))
        successes.append(row[of["success"]])
    for label, (times, successes) in labels.items():
        bad = sum(each.strip().lower() != "true" for each in successes)
        yield Recorded(
            name=label or "no label",
            metrics=(TIME,),
            rounds=one_series(TIME, scaled(times, 1e-3, f"{place} {label} elapsed")),
            tool=TOOL,
            notices=failed(bad, len(times), "success is not true"),
        )
