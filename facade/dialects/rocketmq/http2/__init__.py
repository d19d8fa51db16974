"""gRPC over HTTP/2, as much of it as RocketMQ's clients use, within bounds against strangers.

h2 knows the protocol. `frames` cuts bytes into frames and counts those that bring nothing,
`framing` has the bytes of gRPC, `rpc` is one call, `connection` one connection, `port` what all
connections of a worker share.
"""
