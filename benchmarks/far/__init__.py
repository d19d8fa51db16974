"""Far delays at scale: see `__main__`."""
