"""What decides whether each promise was kept: the history of a run, and the checks of it."""
