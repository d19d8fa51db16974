"""Typed frames over Kafka's topics, in batch and as streams. Jobs and reports begin here."""
