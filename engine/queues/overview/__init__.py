"""What is in all queues at a glance: one worker counts them, and every worker can show it."""
