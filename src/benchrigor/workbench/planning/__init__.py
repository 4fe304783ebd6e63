"""What to try next on the way to a peak, and when to stop: policies without I/O."""
