"""What goes over the wire: shapes of requests, replies, and how the engine's values become them.

The operations use it.
"""
