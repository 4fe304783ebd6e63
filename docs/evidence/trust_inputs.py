"""Whether any input makes a traceback: texts, files, records, arguments and requests at random.

Each input goes to a parser, to a verb that runs no command, to the statistics or to an agent. What
may come of it is a result, an error of benchrigor's own, or an exit code of its own. All else is a
fault: another exception, a warning, an answer 500 of an agent, or more than ten seconds.

    python docs/evidence/trust_inputs.py [COUNT [SEED]]

Bar: no fault in 10^5 inputs. An input is made anew by its seed and its number alone.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import click
import click.testing
import numpy as np
from coverage_tables import Setting, heading, row
from trust_trials import done_trials

import benchrigor as br
from benchrigor import stats
from benchrigor.cli import main as command_line
from benchrigor.cli.amounts import amounts
from benchrigor.cli.exits import ExitCode
from benchrigor.cli.options import Duration, TimeLimit, share, trim
from benchrigor.cli.verb_help import VERBS
from benchrigor.errors import BenchrigorError
from benchrigor.machine import read_thresholds
from benchrigor.model.metric import describe_metric, quantile_named
from benchrigor.report import explain, render
from benchrigor.workloads.processes.picking import OutputSearch, Pick

LONGEST_S = 10.0
BATCH = 1_000
Fault = tuple[str, str]
Input = tuple[str, Callable[[], object]]

NUMBERS = ("0", "1", "2", "10", "0.5", "1e-300", "1e300", "1e154", "-1", "3.25", "1e-9", "0.1")
STRANGE = (
    *("", " ", "nan", "inf", "-inf", "1e400", "-1e400", "1e999%", "9" * 400, "-" + "9" * 5000),
    *("0." + "0" * 400 + "1", "1_000", "0x10", "1,5", "1.234,5", "٣", "½", "1e", "e5", "+5", "--"),
    *("1/0", "0/0", "3/4", "998/1000", "1/" + "9" * 400, "None", "null", "true", "NaN", "Infinity"),
    *("%", "5%", "5%%", "±2%", "100%", "2%", "1:2", "1:2:3", ":", "10%:5%", "auto", "none", ","),
    *("\x00", "\udcff", "\ud800", "\u2028", "\x1b[31m", "\n", "\r", "\t", "\ufeff", "µs", "é"),
    *("s", "ms", "/s", "B", "B/s", "req/s", "req/s,harmonic", "1", "lower", "share", "time", "µ"),
    *("1h", "1m30s", "5 ms", "1e400s", "1e-400s", "100", "0s", "p50", "p0", "p100", "p1e400"),
    *("mean", "p99", "median", "p" + "9" * 400, "{", "}", "{n}", "'", '"', "\\", "(", "(?P<", "["),
    *("*", "#", "0-3", "3-0", "0,1", "0-999999999999", "-", "a", "x" * 3000, "e" * 300),
)
PICKS = ("x=regex:(.+)", "x:ms=column:0", "x=json:a.b", "x:share=regex:([0-9/]+)", "x=column:-1")
# Verbs that measure get a program that is not there, or a statement that raises.
ABSENT = {
    "run": ("no-such-program",),
    "ab": ("no-such-program", "no-such-program 2"),
    "commands": ("no-such-program", "no-such-program {n}"),
    "peak": ("--p95", "50ms", "--", "no-such-program", "{load}"),
    "timeit": ("-s", "1/0", "pass"),
    "resume": ("no-such-run",),
    "watch": ("--once", "127.0.0.1:9", "no-such-host:x"),
}
LEFT_OUT = {"doctor", "agent"}  # these look at the machine for seconds, or serve
WAITING = {"--over", "--watch", "--build", "--rev"}  # these run programs, or wait


class _TooSlowError(BaseException):
    """An input took longer than it may."""


def text(rng: random.Random) -> str:
    """Make a text that looks like what is expected, is strange, or both."""
    parts = [rng.choice(rng.choice((NUMBERS, STRANGE))) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    whole = rng.choice(("", "", ":", "=", ",", " ", "e", "%")).join(parts)
    if whole and rng.random() < 0.2:
        place = rng.randrange(len(whole))
        whole = (
            whole[:place]
            + chr(rng.choice((0, 37, 45, 46, 58, 233, 0x202E, 0xDCFF)))
            + whole[place:]
        )
    return whole


def number(rng: random.Random) -> float:
    """Make a number, of any size that a float has."""
    if rng.random() < 0.1:
        return rng.choice((0.0, float("nan"), float("inf"), -1.0, 5e-324, 1.7e308, 1e154, -1e154))
    exponent = rng.choice((0.0, 0.0, 0.0, rng.uniform(-320.0, 308.0)))
    sign = rng.choice((1.0, 1.0, 1.0, -1.0))
    return sign * rng.uniform(0.5, 2.0) * float(10.0**exponent)


def document(rng: random.Random, depth: int = 0) -> Any:
    """Make what JSON can hold."""
    kind = rng.random()
    if depth < 4 and kind < 0.3:
        return [document(rng, depth + 1) for _ in range(rng.randrange(6))]
    if depth < 4 and kind < 0.5:
        return {text(rng)[:40]: document(rng, depth + 1) for _ in range(rng.randrange(4))}
    return rng.choice((None, True, False, text(rng), number(rng), rng.randrange(99), 10**400, -1))


def in_json(rng: random.Random, of: Any) -> str:
    """Write a document as JSON, now and then damaged or nested deeply."""
    with suppress(ValueError):  # Python writes no whole number of thousands of digits
        written = json.dumps(of)
        chance = rng.random()
        if chance < 0.1:
            return written.replace(
                "1", rng.choice(("1e999", "9" * 400, "9" * 5000, "-0", "null")), 1
            )
        if chance < 0.15:
            return written[: rng.randrange(len(written) + 1)]
        if chance < 0.2:
            return rng.choice(("[", '{"a":', "[[1],")) * rng.choice((10, 2_000, 100_000)) + written
        return written
    return "[1]"


def table(rng: random.Random) -> str:
    """Write rows of cells, now and then of strange ones."""
    if rng.random() < 0.1:
        return rng.choice(
            (",", ",,", ";", "\t", '"', '""', "\n", ",\n1,", '"a\n', "\ufeff", "#", "0\n")
        )
    mark, width = rng.choice(",,,; \t"), rng.choice((1, 1, 2, 3))
    strange = rng.choice((0.0, 0.0, 0.02, 0.5))
    header = [mark.join(text(rng) if rng.random() < strange else f"c{n}" for n in range(width))]
    lines = header * rng.randrange(2)
    for _ in range(rng.choice((1, 2, 3, 12, 60))):
        cells = [
            text(rng) if rng.random() < strange else f"{number(rng):.6g}" for _ in range(width)
        ]
        lines.append(mark.join(cells))
    return rng.choice(("\n", "\n", "\r\n", "\r")).join(lines)


def queue(rng: random.Random) -> str:
    """Write a recording of a queue, or the profile of a program."""
    columns = rng.sample(
        (
            "period_s",
            "items",
            "blocked_s",
            "blocked",
            "end",
            "bytes",
            "cpu_s",
            "duration_s",
            "label",
        ),
        rng.randrange(1, 6),
    )
    comment = f"# {rng.choice(('counters', 'servers', 'unit', 'program'))}: {text(rng)}\n"
    rows = [",".join(columns)]
    for _ in range(rng.choice((1, 5, 60))):
        cells = [rng.choice((f"{number(rng):.4g}", "3", "0.1", text(rng))) for _ in columns]
        rows += [",".join(cells)]
    return comment * rng.randrange(2) + "\n".join(rows)


@cache
def record() -> dict[str, Any]:
    """Return a record as plain data, whose values are changed at random."""
    session = br.Session(br.Options(budget_readings=200), seed=1, name="synthetic")
    rng = np.random.default_rng(1)
    while (plan := session.ask()) is not None:
        readings = {"time": rng.normal(1.0, 0.1, min(plan.readings, 50))}
        session.tell(br.Round(plan=plan, elapsed_ns=10**9, unit_readings=readings))
    return session.result().to_dict()


def changed_record(rng: random.Random) -> Any:
    """Return a record in which some value is another one, or missing."""
    whole = json.loads(json.dumps(record()))
    for _ in range(rng.choice((1, 1, 2))):
        place: Any = whole
        while True:
            keys = [*place] if isinstance(place, dict) else [*range(len(place))]
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.9:
                place = place[key]
                continue
            if rng.random() < 0.15:
                del place[key]
            else:
                place[key] = rng.choice((document(rng, 3), number(rng), [], {}, "", 10**400, None))
            break
    return whole


def encoded(written: str) -> bytes:
    """Return bytes, some of which are not UTF-8."""
    return written.encode("utf-8", "replace" if "\ud800" in written else "surrogateescape")


def of_texts(rng: random.Random) -> Input:
    """Give a text to a parser of options."""
    parsers: dict[str, Callable[[str], object]] = {
        "share": share,
        "trim": trim,
        "duration": lambda typed: Duration(bare_s=None).convert(typed, None, None),
        "time limit": lambda typed: TimeLimit().convert(typed, None, None),
        "amounts": amounts,
        "statistic": quantile_named,
        "metric": lambda typed: describe_metric("x", typed),
        "pick": Pick.parse,
        "thresholds": lambda typed: read_thresholds(f"[hot]\nabove = {typed}\n"),
    }
    name, typed = rng.choice([*parsers]), text(rng)
    return f"{name} {typed!a}", lambda: parsers[name](typed)


def of_output(rng: random.Random) -> Input:
    """Search what a command may have printed for readings."""
    typed = rng.choice((*PICKS, f"x={rng.choice(('regex', 'column', 'json'))}:{text(rng)}"))
    lines = rng.choice((table(rng), in_json(rng, {"a": {"b": document(rng)}}), text(rng)))

    def search() -> None:
        found = OutputSearch([Pick.parse(typed)])
        found.feed(encoded(lines))
        found.finish()
        found.check()

    return f"output {typed!a} {lines!a}", search


def of_statistics(rng: random.Random) -> Input:
    """Give numbers of any size to the statistics."""
    size = rng.choice((0, 1, 2, 3, 8, 40, 80))
    series = [[number(rng) for _ in range(size)] for _ in range(2)]
    if rng.random() < 0.5:  # of one size each, far apart
        scales = [rng.choice((1e-300, 1e-150, 1e-9, 1.0, 1e150)) for _ in series]
        series = [[scale * rng.uniform(0.5, 1.5) for _ in range(size)] for scale in scales]
    first, second = series
    calls: dict[str, Callable[[], object]] = {
        "mean": lambda: stats.estimate_mean(first),
        "trimmed": lambda: stats.estimate_mean(first, trim=True),
        "invocations": lambda: stats.estimate_invocations(series),
        "quantile": lambda: stats.estimate_quantile(first, 0.9),
        "compare": lambda: str(stats.compare(first, second)),
        "paired": lambda: str(stats.compare(first, second, paired=True)),
        "phases": lambda: stats.find_stable_phase(first),
        "changes": lambda: stats.detect_changes(first),
        "line": lambda: stats.fit_wps(first, second),
        "power": lambda: str(stats.required_readings(stats.estimate_mean(first), 0.01)),
    }
    name = rng.choice([*calls])
    return f"statistics {name} {first} {second}", calls[name]


def of_records(rng: random.Random) -> Input:
    """Read a record that is damaged, and report it."""
    data = changed_record(rng)

    written = in_json(rng, data)

    def report() -> None:
        Path("record").write_bytes(encoded(written))
        read = br.RunRecord.load("record")
        str(read)
        render(read)
        explain(read)

    return f"record {written!a}", report


def of_verbs(rng: random.Random) -> Input:
    """Call a verb with files and options at random, of which many make sense."""
    name = rng.choice([each for each in VERBS if each not in LEFT_OUT])
    verb = command_line.get_command(click.Context(command_line), name)
    assert verb is not None
    contents = [
        rng.choice((table, queue, lambda own: in_json(own, document(own))))(rng) for _ in range(3)
    ]
    if rng.random() < 0.3:
        contents[0] = in_json(rng, changed_record(rng))
    words: list[str] = [name]
    options = [
        each
        for each in verb.params
        if isinstance(each, click.Option) and not WAITING & {*each.opts}
    ]
    for option in rng.sample(options, min(len(options), rng.choice((0, 0, 1, 1, 2, 4)))):
        words.append(rng.choice(option.opts))
        values = () if option.is_flag else range(option.nargs)
        choices = getattr(option.type, "choices", ())
        words += [
            rng.choice(
                [*choices] if choices and rng.random() < 0.8 else [text(rng), "0", "c0", "2%"]
            )
            for _ in values
        ]
    files = [rng.choice(("file0", "file1", "file2")) for _ in range(rng.choice((1, 1, 2, 3)))]
    words += ABSENT.get(name, files if rng.random() < 0.95 else (text(rng),))
    # No word of a process has NUL or half a character.
    words = [each.lstrip("/").replace("\x00", "").replace("\ud800", "") for each in words]

    def call() -> None:
        for number, content in enumerate(contents):
            data = content.encode(
                "utf-8", "surrogateescape" if "\ud800" not in content else "replace"
            )
            Path(f"file{number}").write_bytes(data)
        ran = click.testing.CliRunner().invoke(command_line, words)
        if ran.exception is not None and not isinstance(ran.exception, SystemExit):
            raise ran.exception
        if ran.exit_code not in [*ExitCode]:
            raise AssertionError(f"exit code {ran.exit_code}: {ran.output}")

    return f"verb {words!a} {contents!a}", call


@cache
def agent() -> Any:
    """Return an agent that serves as long as the process."""
    from benchrigor.instrument import Agent  # noqa: PLC0415  # other inputs do without it

    served = Agent(0)
    served.__enter__()
    return served


def of_requests(rng: random.Random) -> Input:
    """Ask an agent for something that does not make sense."""
    paths = (
        "status",
        "health",
        "probes",
        "alarms",
        "config",
        "metrics",
        "capabilities",
        "report",
        "x",
    )
    safe = text(rng).encode("utf-8", "replace").hex(" ").replace(" ", "%")
    path = (
        f"/{rng.choice(paths)}{rng.choice(('', f'?cursor=%{safe}', f'?echo=%{safe}', f'/%{safe}'))}"
    )
    method = rng.choice(("GET", "GET", "PUT", "POST", "DELETE", "HEAD"))
    body = (
        in_json(rng, document(rng)).encode("utf-8", "replace")
        if method in ("PUT", "POST")
        else None
    )
    headers = {"Content-Type": rng.choice(("application/json", "text/plain; charset=x", ""))}

    def ask() -> None:
        host, port = agent().url.removeprefix("http://").split(":")
        connection = HTTPConnection(host, int(port), timeout=LONGEST_S)
        try:
            connection.request(method, path[:4000], body, headers)
            answer = connection.getresponse()
            if answer.status >= 500:
                raise AssertionError(f"{answer.status}: {answer.read()!r}")
        except (HTTPException, OSError) as error:
            raise AssertionError(f"no answer: {error!r}") from error
        finally:
            connection.close()

    return f"request {method} {path} {body!r} {headers}", ask


# Parsers of texts are quick, verbs take a hundred times as long.
KINDS = {of_texts: 12, of_output: 6, of_statistics: 5, of_records: 2, of_verbs: 5}
REQUESTS = 0.005  # share: an agent answers so many a second and no more


def fault_of(seed: int, index: int) -> Fault | None:
    """Make an input and use it; return it with a traceback where something else came of it."""
    rng = random.Random(f"{seed}:{index}")
    make = of_requests if rng.random() < REQUESTS else rng.choices([*KINDS], [*KINDS.values()])[0]
    described, call = make(rng)
    try:
        with within(LONGEST_S), warnings.catch_warnings():
            warnings.simplefilter("error")
            call()
    except (BenchrigorError, click.ClickException):
        return None
    except (Exception, _TooSlowError):  # noqa: BLE001 - what is looked for
        return described, traceback.format_exc()
    return None


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise where what is done takes longer."""

    def end(*_: object) -> None:
        raise _TooSlowError(f"longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def fuzz(seed: int, count: int) -> list[Fault]:
    """Use so many inputs of a seed, in a folder of their own; return the faults."""
    here, store = Path.cwd(), os.environ.get("BENCHRIGOR_STORE")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["BENCHRIGOR_STORE"] = "runs.sqlite"
        try:
            return [fault for index in range(count) if (fault := fault_of(seed, index))]
        finally:
            os.chdir(here)
            os.environ.pop("BENCHRIGOR_STORE")
            if store is not None:
                os.environ["BENCHRIGOR_STORE"] = store


def inputs(setting: Setting) -> None:
    """Print how many inputs made a fault; each batch of them has a process of its own."""
    count = 1_500 if setting.quick else setting.repetitions or 100_000
    batch = count // 3 if setting.quick else BATCH

    def run(name: str) -> dict[str, Any]:
        argv = [sys.executable, __file__, str(batch), str(setting.seed + int(name))]
        printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        found = re.search(r"in \d+ s: (\d+) faults$", printed.strip())
        return {"faults": int(found[1]) if found else batch, "why": printed}

    found = done_trials(setting, "inputs", map(str, range(-(-count // batch))), run)
    faults = sum(trial["faults"] for trial in found.values())
    heading(["inputs", "faults"])
    row(f"{batch * len(found):,}", faults, setting.verdict("inputs", not faults))
    for trial in found.values():
        if trial["faults"]:
            print(trial["why"])


def main() -> None:
    """Print how many inputs of successive seeds made how many faults, and each fault once."""
    count, seed = (int(each) for each in (sys.argv[1:] + ["100000", "1"][len(sys.argv) - 1 :]))
    begun, seen, number = time.monotonic(), set[str](), 0
    for batch in range(-(-count // BATCH)):
        for described, told in fuzz(seed + batch, min(BATCH, count - batch * BATCH)):
            number += 1
            cause = "".join(told.splitlines()[-3:])
            if cause not in seen:
                print(f"\nseed {seed + batch}: {described[:2000]}\n{told}", flush=True)
            seen.add(cause)
    took_s = time.monotonic() - begun
    print(f"\n{count:,} inputs from seed {seed} in {took_s:.0f} s: {number} faults")


if __name__ == "__main__":
    main()
