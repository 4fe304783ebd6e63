"""A bulk-synchronous program with two kinds of steps, of which rank 1 is late for some.

Arguments: a folder, how many steps, and in which (each tenth) rank 1 sleeps. It prints how many
seconds.
"""

import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

from benchrigor.interference import process_of, segments, traced


def rest(wanted_s: float) -> float:
    start = time.perf_counter()
    time.sleep(wanted_s)
    return time.perf_counter() - start


def main(folder: Path, steps: int, every: int) -> None:
    world = MPI.COMM_WORLD
    field, halo, total = np.zeros(64), np.empty(64), np.empty(1)
    late_s = 0.0
    with segments(folder / f"run.{world.rank}.csv", **process_of(world)) as recorder:
        comm = traced(world, recorder)
        for step in range(steps):
            heavy, late = step % 3 == 2, step % every == every - 3
            requests = [
                comm.Irecv(halo, (world.rank + 1) % world.size),
                comm.Isend(field, (world.rank - 1) % world.size),
            ]
            sum(range(180_000 if heavy else 60_000))
            rest(0.024 if heavy else 0.012)
            if late and world.rank == 1:
                late_s += rest(0.150)
            with recorder.paused():
                MPI.Request.Waitall(requests)
            if heavy:
                comm.Bcast(field)
            comm.Allreduce(halo[:1].copy(), total)
    if world.rank == 1:
        sys.stdout.write(f"{late_s}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
