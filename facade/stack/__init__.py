"""The embedded stack: a real Kafka broker, a real redis-server and facade workers as children of
one process.

Neighbours: `facade.cli.cli` calls it. It must not know queues or messages, nor import the Kafka or
Redis client: it starts programs and watches them.
"""
