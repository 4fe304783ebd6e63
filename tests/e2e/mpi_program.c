/* A bulk-synchronous program with two kinds of steps, of which rank 1 is late for some.
 * All ranks write a log, and read in it now and then.
 *
 * Arguments: how many steps, and in which (each tenth) rank 1 sleeps. It prints how many seconds. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* Always the same work: what it takes is its feature. */
static double compute(int amount)
{
    volatile double value = 1.0;
    for (int i = 0; i < amount * 1000; i++)
        value = value * 1.0000001 + 1e-9;
    return value;
}

static double rest(double wanted_s)
{
    double start = seconds();
    struct timespec t = {(time_t)wanted_s, (long)((wanted_s - (time_t)wanted_s) * 1e9)};
    nanosleep(&t, NULL);
    return seconds() - start;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 100, every = argc > 2 ? atoi(argv[2]) : 10;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    FILE *log = tmpfile();
    char line[3000] = "state";
    double field[64] = {0}, halo[64], total, late_s = 0;
    for (int step = 0; step < steps; step++) {
        int heavy = step % 3 == 2, late = step % every == every - 3;
        MPI_Request requests[2];
        MPI_Irecv(halo, 64, MPI_DOUBLE, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(field, 64, MPI_DOUBLE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
        field[1] = compute(heavy ? 720 : 240);
        rest(heavy ? 0.024 : 0.012);
        if (heavy && log) {
            fwrite(line, 1, sizeof line, log);
            fflush(log);
        }
        if (step % 6 == 4 && log && pread(fileno(log), line, 500, 0) != 500)
            MPI_Abort(MPI_COMM_WORLD, 1);
        if (late && rank == 1)
            late_s += rest(0.150);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        if (heavy)
            MPI_Bcast(field, 64, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        field[step % 64] = halo[0] + step;
        MPI_Allreduce(field, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 1)
        printf("%.6f\n", late_s);
    MPI_Finalize();
    return 0;
}
