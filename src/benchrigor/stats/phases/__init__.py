"""Which part of a series is stable: warm-up and cool-down are left out."""
