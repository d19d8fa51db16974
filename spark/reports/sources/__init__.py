"""Where a report reads: the log, or tables."""
