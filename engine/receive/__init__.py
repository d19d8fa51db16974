"""receive, and what the holder of a receipt handle may do. `engine.py` calls it."""
