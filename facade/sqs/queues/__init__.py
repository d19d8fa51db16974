"""Verbs of queues and what their settings mean: names, attributes, policies, tags, permissions.

`facade.sqs.messages.messages` and the dialect use it.
"""
