"""Copies the log into tables of Apache Iceberg, where it outlives Kafka's retention."""
