"""Decides: queues, verbs, loading, moving. Knows Kafka through `log` and Redis through `state`; no
HTTP, no dialect.
"""
