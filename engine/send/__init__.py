"""send: Kafka has a message before the answer. `engine.py` calls it."""
