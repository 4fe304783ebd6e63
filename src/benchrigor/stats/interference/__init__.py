"""What of a single run's time was lost to others, from its segments."""
