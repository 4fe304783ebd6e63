"""What `go test -bench` prints."""

import json

import pytest

from benchrigor.model import Code


@pytest.mark.parametrize(
    ("unit", "base", "factor"),
    [
        ("ns/op", "s", 1e-9),
        ("ns/GC", "s", 1e-9),
        ("ms", "s", 1e-3),
        ("min/op", "s", 60.0),
        ("ops/us", "ops/s", 1e6),
        ("MB/s", "MB/s", 1.0),
        ("allocs/op", "allocs", 1.0),
        *((unit, unit, 1.0) for unit in ("p99-us", "%", "furlongs")),
    ],
)
def test_times_become_seconds_and_rates_per_second(held, unit, base, factor) -> None:
    (found,) = held(f"BenchmarkA-8 10 3 {unit}\nBenchmarkA-8 10 4 {unit}\n")
    assert found.metrics[0].unit == base
    assert found.readings() == pytest.approx([3.0 * factor, 4.0 * factor], rel=1e-15)


HEAD = "goos: linux\ngoarch: amd64\npkg: p\ncpu: %s\n"
END = "PASS\nok  \tp\t1.2s\n"


def test_a_configuration_that_changes_makes_other_results(held) -> None:
    line = "BenchmarkA-8 10 %d ns/op\n"
    text = f"commit: a\n{line % 3}{line % 3}commit: b\n{line % 9}{line % 9}"
    old, new = held(text)
    assert (old.name, new.name) == ("BenchmarkA-8 (commit=a)", "BenchmarkA-8 (commit=b)")
    assert (old.provenance.commit, new.provenance.commit) == ("a", "b")
    assert new.readings() == pytest.approx([9e-9] * 2)
    one, other = held(HEAD % "X" + line % 3 + END + HEAD % "Y" + line % 3 + END)
    assert (one.name, other.provenance.cpu) == ("BenchmarkA-8 (cpu=X)", "Y")


def test_what_go_test_writes_as_json_is_read_as_its_text(held) -> None:
    printed = [
        *("goos: linux\n", "pkg: p\n", "=== RUN   BenchmarkA\n", "BenchmarkA\n"),
        *("BenchmarkA-8   \t", "     100\t        12.5 ns/op\n", "BenchmarkA-8   \t"),
        *("a log\n", "     100\t        12.7 ns/op\n", "PASS\n"),
    ]
    events = [{"Action": "start", "Package": "p"}]
    events += [{"Action": "output", "Package": "p", "Output": each} for each in printed]
    events += [{"Action": "pass", "Package": "p", "Elapsed": 1.2}]
    (found,) = held("".join(json.dumps(each) + "\n" for each in events))
    assert (found.name, found.subject["parameters"]["pkg"]) == ("BenchmarkA-8", "p")
    assert found.readings() == pytest.approx([12.5e-9, 12.7e-9])


LOGS = [
    "BenchmarkA-8   \tstarting\n     100\t        12 ns/op\n",
    "BenchmarkA-8   \t2026/11/28 18:54:42 a\n2026/11/28 18:54:42 b\n     100\t        12 ns/op\n",
    "BenchmarkA-8   \tno line end     100\t        12 ns/op\n",
    "BenchmarkA-8   \t\nkey: value\n     100\t        12 ns/op\t       3 B/op\n",
]


@pytest.mark.parametrize("log", LOGS)
def test_a_result_behind_what_was_logged_is_read(held, log) -> None:
    (found,) = held(log + "BenchmarkA-8   \t     100\t        12 ns/op\n")
    assert found.readings() == pytest.approx([12e-9] * 2)
    assert found.subject["parameters"] == {"procs": "8"}


def test_a_name_without_a_result_is_lost_and_said_to_be(held, evidence) -> None:
    good = "BenchmarkA-8 10 3 ns/op\n"
    lost = "BenchmarkA-8   \tpanic\nBenchmarkB-8   \t--- FAIL: BenchmarkB-8\n    b_test.go: no\n"
    first, second = held(good + good + lost + "FAIL\n")
    assert evidence(first, Code.FAILED_RUNS) == {"failed": 1, "total": 3}
    assert second.rounds == ()
    assert evidence(second, Code.NO_RAW_READINGS) == {}


def test_what_is_written_about_benchmarks_is_none(held) -> None:
    (found,) = held("Benchmarking 3 things:\nBenchmark results of today\nBenchmarkA 10 3 ns/op\n")
    assert (found.name, found.session_notices) == ("BenchmarkA", ())


def test_units_that_not_all_repetitions_have_are_left_out(held, evidence) -> None:
    (found,) = held("BenchmarkA 10 3 ns/op 4 B/op\nBenchmarkA 10 3 ns/op\n")
    assert [each.name for each in found.metrics] == ["time"]
    assert evidence(found, Code.NOT_READ) == {"units": "B/op"}
