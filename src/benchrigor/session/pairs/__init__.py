"""Two compared: functions measured in turn, and runs that were stored."""
