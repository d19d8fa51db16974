"""The embedded stack: a real Kafka broker, a real redis-server and facade workers as children of
one process.
"""
