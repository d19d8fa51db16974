"""Live measures: the counts of the reports, for each micro-batch."""
