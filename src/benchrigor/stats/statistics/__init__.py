"""STATISTICS: estimates from readings."""
