"""receive, with and without a filter, and a look at what is there. `engine.py` calls it."""
