"""Pictures: readings in time order, work lines, segments, rates."""
