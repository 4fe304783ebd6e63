"""Work per second: the line through work amounts and durations."""
