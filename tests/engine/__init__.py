"""Rooms of the engine against scripts in a real Redis, without Kafka; time is moved by hand."""
