"""What requests a queue has seen, minute by minute: counted in each worker, kept in Kafka, asked by
alerts, metrics and daily statistics.
"""
