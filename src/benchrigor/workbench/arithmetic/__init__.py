"""What trials tell of a peak, and how long and how many they should be."""
