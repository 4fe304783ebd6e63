"""Multiply matrices in processes joined by queues, and see how fast each stage could go.

A source deals tasks, a block of rows and one of columns each, to kernels that form dot products;
a reducer takes what they give, from a queue for each kernel, and re-forms the product. This is an
application of Beard & Chamberlain, 'Run Time Approximation of Non-blocking Service Rates for
Streaming Systems' (2015), section V-B; here the kernels have the matrices, and the places of the
blocks are what is streamed to them.

    python examples/matrix_multiply.py [--size 3072] [--kernels 2] [--start spawn] [--truth]

Printed is, for each stage, what it could serve if it never had to wait, which stage limits the
others, and what room in the queues and how many processes the rates suggest. With ``--truth`` the
kernel and the reducer are run alone as well, and stand beside what was found while they were not:
once with all their input ready, once with pauses as long as their waits were.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
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

Matrix = npt.NDArray[np.float32]
ROOM = 8
"""Items that each queue holds."""


def places(size: int, block: int) -> list[tuple[slice, slice]]:
    """Return the rows and columns of each block of a matrix."""
    sides = [slice(start, start + block) for start in range(0, size, block)]
    return list(product(sides, sides))


def dot(a: Matrix, columns_of_b: Matrix, tasks: Any, parts: Any) -> None:
    """Kernel: form the dot products of rows and columns."""
    for rows, columns in iter(tasks.get, None):
        # Not by @, which may use more threads than this one.
        block = np.einsum("ik,jk->ij", a[rows], columns_of_b[columns])
        parts.put((rows, columns, block))
    parts.put(None)


def reduce(size: int, parts: Sequence[Any], result: Any) -> None:
    """Reducer: re-form the product."""
    whole = np.empty((size, size), np.float32)
    for rows, columns, block in in_turn(parts):
        whole[rows, columns] = block
    result.send(whole)


@contextmanager
def multiplying(
    a: Matrix, b: Matrix, *, kernels: int = 2, block: int = 48, start: str | None = None
) -> Iterator[Pipeline]:
    """Begin to multiply two square matrices."""
    context, size = multiprocessing.get_context(start), len(a)
    receiver, sender = context.Pipe(duplex=False)
    with queues.Page.create() as page:
        tasks, parts = (
            [queues.Tap(context.Queue(ROOM), name=f"{name} {k}", page=page) for k in range(kernels)]
            for name in ("tasks", "parts")
        )
        stages = [
            stage("source", writes=tasks),
            stage("dot", reads=tasks, writes=parts),
            stage("reduce", reads=parts),
        ]
        columns_of_b = np.ascontiguousarray(b.T)
        work: Work = {"source": (deal, places(size, block), handed(tasks))}
        for k in range(kernels):
            work[f"dot {k}"] = dot, a, columns_of_b, tasks[k].queue, parts[k].queue
        work["reduce"] = reduce, size, handed(parts), sender
        with running(context, work) as processes:
            yield Pipeline(stages, processes, receiver)


def multiply(a: Matrix, b: Matrix, **options: Any) -> tuple[Matrix, queues.MonitorReport]:
    """Return the product of two square matrices, and what was seen of the stages."""
    watch = queues.Monitor  # loaded while there is nothing to be missed
    with multiplying(a, b, **options) as pipeline, watch(*pipeline.stages) as monitor:
        whole = pipeline.result()
    return whole, monitor.report()


def truth(
    a: Matrix,
    b: Matrix,
    pauses: Mapping[str, float] = NO_PAUSES,
    *,
    kernels: int = 2,
    block: int = 48,
    items: int = 500,
) -> dict[str, Alone]:
    """Return what kernels and the reducer do alone, with a pause of each before each item."""
    size, columns_of_b = len(a), np.ascontiguousarray(b.T)
    tasks = places(size, block)[:items]
    parts = [(*place, a[place]) for place in tasks]

    def dot_alone(ready: Any, nowhere: Any) -> None:
        dot(a, columns_of_b, ready, nowhere)

    def reduce_alone(ready: Any, nowhere: Any) -> None:
        reduce(size, [ready], nowhere)

    return {
        "dot": alone(dot_alone, tasks, processes=kernels, pause_s=pauses.get("dot", 0.0)),
        "reduce": alone(reduce_alone, parts, pause_s=pauses.get("reduce", 0.0)),
    }


def main() -> None:
    """Multiply, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=3072)
    parser.add_argument("--kernels", type=int, default=2)
    parser.add_argument("--start", choices=multiprocessing.get_all_start_methods())
    parser.add_argument("--truth", action="store_true")
    options = parser.parse_args()
    a, b = np.random.default_rng(1).random((2, options.size, options.size), dtype=np.float32)
    _, report = multiply(a, b, kernels=options.kernels, start=options.start)
    show(report)
    if options.truth:
        compare(report, partial(truth, a, b, kernels=options.kernels))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
