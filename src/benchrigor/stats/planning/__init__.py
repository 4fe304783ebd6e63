"""How much to measure, and how well earlier intervals held."""
