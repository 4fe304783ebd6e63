"""What the verbs of the command line refuse, and what they say where something fails."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping
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
FILES = {
    "a.csv": f"time\n{TURNS}",
    "b.csv": f"time\n{TURNS}",
    "c.csv": f"time\n{TURNS}",
    "short.csv": "time\n1\n2\n3\n",
    "one.csv": "5\n",
    "zero.csv": "0\n" * 40,
    "some.csv": "0\n1\n2\n3\n" * 10,
    "starts.csv": "start,u\n" + "a,1\na,1.1\nb,1.05\nb,1.2\n" * 9,
    "again.csv": "start,u\n" + "a,1\na,1.1\nb,1.05\nb,1.2\n" * 9,
    "gap.csv": "start,u\na,1\n,2\n",
    "shares.csv": "ok\n9/10\n11/10\n",
    "hyperfine.json": HYPERFINE,
    "same.json": json.dumps({"results": [{"command": "x", "times": [1, 2]}] * 2}),
    "parts.json": '{"runs": [{"times": [3, 3.1]}, {"times": [6, 6.1]}]}',
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

hidden = lambda: coroutine()
hidden_of_amount = lambda n: of_amount(n)
"""

# Lines of the command line of which nothing is measured.
REFUSED = r"""
mesure
run
run --nonsense true
run false
run /no/such/program
run 'sleep 0.1'
run platform.node
run os.path.isabs
run --timeout 0.1 sleep 30
run --read x=column:0 true
run os:abort_
run no_such_module:f
run os:name
run os:getcwd --target 1%
run --gc off true
run --batch 1 true
run --batch 0 os:getcwd
run --batch 1 text_functions:stepped
run --statistic mode true
run --method pilot true
run --method subsessions --statistic p10 true
run --work 3 true
run echo {work}
run --work 0 echo {work}
run --work 9:1 echo {work}
run --work 1:x echo {work}
run --work 1:9 true
run --analysis wps true
run --work 1:9 os:getcwd
run --analysis wps os:getcwd
run os.path:isabs
run --work 1:9 --batch 2 os.path:isabs
run --work 1:9 --statistic p10 os.path:isabs
run --work 5 --analysis wps echo {work}
run --work 1:9 --analysis readings echo {work}
run --work 1:9 --work-order up echo {work}
run --work 1:9 --short-round 0 echo {work}
run --work 1:9 --read speed=column:0 echo {work}
run --work 1:9 --read time:ms=column:0 echo {work}
run --work 1:9 --read-units time=column:0 echo {work}
run --red-rounds hide true
run --read zzz true
run --read 'x=regex:(' true
run --read 'rate:req/s,up=regex:(.+)' true
run --read 'rate:req/s,lower,higher=regex:(.+)' true
run --read 'ok:share=regex:(more/less)' echo more/less
run --budget -3 true
run --budget soon true
run --budget https://u:hunter2@h/ true
run --max-rounds 0 true
run --max-readings -1 true
run --target x true
run --target 2 true
run --target 1 true
run --target 0 --confidence 100% true
run --seed -1 true
run --thorough --budget 60 true
run --fresh --rounds continuous m:f
run --fresh --pieces 3 m:f
run --fresh --work 1:10 m:f
run --python python3 --in-process m:f
run --python python3 --pieces 3 m:f
run --fresh --python no-such-python m:f
run --fresh --cpus one m:f
run --fresh true
run --shell true '&&' true
run --shell json:dumps
run 'touch ran && sleep .2'
run 'touch ran 2>&1'
run 'touch ran $(date)'
run 'JOBS=2 touch ran'
run --store - -- true
run --log none/session.log true
run text_functions:steps
run --work 10:1000 text_functions:of_amount
run text_functions:hidden
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
ab --margin x m:f m:g
ab --shell json:dumps json:loads
ab --rev old --rev new --build 'touch a; true' true
commands true -L n 1
commands 'true {n}' -L n 1,,2
commands 'true {n}' -P n 3 1
commands 'true {n}' -P n a b
commands 'true {n}' -P n 1 inf
commands 'true {n}' -P n 0.5 2
commands 'true {n}' -P n 1 3 --step -1
commands 'true {n}' -P n 0 1 -D .0001
commands 'true {token}' -P token 4711 1234
commands true --step 2
commands 'true {n}' -L n 1 -P n 1 2
commands "true 'x"
commands ''
commands true --baseline 2
commands true --baseline 1
commands no-such-program
commands true --fail-on worse
commands false --max-rounds 3 --no-store
commands false --ignore-failure --max-rounds 3 --no-store
commands true --prepare false --no-store
commands true --setup no-such-program --no-store
commands true --output no/where.txt --no-store
commands true --input nothing.txt
commands true --runs 2 --max-rounds 3
commands true --output -
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
compare a.csv b.csv --margin -1
compare a.csv b.csv --confidence 200%
compare a.csv b.csv --statistic mode
compare a.csv one.csv
compare some.csv zero.csv
compare some.csv zero.csv --paired
compare some.csv a.csv zero.csv
compare same.json --column x --column x
compare same.json same.json
compare hyperfine.json
compare parts.json --column runs.0.times
compare starts.csv again.csv --column u --round start --paired
compare a.csv b.csv --paired --unit req/s
analyze no-such-file
analyze a.csv --trim some
analyze a.csv --trim 10%:5%:5%
analyze a.csv --trim 60%
analyze a.csv --trim ''
analyze a.csv --trim 10%:
analyze a.csv --trim nan
analyze a.csv --statistic p100
analyze a.csv --statistic p0
analyze a.csv --statistic P10
analyze a.csv --autocorrelation-limit 100%
analyze a.csv --method merged-subsessions
analyze a.csv --confidence 100%
analyze a.csv --confidence 95
analyze a.csv --target 0
analyze a.csv --target few
analyze a.csv --target nan
analyze a.csv --column tim
analyze a.csv --plot trace.gif
analyze starts.csv --column u --round nowhere
analyze starts.csv --column u --round u
analyze gap.csv --column u --round start
analyze shares.csv
analyze one.csv
analyze plain.csv --ignore-lines 9
changes a.csv --level 300%
changes a.csv --min-segment 1
changes starts.csv --column u --round start --plot x.png
changes a.csv --plot trace
plan hyperfine.json
plan hyperfine.json --column 'sort a' --unit ms --round a
plan nonsense
convert hyperfine.json there.json
convert hyperfine.json -
convert hyperfine.json there.json/a.json
convert hyperfine.json /proc/a.json
convert hyperfine.json . --to csv
convert hyperfine.json a.txt
convert hyperfine.json a.json --metric speed
convert - a.json
convert plain.csv a.json
convert nowhere.json a.json
timeit 'return 1'
timeit 'yield 1'
list
show 3f
explain 3f
resume 3f
list --store there.json/below.sqlite
export hyperfine.json -o -
export plain.csv -o out
plan beef
""".strip().splitlines()


