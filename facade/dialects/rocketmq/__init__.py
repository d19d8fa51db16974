"""The RocketMQ 5 dialect: gRPC at a port of its own, translated to the engine's verbs. Nothing here
is imported while the port is off.
"""
