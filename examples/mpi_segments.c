/* Segment profiles of any C program that uses MPI, without changing it.
 *
 * Interposes on MPI's profiling interface: each blocking all-to-all collective over all processes
 * ends a segment, and MPI_Finalize writes one CSV file per process, which benchrigor reads:
 *
 *     mpicc -O2 -Wall -Wextra -fPIC -shared -o libmpi_segments.so mpi_segments.c
 *     mpirun -n 4 env LD_PRELOAD=$PWD/libmpi_segments.so SEGMENTS=run ./program
 *     benchrigor interference run.0.csv run.1.csv run.2.csv run.3.csv
 *
 * Or link it in: mpicc program.c mpi_segments.c. It counts the calls listed at the end; a call
 * that is missing there counts as computation, so add those that your program uses. What the
 * program reads and writes between them it asks Linux; what MPI-IO does counts as MPI. It expects
 * one thread to call MPI, and to do the rest. Fortran bindings often call PMPI_* directly and are
 * then not seen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKING_SENDS, BLOCKING_RECEIVES, SENDS, RECEIVES, ONE_N, N_ONE, N_N, SENT, RECEIVED,
       READS, WRITES, READ_BYTES, WRITTEN_BYTES, COUNTS };

/* How much a segment computes, the best feature last: of processor time contention takes more. */
enum { CPU_TIME, INSTRUCTIONS, FLOATING_POINT, FEATURES };
static const char *const features[] = {"cpu_s", "instructions", "floating_point"};

typedef struct {
    const char *label; /* the collective that ended it */
    long long wall_ns, delay_ns, computed[FEATURES], counts[COUNTS];
} Segment;

static Segment now;      /* the segment under way */
static Segment *ended;   /* those before it */
static size_t n_ended, room;
static long long wall_mark, delay_mark, mark[FEATURES], run;
static int rank, processes, schedstat = -1, io = -1, counters[FEATURES] = {-1, -1, -1}, recording;
static const char *no_counter[FEATURES];
static long long io_mark[COUNTS - READS];

static long long clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Counts an event of this thread in user mode; -1 if the processor or the system does not. */
static int open_counter(unsigned type, unsigned long long event)
{
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.type = type;
    attributes.size = sizeof attributes;
    attributes.config = event;
    attributes.exclude_kernel = attributes.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static long long read_counter(int counter)
{
    long long value = 0;
    return counter < 0 || read(counter, &value, sizeof value) < 0 ? 0 : value;
}

/* FP_ARITH_INST_RETIRED of Intel, FpRetSseAvxOps of AMD; where these numbers mean something else,
 * they do not count multiplications. */
static int open_floating_point(void)
{
    static const unsigned events[] = {0xffc7, 0xff03};
    no_counter[FLOATING_POINT] = "the processor counts none";
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        int counter = open_counter(PERF_TYPE_RAW, events[i]);
        long long before = read_counter(counter);
        volatile double product = 1;
        for (int n = 0; n < 1000; n++)
            product *= 0.9;
        long long counted = read_counter(counter) - before;
        if (counted >= 1000 && counted <= 2000)
            return counter;
        if (counter < 0)
            no_counter[FLOATING_POINT] = strerror(errno);
        else
            close(counter);
    }
    return -1;
}

static long long computed(int feature)
{
    return feature == CPU_TIME ? clock_ns(CLOCK_THREAD_CPUTIME_ID)
                               : read_counter(counters[feature]);
}

/* How long this thread was ready to run and had no processor (second field; Linux only). */
static long long delay_ns(void)
{
    char text[96];
    long long delay = 0;
    ssize_t size = schedstat < 0 ? 0 : pread(schedstat, text, sizeof text - 1, 0);
    if (size > 0) {
        text[size] = 0;
        sscanf(text, "%*s %lld", &delay);
    }
    return delay;
}

/* What this thread has read and written through system calls, those of stdio as well, in the order
 * of the kinds from READS on; returns how much reading that adds by itself (Linux only). */
static ssize_t io_now(long long counts[])
{
    char text[256];
    ssize_t size = io < 0 ? 0 : pread(io, text, sizeof text - 1, 0);
    if (size > 0) {
        text[size] = 0;
        sscanf(text, "rchar: %lld wchar: %lld syscr: %lld syscw: %lld", &counts[READ_BYTES - READS],
               &counts[WRITTEN_BYTES - READS], &counts[0], &counts[WRITES - READS]);
    }
    return size;
}

