"""What stands next to a number: the level at full speed, and the modes of readings."""
