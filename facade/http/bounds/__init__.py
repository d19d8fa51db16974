"""What clients may make a worker hold: bytes of requests, requests that are not whole, connections.

The connection and the front ask. Nothing here knows HTTP or a dialect, so another server may use
it.
"""
