"""The machine during the rounds of a run: lost time, stops and pace."""
