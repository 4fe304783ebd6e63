"""Search a text in processes joined by queues, and see how fast each stage could go.

A source deals pieces of the text, which overlap by all but one letter of the pattern, to kernels
that look for places where a rolling hash is that of the pattern; others verify what was found, for
the hash is weak and half of it is chance; a reducer collects the places. There is a queue from each
kernel to each of the next. The application, and its text, are those of Beard & Chamberlain, 'Run
Time Approximation of Non-blocking Service Rates for Streaming Systems' (2015), section V-B.

    python examples/rabin_karp.py [--megabytes 24] [--hashing 2] [--verifying 2] [--truth]

Printed is, for each stage, what it could serve if it never had to wait, which stage limits the
others, and what room in the queues and how many processes the rates suggest. With ``--truth`` the
kernels are run alone as well, and stand beside what was found while they were not: once with all
their input ready, once with pauses as long as their waits were.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor import queues  # whose names are loaded when used: processes need but a few
from streaming import (
    NO_PAUSES,
    Alone,
    Pipeline,
    Work,
    alone,
    compare,
    deal,
    handed,
    in_turn,
    running,
    show,
    stage,
)

Places = npt.NDArray[np.int64]
PATTERN = b"barfoo"
BASE, MODULUS = 256, 13
"""Of the hash; of the six parts of the text that are as long as the pattern two have the same."""
PIECE, ROOM = 8_192, 8
"""Letters that are hashed at a time; items that each queue holds."""


def hash_of(letters: bytes) -> int:
    """Return the hash of a few letters."""
    value = 0
    for letter in letters:
        value = (value * BASE + letter) % MODULUS
    return value


def likely(text: bytes, pattern: bytes) -> list[int]:
    """Return where the text has the hash of the pattern."""
    wanted, value = hash_of(pattern), hash_of(text[: len(pattern)])
    first = pow(BASE, len(pattern) - 1, MODULUS)
    found = [0] if value == wanted else []
    for place, (old, new) in enumerate(zip(text, text[len(pattern) :], strict=False), 1):
        value = ((value - first * old) * BASE + new) % MODULUS
        if value == wanted:
            found.append(place)
    return found


def pieces(text: bytes, pattern: bytes) -> Iterator[tuple[int, bytes]]:
    """Cut a text so that no place belongs to two pieces, and none to neither."""
    for start in range(0, len(text), PIECE):
        yield start, text[start : start + PIECE + len(pattern) - 1]


def read(text: bytes, pattern: bytes, texts: Sequence[Any]) -> None:
    """Source: cut the text into pieces."""
    deal(pieces(text, pattern), texts)


def hash_pieces(pattern: bytes, texts: Any, found: Sequence[Any]) -> None:
    """Kernel: find likely places."""
    deal(((at, text, likely(text, pattern)) for at, text in iter(texts.get, None)), found)


def verify(pattern: bytes, found: Sequence[Any], matches: Any) -> None:
    """Kernel: leave out what was found by chance."""
    for start, text, likely_places in in_turn(found):
        places = [place for place in likely_places if text.startswith(pattern, place)]
        matches.put(start + np.array(places, dtype=np.int64))
    matches.put(None)


def reduce(matches: Sequence[Any], result: Any) -> None:
    """Reducer: collect the places."""
    result.send(np.sort(np.concatenate(list(in_turn(matches)))))


@contextmanager
def searching(
    text: bytes,
    pattern: bytes = PATTERN,
    *,
    hashing: int = 2,
    verifying: int = 2,
    start: str | None = None,
) -> Iterator[Pipeline]:
    """Begin to search a text for a pattern."""
    context = multiprocessing.get_context(start)
    receiver, sender = context.Pipe(duplex=False)
    with queues.Page.create() as page:

        def tapped(name: str) -> queues.Tap:
            return queues.Tap(context.Queue(ROOM), name=name, page=page)

        texts = [tapped(f"text {k}") for k in range(hashing)]
        found = [[tapped(f"found {k}.{j}") for j in range(verifying)] for k in range(hashing)]
        matches = [tapped(f"matches {j}") for j in range(verifying)]
        stages = [
            stage("source", writes=texts),
            stage("hash", reads=texts, writes=chain(*found)),
            stage("verify", reads=chain(*found), writes=matches),
            stage("reduce", reads=matches),
        ]
        work: Work = {"source": (read, text, pattern, handed(texts))}
        for k, text_k in enumerate(texts):
            work[f"hash {k}"] = hash_pieces, pattern, text_k.queue, handed(found[k])
        for j, matches_j in enumerate(matches):
            found_j = handed(taps[j] for taps in found)
            work[f"verify {j}"] = verify, pattern, found_j, matches_j.queue
        work["reduce"] = reduce, handed(matches), sender
        with running(context, work) as processes:
            yield Pipeline(stages, processes, receiver)


def search(text: bytes, **options: Any) -> tuple[Places, queues.MonitorReport]:
    """Return the places of the pattern in a text, and what was seen of the stages."""
    watch = queues.Monitor  # loaded while there is nothing to be missed
    with searching(text, **options) as pipeline, watch(*pipeline.stages) as monitor:
        places = pipeline.result()
    return places, monitor.report()


def truth(
    text: bytes,
    pauses: Mapping[str, float] = NO_PAUSES,
    *,
    pattern: bytes = PATTERN,
    hashing: int = 2,
    verifying: int = 2,
    items: int = 200,
) -> dict[str, Alone]:
    """Return what the kernels do alone, with a pause of each before each item."""
    texts = list(islice(pieces(text, pattern), items))
    found = [(at, piece, likely(piece, pattern)) for at, piece in texts]

    def hash_alone(ready: Any, nowhere: Any) -> None:
        hash_pieces(pattern, ready, [nowhere])

    def verify_alone(ready: Any, nowhere: Any) -> None:
        verify(pattern, [ready], nowhere)

    return {
        "hash": alone(hash_alone, texts, processes=hashing, pause_s=pauses.get("hash", 0.0)),
        "verify": alone(
            verify_alone, found, processes=verifying, pause_s=pauses.get("verify", 0.0)
        ),
    }


def main() -> None:
    """Search, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=float, default=24.0)
    parser.add_argument("--hashing", type=int, default=2)
    parser.add_argument("--verifying", type=int, default=2)
    parser.add_argument("--start", choices=multiprocessing.get_all_start_methods())
    parser.add_argument("--truth", action="store_true")
    options = parser.parse_args()
    text = b"foobar" * int(options.megabytes * 1e6 / 6)
    kernels = {"hashing": options.hashing, "verifying": options.verifying}
    places, report = search(text, start=options.start, **kernels)
    print(f"{len(places):,} places")
    show(report)
    if options.truth:
        compare(report, partial(truth, text, **kernels))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
