"""What the verbs say of stored files, as data: without sentences, labels and what a machine is.

    PYTHONPATH=tests/golden python tests/stored/said.py

adds the cases that have no file in ``said`` yet. A file that is there stays: later versions say of
files of this one what it said. What they say besides is in ``said_since.json``.
"""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click.testing
import numpy as np
from fence.plain import plain

import benchrigor as br
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock

HERE = Path(__file__).parent
FILES, SAID = HERE / "method_5", HERE / "said"
KILLED = "528fe831"
SINCE = HERE / "said_since.json"
_LABELS = {"headline", "label", "options", "started_at", "name"}
_SINCE = {"selection", "source"}  # what is said since the files of ``said`` are there
_A_SENTENCE = 3  # words

_RUNS = {
    "restarted": "294973a2",
    "continuous": "8f406f58",
    "p95": "824b8b01",
    "command": "069410de",
    "picked": "cd9973cf",
    "amounts": "095491bb",
    "pieces": "9ac47a5e",
    "rotation_once": "818b8fe5",
    "rotation_twice": "1560ba3c",
    "pair_old": "76bdb629",
    "pair_new": "460b32ef",
    "fresh_old": "9d4143e8",
    "fresh_new": "3bdc31c6",
    "commands_old": "f651b57d",
    "commands_new": "e511b4a2",
    "same_old": "0622293f",
    "same_new": "4fa93799",
    "of_three_5": "00e134c6",
    "of_three_6": "e98ee177",
    "of_three_8": "41ce9388",
    "statement": "96eed29d",
    "killed": KILLED,
    "peak_cut": "46ce6d00",
    "peak_found": "20a4f42a",
    "map": "8b821ae5",
    "map_full": "d2cb728f",
    "choice": "c437ec93",
}
_EXPORTED = ["restarted", "continuous", "p95", "picked", "amounts", "killed", "peak_found", "map"]
_PAIRS = {
    "functions": "76bdb629 460b32ef",
    "interpreters": "9d4143e8 3bdc31c6",
    "commands": "f651b57d e511b4a2",
    "the_same_function": "0622293f 4fa93799",
}
_RECORDS = ("told", "rate", "refused", "measured", "many_once", "many_twice")

COMMANDS: Mapping[str, str] = {
    "list": "list",
    "list_some": "list parse",
    **{f"show_{name}": f"show {run}" for name, run in _RUNS.items()},
    **{f"compare_{name}": f"compare {pair}" for name, pair in _PAIRS.items()},
    **{f"compare_{name}_paired": f"compare --paired {pair}" for name, pair in _PAIRS.items()},
    "compare_medians": "compare --statistic median --margin 5% 8f406f58 9ac47a5e",
    "compare_invocations": "compare 294973a2 818b8fe5",
    "compare_speeds": "compare 095491bb 069410de",
    "compare_three": "compare 00e134c6 e98ee177 41ce9388",
    "compare_records": "compare many_once.json many_twice.json",
    "compare_refused": "compare told.json refused.json",
    **{f"analyze_{name}": f"analyze {name}.json" for name in _RECORDS},
    **{f"export_{name}": f"export {_RUNS[name]} -o {{out}}" for name in _EXPORTED},
    **{f"export_record_{name}": f"export {name}.json -o {{out}}" for name in _RECORDS},
    "rate": "rate stage.csv",
    "rate_quantile": "rate stage.csv --method quantile",
    "interference": "interference loop.csv",
    "interference_of_a_run": "interference 8f406f58",
    "track_record": "track-record",
    "map": "map server.toml --dry-run",
    "map_full": "map pool.toml --dry-run",
}