/* What lies between leave() and enter() is the program's own. Inside of MPI it may spin until
 * others come, which is no computation, and being without a processor meanwhile is no loss. */
static void enter(void)
{
    long long done[COUNTS - READS] = {0};
    for (int feature = 0; feature < FEATURES; feature++)
        now.computed[feature] += computed(feature) - mark[feature];
    if (io_now(done) > 0)
        for (int kind = READS; kind < COUNTS; kind++)
            now.counts[kind] += done[kind - READS] - io_mark[kind - READS];
    now.delay_ns += delay_ns() - delay_mark;
}

static void leave(void)
{
    delay_mark = delay_ns();
    ssize_t own = io_now(io_mark); /* the kernel adds it behind */
    io_mark[READ_BYTES - READS] += own;
    io_mark[0] += own > 0;
    for (int feature = FEATURES; feature-- > 0;)
        mark[feature] = computed(feature);
}

static void count(int kind, long long amount)
{
    now.counts[kind] += amount;
}

static int size_of(MPI_Comm comm)
{
    int size = 0;
    PMPI_Comm_size(comm, &size);
    return size;
}

static int at(int root, MPI_Comm comm)
{
    int here = -1;
    PMPI_Comm_rank(comm, &here);
    return here == root;
}

static long long bytes(long long items, MPI_Datatype type)
{
    int size = 0;
    if (type != MPI_DATATYPE_NULL)
        PMPI_Type_size(type, &size);
    return items * size;
}

static long long sum(const int counts[], int n)
{
    long long total = 0;
    for (int i = 0; i < n; i++)
        total += counts[i];
    return total;
}

/* Ends a segment, if the collective was one of all processes: then nothing before delays what is
 * behind. */
static void cut(const char *label, MPI_Comm comm)
{
    count(N_N, 1);
    if (!recording || size_of(comm) != processes)
        return;
    long long wall = clock_ns(CLOCK_MONOTONIC);
    now.label = label;
    now.wall_ns = wall - wall_mark;
    if (n_ended == room) {
        room = room ? 2 * room : 4096;
        Segment *more = realloc(ended, room * sizeof *more);
        if (!more) {
            fprintf(stderr, "mpi_segments: no memory, recording stops\n");
            recording = 0;
            return;
        }
        ended = more;
    }
    ended[n_ended++] = now;
    now = (Segment){0};
    wall_mark = wall;
}

static void start(void)
{
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &processes);
    run = clock_ns(CLOCK_REALTIME);
    PMPI_Bcast(&run, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    io = open("/proc/thread-self/io", O_RDONLY | O_CLOEXEC);
    counters[INSTRUCTIONS] = open_counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
    if (counters[INSTRUCTIONS] < 0)
        no_counter[INSTRUCTIONS] = strerror(errno);
    counters[FLOATING_POINT] = open_floating_point();
    recording = 1;
    PMPI_Barrier(MPI_COMM_WORLD);
    wall_mark = clock_ns(CLOCK_MONOTONIC);
    leave();
}

/* Which feature all processes have; floating-point operations if they are a twentieth of all
 * instructions: of fewer, chance makes up too much. */
