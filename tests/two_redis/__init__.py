"""Two lives of Redis: failover, split, failback, a stale replica, eviction, a mute server.

What clients of two workers wrote into their books is judged. `python -m tests.two_redis --help`.
"""