def say(name: str, scratch: Path) -> Any:
    """Return what a command says of the files, copied to a folder; what it writes counts too."""
    from benchrigor.cli import main  # noqa: PLC0415

    shutil.copytree(FILES, scratch, dirs_exist_ok=True)
    words = COMMANDS[name].split()
    paths = {path.name: str(path) for path in FILES.iterdir()}
    argv = [paths.get(word, word.format(out=scratch / "out")) for word in words]
    if "--dry-run" not in words and words[0] not in {"analyze", "rate"}:
        argv += ["--store", str(scratch / "runs.sqlite")]
    done = click.testing.CliRunner().invoke(main, [*argv, "--json"])
    told = json.loads(done.stdout) if done.stdout else None
    files = {path.name: _columns(path) for path in sorted((scratch / "out").glob("*.csv"))}
    return data({"exit_code": done.exit_code, "told": None if files else told, "files": files})


def apart(said: Any) -> tuple[Any, list[Any]]:
    """Return what was said from the beginning, and what is said since then, in order."""
    if isinstance(said, list):
        parts = [apart(each) for each in said]
        return [first for first, _ in parts], [each for _, since in parts for each in since]
    if not isinstance(said, dict):
        return said, []
    parts = {key: apart(value) for key, value in said.items() if key not in _SINCE}
    since = [_named(value) for key, value in said.items() if key in _SINCE and value]
    since += [each for _, later in parts.values() for each in later]
    return {key: first for key, (first, _) in parts.items()}, since


def _named(value: Any) -> Any:
    """Return a value, of a path the name of the file."""
    return Path(value).name if isinstance(value, str) else value


def resume(scratch: Path) -> Any:
    """Return what the killed run finds when it goes on with synthetic readings."""
    shutil.copy(FILES / "runs.sqlite", scratch / "runs.sqlite")
    clock, source = FakeClock(), np.random.default_rng(52)
    with Journal(scratch / "runs.sqlite") as journal:
        options = br.Options(target=0.05, rounds="restarted", budget_s=60.0)
        session = br.Session.resume(journal, KILLED, options=options, clock=clock)
        while (plan := session.ask()) is not None:
            elapsed_ns = round(source.normal(20e6, 1e6))
            clock.advance(elapsed_ns)
            told = br.Round(plan=plan, elapsed_ns=elapsed_ns, readings={"time": elapsed_ns / 1e9})
            session.tell(told)
        return data(json.loads(json.dumps(session.result().to_dict())))


def data(told: Any) -> Any:
    """Return plain data without labels and sentences; options where they are not the default."""
    return _without_words(plain(told))


def _without_words(item: Any) -> Any:
    if isinstance(item, dict):
        return {
            key: _without_words(_some_of(value) if key == "rounds" else value)
            for key, value in item.items()
            if key not in _LABELS and not (isinstance(value, str) and _is_text(value))
        }
    return [_without_words(each) for each in item] if isinstance(item, list) else item


def _some_of(rounds: Any) -> Any:
    """Return the number of rounds, and the last one."""
    if not isinstance(rounds, list):
        return rounds
    return {"n": len(rounds), "last": rounds[-1:]}


def _is_text(value: str) -> bool:
    return len(value.split()) >= _A_SENTENCE


def _columns(path: Path) -> dict[str, Any]:
    """Return the columns of a CSV file: numbers, or how often each text stands in it."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {
        name: _numbers(column) or Counter(text for text in column if not _is_text(text))
        for name, column in zip(header, zip(*rows, strict=True), strict=False)
    }


def _numbers(column: tuple[str, ...]) -> list[float] | None:
    try:
        return [float(text) for text in column]
    except ValueError:
        return None


def _add_missing() -> None:
    SAID.mkdir(exist_ok=True)
    known = json.loads(SINCE.read_text(encoding="utf-8")) if SINCE.exists() else {}
    for name in [*COMMANDS, "resume"]:
        path = SAID / f"{name}.json"
        if path.exists() and name in known:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            found = resume(Path(scratch)) if name == "resume" else say(name, Path(scratch))
        first, known[name] = apart(found)
        if not path.exists():
            path.write_text(json.dumps(first) + "\n", encoding="utf-8")
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(known[name])}" for name in known)
    SINCE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    _add_missing()
