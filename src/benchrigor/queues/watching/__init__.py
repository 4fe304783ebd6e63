"""From the counters of stages, sampled while they run, to their periods and rates."""