def refused(*words: str) -> click.testing.Result:
    """Return what is said to a line of the command line, where files of all kinds are there."""
    sys.modules.pop("text_functions", None)
    return run(*words, files={**FILES, "text_functions.py": FUNCTIONS})


def project(text: str, *words: str) -> click.testing.Result:
    """Return what a verb says of the settings of a project."""
    return run(*words, files={**FILES, "pyproject.toml": text})


def typed(text: str, *words: str) -> click.testing.Result:
    """Return what a verb says of what is typed."""
    from benchrigor.cli import main  # noqa: PLC0415

    return click.testing.CliRunner().invoke(main, [*words], input=text)


def around(*levels: tuple[float, int]) -> str:
    """Return the lines of a file of readings around levels, each for so many."""
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

CAUSES: dict[str, Callable[[], object]] = {
    line: partial(refused, *shlex.split(line)) for line in REFUSED
}
CAUSES |= {
    "a module that raises": lambda: run(
        "run", "text_broken:f", files={"text_broken.py": "def f(): pass\nraise ValueError(3)\n"}
    ),
    "a module that leaves": lambda: run(
        "run", "text_leaving:f", files={"text_leaving.py": "raise SystemExit(0)"}
    ),
    "a setting of the project that nobody knows": lambda: project(
        "[tool.benchrigor]\nbugdet = 0.2\n", "timeit", "pass"
    ),
    "a project that describes nothing": lambda: project(
        "[tool]\nbenchrigor = 1\n", "analyze", "a.csv"
    ),
    "a project without tools": lambda: project("tool = 3\n", "analyze", "a.csv"),
    "a store that is none": lambda: run(
        "show", files={"runs.sqlite": "this is no database, and long enough for one " * 100}
    ),
    "a folder without results": lambda: run("analyze", "."),
    "means without readings": lambda: run(
        "compare", DATA / "hyperfine.csv", DATA / "hyperfine.json"
    ),
    "lines that are left out to the end": lambda: typed(
        "1\n2\n\n  \n", "analyze", "--ignore-lines", "3"
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
