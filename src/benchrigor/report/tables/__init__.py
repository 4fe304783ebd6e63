"""Tables of many numbers: suites of benchmarks, and rows for other programs."""
