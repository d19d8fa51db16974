"""The log of a worker: its lines, the ids of requests, the access log."""
