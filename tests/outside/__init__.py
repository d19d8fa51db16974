"""A second fault harness, written from the documents alone: clients with a book of their own,
random bad weather, checks afterwards.

    python -m tests.outside.run --seed 1 --seconds 180 --workers 2 [--load 15] [--report r.json]
    python -m tests.outside.run --script stale-snapshots   # a directed story, not random weather
    python -m tests.outside.judge book.jsonl                       # judge a book again
    python -m tests.outside.table r1.json r2.json                  # the table of docs

It shares nothing with `tests/faults` but the way to start `leaseway up`: the clients speak HTTP
with sockets and boto3, the book is written at the client, times are the client's monotonic clock,
and what the service may do is read from docs/ and nowhere else.
"""
