"""What is measured next: how many readings, and which amount of work."""
