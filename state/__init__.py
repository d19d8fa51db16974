"""The window in Redis: visible times, leases, cursors, outbox. Knows units, tag numbers and
offsets; not queues, HTTP or Kafka.
"""
