"""Which records of a queue's topic are messages: atomic batches, commits, and what is skipped."""