static int feature_of_all(void)
{
    int has[] = {counters[INSTRUCTIONS] >= 0, counters[FLOATING_POINT] >= 0};
    double done[FEATURES] = {0};
    for (size_t i = 0; i < n_ended; i++)
        for (int feature = 0; feature < FEATURES; feature++)
            done[feature] += ended[i].computed[feature];
    PMPI_Allreduce(MPI_IN_PLACE, has, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    PMPI_Allreduce(MPI_IN_PLACE, done, FEATURES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++)
        if (!has[i] && counters[INSTRUCTIONS + i] >= 0) { /* all files have the same columns */
            counters[INSTRUCTIONS + i] = -1;
            no_counter[INSTRUCTIONS + i] = "another process counts none";
        }
    if (!has[0])
        return CPU_TIME;
    return has[1] && done[FLOATING_POINT] >= 0.05 * done[INSTRUCTIONS] ? FLOATING_POINT
                                                                      : INSTRUCTIONS;
}

static void write_computed(FILE *file, const Segment *segment, int feature)
{
    if (feature == CPU_TIME)
        fprintf(file, ",%.9f", segment->computed[CPU_TIME] / 1e9);
    else
        fprintf(file, ",%lld", segment->computed[feature]);
}

static void write_profile(void)
{
    int feature = feature_of_all();
    char path[4096];
    const char *prefix = getenv("SEGMENTS");
    snprintf(path, sizeof path, "%s.%d.csv", prefix ? prefix : "segments", rank);
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return;
    }
    fprintf(file, "# benchrigor segment profile: 1\n# program: %s\n# run: %lld\n"
            "# process: %d\n# processes: %d\n# recorder: mpi_segments.c\n",
            program_invocation_short_name, run, rank, processes);
    for (int each = INSTRUCTIONS; each < FEATURES; each++)
        if (counters[each] < 0)
            fprintf(file, "# %s: perf_event_open: %s\n", features[each], no_counter[each]);
    fprintf(file, "duration_s,nominal:label,nominal:blocking_sends,"
            "nominal:blocking_receives,nominal:nonblocking_sends,nominal:nonblocking_receives,"
            "nominal:collectives_1_n,nominal:collectives_n_1,nominal:collectives_n_n,"
            "nominal:sent_bytes,nominal:received_bytes%s%s,computation:%s",
            io < 0 ? "" : ",nominal:reads,nominal:writes,nominal:read_bytes,nominal:written_bytes",
            schedstat < 0 ? "" : ",delay:run queue", features[feature]);
    for (int each = 0; each < FEATURES; each++)
        if (each != feature && (each == CPU_TIME || counters[each] >= 0))
            fprintf(file, ",evidence:%s", features[each]);
    fputc('\n', file);
    for (size_t i = 0; i < n_ended; i++) {
        fprintf(file, "%.9f,%s", ended[i].wall_ns / 1e9, ended[i].label);
        for (int kind = 0; kind < (io < 0 ? READS : COUNTS); kind++)
            fprintf(file, ",%lld", ended[i].counts[kind]);
        if (schedstat >= 0)
            fprintf(file, ",%.9f", ended[i].delay_ns / 1e9);
        write_computed(file, &ended[i], feature);
        for (int each = 0; each < FEATURES; each++)
            if (each != feature && (each == CPU_TIME || counters[each] >= 0))
                write_computed(file, &ended[i], each);
        fputc('\n', file);
    }
    if (fclose(file))
        perror(path);
}

int MPI_Init(int *argc, char ***argv)
{
    int error = PMPI_Init(argc, argv);
    start();
    return error;
}

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *given)
{
    int error = PMPI_Init_thread(argc, argv, wanted, given);
    start();
    return error;
}

int MPI_Finalize(void)
{
    enter();
    PMPI_Barrier(MPI_COMM_WORLD);
    cut("Finalize", MPI_COMM_WORLD);
    write_profile();
    return PMPI_Finalize();
}

/* A call, and what it counts. CUT does the same for calls that may end a segment. */
#define CALL(name, parameters, arguments, counting) \
    int MPI_##name parameters { enter(); int error = PMPI_##name arguments; counting; leave(); \
        return error; }
#define CUT(name, parameters, arguments, counting) \
    int MPI_##name parameters { enter(); int error = PMPI_##name arguments; counting; \
        cut(#name, comm); leave(); return error; }
#define BOTH(out, in) (count(SENT, out), count(RECEIVED, in))
#define FROM const void *b, int n, MPI_Datatype t
#define INTO void *b2, int n2, MPI_Datatype t2
#define SEND_TO FROM, int peer, int tag, MPI_Comm comm
#define SEND(name) CALL(name, (SEND_TO), (b, n, t, peer, tag, comm), \
    (count(BLOCKING_SENDS, 1), count(SENT, bytes(n, t))))
#define ISEND(name) CALL(name, (SEND_TO, MPI_Request *r), (b, n, t, peer, tag, comm, r), \
    (count(SENDS, 1), count(SENT, bytes(n, t))))

SEND(Send) SEND(Ssend) SEND(Bsend) SEND(Rsend)
ISEND(Isend) ISEND(Issend) ISEND(Ibsend) ISEND(Irsend)
CALL(Recv, (void *b, int n, MPI_Datatype t, int peer, int tag, MPI_Comm comm, MPI_Status *s),
     (b, n, t, peer, tag, comm, s), (count(BLOCKING_RECEIVES, 1), count(RECEIVED, bytes(n, t))))
