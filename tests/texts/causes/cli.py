"""Refusals of the verbs of the command line, and their texts where something fails."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import click.testing
import numpy as np
from tests.texts.rendering import run

DATA = Path(__file__).parents[2] / "formats" / "data"
HYPERFINE = json.dumps(
    {"results": [{"command": name, "times": [1.0, 1.1, 1.05]} for name in ("sort a", "sort b")]}
)
TURNS = "".join(f"{0.01 + index % 7 / 1e4}\n" for index in range(40))
STARTS = "a,1\na,1.1\nb,1.05\nb,1.2\n" * 9
FILES = {
    **dict.fromkeys(("a.csv", "b.csv", "c.csv"), f"time\n{TURNS}"),
    "short.csv": "time\n1\n2\n3\n",
    "one.csv": "5\n",
    "zero.csv": "0\n" * 40,
    "some.csv": "0\n1\n2\n3\n" * 10,
    **dict.fromkeys(("starts.csv", "again.csv"), f"start,u\n{STARTS}"),
    "gap.csv": "start,u\na,1\n,2\n",
    "pairs.csv": "a,b\n-1,2\n2,3\n4,5\n",
    "shares.csv": "ok\n9/10\n11/10\n",
    "hyperfine.json": HYPERFINE,
    "same.json": json.dumps({"results": [{"command": "x", "times": [1, 2]}] * 2}),
    "there.json": "mine",
    "rounds.csv": "mine",
    "plain.csv": "1\n2\n3\n",
}
FUNCTIONS = """
import asyncio, sys

async def steps():
    yield

async def of_amount(n):
    await asyncio.sleep(0)

async def coroutine():
    pass

def stepped():
    while True: yield

def leaving():
    sys.exit(0)

def raising():
    raise ValueError('GET https://u:hunter2@h/?token=hunter2 failed')

class pending:
    __await__ = stepped

