"""What RocketMQ clients send and get: generated messages, codes, and the table of errors. It knows
no queue.
"""
