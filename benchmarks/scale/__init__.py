"""What a message costs as the state grows: partitions, tags, queues, backlog, messages in flight,
delayed messages.
"""
