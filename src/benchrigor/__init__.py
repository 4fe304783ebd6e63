"""benchrigor: benchmark numbers whose error bars can be believed."""
