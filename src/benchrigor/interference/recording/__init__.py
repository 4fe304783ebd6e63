"""Recording the segments of a Python program while it runs."""
