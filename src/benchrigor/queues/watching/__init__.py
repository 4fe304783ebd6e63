"""From the counters of stages, looked at while they run, to their rates."""
