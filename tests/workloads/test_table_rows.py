"""Which lines that hold a number in a column are rows of the table."""

import io

import pytest

from benchrigor.errors import WorkloadFailed
from benchrigor.workloads.processes.picking import OutputSearch, Pick, read_picks

WRK2 = """\
Running 30s test @ http://127.0.0.1:80/index.html
  2 threads and 100 connections
  Thread calibration: mean lat.: 9747 usec, rate sampling interval: 21 msec
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     6.46ms    1.93ms  12.34ms   67.66%
  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.921     0.000000            1         1.00
       4.053     0.100000         3951         1.11
       6.379     0.500000        19764         2.00
      12.311     1.000000        39500          1e6
----------------------------------------------------------
  60018 requests in 30.00s, 19.81MB read
"""

IPERF3 = """\
Connecting to host 10.0.0.2, port 5201
[  5] local 10.0.0.1 port 44302 connected to 10.0.0.2 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  1.10 GBytes  9.42 Gbits/sec    0   3.00 MBytes
[  5]   1.00-2.00   sec  1.09 GBytes  9.38 Gbits/sec    0   3.00 MBytes
[  5]   2.00-3.00   sec   998 MBytes  8.37 Gbits/sec   41   1.51 MBytes
[  5]   3.00-4.00   sec  1.09 GBytes  9.40 Gbits/sec    0   1.62 MBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-4.00   sec  4.26 GBytes  9.14 Gbits/sec   41             sender
[  5]   0.00-4.04   sec  4.26 GBytes  9.05 Gbits/sec                  receiver
"""

TWO_KINDS = "\n".join(f"{n} served in {n} ms" if n % 5 < 3 else f"{n} failed" for n in range(20))


def picked(output: str, spec: str, *, unit_readings: bool = True) -> list[float]:
    picks = [Pick.parse(spec, unit_readings=unit_readings)]
    return list(read_picks(io.BytesIO(output.encode()), picks).found["x"])


def test_rows_are_told_from_what_a_load_generator_prints_around_them() -> None:
    assert picked(WRK2, "x=column:0") == [0.921, 4.053, 6.379, 12.311]
    assert picked(IPERF3, "x=column:6") == [9.42, 9.38, 8.37, 9.40]


def test_of_a_round_the_last_number_in_place_is_the_reading() -> None:
    assert picked(IPERF3, "x=column:6", unit_readings=False)[-1] == 9.05


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("1", [1.0]),
        ("1 thread\n2", [1.0, 2.0]),  # no two lines alike: no table
        ("10 s of warm up\n1 a\n2 b\n", [1.0, 2.0]),
        ("1 2 3\n4 - 6\n7 n/a 9\n", [1.0, 4.0, 7.0]),  # a row may lack a figure
        ("1 2 3 4 5\n10 seconds of warm up\n2 3 4 5 6\n3 4 5 6 7", [1.0, 2.0, 3.0]),
        ("1,GET /a b,200\n2,GET /c d e,200\n3,POST /f,201\n0 requests failed", [1.0, 2.0, 3.0]),
        ("1e-3 x\n2 x\ninfo 5\n", [0.001, 2.0]),
    ],
)
def test_the_rows_of_a_table_are_alike(output: str, expected: list[float]) -> None:
    assert picked(output, "x=column:0") == expected


def test_what_is_no_clear_table_is_refused_rather_than_halved() -> None:
    with pytest.raises(WorkloadFailed, match=r"12 of 20 lines with a number there are alike.*patt"):
        picked(TWO_KINDS, "x=column:0")
    assert picked(TWO_KINDS, "x=regex:^([0-9]+)") == list(range(20))


def test_rows_count_as_they_come_from_the_second_on() -> None:
    search = OutputSearch([Pick.parse("x=column:0", unit_readings=True)])
    seen = []
    for line in ("4 threads, as wanted\n", "1 a\n", "2 b\n", "3 c\n", "10 s in all\n", "4 d\n"):
        search.feed(line.encode())
        seen.append(list(search.found["x"]))
    search.finish()
    search.check()
    assert seen == [[], [], [1, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3, 4]]
    assert list(search.found["x"]) == [1, 2, 3, 4]
