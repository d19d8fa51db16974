"""What the owner of a unit does: it drains the outbox, loads from Kafka and shows its lag. It runs
by itself.
"""
