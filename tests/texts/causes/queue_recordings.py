"""What people read about recordings of queues, and what ``rate`` says of them."""

from collections.abc import Iterator
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from tests.texts.rendering import run, tried

from benchrigor.queues import Recording, RecordingWriter, rate_recording

HEADER = "period_s,items,blocked_s\n"


def recorded(text: str) -> list[object]:
    return [*Recording(StringIO(text), name="run.csv").periods()]


def rows(*texts: str, header: str = HEADER) -> Iterator[object]:
    """Yield what recordings with these rows are refused with."""
    yield from tried(recorded, *((header + text,) for text in texts))


def files() -> Iterator[object]:
    contents = (b"\x89PNG\r\n\xff\xfe", HEADER.encode() + b"0.1,1,0\n" * 9 + b"\xff\n", bytes(9))

    def read_file(path: str) -> None:
        with Recording.open(path) as recording:
            [*recording.periods()]

    for content in contents:
        Path("run.csv").write_bytes(content)
        yield from tried(read_file, ("run.csv",))
    yield from tried(read_file, (".",), ("none.csv",))


def chosen() -> Iterator[object]:
    named = "period_s,end,items,blocked\n0.1,parse,1,0\n0.1,index,1,0\n"
    for text, options in (
        (named, {"end": "hash"}),
        ("period_s,items,blocked\n0.1,1,0\n", {"end": "parse"}),
        (named, {"method": "mean"}),
    ):
        recording = Recording(StringIO(text), name="run.csv")
        yield from tried(partial(rate_recording, recording), options)


def writing() -> Iterator[object]:
    create = partial(RecordingWriter.create, "run.csv")
    yield from tried(
        create,
        {"columns": ("t_ns", "blocked"), "counters": "delta"},
        {"columns": ("t_ns", "items", "blocked"), "counters": "all"},
    )
    with create(columns=("t_ns", "items", "blocked"), counters="delta") as rows_:
        yield from tried(rows_.add, (1, 2))


def stage_csv(n: int = 40, *, ends: tuple[str, ...] = (), torn: str = "") -> str:
    """Return the recording of a stage that serves 1000 items/s, and waits for 30% of the time."""
    rng = np.random.default_rng(1)
    lines = [f"period_s,items,blocked_s,item_bytes{',end' * bool(ends)}\n"]
    for _ in range(n):
        for end in ends or ("",):
            blocked_s = 0.1 * rng.uniform(0.2, 0.4)
            served = rng.poisson(1000.0 * (0.1 - blocked_s))
            lines.append(f"0.1,{served},{blocked_s:.6f},2000{f',{end}' * bool(end)}\n")
    return "".join(lines) + torn


def rate_file(*words: object, text: str = "", **more: Any) -> object:
    return run("rate", *words, files={"stage.csv": text or stage_csv(**more)})


CAUSES = {
    "headers of recordings": lambda: rows(
        "",
        "# counters: delta\n",
        "0.1,40,0\n",
        "a;b\n1;2\n",
        HEADER,
        HEADER + "\n\n",
        "t_s,items,blocked\n1,1,0\n",
        "# one\nperiod_s,items,blocked,size\n",
        "period_s,items,items,blocked\n",
        "t_s,period_s,items,blocked\n",
        "t_s,items,blocked,blocked_s\n",
        "items,blocked\n",
        "t_s,blocked\n",
        "t_s,items\n",
        "t_s,t_ns,items,item_bytes,bytes\n",
        "# benchrigor queue recording: 2\n" + HEADER,
        "# counters: sums\n" + HEADER,
        "# servers: 0\n" + HEADER,
        "#\n# servers: 1.5\n" + HEADER,
        "# period_s: x\n" + HEADER,
        "# period_s: 1e300\n" + HEADER,
        header="",
    ),
    "numbers in recordings": lambda: rows(
        "0.1,40,0\n0.1,many,0\n",
        "0.1,,0\n",
        "0.1,1_000,0\n",
        "\n0.1,-1,0\n",
        "0.1,nan,0\n",
        "0.1,1,inf\n",
        "0.1,1e400,0\n",
        "0.1,1e300,0\n",
        "0.1,\uff11,0\n",
        "0.1,1\n",
        "1\n0.1,1,0\n",
        "0.1,1,0,0\n",
        "0.1,1,0\n" + HEADER,
        "0,1,0\n",
        "0.1,1,0.05\n0.1,1,0.2\n",
    ),
    "rows that do not fit in recordings": lambda: rows(
        "# servers: 2\n" + HEADER + "0.1,1,0.3\n",
        "t_s,items,blocked\n-1e300,1,0\n",
        "t_ns,items,blocked\n1,1,0\n5,1,0\n\n5,1,0\n",
        "# counters: cumulative\nt_s,items,blocked\n1,1,0\n2,9,0\n3,8,0\n",
        "t_s,items,blocked\n" + "".join(f"{n},{3 * n},{n}\n" for n in range(20)),
        "period_s,end,items,blocked\n1,a,1,0\n1, ,1,0\n",
        "period_s,servers,items,blocked\n1,2,1,0\n1,3,1,0\n",
        "period_s,servers,items,blocked\n1,0,1,0\n",
        "period_s,end,items,blocked\n" + "".join(f"1,{n},1,0\n" for n in range(1001)),
        header="",
    ),
    "files that are not recordingss": files,
    "ends and methods of a recording": chosen,
    "recordings that cannot be written": writing,
    "rate": lambda: rate_file("stage.csv"),
    "rate of several ends": lambda: rate_file("stage.csv", ends=("parse", "index")),
    "rate that wants more": lambda: rate_file("stage.csv", "--target", "0.1%"),
    "rate of a file that ends early": lambda: rate_file("stage.csv", torn="0.1,9"),
    "rate of a stage that waited": lambda: rate_file("stage.csv", text=HEADER + "0.1,0,0.1\n" * 50),
    "rate of a stage that finished nothing": lambda: rate_file(
        "stage.csv", text=HEADER + "0.1,0,0.0\n" * 50
    ),
    "rate of an end that is not there": lambda: rate_file("stage.csv", "--end", "parse"),
    "rate with a target of nothing": lambda: rate_file("stage.csv", "--target", "0"),
    "rate with too much confidence": lambda: rate_file("stage.csv", "--confidence", "200%"),
    "rate with a picture of two ends": lambda: rate_file(
        "stage.csv", "--plot", "p.png", ends=("parse", "index")
    ),
    "rate with a picture of another kind": lambda: rate_file("stage.csv", "--plot", "p.gif"),
}
