import json

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.units import Direction


def test_repetitions_are_readings_in_the_units_of_their_lines(sample) -> None:
    found = sample("go.txt")
    sort = found["BenchmarkSort/size=100-8"]
    assert (sort.unit, len(sort.rounds)) == ("repetition", 10)
    units = {each.name: each.unit for each in sort.metrics}
    assert units == {
        "time": "s",
        "MB/s": "MB/s",
        "widgets/op": "widgets",
        "B/op": "B",
        "allocs/op": "allocs",
    }
    assert sort.rounds[0].readings["time"] == pytest.approx(2410e-9, rel=0.1)
    assert sort.rounds[0].facts["inner_loop"] == 500000
    assert [each.must_satisfy for each in sort.metrics] == [True, False, False, False, False]


def test_lines_of_units_say_which_way_is_better(sample) -> None:
    metrics = {each.name: each for each in sample("go.txt")["BenchmarkSort/size=100-8"].metrics}
    assert metrics["widgets/op"].direction is Direction.HIGHER
    assert metrics["time"].direction is Direction.LOWER


def test_parameters_and_machine_are_told(sample) -> None:
    found = sample("go.txt")["BenchmarkSort/size=100-8"]
    assert found.parameters.items() >= {"size": "100", "procs": "8", "pkg": "example.org/p"}.items()
    assert found.parameters["goos"] == "linux"
    assert (found.provenance.system, found.provenance.cpu) == ("linux/amd64", "AMD EPYC")
    assert found.provenance.host is None


def test_packages_with_the_same_benchmark_are_told_apart(held) -> None:
    line = "BenchmarkA 10 3 ns/op\n"
    found = held(f"pkg: a\n{line}{line}pkg: b\n{line}")
    assert [(each.name, len(each.rounds)) for each in found] == [
        ("a.BenchmarkA", 2),
        ("b.BenchmarkA", 1),
    ]


@pytest.mark.parametrize("rest", ["3 ns/op 4", "ns/op 3", "NaN ns/op"])
def test_broken_lines_are_named(held, rest) -> None:
    with pytest.raises(InvalidInput, match=r"line 2|ns/op\[1\] is nan"):
        held(f"BenchmarkA 10 3 ns/op\nBenchmarkA 10 {rest}\n")


def test_units_that_not_all_repetitions_have_are_left_out(held) -> None:
    (found,) = held("BenchmarkA 10 3 ns/op 4 B/op\nBenchmarkA 10 3 ns/op\n")
    assert [each.name for each in found.metrics] == ["time"]
    assert [each.sentence for each in found.notices] == [
        "Some results lack B/op, which is left out of all.",
    ]
    with pytest.raises(InvalidInput, match="has BenchmarkA in different units"):
        held("BenchmarkA 10 3 ns/op\nBenchmarkA 10 3 B/op\n")


HEAD = "goos: linux\ngoarch: amd64\npkg: p\ncpu: %s\n"
END = "PASS\nok  \tp\t1.2s\n"


def test_a_configuration_that_changes_makes_other_results(held) -> None:
    line = "BenchmarkA-8 10 %d ns/op\n"
    text = f"commit: a\n{line % 3}{line % 3}commit: b\n{line % 9}{line % 9}"
    old, new = held(text)
    assert (old.name, new.name) == ("BenchmarkA-8 (commit=a)", "BenchmarkA-8 (commit=b)")
    assert (old.provenance.commit, new.provenance.commit) == ("a", "b")
    assert [each.readings["time"] for each in new.rounds] == pytest.approx([9e-9] * 2)
    one, other = held(HEAD % "X" + line % 3 + END + HEAD % "Y" + line % 3 + END)
    assert (one.name, other.provenance.cpu) == ("BenchmarkA-8 (cpu=X)", "Y")


def test_each_process_is_a_round(held) -> None:
    process = HEAD % "X" + "BenchmarkA-8 10 3 ns/op 4 B/op\nBenchmarkA-8 10 5 ns/op 4 B/op\n" + END
    (found,) = held(process * 3)
    assert (found.unit, len(found.rounds)) == ("process", 3)
    assert [each.unit_readings["time"].tolist() for each in found.rounds] == [
        pytest.approx([3e-9, 5e-9]),
    ] * 3
    assert held(process)[0].unit == "repetition"


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
    assert (found.name, found.parameters["pkg"]) == ("BenchmarkA-8", "p")
    assert [each.readings["time"] for each in found.rounds] == pytest.approx([12.5e-9, 12.7e-9])
    with pytest.raises(InvalidInput, match="go test -json without results"):
        held('{"Action": "start", "Package": "p"}\n' * 2)


@pytest.mark.parametrize("unit", ["ns/GC", "sec", "p99-us", "%"])
def test_units_of_any_kind_are_read(held, unit) -> None:
    (found,) = held(f"BenchmarkA-8 10 3 {unit}\nBenchmarkA-8 10 4 {unit}\n")
    assert len(found.rounds) == 2


LOGS = [
    "BenchmarkA-8   \tstarting\n     100\t        12 ns/op\n",
    "BenchmarkA-8   \t2026/11/28 18:54:42 a\n2026/11/28 18:54:42 b\n     100\t        12 ns/op\n",
    "BenchmarkA-8   \tno line end     100\t        12 ns/op\n",
    "BenchmarkA-8   \t\nkey: value\n     100\t        12 ns/op\t       3 B/op\n",
]


@pytest.mark.parametrize("log", LOGS)
def test_a_result_behind_what_was_logged_is_read(held, log) -> None:
    (found,) = held(log + "BenchmarkA-8   \t     100\t        12 ns/op\n")
    assert [each.readings["time"] for each in found.rounds] == pytest.approx([12e-9] * 2)
    assert found.parameters == {"procs": "8"}


def test_a_name_without_a_result_is_lost_and_said_to_be(held) -> None:
    good = "BenchmarkA-8 10 3 ns/op\n"
    lost = "BenchmarkA-8   \tpanic\nBenchmarkB-8   \t--- FAIL: BenchmarkB-8\n    b_test.go: no\n"
    first, second = held(good + good + lost + "FAIL\n")
    (notice,) = first.notices
    assert dict(notice.evidence) == {"failed": 1, "total": 3}
    assert "33.3% failed (1 of 3, such as in line 3" in notice.sentence
    assert second.rounds == ()
    assert "Line 4 has no result" in second.notices[0].sentence


def test_what_is_written_about_benchmarks_is_none(held) -> None:
    (found,) = held("Benchmarking 3 things:\nBenchmark results of today\nBenchmarkA 10 3 ns/op\n")
    assert (found.name, found.notices) == ("BenchmarkA", ())


def test_fewer_allocations_are_better(held) -> None:
    (found,) = held("BenchmarkA-8 10 3 ns/op 4 B/op 7 allocs/op\n" * 2)
    assert [each.direction for each in found.metrics] == [Direction.LOWER] * 3
