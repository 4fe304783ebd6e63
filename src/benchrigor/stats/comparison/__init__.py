"""Candidate against baseline: ratio, difference, verdict; many comparisons together."""