CALL(Irecv, (void *b, int n, MPI_Datatype t, int peer, int tag, MPI_Comm comm, MPI_Request *r),
     (b, n, t, peer, tag, comm, r), (count(RECEIVES, 1), count(RECEIVED, bytes(n, t))))
CALL(Sendrecv, (FROM, int to, int tag, INTO, int from, int tag2, MPI_Comm comm, MPI_Status *s),
     (b, n, t, to, tag, b2, n2, t2, from, tag2, comm, s),
     (count(BLOCKING_SENDS, 1), count(BLOCKING_RECEIVES, 1), BOTH(bytes(n, t), bytes(n2, t2))))
/* How often one waits or asks is a symptom of lateness, so these count nothing. */
CALL(Wait, (MPI_Request *r, MPI_Status *s), (r, s), )
CALL(Waitall, (int n, MPI_Request r[], MPI_Status s[]), (n, r, s), )
CALL(Waitany, (int n, MPI_Request r[], int *i, MPI_Status *s), (n, r, i, s), )
CALL(Test, (MPI_Request *r, int *done, MPI_Status *s), (r, done, s), )
CALL(Probe, (int peer, int tag, MPI_Comm comm, MPI_Status *s), (peer, tag, comm, s), )

CALL(Bcast, (void *b, int n, MPI_Datatype t, int root, MPI_Comm comm), (b, n, t, root, comm),
     (count(ONE_N, 1), count(RECEIVED, bytes(n, t))))
CALL(Scatter, (FROM, INTO, int root, MPI_Comm comm), (b, n, t, b2, n2, t2, root, comm),
     (count(ONE_N, 1), at(root, comm) ? count(SENT, bytes(n, t) * size_of(comm))
                                      : count(RECEIVED, bytes(n2, t2))))
CALL(Gather, (FROM, INTO, int root, MPI_Comm comm), (b, n, t, b2, n2, t2, root, comm),
     (count(N_ONE, 1), at(root, comm) ? count(RECEIVED, bytes(n2, t2) * size_of(comm))
                                      : count(SENT, bytes(n, t))))
CALL(Reduce, (const void *b, void *b2, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm comm),
     (b, b2, n, t, op, root, comm),
     (count(N_ONE, 1), count(at(root, comm) ? RECEIVED : SENT, bytes(n, t))))

CUT(Barrier, (MPI_Comm comm), (comm), )
CUT(Allreduce, (const void *b, void *b2, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm),
    (b, b2, n, t, op, comm), BOTH(bytes(n, t), bytes(n, t)))
CUT(Reduce_scatter_block, (const void *b, void *b2, int n, MPI_Datatype t, MPI_Op op,
    MPI_Comm comm), (b, b2, n, t, op, comm), BOTH(bytes(n, t) * size_of(comm), bytes(n, t)))
CUT(Reduce_scatter, (const void *b, void *b2, const int n[], MPI_Datatype t, MPI_Op op,
    MPI_Comm comm), (b, b2, n, t, op, comm), count(SENT, bytes(sum(n, size_of(comm)), t)))
CUT(Allgather, (FROM, INTO, MPI_Comm comm), (b, n, t, b2, n2, t2, comm),
    BOTH(b == MPI_IN_PLACE ? bytes(n2, t2) : bytes(n, t), bytes(n2, t2) * size_of(comm)))
CUT(Allgatherv, (FROM, void *b2, const int n2[], const int at2[], MPI_Datatype t2, MPI_Comm comm),
    (b, n, t, b2, n2, at2, t2, comm), count(RECEIVED, bytes(sum(n2, size_of(comm)), t2)))
CUT(Alltoall, (FROM, INTO, MPI_Comm comm), (b, n, t, b2, n2, t2, comm),
    BOTH(bytes(b == MPI_IN_PLACE ? n2 : n, b == MPI_IN_PLACE ? t2 : t) * size_of(comm),
         bytes(n2, t2) * size_of(comm)))
CUT(Alltoallv, (const void *b, const int n[], const int at1[], MPI_Datatype t, void *b2,
    const int n2[], const int at2[], MPI_Datatype t2, MPI_Comm comm),
    (b, n, at1, t, b2, n2, at2, t2, comm), count(RECEIVED, bytes(sum(n2, size_of(comm)), t2)))
