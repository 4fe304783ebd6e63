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
    assert found.parameters == {"size": "100", "procs": "8", "pkg": "example.org/p"}
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
    with pytest.raises(InvalidInput, match="has BenchmarkA in different units"):
        held("BenchmarkA 10 3 ns/op\nBenchmarkA 10 3 B/op\n")