hidden = lambda: coroutine()
hidden_of_amount = lambda n: of_amount(n)
"""

# Lines of the command line without a measurement.
REFUSED = r"""
--help
mesure
run
run false
run /no/such/program
run 'sleep 0.1'
run platform.node
run --timeout 0.1 sleep 30
run --read x=column:0 true
run os:abort_
run no_such_module:f
run os:name
run --gc off true
run --batch 1 true
run --batch 1 --confidence 0 true
run --batch 1 text_functions:stepped
run --statistic mode true
run --method pilot true
run --method subsessions --statistic p10 true
run --work 3 true
run echo {work}
run --work 0 echo {work}
run --work 9:1 echo {work}
run --work 1:x echo {work}
run --work 1:9 os:getcwd
run os.path:isabs
run --work 1:9 --batch 2 os.path:isabs
run --work 1:9 --statistic p10 os.path:isabs
run --work 5 --analysis wps echo {work}
run --work 1:9 --analysis readings echo {work}
run --work 1:9 --read speed=column:0 echo {work}
run --work 1:9 --read time:ms=column:0 echo {work}
run --read zzz true
run --read 'x=regex:(' true
run --read 'rate:req/s,up=regex:(.+)' true
run --read 'rate:req/s,lower,higher=regex:(.+)' true
run --read 'ok:share=regex:(more/less)' echo more/less
run --budget https://u:hunter2@h/ true
run --target 0 --confidence 100% true
run --thorough --budget 60 true
run --fresh --rounds continuous m:f
run --python python3 --in-process m:f
run --python python3 --pieces 3 m:f
run --fresh --python no-such-python m:f
run --fresh --cpus one m:f
run --fresh true
run --shell true '&&' true
run --shell json:dumps
run 'touch ran && sleep .2'
run 'JOBS=2 touch ran'
run --store - -- true
run --log none/session.log true
run text_functions:steps
run --work 10:1000 text_functions:of_amount
run text_functions:hidden
run text_functions:pending
run --in-process text_functions:leaving
run --in-process text_functions:raising
run -- false --password hunter2 https://u:hunter2@h/ x
ab m:f
ab m:f true
ab --rev old m:f
ab --build make m:f m:g
ab --fresh true true
ab --cpus 0 m:f m:g
ab '' ''
ab "echo 'x" true
ab --shell json:dumps json:loads
commands true -L n 1
commands 'true {n}' -L n 1,,2
commands 'true {n}' -P n 3 1
commands 'true {n}' -P n 0.5 2
commands 'true {n}' -P n 0 1 -D .0001
commands 'true {token}' -P token 4711 1234
commands true --step 2
commands 'true {n}' -L n 1 -P n 1 2
commands true --baseline 2
commands true --baseline 1
commands no-such-program
commands true --fail-on worse
commands false --ignore-failure --max-rounds 3 --no-store
commands true --prepare false --no-store
commands true --setup no-such-program --no-store
commands true --output no/where.txt --no-store
commands true --runs 2 --max-rounds 3
commands true false --markdown - --csv -
commands true false --csv - --json
commands true false --csv nowhere/a.csv
compare a.csv
compare a.csv a.csv
compare a.csv --column time --column time
compare a.csv --column time --column time b.csv c.csv
compare - -
compare a.csv nonsense
compare a.csv b.csv c.csv --paired
compare a.csv short.csv --paired
compare a.csv b.csv --metric time
compare a.csv one.csv
compare some.csv zero.csv
compare some.csv zero.csv --paired
compare some.csv a.csv zero.csv
compare same.json same.json
compare hyperfine.json
compare starts.csv again.csv --column u --round start --paired
compare a.csv b.csv --paired --unit req/s
analyze no-such-file
analyze a.csv --trim some
analyze a.csv --trim 60%
analyze a.csv --method merged-subsessions
analyze a.csv --confidence 95
analyze a.csv --column tim
analyze a.csv --plot trace.gif
analyze starts.csv --column u --round nowhere
analyze starts.csv --column u --round u
analyze gap.csv --column u --round start
analyze shares.csv
analyze one.csv
analyze plain.csv --ignore-lines 9
changes a.csv --level 300%
changes starts.csv --column u --round start --plot x.png
plan hyperfine.json
plan hyperfine.json --column 'sort a' --unit ms --round a
convert hyperfine.json there.json
convert hyperfine.json -
convert hyperfine.json there.json/a.json
convert hyperfine.json /proc/a.json
convert hyperfine.json a.txt
convert hyperfine.json a.json --metric speed
convert - a.json
convert plain.csv a.json
timeit 'return 1'
timeit for
timeit -s '1 +' pass
timeit -s '1 / 0' pass
timeit unknown_name
timeit -s 'async def f(): pass' 'f()'
timeit -s 'import asyncio' 'x = asyncio.sleep(0)'
timeit -s 'async def f(): pass' 'g = lambda: f()' '(g(), 1)'
timeit -s 'async def f(): yield' 'f()'
timeit -s 'def f(): yield' 'f()'
timeit -s 'def f(): yield' 'x = 1' 'f()'
timeit -s 'y = range(9)' 'z = y' '(x for x in z)'
timeit -s 'y = []' 'y or (x for x in y)'
timeit 'map(str, range(9))'
timeit 'filter(None, range(9))'
run --over 2 true
run --over 0.001 os:getcwd
run --over 1 --pieces 1 os:getcwd
run --pieces 4 --budget 0.1 os:getcwd
run --pieces 4 --rounds restarted os:getcwd
run --name x os:getcwd os:getpid
run os:getcwd os:getcwd
run os:getcwd word
run os:getcwd os:getpid --budget 3
analyze pairs.csv --work a --column b
analyze pairs.csv --work b --column a
analyze pairs.csv --work a --round b
analyze pairs.csv --work a --column b --statistic p90
list
list --store there.json/below.sqlite
export plain.csv -o out
""".strip().splitlines()


def refused(*words: str) -> click.testing.Result:
    """Return the answer to a command line, where files of all kinds are there."""
    sys.modules.pop("text_functions", None)
    return run(*words, files={**FILES, "text_functions.py": FUNCTIONS})


def project(text: str, *words: str) -> click.testing.Result:
    """Return the answer of a verb to the settings of a project."""
    return run(*words, files={**FILES, "pyproject.toml": text})


def typed(text: str, *words: str) -> click.testing.Result:
    """Return the answer of a verb to typed words."""
    from benchrigor.cli import main  # noqa: PLC0415

    return click.testing.CliRunner().invoke(main, [*words], input=text)


def around(*levels: tuple[float, int]) -> str:
    """Return the lines of a file of readings around levels, a number at each."""
    each = np.repeat([level for level, _ in levels], [n for _, n in levels])
    rng = np.random.default_rng(1)
    return "".join(f"{time}\n" for time in each * rng.normal(1.0, 0.01, each.size))


SERIES: Mapping[str, str] = {
    "a slow start": around((2.0, 100), (1.0, 300)),
    "one cold reading": "50\n" + around((1.0, 15)),
    "few at the end": around((1.0, 200), (1.5, 6)),
    "few of few at the end": around((1.0, 15), (2.0, 2)),
    "levels that come back": around((1.0, 100), (1.3, 100), (1.0, 100), (1.3, 100)),
    "steps that end nowhere": around(*((1.0 + index / 5, 50) for index in range(8))),
    "few that rise": "\n".join(str(1.0 + index / 10) for index in range(15)) + "\n",
    "a time below 0": around((1.0, 99)) + "-5\n",
    "one": "5\n",
    "all 0": "0\n" * 40,
}


def interrupted(script: str) -> str:
    """Return the texts during a run whose command presses Ctrl-C."""
    return run("run", "--no-reference", "sh", "-c", script).stderr


def left_behind(script: str) -> Iterator[str]:
    """Yield the texts about a command that leaves a process running, and end that."""
    words = ("run", "--no-store", "--no-reference", "--json", "--max-rounds", "1")
    done = run(*words, "sh", "-c", f"{script} & echo $! > pid; sleep .2")
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid := int(Path("pid").read_text()), signal.SIGKILL)
        os.waitpid(pid, 0)
    for notice in json.loads(done.stdout)["session_notices"]:
        if notice["code"] == "left-running":
            yield notice["sentence"].replace(f"{pid}", "NUMBER")
    yield done.stderr.replace(f"{pid}", "NUMBER")


CAUSES: dict[str, Callable[[], object]] = {
    line: partial(refused, *shlex.split(line)) for line in REFUSED
}
CAUSES |= {
    "Ctrl-C": lambda: interrupted("kill -INT $PPID; sleep .1"),
    "Ctrl-C twice, in the third round": lambda: interrupted(
        "echo >> n; [ $(wc -l < n) -lt 3 ] || for _ in 1 2; do kill -INT $PPID; sleep .3; done"
    ),
    "a child that outlives its command": lambda: left_behind("sleep 99"),
    "a child in a session of its own": lambda: left_behind("setsid sleep 99"),
    "a module that raises": lambda: run(
        "run", "text_broken:f", files={"text_broken.py": "def f(): pass\nraise ValueError(3)\n"}
    ),
    "a module that leaves": lambda: run(
        "run", "text_leaving:f", files={"text_leaving.py": "raise SystemExit(0)"}
    ),
    "a setting of the project that nobody knows": lambda: project(
        "[tool.benchrigor]\nbugdet = 0.2\n", "timeit", "pass"
    ),
    "all that is wrong with the settings of a project": lambda: project(
        "[tool.benchrigor]\ntarget = 0\nconfidence = 95\nbudget = 'x'\nstore = []\n",
        "timeit",
        "pass",
    ),
    "a project that describes nothing": lambda: project(
        "[tool]\nbenchrigor = 1\n", "analyze", "a.csv"
    ),
    "a project without tools": lambda: project("tool = 3\n", "analyze", "a.csv"),
    "a store that is not valid": lambda: run(
        "show", files={"runs.sqlite": "this is not a database, and long enough for one " * 100}
    ),
    "a folder without results": lambda: run("analyze", "."),
    "means without readings": lambda: run(
        "compare", DATA / "hyperfine.csv", DATA / "hyperfine.json"
    ),
    "a rate that is always the same": lambda: typed(
        "0.1\n" * 40, "analyze", "--unit", "req/s", "--details"
    ),
}
CAUSES |= {
    f"{verb}, {name}": partial(typed, text, verb, "--unit", "ms")
    for name, text in SERIES.items()
    for verb in ("analyze", "changes")
}
