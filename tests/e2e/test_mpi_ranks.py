"""Programs of several real MPI processes: where one is late, the estimate of the run shows it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchrigor.interference import merge_processes
from benchrigor.machine import capabilities
from benchrigor.model import Interference, SegmentProfile
from benchrigor.stats import profile_interference

HERE = Path(__file__).parent
WRAPPER = HERE.parents[1] / "examples" / "mpi_segments.c"
RANKS, STEPS = 3, 60


def tool(name: str) -> str | None:
    """Prefer what is installed beside this Python: it goes with its mpi4py."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="tests come with MPI on Linux only")
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="the machine has no C compiler")


def run_ranks(*command: str | Path) -> float:
    """Run a program as several ranks; return how many seconds one of them was late."""
    environment = {
        **os.environ,
        "MPIEXEC_TIMEOUT": "50",  # or else ranks might outlive their launcher
        "OMP_NUM_THREADS": "1",
        # More ranks than processors, also as root, as in a container: Open MPI 4, and 5.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    done = subprocess.run(
        [str(tool("mpiexec")), "-n", str(RANKS), *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300.0,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return float(done.stdout)


def run_wrapped(folder: Path, wrapper: Path) -> float:
    """Compile a wrapper, and run a program under it that writes ``run.*.csv``."""
    library, program = folder / "libmpi_segments.so", folder / "program"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror"]
    shared = ["-fPIC", "-shared", "-o", str(library), str(wrapper)]
    for what in (shared, ["-o", str(program), str(HERE / "mpi_program.c")]):
        subprocess.run([str(tool("mpicc")), *flags, *what], check=True)
    prefix = f"SEGMENTS={folder / 'run'}"
    return run_ranks("env", f"LD_PRELOAD={library}", prefix, program, str(STEPS), "10")


def check(folder: Path, late_s: float) -> tuple[SegmentProfile, Interference]:
    """Estimate the run from the files of its ranks, and compare with what was done to it."""
    ranks = [SegmentProfile.load(folder / f"run.{rank}.csv") for rank in range(RANKS)]
    assert [each.process for each in ranks] == [*range(RANKS)]
    assert {each.processes for each in ranks} == {RANKS}
    assert len({each.run for each in ranks}) == 1
    merged = merge_processes(ranks)
    found = profile_interference(merged)
    injected = 100.0 * late_s / found.duration_s
    assert injected > 10.0
    # On a busy machine groups spread, which lifts what counts as usual; and what no group is large
    # enough to judge may hold some of it.
    margin = 6.0 + found.measured_percent / 2.0
    assert found.percent < injected + margin, found
    assert found.percent > injected - margin - found.unclustered_percent, found
    assert found.unclustered_percent < 25.0, found
    assert found.light == "red"
    return merged, found


@on_linux
def test_a_late_rank_shows_in_the_segments_of_a_traced_communicator(tmp_path: Path) -> None:
    late_s = run_ranks(sys.executable, HERE / "mpi_program.py", tmp_path, str(STEPS), "10")
    merged, _ = check(tmp_path, late_s)
    assert merged.n == STEPS
    assert set(merged.nominal["label"]) == {"Allreduce"}
    assert merged.nominal["nonblocking_sends"].tolist() == [1] * STEPS
    assert merged.nominal["collectives_n_n"].tolist() == [1] * STEPS
    assert merged.nominal["collectives_1_n"].tolist() == [0, 0, 1] * (STEPS // 3)
    assert merged.nominal["sent_bytes"].tolist() == [520] * STEPS
    assert merged.nominal["received_bytes"].tolist() == [520, 520, 1032] * (STEPS // 3)
    # Spinning in a collective until the late rank comes is no computation.
    assert merged.computation["cpu_s"].sum() < 0.5 * merged.duration_s.sum()


@on_linux
@needs_cc
def test_a_c_wrapper_takes_what_the_processor_counts_for_computation(tmp_path: Path) -> None:
    """A counter of the kernel in place of the processor's, which few machines show."""
    (events,) = (each for each in capabilities() if each.name == "perf events")
    if not events.available:
        pytest.skip(events.reason)
    source = tmp_path / "segments.c"
    hardware, task_clock = "PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS", "1, 1"
    text = WRAPPER.read_text(encoding="utf-8")
    assert hardware in text
    source.write_text(text.replace(hardware, task_clock), encoding="utf-8")
    late_s = run_wrapped(tmp_path, source)
    ranks = [SegmentProfile.load(tmp_path / f"run.{rank}.csv") for rank in range(RANKS)]
    for each in ranks:
        assert each.computation.keys() == {"instructions"}
        # The clock of the task in nanoseconds, without what MPI spins: near the processor time.
        assert each.computation["instructions"].sum() * 1e-9 == pytest.approx(
            each.evidence["cpu_s"].sum(), rel=0.5
        )
        assert each.facts["floating_point"]
    assert merge_processes(ranks).duration_s.sum() > late_s


@on_linux
@needs_cc
def test_a_late_rank_shows_in_what_a_c_wrapper_writes(tmp_path: Path) -> None:
    late_s = run_wrapped(tmp_path, WRAPPER)
    merged, _ = check(tmp_path, late_s)
    assert merged.program == "program"
    assert merged.nominal["label"].tolist() == ["Allreduce"] * STEPS + ["Finalize"]
    assert merged.nominal["received_bytes"].tolist() == [520, 520, 1032] * (STEPS // 3) + [0]
    # What the kernel counts of the program's own reads and writes, stdio's as well.
    rank = SegmentProfile.load(tmp_path / "run.0.csv")
    written, read = [0, 0, 1, 0, 0, 1], [0, 0, 0, 0, 1, 0]
    for name, each, amount in (
        ("writes", written, 1),
        ("written_bytes", written, 3000),
        ("reads", read, 1),
        ("read_bytes", read, 500),
    ):
        assert rank.nominal[name].tolist() == [amount * n for n in each] * (STEPS // 6) + [0]
