"""What workers share beside the state of units: parts of quotas, uses of keys, counts of queues."""
