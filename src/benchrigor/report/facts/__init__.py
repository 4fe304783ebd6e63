"""The facts of runs, comparisons and suites, a module for each group."""
