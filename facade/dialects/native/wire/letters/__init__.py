"""Bodies and replies about dead letters, and what happened to messages."""
