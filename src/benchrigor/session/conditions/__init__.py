"""The machine during the rounds of a run: lost time, alarms, stops and pace."""
