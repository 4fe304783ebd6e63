"""What the scripts of evidence share."""
