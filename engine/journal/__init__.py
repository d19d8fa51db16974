"""What happened to messages: entries from the outbox to Kafka, folded states, snapshots. `loading`
appends, `recovery` reads.
"""
