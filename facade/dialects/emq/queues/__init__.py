"""Queues, tags, permissions and users of EMQ, and what every method needs of a request: `call`,
`names`. Called by `facade.dialects.emq.actions`.
"""
