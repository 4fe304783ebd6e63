"""Capabilities and provenance, read from machines that are known because they are made up."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchrigor.machine import capabilities, provenance
from benchrigor.machine import host as module
from benchrigor.machine.host import load_average
from benchrigor.model import Capability

CPUS = "sys/devices/system/cpu"
LAPTOP = {
    "sys/class/power_supply/AC/online": "0\n",
    f"{CPUS}/cpufreq/policy0/scaling_governor": "powersave\n",
    f"{CPUS}/cpufreq/policy1/scaling_governor": "performance\n",
    f"{CPUS}/intel_pstate/no_turbo": "0\n",
    f"{CPUS}/smt/active": "1\n",
    f"{CPUS}/online": "0-7\n",
    "proc/self/status": "Name:\tpython\nCpus_allowed:\t0f\nCpus_allowed_list:\t0-2,5\n",
    "proc/self/cgroup": "0::/user.slice/bench\n",
    "sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/user.slice/bench/cpu.max": "max 100000\n",
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Fast CPU 9000\nflags\t\t: fpu sse2\n",
    "sys/class/dmi/id/sys_vendor": "LENOVO\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "proc/sys/kernel/randomize_va_space": "2\n",
    "proc/thread-self/schedstat": "338853827 185991 4\n",
    "proc/sys/kernel/perf_event_paranoid": "1\n",
    "sys/bus/event_source/devices/cpu/type": "4\n",
}


def made_up(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def read(root: Path, name: str) -> Capability:
    return next(each for each in capabilities(root=root) if each.name == name)


def test_a_laptop_is_read_as_it_is(tmp_path: Path) -> None:
    assert {each.name: each.value for each in capabilities(root=made_up(tmp_path, LAPTOP))} == {
        "cpu governor": "performance, powersave",
        "turbo": "on",
        "smt": "on",
        "cores available": "4 of 8",
        "cpu quota": "1.5 cores",
        "virtualisation": "none seen",
        "clock source": "tsc",
        "aslr": "full",
        "scheduler statistics": "time running and waiting of each process",
        "perf events": "hardware and software (paranoid level 1)",
        "power source": "battery",
    }


@pytest.mark.parametrize(
    ("name", "files", "value"),
    [
        ("turbo", {f"{CPUS}/intel_pstate/no_turbo": "1"}, "off"),
        ("turbo", {f"{CPUS}/cpufreq/boost": "1"}, "on"),
        ("smt", {f"{CPUS}/smt/active": "0"}, "off"),
        ("cpu quota", {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 1"}, "none"),
        (
            "cpu quota",
            {
                "proc/self/cgroup": "5:memory:/m\n1:cpu,cpuacct:/gone/from/here\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            "0.5 cores",
        ),
        (
            "cpu quota",
            {"proc/self/cgroup": "1:cpu:/", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1"},
            "none",
        ),
        ("virtualisation", {"proc/cpuinfo": "flags\t: fpu hypervisor sse2"}, "virtual machine"),
        (
            "virtualisation",
            {"proc/cpuinfo": "Features\t: fp", "sys/class/dmi/id/product_name": "KVM Guest"},
            "virtual machine (KVM Guest)",
        ),
        (
            "perf events",
            {"proc/sys/kernel/perf_event_paranoid": "-1"},
            "software only (paranoid level -1)",
        ),
        ("aslr", {"proc/sys/kernel/randomize_va_space": "0"}, "off"),
    ],
)
def test_each_setting_is_read(tmp_path: Path, name: str, files: dict[str, str], value: str) -> None:
    found = read(made_up(tmp_path, files), name)
    assert (found.available, found.value, found.reason) == (True, value, "")


def test_a_machine_that_shows_nothing_gives_a_reason_for_each_capability(tmp_path: Path) -> None:
    nothing = capabilities(root=tmp_path)
    assert len(nothing) == 11
    for each in nothing:
        assert not each.available
        assert each.value is None
        assert str(tmp_path) in each.reason


def test_files_that_make_no_sense_give_a_reason(tmp_path: Path) -> None:
    nonsense = capabilities(root=made_up(tmp_path, dict.fromkeys(LAPTOP, "\x00?!")))
    any_text = {
        "cpu governor",
        "clock source",
        "virtualisation",
        "power source",
    }  # whatever stands there
    assert {each.name for each in nonsense if each.available} == any_text
    assert all(each.reason for each in nonsense if not each.available)


def test_forbidden_perf_events_say_what_forbids_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = made_up(tmp_path, {"proc/sys/kernel/perf_event_paranoid": "4"})
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    assert "perf_event_paranoid is 4, at most 2" in read(root, "perf events").reason
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    assert read(root, "perf events").available


def test_a_kernel_that_does_not_count_has_no_scheduler_statistics(tmp_path: Path) -> None:
    root = made_up(tmp_path, {"proc/thread-self/schedstat": "0 0 0\n"})
    assert "does not count" in read(root, "scheduler statistics").reason


def test_this_machine_is_read_without_an_exception() -> None:
    for each in capabilities():
        assert each.available == (each.value is not None) == (each.reason == "")


def test_provenance_tells_the_machine_the_interpreter_and_the_packages(tmp_path: Path) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    found = provenance(root=made_up(tmp_path, LAPTOP))
    assert found.cpu == "Fast CPU 9000"
    assert found.cores == os.cpu_count()
    assert found.python.split()[0] in {"CPython", "PyPy"}
    assert set(found.packages) == {"benchrigor", "numpy", "scipy"}
    assert found.capabilities == capabilities(root=tmp_path)
    assert before <= datetime.fromisoformat(found.started_at) <= datetime.now(UTC)
    assert found.load_after is None


def test_the_processor_has_some_name_where_linux_has_none(tmp_path: Path) -> None:
    assert provenance(root=tmp_path).cpu


def git(*arguments: str) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@b", *arguments]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return answer.stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_commit_is_that_around_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "GIT_CEILING_DIRECTORIES": str(tmp_path.parent),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GIT_DIR", raising=False)
    monkeypatch.setattr(module, "GIT_TIMEOUT_S", 30.0)
    assert provenance().commit is None
    git("init", "--quiet")
    Path("file").write_text("one")
    git("add", "file")
    git("commit", "--quiet", "--message", "first")
    assert provenance().commit == git("rev-parse", "HEAD")
    Path("file").write_text("two!")
    assert provenance().commit == git("rev-parse", "HEAD") + "+dirty"


def test_a_git_that_is_missing_or_hangs_leaves_the_commit_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance().commit is None
    (tmp_path / "git").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setattr(module, "GIT_TIMEOUT_S", 0.05)
    assert provenance().commit is None


def test_a_system_without_a_load_average_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "getloadavg")
    assert load_average() is None


def test_pyperf_and_psutil_tell_of_host_and_interpreter_without_what_is_of_a_moment() -> None:
    found = module.environment()
    assert found.keys() >= {"boot_time", "cpu_count", "memory", "python_executable", "perf_version"}
    assert not {"hostname", "date", "uptime", "load_avg_1min", "mem_max_rss"} & found.keys()
    assert provenance(full=True).environment == found
    assert provenance().environment == {}


def test_what_cannot_be_read_of_them_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no")

    module._environment.cache_clear()  # noqa: SLF001
    monkeypatch.setattr("pyperf.Run", fail)
    assert "memory" in module.environment()
    module._environment.cache_clear()  # noqa: SLF001
    monkeypatch.setattr("psutil.virtual_memory", fail)
    assert module.environment() == {}
    module._environment.cache_clear()  # noqa: SLF001
