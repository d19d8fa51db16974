"""Methods on messages, and how a message of RocketMQ is one of the engine."""
