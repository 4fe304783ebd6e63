"""Choose the number of readings and the work amount of the next round."""
