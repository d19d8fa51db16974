"""A second driver, written from the documents alone: clients of the outside, and random faults that
anybody could cause. `tests/judge` checks what they wrote down.

    python -m tests.outside.run --seed 1 --seconds 180 --workers 2 [--load 15] [--report r.json]
    python -m tests.outside.run --script stale-snapshots   # a directed story, not random weather

It shares nothing with `tests/faults` but the judge and the way to start `leaseway up`: the clients
speak HTTP with sockets and boto3, and know of the service what is in docs/ and nowhere else.
"""
