"""Verbs of queues and what their settings mean: names, attributes, policies, tags, permissions.

`facade.dialects.sqs.messages.messages` and the dialect use it.
"""
