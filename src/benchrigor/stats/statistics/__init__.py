"""STATISTICS: what is estimated of readings, and how."""
